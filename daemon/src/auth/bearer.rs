//! Pure: the bearer token of a request (RFC 6750 §2.1). From `Authorization` alone, never from a query or a form.

use http::{HeaderMap, header::AUTHORIZATION};

use crate::fault::Fault;

/// The longest token that is looked at, in bytes.
const MOST_TOKEN_BYTES: usize = 16 << 10;

/// The token that a request carries.
///
/// # Errors
/// [`Fault::MissingToken`] where there is none, or another scheme (RFC 6750 §3.1: no authentication information);
/// [`Fault::MalformedAuthorization`] where the header cannot be read; [`Fault::InvalidToken`] where the token is longer
/// than any that we verify.
pub(super) fn token(headers: &HeaderMap) -> Result<&str, Fault> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Fault::MissingToken)?;
    if values.next().is_some() {
        return Err(Fault::MalformedAuthorization);
    }
    let value = value.to_str().map_err(|_| Fault::MalformedAuthorization)?.trim();
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Fault::MissingToken);
    }
    let token = token.trim_start();
    let of_b64token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    if token.is_empty() || !token.chars().all(of_b64token) {
        return Err(Fault::MalformedAuthorization);
    }
    if token.len() > MOST_TOKEN_BYTES {
        return Err(Fault::InvalidToken("is too long"));
    }
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<String, Fault> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, value.parse().unwrap());
        }
        token(&headers).map(str::to_owned)
    }

    #[test]
    fn a_token_is_read_from_the_header_whatever_the_case_of_its_scheme() {
        for value in ["Bearer a.b-c_d", "bearer a.b-c_d", "BEARER   a.b-c_d "] {
            assert_eq!(of(&[value]).as_deref(), Ok("a.b-c_d"), "{value}");
        }
    }

    #[test]
    fn no_header_and_another_scheme_are_no_token_and_what_cannot_be_read_is_malformed() {
        for value in [&[][..], &["Basic YTpi"], &["Negotiate x"]] {
            assert_eq!(of(value), Err(Fault::MissingToken), "{value:?}");
        }
        for value in
            [&["Bearer"][..], &["Bearer "], &["Bearer a b"], &["Bearer \"a\""], &["Bearer a", "Bearer a"]]
        {
            assert_eq!(of(value), Err(Fault::MalformedAuthorization), "{value:?}");
        }
        assert!(matches!(of(&[&format!("Bearer {}", "a".repeat(20_000))]), Err(Fault::InvalidToken(_))));
    }
}

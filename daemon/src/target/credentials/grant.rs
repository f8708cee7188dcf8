//! Pure: what is asked of a token endpoint, and what its answer means (RFC 6749 §4.4, §5; RFC 8693 §2).

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderValue, StatusCode};
use mooring_crds::config::TokenClient;
use serde::Deserialize;

use super::Trouble;

const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
/// How long a token lives of which the endpoint does not say so.
const UNSAID: Duration = Duration::from_secs(60);
/// No token is kept longer, whatever the endpoint says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The body that asks for a token of the client's own; with a subject's token, for one in the subject's name.
pub(super) fn form(client: &TokenClient, subject: Option<&str>) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    match subject {
        None => {
            form.append_pair("grant_type", "client_credentials");
        }
        Some(token) => {
            form.append_pair("grant_type", TOKEN_EXCHANGE);
            form.append_pair("subject_token", token);
            form.append_pair("subject_token_type", ACCESS_TOKEN);
            form.append_pair("requested_token_type", ACCESS_TOKEN);
        }
    }
    if !client.scopes.is_empty() {
        form.append_pair("scope", &client.scopes.join(" "));
    }
    if let Some(audience) = &client.audience {
        form.append_pair("audience", audience);
    }
    form.finish()
}

/// The `Authorization` of a client (RFC 6749 §2.3.1: both parts are encoded as in a form first).
///
/// # Errors
/// Where a part is no text.
pub(super) fn basic(id: &[u8], secret: &[u8]) -> Result<HeaderValue, Trouble> {
    let part = |part: &[u8]| {
        let text = std::str::from_utf8(part.trim_ascii()).map_err(|_| Trouble::Unusable("it is no text"))?;
        Ok(form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>())
    };
    let pair = BASE64_STANDARD.encode(format!("{}:{}", part(id)?, part(secret)?));
    sensitive(&format!("Basic {pair}")).map_err(|()| Trouble::Unusable("it is no header's value"))
}

/// A value that no log shows.
pub(super) fn sensitive(value: &str) -> Result<HeaderValue, ()> {
    let mut value = HeaderValue::from_str(value).map_err(drop)?;
    value.set_sensitive(true);
    Ok(value)
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: String,
    #[serde(default)]
    expires_in: Option<serde_json::Number>,
}

#[derive(Deserialize)]
struct Denied {
    error: String,
}

/// What a token endpoint answered: the value of `Authorization`, and how long it lives.
///
/// # Errors
/// [`Trouble::Refused`] with the endpoint's own code, and never its description, which may repeat what was sent.
pub(super) fn read(status: StatusCode, body: &[u8]) -> Result<(HeaderValue, Duration), Trouble> {
    if status != StatusCode::OK {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let code = serde_json::from_slice::<Denied>(body).map(|denied| denied.error).ok();
        let code = code.filter(|code| (1..=64).contains(&code.len()) && code.chars().all(plain));
        return Err(Trouble::Refused(code.unwrap_or_else(|| format!("HTTP {}", status.as_u16()))));
    }
    let granted: Granted =
        serde_json::from_slice(body).map_err(|_| Trouble::Answer("something that is no token"))?;
    let Granted { access_token, token_type, expires_in } = granted;
    if !token_type.eq_ignore_ascii_case("bearer") {
        return Err(Trouble::Answer("a token of another type than Bearer"));
    }
    let value = sensitive(&format!("Bearer {access_token}"))
        .map_err(|()| Trouble::Answer("a token that no header can carry"))?;
    // Some write it as a fraction; one that is below zero is over.
    let seconds = expires_in.and_then(|seconds| seconds.as_f64());
    let life = seconds.map_or(UNSAID, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
    Ok((value, life.min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> TokenClient {
        TokenClient {
            scopes: vec!["read".to_owned(), "write".to_owned()],
            audience: Some("https://a.example/mcp".to_owned()),
            ..TokenClient::default()
        }
    }

    #[test]
    fn a_client_asks_for_itself_and_an_exchange_in_the_subjects_name() {
        assert_eq!(
            form(&client(), None),
            "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fa.example%2Fmcp"
        );
        let exchange = form(&TokenClient::default(), Some("a.b.c"));
        assert_eq!(
            exchange,
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=a.b.c&\
             subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token&\
             requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
        );
    }

    #[test]
    fn id_and_secret_are_encoded_before_they_are_put_together() {
        let value = basic(b"a:b\n", b"p w").unwrap();
        assert_eq!(value.to_str().unwrap(), format!("Basic {}", BASE64_STANDARD.encode("a%3Ab:p+w")));
        assert!(value.is_sensitive());
        assert!(basic(b"\xff", b"").is_err());
    }

    #[test]
    fn a_refusal_tells_the_code_and_nothing_that_was_sent() {
        let body = br#"{"error":"invalid_client","error_description":"secret hunter2 is wrong"}"#;
        let refused = read(StatusCode::UNAUTHORIZED, body).unwrap_err();
        assert_eq!(refused, Trouble::Refused("invalid_client".to_owned()));
        let odd = read(StatusCode::BAD_REQUEST, br#"{"error":"hunter2 is wrong"}"#).unwrap_err();
        assert_eq!(odd, Trouble::Refused("HTTP 400".to_owned()));
    }

    #[test]
    fn only_a_bearer_token_is_one_and_its_life_is_bounded() {
        let ok = |body: &str| read(StatusCode::OK, body.as_bytes());
        let (value, life) = ok(r#"{"access_token":"t","token_type":"bearer","expires_in":300}"#).unwrap();
        assert_eq!((value.to_str().unwrap(), life.as_secs()), ("Bearer t", 300));
        assert_eq!(ok(r#"{"access_token":"t","token_type":"Bearer"}"#).unwrap().1, UNSAID);
        let life = |seconds: &str| {
            ok(&format!(r#"{{"access_token":"t","token_type":"Bearer","expires_in":{seconds}}}"#)).unwrap().1
        };
        assert_eq!((life("-5"), life("1e9")), (Duration::ZERO, LONGEST));
        for body in ["{}", "[]", "", r#"{"access_token":"t","token_type":"N_A"}"#] {
            assert!(matches!(ok(body), Err(Trouble::Answer(_))), "{body}");
        }
    }
}

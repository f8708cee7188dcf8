//! The provider's keys: they rotate, and the provider may be away.

use e2e::{client::DEADLINE, process::poll};

use super::*;

async fn initialize(client: &Client) -> Result<StatusCode, Error> {
    Ok(client.post_initialize("2025-11-25", json!({})).await?.status)
}

async fn until(client: &Client, status: StatusCode) -> Outcome {
    let is = async || (initialize(client).await.ok()? == status).then_some(());
    poll(DEADLINE, is).await.ok_or_else(|| format!("{status} never came").into())
}

#[tokio::test]
async fn a_provider_that_is_down_stops_neither_the_start_nor_readiness_and_a_token_then_waits() -> Outcome {
    let mut provider = IdentityProvider::prepare().await?;
    let moored = Moored::serve(gateway(&provider, "", "")).await?;
    provider.listen().await?;
    let token = provider.token(of("alice")).await?;
    provider.stop().await?;
    let client = bearing(&moored, &token)?;
    let answer = client.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "it cannot be told whether the token is good");
    assert!(answer.header("retry-after").is_some() && answer.header("www-authenticate").is_none());
    // Without a token there is nothing to verify.
    let nobody = moored.client()?.post_initialize("2025-11-25", json!({})).await?;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    provider.listen().await?;
    let known = bearing(&moored, &provider.token(of("alice")).await?)?;
    until(&known, StatusCode::OK).await
}

#[tokio::test]
async fn a_new_key_verifies_a_removed_one_stops_and_a_provider_that_is_away_takes_none() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let moored = Moored::serve(gateway(&provider, "", "")).await?;
    let old = bearing(&moored, &provider.token(of("alice")).await?)?;
    until(&old, StatusCode::OK).await?;
    provider.stop().await?;
    assert_eq!(initialize(&old).await?, StatusCode::OK, "its keys are known");
    provider.listen().await?;
    let new = bearing(&moored, &provider.token(of("alice")).await?)?;
    until(&new, StatusCode::OK).await?;
    // At once, although it was verified a moment ago.
    assert_eq!(initialize(&old).await?, StatusCode::UNAUTHORIZED);
    Ok(())
}

// OpenID Connect Discovery 1.0 §4.3.
#[tokio::test]
async fn a_provider_that_describes_somebody_else_gives_no_keys() -> Outcome {
    let mut provider = IdentityProvider::start().await?;
    let (own, other) = (provider.issuer(), provider.issuer().replace("127.0.0.1", "localhost"));
    let moored = Moored::serve(gateway(&provider, "", "").replace(&own, &other)).await?;
    let mut claims = of("alice");
    claims["iss"] = json!(other);
    let client = bearing(&moored, &provider.token(claims).await?)?;
    assert_eq!(initialize(&client).await?, StatusCode::SERVICE_UNAVAILABLE);
    let told = async || {
        let says = format!("it says that its issuer is {own}");
        moored.log().iter().any(|line| line.to_string().contains(&says)).then_some(())
    };
    assert!(poll(DEADLINE, told).await.is_some(), "{:?}", moored.log());
    Ok(())
}

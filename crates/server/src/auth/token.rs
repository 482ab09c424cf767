//! JSON Web Tokens, signed with a secret that is shared.
//!
//! Only what InfluxDB takes: HMAC with SHA-2, claims `exp` (needed), `username` (needed), `iat` and
//! `nbf`. Nothing in a token is believed before its signature was compared. The messages are those
//! of the library that InfluxDB uses, except where a text is no JSON.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Map, Value};
use sha2::{Sha256, Sha384, Sha512};

use crate::config::Secret;

/// Names of methods that exist and are not taken.
const OTHER_METHODS: [&str; 10] =
    ["none", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"];

/// The name of the user that `token` was made for.
///
/// # Errors
/// Why the token is not good, as text.
pub(super) fn user_of(token: &str, secret: Option<&Secret>, now_s: i64) -> Result<String, String> {
    let secret = secret.ok_or("bearer auth disabled")?;
    let mut parts = token.split('.');
    let (Some(head), Some(body), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err("token contains an invalid number of segments".to_owned());
    };
    let header = object(head)?;
    let claims = object(body)?;
    let Some(Value::String(method)) = header.get("alg") else {
        return Err("signing method (alg) is unspecified.".to_owned());
    };
    let signed = &token.as_bytes()[..head.len() + 1 + body.len()];
    let key = secret.as_bytes();
    let genuine = match method.as_str() {
        "HS256" => Hmac::<Sha256>::new_from_slice(key).map(|mac| verify(mac, signed, signature)),
        "HS384" => Hmac::<Sha384>::new_from_slice(key).map(|mac| verify(mac, signed, signature)),
        "HS512" => Hmac::<Sha512>::new_from_slice(key).map(|mac| verify(mac, signed, signature)),
        method if OTHER_METHODS.contains(&method) => {
            return Err(format!("unexpected signing method: {method}"));
        }
        _ => return Err("signing method (alg) is unavailable.".to_owned()),
    };
    if !genuine.map_err(|error| error.to_string())?? {
        return Err("signature is invalid".to_owned());
    }
    check_times(&claims, now_s)?;
    match claims.get("username") {
        Some(Value::String(name)) if name.is_empty() => {
            Err("token must contain a username".to_owned())
        }
        Some(Value::String(name)) => Ok(name.clone()),
        _ => Err("username in token must be a string".to_owned()),
    }
}

/// Whether `signature` was made of `signed`. Takes the same time wherever they differ.
fn verify(mut mac: impl Mac, signed: &[u8], signature: &str) -> Result<bool, String> {
    let signature = decode(signature)?;
    mac.update(signed);
    Ok(mac.verify_slice(&signature).is_ok())
}

/// The claims about time; of several that are not met the last counts.
fn check_times(claims: &Map<String, Value>, now_s: i64) -> Result<(), String> {
    let time = |name| claims.get(name).and_then(Value::as_f64).map(|seconds| seconds as i64);
    let zero_is_none = |name| time(name).filter(|seconds| *seconds != 0);
    if zero_is_none("nbf").is_some_and(|nbf| now_s < nbf) {
        return Err("Token is not valid yet".to_owned());
    }
    if zero_is_none("iat").is_some_and(|iat| now_s < iat) {
        return Err("Token used before issued".to_owned());
    }
    match time("exp") {
        None | Some(0) => Err("token expiration required".to_owned()),
        Some(exp) if now_s > exp => Err("Token is expired".to_owned()),
        Some(_) => Ok(()),
    }
}

fn object(part: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_slice(&decode(part)?).map_err(|error| {
        if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            format!("a part of the token is no JSON object: {error}")
        }
    })
}

fn decode(part: &str) -> Result<Vec<u8>, String> {
    let part = part.trim_end_matches('=');
    URL_SAFE_NO_PAD.decode(part).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _)
            | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => at,
            _ => part.len(),
        };
        format!("illegal base64 data at input byte {at}")
    })
}

#[cfg(test)]
mod tests;

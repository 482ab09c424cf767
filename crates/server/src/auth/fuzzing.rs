//! Entry points for fuzz targets.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderValue};
use sha2::Sha256;

use super::credentials::Credentials;
use super::token::user_of;
use crate::config::Secret;
use crate::params::Params;

const KEY: &str = "key";
const NOW_S: i64 = 1_700_000_000;

/// Reads `data` as an `Authorization` header, as a token, and as header and claims (a line each) of a
/// token that is signed. One that is not signed names nobody.
///
/// # Panics
/// When it does, which is a bug.
pub fn authorization(data: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(data) {
        let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
        let found = Credentials::of_request(&headers, &Params::of_url(None));
        if let Some(Credentials::Token(token)) = found {
            let named = user_of(&token, Some(&Secret::new(KEY.to_owned())), NOW_S);
            assert!(named.is_err() || is_signed(&token), "BUG: believed without a signature");
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (header, claims) = text.split_once('\n').unwrap_or((text, ""));
    let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part));
    let signed = format!("{header}.{claims}");
    let token = format!("{signed}.{}", signature(&signed));
    let _ = user_of(&token, Some(&Secret::new(KEY.to_owned())), NOW_S);
    assert!(user_of(&token, None, NOW_S).is_err(), "BUG: tokens are off without a secret");
    let other = user_of(&token, Some(&Secret::new("other".to_owned())), NOW_S);
    assert!(other.is_err(), "BUG: believed with another secret");
}

fn is_signed(token: &str) -> bool {
    let Some((signed, mac)) = token.rsplit_once('.') else { return false };
    mac.trim_end_matches('=') == signature(signed)
}

fn signature(signed: &str) -> String {
    // Any length of key is good.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()) else { return String::new() };
    mac.update(signed.as_bytes());
    URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
}

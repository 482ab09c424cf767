use super::*;
use proptest::prelude::*;

const NOW_S: i64 = 1_700_000_000;

fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn signed(header: &str, claims: &str, key: &str) -> String {
    let text = format!("{}.{}", encode(header), encode(claims));
    let mac = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let signature = if header.contains("HS512") {
        let mut hmac = Hmac::<Sha512>::new_from_slice(key.as_bytes()).unwrap();
        hmac.update(text.as_bytes());
        mac(&hmac.finalize().into_bytes())
    } else {
        let mut hmac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
        hmac.update(text.as_bytes());
        mac(&hmac.finalize().into_bytes())
    };
    format!("{text}.{signature}")
}

fn of(token: &str) -> Result<String, String> {
    user_of(token, Some(&Secret::new("key".to_owned())), NOW_S)
}

const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
const GOOD: &str = r#"{"username":"ann","exp":1700000000}"#;

#[test]
fn good_tokens() {
    let ann = Ok("ann".to_owned());
    assert_eq!(of(&signed(HS256, GOOD, "key")), ann);
    assert_eq!(of(&signed(r#"{"alg":"HS512"}"#, GOOD, "key")), ann);
    assert_eq!(of(&format!("{}=", signed(HS256, GOOD, "key"))), ann, "padding is left out or not");
    let float = r#"{"username":"ann","exp":1700000000.5,"iat":5,"nbf":0}"#;
    assert_eq!(of(&signed(HS256, float, "key")), ann);
}

#[test]
fn claims_that_are_not_met() {
    for (claims, error) in [
        (r#"{"username":"ann","exp":1699999999}"#, "Token is expired"),
        (r#"{"username":"ann","exp":-5}"#, "Token is expired"),
        (r#"{"username":"ann","exp":1699999999,"nbf":1700000001}"#, "Token is not valid yet"),
        (r#"{"username":"ann","exp":1800000000,"iat":1700000001}"#, "Token used before issued"),
        (r#"{"username":"ann"}"#, "token expiration required"),
        (r#"{"username":"ann","exp":0}"#, "token expiration required"),
        (r#"{"username":"ann","exp":"1800000000"}"#, "token expiration required"),
        (r#"{"exp":1800000000}"#, "username in token must be a string"),
        (r#"{"username":5,"exp":1800000000}"#, "username in token must be a string"),
        (r#"{"username":"","exp":1800000000}"#, "token must contain a username"),
    ] {
        assert_eq!(of(&signed(HS256, claims, "key")), Err(error.to_owned()), "{claims}");
    }
}

#[test]
fn signatures_that_are_none() {
    let wrong_key = signed(HS256, GOOD, "other");
    assert_eq!(of(&wrong_key), Err("signature is invalid".to_owned()));
    let expired = r#"{"username":"ann","exp":5}"#;
    let forged = signed(HS256, expired, "other");
    assert_eq!(
        of(&forged),
        Err("signature is invalid".to_owned()),
        "before any claim is looked at"
    );
    let no_signature = format!("{}.{}.", encode(HS256), encode(GOOD));
    assert_eq!(of(&no_signature), Err("signature is invalid".to_owned()));
    for (header, error) in [
        (r#"{"alg":"none"}"#, "unexpected signing method: none"),
        (r#"{"alg":"RS256"}"#, "unexpected signing method: RS256"),
        (r#"{"alg":"XX"}"#, "signing method (alg) is unavailable."),
        (r#"{"alg":5}"#, "signing method (alg) is unspecified."),
        ("{}", "signing method (alg) is unspecified."),
    ] {
        assert_eq!(of(&signed(header, GOOD, "key")), Err(error.to_owned()), "{header}");
    }
    let disabled = user_of(&signed(HS256, GOOD, ""), None, NOW_S);
    assert_eq!(disabled, Err("bearer auth disabled".to_owned()));
}

#[test]
fn texts_that_are_no_tokens() {
    for text in ["", "abc", "a.b", "a.b.c.d"] {
        assert_eq!(of(text), Err("token contains an invalid number of segments".to_owned()));
    }
    assert_eq!(of("*.e30.x"), Err("illegal base64 data at input byte 0".to_owned()));
    let half = format!("{}.e30.x", encode("{\"alg\""));
    assert_eq!(of(&half), Err("unexpected end of JSON input".to_owned()));
    let list = format!("{}.{}.x", encode(HS256), encode("[]"));
    assert!(of(&list).unwrap_err().contains("no JSON object"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-zA-Z0-9_.=-]{0,60}") {
        prop_assert!(of(&text).is_err());
    }

    #[test]
    fn a_changed_token_is_refused(at in 0..100usize, byte in b'A'..=b'Z') {
        let token = signed(HS256, GOOD, "key");
        let mut changed = token.clone().into_bytes();
        let at = at % changed.len();
        changed[at] = byte;
        let changed = String::from_utf8(changed).unwrap();
        // The last character of a signature holds bits that do not count.
        if changed != token && at + 1 < token.len() {
            prop_assert!(of(&changed).is_err());
        }
    }
}

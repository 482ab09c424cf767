//! What a request says of its sender.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;

use crate::params::Params;

/// Who the sender says they are. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A name and a password.
    Password { user: String, password: String },
    /// A signed token, not looked into.
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => f.debug_tuple("Password").field(user).finish(),
            Self::Token(_) => f.write_str("Token"),
        }
    }
}

impl Credentials {
    /// Those of a request: parameters `u` and `p` count more than the header.
    pub(super) fn of_request(headers: &HeaderMap, params: &Params) -> Option<Self> {
        let (user, password) = (params.get("u"), params.get("p"));
        if !user.is_empty() && !password.is_empty() {
            return Some(Self::password(user, password));
        }
        let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
        let (scheme, value) = header.split_once(' ')?;
        match scheme {
            "Bearer" if !value.contains(' ') => Some(Self::Token(value.to_owned())),
            "Token" if !value.contains(' ') => {
                let (user, password) = value.split_once(':')?;
                Some(Self::password(user, password))
            }
            _ if scheme.eq_ignore_ascii_case("Basic") => {
                let decoded = String::from_utf8(STANDARD.decode(value).ok()?).ok()?;
                let (user, password) = decoded.split_once(':')?;
                Some(Self::password(user, password))
            }
            _ => None,
        }
    }

    fn password(user: &str, password: &str) -> Self {
        Self::Password { user: user.to_owned(), password: password.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn of(header: Option<&str>, query: &str) -> Option<Credentials> {
        let mut headers = HeaderMap::new();
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, HeaderValue::from_str(header).unwrap());
        }
        Credentials::of_request(&headers, &Params::of_url(Some(query)))
    }

    #[test]
    fn ways_to_say_it() {
        let ann = Some(Credentials::password("ann", "s:x"));
        assert_eq!(of(None, "u=ann&p=s:x"), ann);
        assert_eq!(of(Some("Basic YW5uOnM6eA=="), ""), ann);
        assert_eq!(of(Some("basic YW5uOnM6eA=="), ""), ann);
        assert_eq!(of(Some("Token ann:s:x"), ""), ann);
        assert_eq!(of(Some("Bearer a.b.c"), ""), Some(Credentials::Token("a.b.c".to_owned())));
        assert_eq!(of(Some("Bearer a.b.c"), "u=ann&p=s:x"), ann, "parameters count more");
        assert_eq!(of(Some("Basic Og=="), ""), Some(Credentials::password("", "")));
    }

    #[test]
    fn what_says_nothing() {
        for header in ["", "Basic", "Basic !!", "Basic YW5u", "Bearer", "Token annsx", "Bearer a b"]
        {
            assert_eq!(of(Some(header), "u=ann"), None, "{header}");
        }
        assert_eq!(of(None, "u=ann&p="), None);
        assert_eq!(of(Some("bearer a.b.c"), ""), None);
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?} {:?}", of(None, "u=ann&p=secret"), of(Some("Bearer key"), ""));
        assert!(shown.contains("ann") && !shown.contains("secret") && !shown.contains("key"));
    }
}

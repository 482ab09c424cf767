//! Where a server is, and who asks.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

const PORT: u16 = 8086;

/// A server, and the user that asks it.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) place: Place,
    pub(crate) security: Security,
    /// Name and password.
    pub(crate) user: Option<(String, String)>,
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Host (an IPv6 address without brackets) and port.
    Tcp(String, u16),
    /// A Unix socket.
    Socket(PathBuf),
}

/// How the way there is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// Not at all.
    Plain,
    /// TLS with a certificate that the system trusts.
    Tls,
    /// TLS with any certificate.
    TlsAnyCertificate,
}

impl Endpoint {
    /// Reads `[http[s]://][user[:password]@]host[:port]`.
    ///
    /// # Errors
    /// It is something else.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let (security, rest) = match text.split_once("://") {
            None => (Security::Plain, text),
            Some(("http", rest)) => (Security::Plain, rest),
            Some(("https", rest)) => (Security::Tls, rest),
            Some((scheme, _)) => bail!("{scheme}://: only http:// and https:// are spoken"),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, rest) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((user, rest)) => {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                (Some((name.to_owned(), password.to_owned())), rest)
            }
        };
        let (host, port) = host_and_port(rest)?;
        Ok(Self { place: Place::Tcp(host, port.unwrap_or(PORT)), security, user })
    }

    /// What the header `Host` says.
    pub(crate) fn authority(&self) -> String {
        match &self.place {
            Place::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Place::Tcp(host, port) => format!("{host}:{port}"),
            Place::Socket(_) => "localhost".to_owned(),
        }
    }
}

/// Splits `host[:port]`, where a host with colons is in brackets.
pub(crate) fn host_and_port(text: &str) -> Result<(String, Option<u16>)> {
    let wrong = || format!("{text:?} is not of the form HOST:PORT");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').with_context(wrong)?;
            (
                host,
                if rest.is_empty() {
                    None
                } else {
                    Some(rest.strip_prefix(':').with_context(wrong)?)
                },
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => (host, Some(port)),
            _ => (text, None),
        },
    };
    let host = if host.is_empty() { "localhost" } else { host };
    if host.contains(['/', '?', '#', ' ']) {
        bail!(wrong());
    }
    let port = port.filter(|port| !port.is_empty()).map(str::parse).transpose();
    Ok((host.to_owned(), port.with_context(wrong)?))
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.security == Security::Plain { "http" } else { "https" };
        match &self.place {
            Place::Tcp(..) => write!(f, "{scheme}://{}", self.authority()),
            Place::Socket(path) => write!(f, "{scheme}://unix:{}", path.display()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the password.
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("Endpoint")
            .field("place", &self.place)
            .field("security", &self.security)
            .field("user", &user)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let place = |text: &str| Endpoint::parse(text).unwrap().place;
        let tcp = |host: &str, port| Place::Tcp(host.to_owned(), port);
        assert_eq!(place("http://a:1"), tcp("a", 1));
        assert_eq!(place("a"), tcp("a", 8086));
        assert_eq!(place("https://a.b/"), tcp("a.b", 8086));
        assert_eq!(place(":99"), tcp("localhost", 99));
        assert_eq!(place("http://[::1]:9"), tcp("::1", 9));
        assert_eq!(place("::1"), tcp("::1", 8086));
        assert_eq!(place("[::1]"), tcp("::1", 8086));
        let with_user = Endpoint::parse("https://u:p:q@a:1").unwrap();
        assert_eq!(with_user.user, Some(("u".to_owned(), "p:q".to_owned())));
        assert_eq!(with_user.security, Security::Tls);
        assert_eq!(with_user.to_string(), "https://a:1");
        assert!(!format!("{with_user:?}").contains("p:q"));
        for wrong in ["ftp://a", "a:b", "a:99999", "[::1", "[::1]x", "a/b", "a b:1"] {
            assert!(Endpoint::parse(wrong).is_err(), "{wrong}");
        }
    }
}

//! Which paths there are and what may be done with them.

use hyper::Method;

/// A path that the server knows, for figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Query,
    Write,
    Ping,
    Status,
    Health,
    Metrics,
    /// Anything else.
    Unknown,
}

impl Route {
    pub(crate) const ALL: [Self; 7] = [
        Self::Query,
        Self::Write,
        Self::Ping,
        Self::Status,
        Self::Health,
        Self::Metrics,
        Self::Unknown,
    ];

    pub(crate) fn of_path(path: &str) -> Self {
        match path {
            "/query" => Self::Query,
            "/write" => Self::Write,
            "/ping" => Self::Ping,
            "/status" => Self::Status,
            "/health" => Self::Health,
            "/metrics" => Self::Metrics,
            _ => Self::Unknown,
        }
    }

    /// The path; `other` for all that are unknown.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Query => "/query",
            Self::Write => "/write",
            Self::Ping => "/ping",
            Self::Status => "/status",
            Self::Health => "/health",
            Self::Metrics => "/metrics",
            Self::Unknown => "other",
        }
    }

    /// The methods it has, as an `Allow` header. `OPTIONS` is answered everywhere.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Self::Query => "GET, OPTIONS, POST",
            Self::Write => "OPTIONS, POST",
            Self::Ping | Self::Status => "GET, HEAD",
            Self::Health | Self::Metrics | Self::Unknown => "GET",
        }
    }

    pub(crate) fn allows(self, method: &Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_methods() {
        for route in Route::ALL.into_iter().filter(|route| *route != Route::Unknown) {
            assert_eq!(Route::of_path(route.label()), route);
            assert_eq!(Route::of_path(&format!("{}/", route.label())), Route::Unknown);
        }
        assert!(Route::Ping.allows(&Method::HEAD));
        assert!(!Route::Query.allows(&Method::HEAD));
        assert!(!Route::Write.allows(&Method::GET));
    }
}

//! Which paths there are and what may be done with them.

use hyper::Method;

use crate::connection::Kind;

/// Who may use a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Users.
    User,
    /// Anybody, or users if so configured.
    Ping,
    /// Anybody, or administrators if so configured.
    Debug,
}

/// Where buckets are.
pub(crate) const BUCKETS_PATH: &str = "/api/v2/buckets";

/// A path that the server knows, for figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Query,
    Write,
    Ping,
    Status,
    Health,
    Metrics,
    V2Write,
    V2Query,
    V2Delete,
    /// All buckets.
    V2Buckets,
    /// One bucket.
    V2Bucket,
    PrometheusWrite,
    PrometheusRead,
    DebugVars,
    DebugRequests,
    /// Anything else.
    Unknown,
}

impl Route {
    pub(crate) const ALL: [Self; 16] = [
        Self::Query,
        Self::Write,
        Self::Ping,
        Self::Status,
        Self::Health,
        Self::Metrics,
        Self::V2Write,
        Self::V2Query,
        Self::V2Delete,
        Self::V2Buckets,
        Self::V2Bucket,
        Self::PrometheusWrite,
        Self::PrometheusRead,
        Self::DebugVars,
        Self::DebugRequests,
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
            "/api/v2/write" => Self::V2Write,
            "/api/v2/query" => Self::V2Query,
            "/api/v2/delete" => Self::V2Delete,
            BUCKETS_PATH => Self::V2Buckets,
            "/api/v1/prom/write" => Self::PrometheusWrite,
            "/api/v1/prom/read" => Self::PrometheusRead,
            "/debug/vars" => Self::DebugVars,
            "/debug/requests" => Self::DebugRequests,
            path if path
                .strip_prefix(BUCKETS_PATH)
                .is_some_and(|p| p.starts_with('/') && !p.ends_with('/')) =>
            {
                Self::V2Bucket
            }
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
            Self::V2Write => "/api/v2/write",
            Self::V2Query => "/api/v2/query",
            Self::V2Delete => "/api/v2/delete",
            Self::V2Buckets => BUCKETS_PATH,
            Self::V2Bucket => "/api/v2/buckets/...",
            Self::PrometheusWrite => "/api/v1/prom/write",
            Self::PrometheusRead => "/api/v1/prom/read",
            Self::DebugVars => "/debug/vars",
            Self::DebugRequests => "/debug/requests",
            Self::Unknown => "other",
        }
    }

    /// The methods it has, as an `Allow` header. `OPTIONS` is answered everywhere.
    pub(crate) fn allow(self) -> &'static str {
        match self {
            Self::Query => "GET, OPTIONS, POST",
            Self::Write => "OPTIONS, POST",
            Self::Ping | Self::Status => "GET, HEAD",
            Self::V2Write
            | Self::V2Query
            | Self::V2Delete
            | Self::PrometheusWrite
            | Self::PrometheusRead => "POST",
            Self::V2Buckets => "GET, POST",
            Self::V2Bucket => "DELETE, GET, PATCH",
            Self::Health
            | Self::Metrics
            | Self::DebugVars
            | Self::DebugRequests
            | Self::Unknown => "GET",
        }
    }

    /// What those who ask for it do.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Write | Self::V2Write | Self::PrometheusWrite => Kind::Writes,
            _ => Kind::Asks,
        }
    }

    /// Who may use it where authentication is switched on.
    pub(crate) fn access(self) -> Access {
        match self {
            Self::Ping | Self::Status | Self::Health | Self::Metrics => Access::Ping,
            Self::DebugVars | Self::DebugRequests => Access::Debug,
            _ => Access::User,
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

//! Where a request's rows go, as its URL says.

use hyper::StatusCode;
use ingest::line_protocol::Precision;

use crate::app::App;
use crate::auth::Caller;
use crate::error::HttpError;
use crate::params::Params;
use crate::v2::split_bucket;

/// A database and one of its policies by name; without a name its default policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(super) database: String,
    pub(super) policy: String,
}

/// Where rows go and how they are read.
#[derive(Debug)]
pub(crate) struct Target {
    pub(super) place: Place,
    pub(super) precision: Precision,
    pub(super) consistency_known: bool,
}

impl Target {
    /// Database, policy and precision as InfluxDB 1 names them.
    pub(super) fn of_database(
        app: &App,
        caller: &Caller,
        params: &Params,
    ) -> Result<Self, HttpError> {
        let precision = match params.get("precision") {
            "" => Precision::Nanosecond,
            name => Precision::from_name(name).ok_or_else(|| {
                HttpError::bad_request(format!(
                    "invalid precision {name:?} (use n, u, ms, s, m or h)"
                ))
            })?,
        };
        let consistency = params.get("consistency").to_ascii_lowercase();
        let target = Self {
            precision,
            consistency_known: matches!(&*consistency, "" | "any" | "one" | "quorum" | "all"),
            ..Self::of_samples(app, caller, params)?
        };
        Ok(target)
    }

    /// A bucket and a precision as InfluxDB 2 names them.
    pub(super) fn of_bucket(
        app: &App,
        caller: &Caller,
        params: &Params,
    ) -> Result<Self, HttpError> {
        let precision = match params.get("precision") {
            "" | "ns" => Precision::Nanosecond,
            "us" => Precision::Microsecond,
            "ms" => Precision::Millisecond,
            "s" => Precision::Second,
            name => {
                let text = format!("invalid precision {name:?} (use ns, us, ms or s)");
                return Err(HttpError::bad_request(text));
            }
        };
        let (database, policy) = split_bucket(params.get("bucket"))?;
        Ok(Self { precision, ..Self::new(app, caller, database, policy)? })
    }

    /// Database and policy alone, for rows that say the rest themselves.
    pub(crate) fn of_samples(
        app: &App,
        caller: &Caller,
        params: &Params,
    ) -> Result<Self, HttpError> {
        Self::new(app, caller, params.get("db"), params.get("rp"))
    }

    /// Where a listener puts what nobody is asked about.
    pub(crate) fn of_listener(database: &str, policy: &str) -> Self {
        Self {
            place: Place { database: database.to_owned(), policy: policy.to_owned() },
            precision: Precision::Nanosecond,
            consistency_known: true,
        }
    }

    /// The database.
    pub(crate) fn database(&self) -> &str {
        &self.place.database
    }

    fn new(app: &App, caller: &Caller, database: &str, policy: &str) -> Result<Self, HttpError> {
        if database.is_empty() {
            return Err(HttpError::bad_request("database is required"));
        }
        let catalog = app.catalog.snapshot();
        if catalog.database(database).is_none() {
            let text = format!("database not found: {database:?}");
            return Err(HttpError::new(StatusCode::NOT_FOUND, text));
        }
        caller.may_write(&catalog, database)?;
        Ok(Self::of_listener(database, policy))
    }
}

//! Who sends a request, and whether they may.
//!
//! `credentials` reads what a request says of its sender, `token` and `passwords` check it,
//! `required` says what a statement needs. Texts and statuses are InfluxDB's.
//!
//! Invariants
//! - With authentication switched on no handler runs without a [`Caller`] that was checked, but for
//!   the paths that are open by configuration.
//! - As long as there are no users at all, the first statement of a query may create an
//!   administrator, and nothing else may be done.
//! - Neither passwords nor tokens get into logs or messages.

mod credentials;
pub(crate) mod fuzzing;
mod passwords;
mod required;
mod token;

use std::sync::Arc;

use catalog::{CatalogState, Privilege, User};
use hyper::{HeaderMap, StatusCode};
use influxql::Statement;

pub(crate) use passwords::Passwords;

use crate::app::App;
use crate::error::HttpError;
use crate::params::Params;
use crate::routes::{Access, Route};
use credentials::Credentials;
use required::{Requirement, requirements};

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// Nobody is asked who they are.
    Anyone,
    /// There are no users yet.
    Founder,
    /// One of the users.
    User(Arc<User>),
}

/// Finds out who sends a request to `route`.
///
/// # Errors
/// 401 if the sender cannot be who they say, 403 if they may not use the path at all, 503 if too
/// many passwords are being checked.
pub(crate) async fn authenticate(
    app: &Arc<App>,
    route: Route,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Result<Caller, HttpError> {
    let auth = &app.config.auth;
    let asked = auth.enabled
        && match route.access() {
            Access::User => true,
            Access::Ping => auth.ping,
            Access::Debug => auth.debug,
        };
    if !asked {
        return Ok(Caller::Anyone);
    }
    let founding = app.catalog.snapshot().users().is_empty();
    let caller = if founding {
        Caller::Founder
    } else {
        let user = check(app, &Credentials::of_request(headers, &Params::of_url(query))).await;
        Caller::User(user.inspect_err(|_| app.metrics.authentication_failures.add(1))?)
    };
    if route.access() == Access::Debug {
        caller.may_administer(route.label())?;
    }
    Ok(caller)
}

/// The user that the credentials belong to.
async fn check(app: &Arc<App>, given: &Option<Credentials>) -> Result<Arc<User>, HttpError> {
    let state = app.catalog.snapshot();
    match given {
        None => Err(HttpError::unauthorized("unable to parse authentication credentials")),
        Some(Credentials::Token(token)) => {
            let now_s = app.clock.now_ns().div_euclid(1_000_000_000);
            let secret = app.config.auth.shared_secret.as_ref();
            let name = token::user_of(token, secret, now_s).map_err(HttpError::unauthorized)?;
            let user = state.user(&name).cloned();
            user.ok_or_else(|| HttpError::unauthorized("user not found"))
        }
        Some(Credentials::Password { user, .. }) if user.is_empty() => {
            Err(HttpError::unauthorized("username required"))
        }
        Some(Credentials::Password { user, password }) => {
            let found = state.user(user).cloned();
            let hash = found.as_ref().map(|user| user.password.clone());
            let fits = app.passwords.check(hash, password.clone()).await?;
            match found.filter(|_| fits) {
                Some(user) => Ok(user),
                None => Err(HttpError::unauthorized("authorization failed")),
            }
        }
    }
}

impl Caller {
    fn is_admin(&self) -> bool {
        match self {
            Self::Anyone => true,
            Self::Founder => false,
            Self::User(user) => user.admin,
        }
    }

    /// The user, if there is one.
    pub(crate) fn user(&self) -> Option<&Arc<User>> {
        match self {
            Self::User(user) => Some(user),
            Self::Anyone | Self::Founder => None,
        }
    }

    /// Whether the caller may write to a database.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn may_write(&self, state: &CatalogState, database: &str) -> Result<(), HttpError> {
        self.may(Privilege::Write, "write to", state, database)
    }

    /// Whether the caller may read from a database.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn may_read(&self, state: &CatalogState, database: &str) -> Result<(), HttpError> {
        self.may(Privilege::Read, "read from", state, database)
    }

    /// Whether the caller may do what needs `needed`; refusals say `verb`.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn may(
        &self,
        needed: Privilege,
        verb: &str,
        state: &CatalogState,
        database: &str,
    ) -> Result<(), HttpError> {
        let user = match self {
            Self::Anyone => return Ok(()),
            Self::Founder => {
                let text = format!("user is required to {verb} database {database:?}");
                return Err(HttpError::forbidden(text));
            }
            Self::User(user) => user,
        };
        if user.may(needed, state.database(database).map(|d| d.id)) {
            return Ok(());
        }
        let name = &user.name;
        let text = format!("{name:?} user is not authorized to {verb} database {database:?}");
        Err(HttpError::forbidden(text))
    }

    /// Whether the caller is an administrator.
    ///
    /// # Errors
    /// 403; the text names `what`.
    pub(crate) fn may_administer(&self, what: &str) -> Result<(), HttpError> {
        if self.is_admin() {
            return Ok(());
        }
        let text = match self {
            Self::User(user) => {
                format!("{} not authorized to execute {what}, requires admin privilege", user.name)
            }
            _ => format!("user is required to execute {what}"),
        };
        Err(HttpError::forbidden(text))
    }

    /// Whether the caller may execute all of `statements`, where names without a database belong to
    /// `database`.
    ///
    /// # Errors
    /// 403: one that may not be executed refuses them all.
    pub(crate) fn may_execute(
        &self,
        statements: &[Statement],
        database: Option<&str>,
        state: &CatalogState,
    ) -> Result<(), HttpError> {
        let refused = match self {
            Self::Anyone => None,
            Self::Founder => match statements.first() {
                Some(Statement::CreateUser { admin: true, .. }) => None,
                _ => Some("create admin user first or disable authentication".to_owned()),
            },
            Self::User(user) => {
                let why = |statement| missing(user, statement, database.unwrap_or(""), state);
                statements.iter().find_map(why)
            }
        };
        match refused {
            None => Ok(()),
            Some(why) => Err(HttpError::forbidden(format!("error authorizing query: {why}"))),
        }
    }
}

/// What `user` lacks to execute `statement`.
fn missing(
    user: &User,
    statement: &Statement,
    request_database: &str,
    state: &CatalogState,
) -> Option<String> {
    if user.admin {
        return None;
    }
    let runs = continuous_query(statement, state);
    let runs = runs.iter().flat_map(requirements);
    let lacks =
        requirements(statement).into_iter().chain(runs).find_map(|needed| match needed {
            Requirement::Admin => Some("admin privilege".to_owned()),
            Requirement::On(privilege, database) => {
                let database = database.unwrap_or(request_database);
                let id = state.database(database).map(|d| d.id);
                (!user.may(privilege, id)).then(|| format!("{privilege} on {database}"))
            }
        })?;
    let name = &user.name;
    Some(format!("{name} not authorized to execute statement '{statement}', requires {lacks}"))
}

/// The statement that created the continuous query that `statement` runs.
fn continuous_query(statement: &Statement, state: &CatalogState) -> Option<Statement> {
    let Statement::RunContinuousQuery { name, database, .. } = statement else { return None };
    let queries = &state.database(database)?.continuous_queries;
    let text = &queries.iter().find(|query| *query.name == **name)?.text;
    influxql::parse_statement(text, &influxql::Params::new()).ok()
}

impl HttpError {
    fn unauthorized(text: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, text)
    }

    fn forbidden(text: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, text)
    }
}

//! `/api/v2/buckets`: retention policies under the name of buckets.

use std::sync::Arc;

use catalog::{CatalogState, Database, PolicyInfo, PolicySpec, Privilege};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};

use super::split_bucket;
use crate::app::App;
use crate::auth::Caller;
use crate::blocking::blocking;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::params::Params;
use crate::response::{self, JSON, Response, ResponseBody};
use crate::routes::BUCKETS_PATH;

/// Buckets of one answer: if nobody says, and at most.
const LIMIT_DEFAULT: usize = 20;
const LIMIT_MAX: usize = 100;

const SECOND_NS: i64 = 1_000_000_000;

/// Parts of a bucket that only version 2 has.
const SUB_RESOURCES: [&str; 3] = ["labels", "members", "owners"];

/// What a bucket is to be.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Asked {
    name: Option<String>,
    retention_rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    every_seconds: Option<i64>,
    shard_group_duration_seconds: Option<i64>,
}

/// Lists, creates, shows, changes or drops buckets.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let path = request.uri().path();
    let rest = path.strip_prefix(BUCKETS_PATH).unwrap_or("").trim_start_matches('/').to_owned();
    if let Some((_, part)) = rest.rsplit_once('/').filter(|(_, p)| SUB_RESOURCES.contains(p)) {
        let text = format!("bucket {part} not supported in this version");
        return Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    let name = percent_decode_str(&rest).decode_utf8().map(String::from);
    let name = name.map_err(|_| HttpError::bad_request("the bucket's name is not UTF-8"))?;
    let method = request.method().clone();
    if method == Method::GET {
        if !name.is_empty() {
            return show(&name, caller, &app.catalog.snapshot());
        }
        return list(&Params::of_url(request.uri().query()), caller, &app.catalog.snapshot());
    }
    caller.may_administer("a change of buckets")?;
    if method == Method::DELETE {
        return drop_bucket(app, &name).await;
    }
    let (head, incoming) = request.into_parts();
    let limits = BodyLimits::new(app, 4, Packing::Plain);
    let body = body::collect(app, &head.headers, incoming, limits).await?;
    let asked: Asked = serde_json::from_slice(&body.bytes)
        .map_err(|error| HttpError::bad_request(format!("body is no bucket: {error}")))?;
    if method == Method::POST {
        create(app, &asked).await
    } else {
        change(app, &name, &asked).await
    }
}

fn list(params: &Params, caller: &Caller, state: &CatalogState) -> Result<Response, HttpError> {
    let number = |name: &str, default: usize| match params.get(name) {
        "" => Ok(default),
        text => text
            .parse()
            .map_err(|_| HttpError::bad_request(format!("{name} is no whole number: {text:?}"))),
    };
    let limit = number("limit", LIMIT_DEFAULT)?.min(LIMIT_MAX);
    let offset = number("offset", 0)?;
    let (name, id, after) = (params.get("name"), params.get("id"), params.get("after"));
    let all = state.databases().iter().filter(|d| is_seen(caller, d)).flat_map(|database| {
        database.policies.iter().map(move |policy| (bucket_name(database, policy), policy))
    });
    let mut passed = after.is_empty();
    let behind = all.filter(|(bucket, _)| {
        let was_passed = passed;
        passed |= bucket == after;
        was_passed
    });
    let wanted = behind.filter(|(bucket, _)| {
        (name.is_empty() || bucket == name) && (id.is_empty() || bucket == id)
    });
    let shown: Vec<Value> =
        wanted.skip(offset).take(limit).map(|(bucket, policy)| shown(&bucket, policy)).collect();
    Ok(document(StatusCode::OK, &json!({ "buckets": shown })))
}

fn show(name: &str, caller: &Caller, state: &CatalogState) -> Result<Response, HttpError> {
    let (database, policy) = find(name, state)?;
    if !is_seen(caller, database) {
        return Err(not_found(name));
    }
    Ok(document(StatusCode::OK, &shown(name, policy)))
}

async fn create(app: &Arc<App>, asked: &Asked) -> Result<Response, HttpError> {
    let name = asked.name.clone().unwrap_or_default();
    let (database, policy) = full_name(&name)?;
    let (database, spec) = (database.to_owned(), spec(policy, asked)?);
    let worker = Arc::clone(app);
    let created = blocking(move || {
        let catalog = &worker.catalog;
        if catalog.snapshot().database(&database).is_none() {
            catalog.create_database(&database, None)?;
        }
        catalog.create_policy(&database, &spec, false)
    });
    created.await?.map_err(refusal)?;
    let state = app.catalog.snapshot();
    let (_, policy) = find(&name, &state)?;
    Ok(document(StatusCode::CREATED, &shown(&name, policy)))
}

async fn change(app: &Arc<App>, name: &str, asked: &Asked) -> Result<Response, HttpError> {
    if asked.name.as_deref().is_some_and(|other| other != name) {
        return Err(HttpError::bad_request("a bucket cannot be renamed"));
    }
    find(name, &app.catalog.snapshot())?;
    let (database, policy) = full_name(name)?;
    let (database, spec) = (database.to_owned(), spec(policy, asked)?);
    let worker = Arc::clone(app);
    let changed = blocking(move || worker.catalog.alter_policy(&database, &spec, false));
    changed.await?.map_err(refusal)?;
    show(name, &Caller::Anyone, &app.catalog.snapshot())
}

async fn drop_bucket(app: &Arc<App>, name: &str) -> Result<Response, HttpError> {
    find(name, &app.catalog.snapshot())?;
    let (database, policy) = full_name(name)?;
    let (database, policy) = (database.to_owned(), policy.to_owned());
    let worker = Arc::clone(app);
    let dropped = blocking(move || worker.catalog.drop_policy(&database, &policy));
    dropped.await?.map_err(refusal)?;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// Database and policy, both named.
fn full_name(name: &str) -> Result<(&str, &str), HttpError> {
    let (database, policy) = split_bucket(name)?;
    if policy.is_empty() {
        let text = format!("bucket name {name:?} is not in \"database/retention-policy\" format");
        return Err(HttpError::bad_request(text));
    }
    Ok((database, policy))
}

fn find<'a>(
    name: &str,
    state: &'a CatalogState,
) -> Result<(&'a Database, &'a PolicyInfo), HttpError> {
    let (database, policy) = full_name(name)?;
    let database = state.database(database).ok_or_else(|| not_found(name))?;
    Ok((database, database.policy(policy).ok_or_else(|| not_found(name))?))
}

fn not_found(name: &str) -> HttpError {
    HttpError::new(StatusCode::NOT_FOUND, format!("bucket not found: {name:?}"))
}

/// A failing store is our trouble, all else is the client's.
fn refusal(error: catalog::CatalogError) -> HttpError {
    match error {
        catalog::CatalogError::Store(error) => error.into(),
        other => HttpError::bad_request(other.to_string()),
    }
}

fn spec(policy: &str, asked: &Asked) -> Result<PolicySpec, HttpError> {
    if asked.retention_rules.len() > 1 {
        return Err(HttpError::bad_request("a bucket has at most one retention rule"));
    }
    let rule = asked.retention_rules.first().copied().unwrap_or_default();
    let ns = |seconds: Option<i64>| match seconds {
        None => Ok(None),
        Some(seconds) => match seconds.checked_mul(SECOND_NS).filter(|ns| *ns >= 0) {
            Some(ns) => Ok(Some(ns)),
            None => Err(HttpError::bad_request(format!("not a length of time: {seconds} s"))),
        },
    };
    Ok(PolicySpec {
        duration_ns: ns(rule.every_seconds)?,
        shard_duration_ns: ns(rule.shard_group_duration_seconds)?,
        ..PolicySpec::named(policy)
    })
}

fn is_seen(caller: &Caller, database: &Database) -> bool {
    let sees = |needed| caller.user().is_none_or(|user| user.may(needed, Some(database.id)));
    !matches!(caller, Caller::Founder) && (sees(Privilege::Read) || sees(Privilege::Write))
}

fn bucket_name(database: &Database, policy: &PolicyInfo) -> String {
    format!("{}/{}", database.name, policy.name)
}

fn shown(name: &str, policy: &PolicyInfo) -> Value {
    /// Nobody wrote down when.
    const NO_TIME: &str = "0001-01-01T00:00:00Z";
    json!({
        "id": name,
        "name": name,
        "description": "",
        "orgId": "",
        "rp": &*policy.name,
        "type": "user",
        "schemaType": "implicit",
        "createdAt": NO_TIME,
        "updatedAt": NO_TIME,
        "retentionRules": [{
            "type": "expire",
            "everySeconds": policy.duration_ns.unwrap_or(0) / SECOND_NS,
            "shardGroupDurationSeconds": policy.shard_duration_ns / SECOND_NS,
        }],
    })
}

fn document(status: StatusCode, value: &Value) -> Response {
    response::with_body(status, JSON, ResponseBody::whole(format!("{value}\n")))
}

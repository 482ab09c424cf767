//! Remote read: the samples of one query out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{Request, StatusCode};
use ingest::prometheus::{
    LabelMatcher, MatchKind, NAME_LABEL, ReadQuery, VALUE_FIELD, read_queries,
};
use model::{FieldType, Interrupt, Name, Regex, TagExpr, TimeRange, Values};
use render::prometheus::{ReadResult, ReadSeries, SAMPLE_BYTES};
use store::{
    MetadataKind, MetadataRequest, NameFilter, Policy, ScanContext, ScanItem, ScanRequest,
    ScanSlice, StoreError, TimeOrder,
};

use super::{PROTOBUF, SNAPPY, unpack};
use crate::app::App;
use crate::auth::Caller;
use crate::blocking::blocking;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::params::Params;
use crate::query::{Active, Need};
use crate::response::{self, CancelOnDrop, Response, ResponseBody};

/// What is made of a request takes so many times its length.
const MEMORY_FACTOR: usize = 40;

/// Answers a remote read.
pub(crate) async fn handle(
    app: &Arc<App>,
    caller: &Caller,
    request: Request<Incoming>,
) -> Result<Response, HttpError> {
    let params = Params::of_url(request.uri().query());
    let database = params.get("db");
    let state = app.catalog.snapshot();
    if database.is_empty() {
        return Err(HttpError::bad_request("database is required"));
    }
    if state.database(database).is_none() {
        let text = format!("database not found: {database:?}");
        return Err(HttpError::new(StatusCode::NOT_FOUND, text));
    }
    caller.may_read(&state, database)?;
    let policy = state.resolve(database, Some(params.get("rp")));
    let policy = policy.map_err(|error| HttpError::internal(error.to_string()))?;
    let (head, incoming) = request.into_parts();
    let limits = BodyLimits::new(app, MEMORY_FACTOR, Packing::Snappy);
    let mut body = body::collect(app, &head.headers, incoming, limits).await?;
    let unpacked = unpack(app, &body.bytes, &mut body.room, MEMORY_FACTOR)?;
    let queries = read_queries(&unpacked);
    let queries = queries.map_err(|error| HttpError::bad_request(error.to_string()))?;
    let [query] = queries.as_slice() else {
        return Err(HttpError::bad_request(
            "Prometheus read endpoint currently only supports one query at a time",
        ));
    };
    let wanted = Wanted::of(query, policy).map_err(HttpError::bad_request)?;
    let active =
        Active::enter(app).map_err(|text| HttpError::overloaded(text, Duration::from_secs(1)))?;
    let turn = app.queries.turn(Need::Processor, &app.metrics).await?;
    let interrupt = match app.config.query_timeout {
        Duration::ZERO => Interrupt::new(),
        timeout => Interrupt::with_deadline(Instant::now() + timeout),
    };
    // If the client leaves, this future and the guard in it are dropped.
    let _cancel = CancelOnDrop(interrupt.clone());
    let worker = Arc::clone(app);
    let packed = blocking(move || {
        let (_active, _turn) = (active, turn);
        wanted.read(&worker, interrupt)
    });
    let bytes = packed.await??;
    let mut response = response::with_body(StatusCode::OK, PROTOBUF, ResponseBody::whole(bytes));
    response.headers_mut().insert(CONTENT_ENCODING, SNAPPY);
    Ok(response)
}

/// A query in the words of the store.
#[derive(Debug)]
struct Wanted {
    policy: Policy,
    measurements: Vec<NameFilter>,
    series: TagExpr,
    time: TimeRange,
}

impl Wanted {
    fn of(query: &ReadQuery, policy: Policy) -> Result<Self, String> {
        if query.matchers.is_empty() {
            return Err("expected matcher".to_owned());
        }
        let mut measurements = Vec::new();
        let mut tags = Vec::new();
        for LabelMatcher { kind, name, value } in &query.matchers {
            let (positive, pattern) = match kind {
                MatchKind::Equal => (true, None),
                MatchKind::NotEqual => (false, None),
                MatchKind::Matches => (true, Some(anchored(value)?)),
                MatchKind::MatchesNot => (false, Some(anchored(value)?)),
            };
            if name == NAME_LABEL {
                let filter = match pattern {
                    None => NameFilter::In(vec![Name::from(value.as_str())]),
                    Some(regex) => NameFilter::Matches(regex),
                };
                let not = |filter| NameFilter::Not(Box::new(filter));
                measurements.push(if positive { filter } else { not(filter) });
            } else {
                let key = Name::from(name.as_str());
                let expr = match pattern {
                    None => TagExpr::Equals(key, value.as_str().into()),
                    Some(regex) => TagExpr::Matches(key, regex),
                };
                tags.push(if positive { expr } else { TagExpr::Not(Box::new(expr)) });
            }
        }
        let edge = |ms: i64, most_ns: i64| ms.saturating_mul(1_000_000).saturating_add(most_ns);
        // Times are cut to milliseconds on the way out: the last one reaches to its end.
        let time = TimeRange::new(edge(query.start_ms, 0), edge(query.end_ms, 999_999));
        let (series, time) = (TagExpr::And(tags), time.intersect(&TimeRange::ALL));
        Ok(Self { policy, measurements, series, time })
    }

    /// Reads everything, and packs it.
    fn read(&self, app: &App, interrupt: Interrupt) -> Result<Vec<u8>, HttpError> {
        let context = ScanContext { budget: app.queries.budget(), interrupt };
        let mut held = context.budget.reserve(0).map_err(StoreError::OverBudget)?;
        let mut result = ReadResult::default();
        for measurement in self.matching(app, &context)? {
            let (database, interrupt) = (self.policy.database, &context.interrupt);
            let schema = app.store.schema(database, &measurement, interrupt)?;
            let Some(schema) = schema else { continue };
            // What Prometheus did not write has other fields, of other types.
            if schema.field_type(VALUE_FIELD) != Some(FieldType::Float) {
                continue;
            }
            let tags = schema.tag_keys.clone();
            let mut samples = |count: usize| {
                held.grow(count.saturating_mul(SAMPLE_BYTES)).map_err(StoreError::OverBudget)
            };
            self.read_measurement(app, measurement, tags, &context, &mut samples, &mut result)?;
        }
        let bytes = result.encode_response();
        held.grow(bytes.len().saturating_mul(2)).map_err(StoreError::OverBudget)?;
        let packed = snap::raw::Encoder::new().compress_vec(&bytes);
        packed.map_err(|error| HttpError::internal(error.to_string()))
    }

    fn read_measurement(
        &self,
        app: &App,
        measurement: Name,
        tags: Vec<Name>,
        context: &ScanContext,
        take_room: &mut impl FnMut(usize) -> Result<(), StoreError>,
        result: &mut ReadResult,
    ) -> Result<(), StoreError> {
        let scan = app.store.scan(&ScanRequest {
            policy: self.policy,
            measurement,
            fields: vec![(VALUE_FIELD.into(), FieldType::Float)],
            tags,
            series: self.series.clone(),
            time: self.time,
            filters: Vec::new(),
            order: TimeOrder::Ascending,
            windows: None,
            joins_series: false,
            context: context.clone(),
        })?;
        let mut cursor = scan.open(&ScanSlice::all())?;
        let mut open: Option<(u32, ReadSeries)> = None;
        while let Some(item) = cursor.next()? {
            context.interrupt.check().map_err(StoreError::Interrupted)?;
            // Summaries were not asked for.
            let ScanItem::Rows(rows) = item else { continue };
            take_room(rows.rows)?;
            let Some(Values::Float(values)) = rows.columns.get(1).map(|column| &column.values)
            else {
                continue;
            };
            let mut samples = rows.times().iter().zip(values);
            for run in &rows.runs {
                if open.as_ref().is_none_or(|(series, _)| *series != run.series) {
                    let labels = scan.series().tags.iter().map(|tag| {
                        let code = tag.codes[run.series as usize];
                        (&*tag.key, tag.values.get(code as usize))
                    });
                    let next = (run.series, ReadSeries::new(labels));
                    if let Some((_, done)) = open.replace(next) {
                        result.push(done);
                    }
                }
                if let Some((_, series)) = &mut open {
                    let run = samples.by_ref().take(run.rows as usize);
                    run.for_each(|(time_ns, value)| series.push(*time_ns, *value));
                }
            }
        }
        if let Some((_, last)) = open {
            result.push(last);
        }
        Ok(())
    }

    /// The measurements with matching series.
    fn matching(&self, app: &App, context: &ScanContext) -> Result<Vec<Name>, StoreError> {
        let mut filters = self.measurements.iter();
        let first = filters.next().cloned().unwrap_or(NameFilter::All);
        let request = MetadataRequest {
            database: self.policy.database,
            kind: MetadataKind::Measurements,
            measurements: first,
            series: self.series.clone(),
            facts_max: None,
            context: context.clone(),
        };
        let mut cursor = app.store.metadata(&request)?;
        let mut names = Vec::new();
        while let Some(part) = cursor.next()? {
            let Some(column) = part.columns.last() else { continue };
            match &column.values {
                Values::String(texts) => names.extend(texts.iter().map(Name::from)),
                Values::Dictionary(codes, texts) => {
                    names.extend(codes.iter().map(|c| Name::from(texts.get(*c as usize))));
                }
                _ => {}
            }
        }
        names.retain(|name| self.measurements.iter().all(|filter| filter.accepts(name)));
        Ok(names)
    }
}

/// A pattern for all of a text.
fn anchored(pattern: &str) -> Result<Regex, String> {
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string())
}

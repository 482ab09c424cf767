//! A query request, read and checked.

use std::num::NonZeroUsize;
use std::sync::Arc;

use catalog::User;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Method, Request};
use influxql::Statement;
use render::{Epoch, Format, Options};

use super::kinds::check_zones;
use crate::app::App;
use crate::auth::Caller;
use crate::binding::bound_values;
use crate::body::{self, BodyLimits, Packing};
use crate::error::HttpError;
use crate::params::{FormKind, Params};

/// Rows of a chunk, if the request does not say.
const CHUNK_ROWS: usize = 10_000;

/// How the answer is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerForm {
    pub(crate) options: Options,
    pub(crate) content_type: HeaderValue,
}

/// A request whose statements may be executed.
#[derive(Debug)]
pub(crate) struct QueryRequest {
    pub(crate) statements: Arc<[Statement]>,
    pub(crate) database: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) options: Options,
    pub(crate) is_get: bool,
    pub(crate) is_async: bool,
    pub(crate) gzip: bool,
    /// Who sends it, if that matters.
    pub(crate) user: Option<Arc<User>>,
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) params: Params,
    pub(crate) is_get: bool,
    pub(crate) gzip: bool,
}

impl Asked {
    pub(crate) async fn read(app: &App, request: Request<Incoming>) -> Result<Self, HttpError> {
        let (head, body) = request.into_parts();
        let is_get = head.method == Method::GET;
        let gzip = accepts_gzip(&head.headers);
        let kind = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let params = match kind.and_then(FormKind::of_content_type).filter(|_| !is_get) {
            None => Params::of_url(head.uri.query()),
            Some(kind) => {
                let limits = BodyLimits::new(app, 3, Packing::Plain);
                let body = body::collect(app, &head.headers, body, limits).await?;
                Params::of_form(&kind, &body.bytes, head.uri.query())
            }
        };
        Ok(Self { params, is_get, gzip })
    }
}

impl QueryRequest {
    /// What a caller who may ask it asks.
    pub(crate) fn new(
        asked: &Asked,
        app: &App,
        caller: &Caller,
        form: &AnswerForm,
    ) -> Result<Self, HttpError> {
        let request = Self::check(asked, form, app.config.max_row_limit)?;
        let (statements, database) = (&request.statements, request.database.as_deref());
        caller.may_execute(statements, database, &app.catalog.snapshot())?;
        Ok(Self { user: caller.user().cloned(), ..request })
    }

    fn check(asked: &Asked, form: &AnswerForm, max_row_limit: usize) -> Result<Self, HttpError> {
        let params = &asked.params;
        let text = params
            .query_text()
            .ok_or_else(|| HttpError::bad_request("missing required parameter \"q\""))?;
        let bound = bound_values(params.get("params")).map_err(HttpError::bad_request)?;
        let refuse = |why: String| HttpError::bad_request(format!("error parsing query: {why}"));
        let query = influxql::parse_query(text, &bound).map_err(|e| refuse(e.to_string()))?;
        query.statements.iter().try_for_each(check_zones).map_err(refuse)?;
        let chunked = params.get("chunked") == "true";
        let chunk_rows = params.get("chunk_size").parse().ok().and_then(NonZeroUsize::new);
        let chunk_rows = chunk_rows.or(NonZeroUsize::new(CHUNK_ROWS));
        let named = |name| Some(params.get(name)).filter(|v| !v.is_empty()).map(str::to_owned);
        Ok(Self {
            statements: query.statements.into(),
            database: named("db"),
            policy: named("rp"),
            options: Options {
                format: form.options.format,
                epoch: Epoch::from_parameter(params.get("epoch").trim()),
                chunk_rows: chunk_rows.filter(|_| chunked),
                max_rows: NonZeroUsize::new(max_row_limit),
            },
            is_get: asked.is_get,
            is_async: params.get("async") == "true",
            gzip: asked.gzip,
            user: None,
        })
    }
}

impl AnswerForm {
    /// The first form that the client accepts, by its preference; JSON if it accepts none.
    pub(crate) fn of_request<B>(request: &Request<B>) -> Self {
        let text =
            request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
        let mut ranges: Vec<(&str, f32)> = text.split(',').map(media_range).collect();
        // Stable: what comes first counts more among equals.
        ranges.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let known = ranges
            .iter()
            .filter(|(_, quality)| *quality > 0.0)
            .find_map(|(kind, _)| FORMS.iter().find(|form| matches(kind, form.0)));
        let (accepted, format) = known.unwrap_or(&FORMS[0]);
        let format = match format {
            Format::Json { .. } => Format::Json { pretty: wants_pretty(request.uri().query()) },
            other => *other,
        };
        Self {
            options: Options { format, ..Options::default() },
            content_type: HeaderValue::from_static(accepted),
        }
    }
}

/// All forms; the first is the one for those who do not care.
const FORMS: [(&str, Format); 4] = [
    ("application/json", Format::Json { pretty: false }),
    ("application/csv", Format::Csv),
    ("text/csv", Format::Csv),
    ("application/x-msgpack", Format::MessagePack),
];

/// Whether a URL asks for indented JSON. Bodies are not asked: their errors have a form, too.
fn wants_pretty(query: Option<&str>) -> bool {
    query.is_some_and(|text| {
        memchr::memmem::find(text.as_bytes(), b"pretty").is_some()
            && Params::of_url(query).get("pretty") == "true"
    })
}

/// A media range and its quality.
fn media_range(text: &str) -> (&str, f32) {
    let mut parts = text.split(';').map(str::trim);
    let kind = parts.next().unwrap_or("");
    let quality = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse().ok());
    (kind, quality.unwrap_or(1.0))
}

fn matches(range: &str, kind: &str) -> bool {
    match range.split_once('/') {
        Some(("*", "*")) => true,
        Some((major, "*")) => kind.split('/').next().is_some_and(|k| k.eq_ignore_ascii_case(major)),
        _ => range.eq_ignore_ascii_case(kind),
    }
}

/// Whether a client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let text = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or("");
    text.split(',').map(media_range).any(|(coding, quality)| coding == "gzip" && quality > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str) -> Result<QueryRequest, String> {
        let request = Request::get(format!("/query?{query}")).body(()).unwrap();
        let form = AnswerForm::of_request(&request);
        let asked = Asked { params: Params::of_url(Some(query)), is_get: true, gzip: false };
        QueryRequest::check(&asked, &form, 0).map_err(|error| error.text)
    }

    #[test]
    fn forms() {
        for (accept, expected) in [
            ("", "application/json"),
            ("*/*", "application/json"),
            ("text/html", "application/json"),
            ("text/csv", "text/csv"),
            ("application/csv", "application/csv"),
            ("text/*", "text/csv"),
            ("application/x-msgpack, application/json;q=0.5", "application/x-msgpack"),
            ("application/json;q=0.5, text/csv;q=0.7", "text/csv"),
            ("text/csv;q=0, application/json", "application/json"),
        ] {
            let request = Request::get("/query").header(ACCEPT, accept).body(()).unwrap();
            assert_eq!(AnswerForm::of_request(&request).content_type, expected, "{accept}");
        }
    }

    #[test]
    fn refusals() {
        let refused = |query| check(query).map(|r| r.statements.len()).unwrap_err();
        assert_eq!(refused("db=x"), "missing required parameter \"q\"");
        assert_eq!(refused("q=++"), "missing required parameter \"q\"");
        assert!(refused("q=SELEC").starts_with("error parsing query: found SELEC, expected "));
        assert!(refused("q=SELECT+v+FROM+m+WHERE+a=$x").contains("missing parameter: x"));
        assert!(refused("q=SHOW+DATABASES&params={").starts_with("error parsing query parameters"));
    }

    #[test]
    fn parameters() {
        let request = check(
            "q=SHOW+DATABASES;SHOW+DATABASES&db=d&epoch=ms&chunked=true&chunk_size=x&pretty=true",
        );
        let request = request.unwrap();
        assert_eq!(request.statements.len(), 2);
        assert_eq!((request.database.as_deref(), request.policy), (Some("d"), None));
        assert_eq!(request.options.epoch, Some(Epoch::Milliseconds));
        assert_eq!(request.options.chunk_rows.map(NonZeroUsize::get), Some(CHUNK_ROWS));
        assert_eq!(request.options.format, Format::Json { pretty: true });
        let request = check("q=;&chunk_size=7").unwrap();
        assert_eq!((request.statements.len(), request.options.chunk_rows), (0, None));
    }
}

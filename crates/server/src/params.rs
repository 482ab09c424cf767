//! The parameters of a request, from its URL and its body.

use crate::multipart;
use crate::urlencoded::{decode, pairs};

/// Parameters that somebody looks at. Others are not kept: a body could have millions.
const NAMES: [&str; 21] = [
    "q",
    "db",
    "rp",
    "epoch",
    "precision",
    "u",
    "p",
    "params",
    "chunked",
    "chunk_size",
    "pretty",
    "async",
    "consistency",
    "bucket",
    "name",
    "id",
    "after",
    "seconds",
    "verbose",
    "limit",
    "offset",
];

/// Parameters by name; of several of one name the first counts, and one in the body counts more
/// than one in the URL.
#[derive(Debug, Default)]
pub(crate) struct Params {
    /// Few, so looked through one by one; each name once.
    values: Vec<(&'static str, String)>,
    /// Text of the file that was sent as `q`.
    query_file: Option<String>,
}

/// How a body holds parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FormKind {
    Urlencoded,
    Multipart { boundary: String },
}

impl FormKind {
    /// What a content type says; `None`: no form.
    pub(crate) fn of_content_type(text: &str) -> Option<Self> {
        let essence = text.split(';').next().unwrap_or("").trim();
        if essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Some(Self::Urlencoded);
        }
        if essence.eq_ignore_ascii_case("multipart/form-data") {
            let boundary = multipart::boundary(text)?;
            return Some(Self::Multipart { boundary });
        }
        None
    }
}

impl Params {
    /// The parameters of a URL alone.
    pub(crate) fn of_url(query: Option<&str>) -> Self {
        let mut params = Self::default();
        params.add_urlencoded(query.unwrap_or("").as_bytes());
        params
    }

    /// The parameters of a form and a URL.
    pub(crate) fn of_form(kind: &FormKind, body: &[u8], query: Option<&str>) -> Self {
        let mut params = Self::default();
        match kind {
            FormKind::Urlencoded => params.add_urlencoded(body),
            FormKind::Multipart { boundary } => params.add_multipart(body, boundary),
        }
        params.add_urlencoded(query.unwrap_or("").as_bytes());
        params
    }

    fn add_urlencoded(&mut self, text: &[u8]) {
        for (name, value) in pairs(text) {
            self.add(&decode(name), || decode(value).into_owned());
        }
    }

    fn add_multipart(&mut self, body: &[u8], boundary: &str) {
        for part in multipart::parts(body, boundary) {
            let text = || String::from_utf8_lossy(part.content).into_owned();
            if !part.is_file {
                self.add(&part.name, text);
            } else if part.name == "q" {
                self.query_file.get_or_insert_with(text);
            }
        }
    }

    /// Adds a parameter that somebody looks at, unless there is one of that name.
    fn add(&mut self, name: &str, value: impl FnOnce() -> String) {
        if let Some(name) = NAMES.iter().find(|known| **known == name)
            && self.values.iter().all(|(known, _)| known != name)
        {
            self.values.push((name, value()));
        }
    }

    /// The value of `name`, `""` if there is none.
    ///
    /// # Panics
    /// In a debug build: if it is none of [`NAMES`].
    pub(crate) fn get(&self, name: &str) -> &str {
        match self.values.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => value,
            None => {
                debug_assert!(NAMES.contains(&name), "BUG: parameter {name} is not kept");
                ""
            }
        }
    }

    /// The text to be executed: `q`, or a file of that name.
    pub(crate) fn query_text(&self) -> Option<&str> {
        let text = self.get("q").trim();
        if text.is_empty() { self.query_file.as_deref() } else { Some(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wins() {
        let form = FormKind::of_content_type("Application/x-www-form-urlencoded; charset=utf-8");
        let form = form.expect("it is one");
        let params = Params::of_form(&form, b"db=body&db=second&q=+SELECT+1+", Some("db=url&rp=r"));
        assert_eq!((params.get("db"), params.get("rp")), ("body", "r"));
        assert_eq!(params.query_text(), Some("SELECT 1"));
        assert_eq!(params.get("epoch"), "");
        let params = Params::of_url(Some("q=a%3Bb;c&q=x&db=%zz&other=1"));
        assert_eq!(params.query_text(), Some("a;b;c"));
        assert_eq!((params.get("db"), params.values.len()), ("%zz", 2));
        assert_eq!(Params::of_url(None).query_text(), None);
    }

    #[test]
    fn a_file_of_statements() {
        let kind = FormKind::of_content_type("multipart/form-data; boundary=b").expect("it is one");
        let body = b"--b\r\nContent-Disposition: form-data; name=\"q\"; filename=\"x\"\r\n\r\n\
            SHOW DATABASES\r\n--b\r\nContent-Disposition: form-data; name=\"db\"\r\n\r\nd\r\n--b--";
        let params = Params::of_form(&kind, body, None);
        assert_eq!(params.query_text(), Some("SHOW DATABASES"));
        assert_eq!(params.get("db"), "d");
        assert_eq!(FormKind::of_content_type("text/plain"), None);
        assert_eq!(FormKind::of_content_type("multipart/form-data"), None);
    }
}

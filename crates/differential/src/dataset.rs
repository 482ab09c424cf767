//! The data that queries are asked about: one database each, loaded in a fixed order.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use bench::random::hash;
use bench::workload::{HOUR_NS, SECOND_NS, Spec, TSBS_START_NS, Workload};
use flate2::read::GzDecoder;

use crate::case::{Kind, Request, parse_steps};

const LINES_PER_WRITE: usize = 5000;

/// A database and the requests that fill it. All of them succeed.
pub(crate) struct Dataset {
    pub(crate) db: &'static str,
    pub(crate) requests: Vec<Request>,
}

impl Dataset {
    /// A number that changes with the data; recorded answers are only valid for the data they were recorded on.
    pub(crate) fn fingerprint(&self) -> String {
        let mut sum = 0;
        for request in &self.requests {
            for (key, value) in &request.parameters {
                sum = mix(mix(sum, key.as_bytes()), value.as_bytes());
            }
            sum = mix(sum, request.text.as_bytes());
        }
        format!("{sum:016x}")
    }
}

fn mix(mut sum: u64, bytes: &[u8]) -> u64 {
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = hash(sum, u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 60));
    }
    hash(sum, bytes.len() as u64)
}

/// All data sets.
pub(crate) fn all(root: &Path) -> Result<Vec<Dataset>> {
    Ok(vec![
        lines_of("nab", &gunzip(&root.join("data/nab-part.lp.gz"))?),
        generated("cpu", Workload::CpuOnly, 8, 16 * HOUR_NS, 60 * SECOND_NS)?,
        generated("devops", Workload::Devops, 3, 2 * HOUR_NS, 60 * SECOND_NS)?,
        generated("iot", Workload::Iot, 6, 2 * HOUR_NS, 60 * SECOND_NS)?,
        script("mixed", &root.join("data/mixed.txt"))?,
    ])
}

fn generated(
    db: &'static str,
    workload: Workload,
    scale: u64,
    span_ns: i64,
    step_ns: i64,
) -> Result<Dataset> {
    let end_ns = TSBS_START_NS + span_ns;
    let spec = Spec { workload, scale, start_ns: TSBS_START_NS, end_ns, step_ns, seed: 123 };
    let (bytes, _) = bench::workload::generate_all(&spec)?;
    Ok(lines_of(db, &String::from_utf8(bytes)?))
}

fn lines_of(db: &'static str, text: &str) -> Dataset {
    let lines: Vec<&str> = text.lines().collect();
    let mut requests = vec![query(format!("CREATE DATABASE {db}"))];
    for chunk in lines.chunks(LINES_PER_WRITE) {
        requests.push(Request {
            kind: Kind::Write,
            parameters: vec![("db".to_owned(), db.to_owned())],
            accept: None,
            text: chunk.join("\n"),
        });
    }
    Dataset { db, requests }
}

fn query(text: String) -> Request {
    Request { kind: Kind::Query, parameters: Vec::new(), accept: None, text }
}

fn script(db: &'static str, path: &Path) -> Result<Dataset> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let steps = parse_steps(&text).with_context(|| format!("in {}", path.display()))?;
    Ok(Dataset { db, requests: steps.into_iter().map(|step| step.request).collect() })
}

fn gunzip(path: &Path) -> Result<String> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_the_recorded_one() {
        let recorded = crate::fixture::read_datasets(&crate::root()).unwrap();
        let now: Vec<(String, String)> = all(&crate::root())
            .unwrap()
            .iter()
            .map(|set| (set.db.to_owned(), set.fingerprint()))
            .collect();
        assert_eq!(recorded, now);
    }

    #[test]
    fn any_change_shows_in_the_fingerprint() {
        let one = lines_of("a", "m v=1 1\nm v=2 2");
        let other = lines_of("a", "m v=1 1\nm v=3 2");
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_eq!(one.fingerprint(), lines_of("a", "m v=1 1\nm v=2 2").fingerprint());
    }
}

//! Recorded answers on disk: `fixtures/FILE.json` for `cases/FILE.txt`, one case per line so that a change of one
//! answer is a change of one line; `fixtures/datasets.json` holds the fingerprints of the data.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use bench::json::Json;

use crate::answer::{Answer, Body};
use crate::case::CaseFile;

/// The version whose answers are recorded.
pub(crate) const RECORDED_VERSION: &str = "1.6.7";

/// Answers by the key of their case.
pub(crate) type Fixture = HashMap<String, Answer>;

fn path_of(root: &Path, name: &str) -> PathBuf {
    root.join("fixtures").join(format!("{name}.json"))
}

/// The recorded answers to a file of cases; `None` if nothing is recorded.
pub(crate) fn read(root: &Path, name: &str) -> Result<Option<Fixture>> {
    let path = path_of(root, name);
    if !path.exists() {
        return Ok(None);
    }
    let context = || format!("in {}", path.display());
    let text = fs::read(&path).with_context(context)?;
    let document = Json::parse(&text).with_context(context)?;
    let cases =
        document.get("cases").and_then(Json::elements).context("no cases").with_context(context)?;
    let cases = cases.iter().map(|case| {
        let key = case.get("case").and_then(Json::text).context("a case without a name")?;
        Ok((key.to_owned(), answer(case).with_context(|| key.to_owned())?))
    });
    cases.collect::<Result<Fixture>>().with_context(context).map(Some)
}

fn answer(case: &Json) -> Result<Answer> {
    let status = match case.get("status") {
        Some(Json::Number(digits)) => digits.parse().context("status")?,
        _ => bail!("no status"),
    };
    let text = |key| case.get(key).and_then(Json::text).map(str::to_owned);
    let body = match (case.get("body"), case.get("chunks").and_then(Json::elements), text("text")) {
        (Some(document), None, None) => Body::Document(document.clone()),
        (None, Some(documents), None) => Body::Chunks(documents.to_vec()),
        (None, None, Some(text)) => Body::Text(text),
        _ => bail!("exactly one of body, chunks and text is needed"),
    };
    Ok(Answer {
        status,
        content_type: text("content_type"),
        error_header: text("error_header"),
        body,
    })
}

/// Writes the answers to a file of cases, in the order of the cases.
pub(crate) fn write(root: &Path, file: &CaseFile, answers: &Fixture) -> Result<()> {
    let mut out = format!("{{\"influxdb\":\"{RECORDED_VERSION}\",\"cases\":[\n");
    for (index, case) in file.cases().enumerate() {
        let answer =
            answers.get(&case.key).with_context(|| format!("BUG: no answer for {}", case.key))?;
        let mut members = vec![("case".to_owned(), Json::String(case.key.clone()))];
        members.push(("status".to_owned(), Json::Number(answer.status.to_string())));
        let headers =
            [("content_type", &answer.content_type), ("error_header", &answer.error_header)];
        for (key, value) in headers {
            members.extend(value.clone().map(|value| (key.to_owned(), Json::String(value))));
        }
        members.push(match &answer.body {
            Body::Document(document) => ("body".to_owned(), document.clone()),
            Body::Chunks(documents) => ("chunks".to_owned(), Json::Array(documents.clone())),
            Body::Text(text) => ("text".to_owned(), Json::String(text.clone())),
        });
        if let Some(expected) = &case.expected {
            members.push(("overridden".to_owned(), Json::String(expected.reason.clone())));
        }
        let separator = if index == 0 { "" } else { ",\n" };
        write!(out, "{separator}{}", Json::Object(members))?;
    }
    out.push_str("\n]}\n");
    store(&path_of(root, &file.name), &out)
}

/// Fingerprints of the data that the answers were recorded on.
pub(crate) fn read_datasets(root: &Path) -> Result<Vec<(String, String)>> {
    let path = path_of(root, "datasets");
    let text = fs::read(&path)
        .with_context(|| format!("nothing is recorded yet: cannot read {}", path.display()))?;
    match Json::parse(&text).with_context(|| format!("in {}", path.display()))? {
        Json::Object(members) => Ok(members
            .into_iter()
            .map(|(db, sum)| (db, sum.text().unwrap_or_default().to_owned()))
            .collect()),
        _ => bail!("{} is not an object", path.display()),
    }
}

/// Stores the fingerprints of the data.
pub(crate) fn write_datasets(root: &Path, sums: &[(String, String)]) -> Result<()> {
    let members = sums.iter().map(|(db, sum)| (db.clone(), Json::String(sum.clone()))).collect();
    store(&path_of(root, "datasets"), &format!("{}\n", Json::Object(members)))
}

fn store(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_storage() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("fixtures")).unwrap();
        let file = CaseFile::parse("f", "@db a\nSELECT 1\nSELECT 2\nSELECT 3").unwrap();
        let bodies = ["{\"a\":1e21}", "{}\n{}", "name,tags\nm,\"a\nb\""];
        let answers: Fixture = file
            .cases()
            .zip(bodies)
            .map(|(case, body)| (case.key.clone(), Answer::by_hand(200, "application/json", body)))
            .collect();
        write(directory.path(), &file, &answers).unwrap();
        assert_eq!(read(directory.path(), "f").unwrap(), Some(answers));
        assert_eq!(read(directory.path(), "other").unwrap(), None);
    }

    #[test]
    fn every_case_is_recorded_and_every_record_is_a_case() {
        for file in crate::case::read_all(&crate::root()).unwrap() {
            let recorded = read(&crate::root(), &file.name).unwrap().unwrap_or_default();
            let missing: Vec<&str> = file
                .cases()
                .map(|case| case.key.as_str())
                .filter(|key| !recorded.contains_key(*key))
                .collect();
            assert_eq!(missing, [""; 0], "not recorded: cargo run -p differential -- record");
            assert_eq!(
                recorded.len(),
                file.cases().count(),
                "{} has answers without a case",
                file.name
            );
        }
    }
}

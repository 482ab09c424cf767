//! Sends data sets and cases to a server.

use anyhow::{Context, Result, bail};
use bench::http::{Client, HttpError, escape, target};
use bench::json::Json;

use crate::answer::Answer;
use crate::case::{Case, Group, Kind, Request};
use crate::dataset::Dataset;

const FORM: &str = "application/x-www-form-urlencoded";

/// A connection to the server in question.
pub(crate) struct Runner {
    client: Client,
}

impl Runner {
    pub(crate) fn new(url: &str) -> Result<Self> {
        Ok(Self { client: Client::new(url)? })
    }

    /// Sends one request and returns the answer in comparable form.
    pub(crate) fn send(&mut self, request: &Request) -> Result<Answer, HttpError> {
        let mut parameters: Vec<(&str, &str)> =
            request.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let mut headers: Vec<(&str, &str)> = Vec::new();
        headers.extend(request.accept.as_deref().map(|accept| ("Accept", accept)));
        let response = match request.kind {
            Kind::Get => {
                parameters.push(("q", &request.text));
                self.client.request("GET", &target("/query", &parameters), &headers, &[])?
            }
            Kind::Query => {
                headers.push(("Content-Type", FORM));
                let form = format!("q={}", escape(&request.text));
                self.client.post(&target("/query", &parameters), &headers, form.as_bytes())?
            }
            Kind::Write => self.client.post(
                &target("/write", &parameters),
                &headers,
                request.text.as_bytes(),
            )?,
        };
        // Indentation is the point of `pretty`.
        let as_text = parameters.iter().any(|(key, _)| *key == "pretty");
        Ok(Answer::of(&response, as_text))
    }

    /// Replaces a database by the data set's.
    pub(crate) fn load(&mut self, dataset: &Dataset) -> Result<()> {
        self.drop_database(dataset.db)?;
        for request in &dataset.requests {
            let answer = self.send(request)?;
            if answer.status >= 300 || answer.body.to_string().contains("\"error\"") {
                let start: String = request.text.chars().take(200).collect();
                bail!("loading {}: {} {} for {start}", dataset.db, answer.status, answer.body);
            }
        }
        Ok(())
    }

    /// Names of the server's databases.
    pub(crate) fn databases(&mut self) -> Result<Vec<String>> {
        let response = self.client.get(&target("/query", &[("q", "SHOW DATABASES")]))?;
        let document = Json::parse(response.body).context("the answer to SHOW DATABASES")?;
        let result =
            document.get("results").and_then(Json::elements).and_then(|results| results.first());
        let series = result.and_then(|result| result.get("series")).and_then(Json::elements);
        let rows =
            series.and_then(|series| series.first()?.get("values")?.elements()).unwrap_or_default();
        if response.status != 200 || result.is_none() {
            bail!("SHOW DATABASES: {} {document}", response.status);
        }
        let names =
            rows.iter().filter_map(|row| row.elements()?.first()?.text().map(str::to_owned));
        Ok(names.collect())
    }

    pub(crate) fn drop_database(&mut self, db: &str) -> Result<()> {
        let request = Request {
            kind: Kind::Query,
            parameters: Vec::new(),
            accept: None,
            text: format!("DROP DATABASE \"{db}\""),
        };
        let answer = self.send(&request)?;
        if answer.status != 200 {
            bail!("cannot drop database {db}: {} {}", answer.status, answer.body);
        }
        Ok(())
    }

    /// Runs a group in order and hands each case with its answer to `visit`.
    pub(crate) fn run<'a>(
        &mut self,
        group: &'a Group,
        mut visit: impl FnMut(&'a Case, Result<Answer, HttpError>),
    ) -> Result<()> {
        match group {
            Group::Plain(case) => visit(case, self.send(&case.request)),
            Group::Script { databases, steps } => {
                for db in databases {
                    self.drop_database(db)?;
                }
                for step in steps {
                    visit(step, self.send(&step.request));
                }
                for db in databases {
                    self.drop_database(db)?;
                }
            }
        }
        Ok(())
    }
}

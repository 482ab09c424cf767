//! Which groups have rows in the shards that are read, for SLIMIT: a store knows all series of a database, InfluxDB those of a
//! shard.

use hashbrown::HashSet;
use model::{Name, TagExpr, TimeRange};
use store::ScanRequest;

use crate::exec::input::Input;
use crate::presence::{has_rows_within, is_only_policy, tags_within};
use crate::{QueryContext, QueryError};

/// Which values of dimensions series have that have rows in the shards that are read.
pub(super) struct Present<'a> {
    /// Where such series are looked for; `None`: all values count.
    requests: Option<Vec<&'a ScanRequest>>,
    dimensions: &'a [Name],
    context: &'a QueryContext,
    /// How many were looked for one by one.
    asked: usize,
    /// All of them, once those were many.
    all: Option<HashSet<Vec<Name>>>,
}

/// So many values are looked for one by one.
const ASKED_MAX: usize = 64;

impl<'a> Present<'a> {
    pub(super) fn of(
        inputs: &'a [Input],
        dimensions: &'a [Name],
        context: &'a QueryContext,
    ) -> Self {
        // What a subquery or join has was read.
        let requests: Option<Vec<&ScanRequest>> =
            inputs.iter().map(|input| input.request.as_ref()).collect();
        let has_all = |requests: &Vec<&ScanRequest>| {
            dimensions.is_empty() || requests.iter().any(|r| is_everything(r, context))
        };
        let requests = requests.filter(|requests| !has_all(requests));
        Self { requests, dimensions, context, asked: 0, all: None }
    }

    /// Whether series with these values of the dimensions have rows there.
    ///
    /// # Errors
    /// A failing store.
    pub(super) fn has(&mut self, values: &[Name]) -> Result<bool, QueryError> {
        let Some(requests) = &self.requests else { return Ok(true) };
        if self.asked < ASKED_MAX {
            self.asked += 1;
            let tags = self.dimensions.iter().zip(values);
            for request in requests {
                let with = tags.clone().map(|(key, v)| TagExpr::Equals(key.clone(), v.clone()));
                let series = TagExpr::And(with.chain([request.series.clone()]).collect());
                let within = (series, request.time);
                if has_rows_within(request.policy, &request.measurement, within, self.context)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let all = match self.all.take() {
            Some(all) => all,
            None => {
                let mut all = HashSet::new();
                for ScanRequest { policy, measurement, series, time, .. } in requests {
                    let (within, dimensions) = ((series, *time), self.dimensions);
                    all.extend(tags_within(
                        *policy,
                        measurement,
                        within,
                        dimensions,
                        self.context,
                    )?);
                }
                all
            }
        };
        Ok(self.all.insert(all).contains(values))
    }
}

/// Whether all shards of a database are read.
fn is_everything(request: &ScanRequest, context: &QueryContext) -> bool {
    request.time == TimeRange::ALL && is_only_policy(&request.policy, context)
}

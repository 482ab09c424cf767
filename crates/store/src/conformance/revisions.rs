//! Revisions: where one stays, the rows that it stands for have stayed.

use model::{Name, PolicyId, TimeRange};

use super::apply::{failed, same};
use super::generate::NOW;
use crate::reference::ReferenceStore;
use crate::testing::{self, HOUR_NS, Row};
use crate::{Policy, Revision, Store};

/// Revisions of some policies and ranges, and the rows behind them.
pub(super) struct Revisions(Vec<(PolicyId, TimeRange, Revision, Vec<Row>)>);

impl Revisions {
    /// As they are now; the rows are those of the model.
    pub(super) fn take(
        (store, model): (&dyn Store, &ReferenceStore),
        policies: &[Policy],
        measurements: &[Name],
    ) -> Result<Self, String> {
        let middle = NOW - 2 * HOUR_NS;
        let ranges = [
            TimeRange::ALL,
            TimeRange { min: i64::MIN, max: middle - 1 },
            TimeRange { min: middle, max: middle + HOUR_NS / 2 },
        ];
        let mut all = Vec::new();
        for policy in policies {
            let mut rows = Vec::new();
            for measurement in measurements {
                rows.extend(
                    testing::read_all(model, *policy, measurement).map_err(failed("model"))?,
                );
            }
            for range in ranges {
                let revision = store.revision(policy.id, range).map_err(failed("revision"))?;
                let Some(revision) = revision else { continue };
                let within = rows.iter().filter(|row| range.contains(row.time_ns));
                all.push((policy.id, range, revision, within.cloned().collect()));
            }
        }
        Ok(Self(all))
    }

    /// Compares the rows behind those that are the same later.
    pub(super) fn check(&self, later: &Self) -> Result<(), String> {
        for (policy, range, revision, rows) in &self.0 {
            let now = later.0.iter().find(|(p, r, ..)| (p, r) == (policy, range));
            let unchanged = now.filter(|(.., other, _)| other == revision);
            if let Some((.., rows_now)) = unchanged {
                let what = format!("{policy:?} within {range:?} of unchanged {revision:?}");
                same(&what, rows_now, rows)?;
            }
        }
        Ok(())
    }
}

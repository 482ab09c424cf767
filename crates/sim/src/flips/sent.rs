//! What was ever written by a history: nothing else may ever be read.

use std::collections::BTreeMap;

use model::{Name, Scalar, SeriesKey};
use store::testing::{Row, same};

use crate::content::Content;
use crate::operation::Operation;
use crate::pool;

/// Policy (without its generation), canonical key, time, field.
type Cell = (u8, String, i64, Name);

/// All values that cells were given.
#[derive(Debug, Default)]
pub(super) struct Sent {
    cells: BTreeMap<Cell, Vec<Scalar>>,
}

impl Sent {
    pub(super) fn of(operations: &[Operation]) -> Self {
        let mut sent = Self::default();
        for operation in operations {
            match operation {
                Operation::Write { policy, rows } => {
                    rows.iter().for_each(|row| sent.add(*policy, &pool::store_row(row)));
                }
                Operation::Bulk { policy, first, rows, spread } => {
                    let rows = pool::bulk(*first, *rows, *spread);
                    rows.iter().for_each(|row| sent.add(*policy, row));
                }
                _ => {}
            }
        }
        sent
    }

    fn add(&mut self, policy: u8, row: &Row) {
        let key = SeriesKey::parse(row.key.as_bytes()).expect("BUG: keys are right").to_string();
        for (field, value) in &row.fields {
            let cell = (policy % 3, key.clone(), row.time_ns, field.clone());
            self.cells.entry(cell).or_default().push(value.clone());
        }
    }

    /// Fails if something was read that was never written.
    pub(super) fn check(&self, content: &Content) -> Result<(), String> {
        for ((policy, _), rows) in &content.rows {
            let policy = pool::policy_number(*policy);
            for row in rows {
                self.check_row(policy, row)?;
            }
        }
        Ok(())
    }

    fn check_row(&self, policy: u8, row: &Row) -> Result<(), String> {
        for (field, value) in &row.fields {
            let cell = (policy, row.key.clone(), row.time_ns, field.clone());
            let known = self.cells.get(&cell).is_some_and(|all| all.iter().any(|v| same(v, value)));
            if !known {
                return Err(format!("{field}={value:?} was never written to {row:?}"));
            }
        }
        Ok(())
    }
}

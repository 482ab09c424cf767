//! Values of a batch as rows of a narrow table: a row for each.

use std::collections::HashMap;

use kudu_client::{Cells, Error, Operation, RowBatch, Table, WriteOutcome};
use model::{FieldType, LineBatch};

use super::encode::{Filled, Place, Places, RowOf};
use crate::layout::{NARROW_KEY, narrow_column};

/// Cells of a narrow table in columns.
#[derive(Default)]
pub(super) struct NarrowUpsert<'a> {
    series: Vec<i64>,
    pub(super) times: Vec<i64>,
    fields: Vec<i32>,
    /// By name of the column.
    values: HashMap<&'static str, Filled<'a>>,
}

impl<'a> NarrowUpsert<'a> {
    pub(super) fn new(batch: &'a LineBatch<'_>, rows: &[RowOf], places: &Places) -> Self {
        let cells = |(row, _): &RowOf| places.of(batch.rows[*row as usize].layout).narrow;
        let count = rows.iter().map(cells).sum();
        let mut upsert = Self::default();
        for (row, series) in rows {
            let row = &batch.rows[*row as usize];
            let fields = &batch.layouts[row.layout as usize].fields;
            let placed = places.of(row.layout).fields.iter().zip(fields);
            for ((place, field), slot) in placed.zip(batch.row_values(row)) {
                let Place::Narrow(number) = place else { continue };
                let at = upsert.times.len();
                upsert.series.push(*series);
                upsert.times.push(row.time_ns);
                upsert.fields.push(*number);
                // Unsigned values are kept like the signed ones with the same bits.
                let field_type = match field.field_type {
                    FieldType::Unsigned => FieldType::Integer,
                    other => other,
                };
                let column = upsert.values.entry(narrow_column(field_type));
                let column = column.or_insert_with(|| Filled::new(field_type, count));
                column.set(at, *slot, batch);
            }
        }
        upsert
    }

    /// Writes the values.
    pub(super) async fn send(
        &self,
        table: &Table,
        measurement: i64,
    ) -> Result<WriteOutcome, Error> {
        let owners = vec![measurement; self.times.len()];
        let mut batch = RowBatch::new(Operation::Upsert, self.times.len())
            .column(0, Cells::Int64(&owners))
            .column(1, Cells::Int64(&self.series))
            .column(2, Cells::Int64(&self.times))
            .column(NARROW_KEY - 1, Cells::Int32(&self.fields));
        for (name, filled) in &self.values {
            batch = filled.put_into(batch, table, name)?;
        }
        table.write(&batch).await
    }
}

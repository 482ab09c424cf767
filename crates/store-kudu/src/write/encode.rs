//! Rows of a batch as columns of a table.

use std::collections::HashMap;

use kudu_client::{Bits, Cells, Error, Missing, Operation, RowBatch, Table, WriteOutcome};
use model::{FieldType, LineBatch};

use crate::layout::column_name;

/// Rows of one data table in columns.
pub(super) struct Upsert<'a> {
    pub(super) series: Vec<i64>,
    pub(super) times: Vec<i64>,
    /// Names and types of the field columns.
    pub(super) columns: Vec<(String, FieldType)>,
    values: Vec<Filled<'a>>,
}

/// A column, with a bit for each row that has a value.
struct Filled<'a> {
    values: Values<'a>,
    present: Vec<u8>,
}

enum Values<'a> {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Boolean(Vec<bool>),
    Text(Vec<&'a [u8]>),
}

impl<'a> Upsert<'a> {
    /// The rows at `rows` of the batch; their series are filled in afterwards.
    pub(super) fn new(batch: &'a LineBatch<'_>, rows: &[u32]) -> Self {
        let mut upsert = Self {
            series: Vec::with_capacity(rows.len()),
            times: Vec::with_capacity(rows.len()),
            columns: Vec::new(),
            values: Vec::new(),
        };
        let mut by_field: HashMap<&str, usize> = HashMap::new();
        let mut by_layout: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, index) in rows.iter().enumerate() {
            let row = &batch.rows[*index as usize];
            upsert.times.push(row.time_ns);
            let layout = &batch.layouts[row.layout as usize];
            let places = by_layout.entry(row.layout).or_insert_with(|| {
                let place = |field: &'a model::LayoutField<'_>| {
                    *by_field
                        .entry(&field.name)
                        .or_insert_with(|| upsert.add(&field.name, field.field_type, rows.len()))
                };
                layout.fields.iter().map(place).collect()
            });
            for (place, slot) in places.iter().zip(batch.row_values(row)) {
                upsert.values[*place].set(at, *slot, batch);
            }
        }
        upsert
    }

    fn add(&mut self, field: &str, field_type: FieldType, rows: usize) -> usize {
        self.columns.push((column_name(field), field_type));
        self.values.push(Filled {
            values: match field_type {
                FieldType::Float => Values::Float(vec![0.0; rows]),
                FieldType::Integer | FieldType::Unsigned => Values::Integer(vec![0; rows]),
                FieldType::Boolean => Values::Boolean(vec![false; rows]),
                FieldType::String => Values::Text(vec![&[]; rows]),
            },
            present: vec![0; rows.div_ceil(8)],
        });
        self.values.len() - 1
    }

    /// Writes the rows; a field a row does not have stays as it is.
    pub(super) async fn send(&self, table: &Table) -> Result<WriteOutcome, Error> {
        let mut batch = RowBatch::new(Operation::Upsert, self.times.len())
            .column(0, Cells::Int64(&self.series))
            .column(1, Cells::Int64(&self.times));
        for ((name, _), filled) in self.columns.iter().zip(&self.values) {
            let Some(index) = table.schema().find(name) else {
                let message = format!("column {name} is gone");
                return Err(Error::SchemaChanged { table: table.name().to_owned(), message });
            };
            let cells = match &filled.values {
                Values::Float(values) => Cells::Double(values),
                Values::Integer(values) => Cells::Int64(values),
                Values::Boolean(values) => Cells::Bool(values),
                Values::Text(values) => Cells::Slices(values),
            };
            batch = batch.column_where(index, cells, Bits(&filled.present), Missing::Unset);
        }
        table.write(&batch).await
    }
}

impl<'a> Filled<'a> {
    fn set(&mut self, row: usize, slot: u64, batch: &'a LineBatch<'_>) {
        self.present[row / 8] |= 1 << (row % 8);
        match &mut self.values {
            Values::Float(values) => values[row] = f64::from_bits(slot),
            Values::Integer(values) => values[row] = slot.cast_signed(),
            Values::Boolean(values) => values[row] = slot != 0,
            Values::Text(values) => values[row] = batch.string(slot),
        }
    }
}

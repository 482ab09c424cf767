//! Rows of a batch as columns of a table.

use std::collections::HashMap;

use kudu_client::{Bits, Cells, Error, Missing, Operation, RowBatch, Table, WriteOutcome};
use model::{FieldType, LineBatch, Name};

use crate::layout::{Field, column_name};

pub(super) use crate::layout::Place;

/// A row of the batch, by index, and the id of its series.
pub(super) type RowOf = (u32, i64);

/// Where the values of a batch's rows go, by layout.
#[derive(Debug, Default)]
pub(super) struct Places {
    layouts: HashMap<u32, OfLayout>,
}

/// Where the values of a layout go.
#[derive(Debug, Default)]
pub(super) struct OfLayout {
    pub(super) fields: Vec<Place>,
    /// Fields with a column of their own.
    pub(super) wide: usize,
    /// Fields in the narrow table.
    pub(super) narrow: usize,
}

impl Places {
    /// `None`: not all of the fields are known.
    pub(super) fn new(
        batch: &LineBatch<'_>,
        rows: &[u32],
        known: &HashMap<Name, Field>,
    ) -> Option<Self> {
        let mut places = Self::default();
        for row in rows {
            let layout = batch.rows[*row as usize].layout;
            if places.layouts.contains_key(&layout) {
                continue;
            }
            let fields = batch.layouts[layout as usize].fields.iter();
            let fields: Option<Vec<Place>> =
                fields.map(|field| known.get(&*field.name).map(|known| known.place)).collect();
            let fields = fields?;
            let wide = fields.iter().filter(|place| **place == Place::Column).count();
            let narrow = fields.len() - wide;
            places.layouts.insert(layout, OfLayout { fields, wide, narrow });
        }
        Some(places)
    }

    pub(super) fn of(&self, layout: u32) -> &OfLayout {
        static NOTHING: OfLayout = OfLayout { fields: Vec::new(), wide: 0, narrow: 0 };
        self.layouts.get(&layout).unwrap_or(&NOTHING)
    }

    /// Most values of a row that go to the narrow table.
    pub(super) fn narrow_max(&self) -> usize {
        self.layouts.values().map(|layout| layout.narrow).max().unwrap_or(0)
    }
}

/// Rows of one data table in columns.
pub(super) struct Upsert<'a> {
    series: Vec<i64>,
    pub(super) times: Vec<i64>,
    /// Names and types of the field columns.
    pub(super) columns: Vec<(String, FieldType)>,
    values: Vec<Filled<'a>>,
}

/// A column, with a bit for each row that has a value.
pub(super) struct Filled<'a> {
    pub(super) values: Values<'a>,
    pub(super) present: Vec<u8>,
}

pub(super) enum Values<'a> {
    Float(Vec<f64>),
    Integer(Vec<i64>),
    Boolean(Vec<bool>),
    Text(Vec<&'a [u8]>),
}

impl<'a> Upsert<'a> {
    /// Of the rows those values that have columns of their own.
    pub(super) fn new(batch: &'a LineBatch<'_>, rows: &[RowOf], places: &Places) -> Self {
        let mut upsert = Self {
            series: rows.iter().map(|(_, series)| *series).collect(),
            times: Vec::with_capacity(rows.len()),
            columns: Vec::new(),
            values: Vec::new(),
        };
        let mut by_field: HashMap<&str, usize> = HashMap::new();
        let mut by_layout: HashMap<u32, Vec<Option<usize>>> = HashMap::new();
        for (at, (index, _)) in rows.iter().enumerate() {
            let row = &batch.rows[*index as usize];
            upsert.times.push(row.time_ns);
            let columns = by_layout.entry(row.layout).or_insert_with(|| {
                let fields = batch.layouts[row.layout as usize].fields.iter();
                let placed = fields.zip(&places.of(row.layout).fields);
                let column = |(field, place): (&'a model::LayoutField<'_>, &Place)| {
                    let mut add = || upsert.add(&field.name, field.field_type, rows.len());
                    let is_wide = *place == Place::Column;
                    is_wide.then(|| *by_field.entry(&field.name).or_insert_with(&mut add))
                };
                placed.map(column).collect()
            });
            for (column, slot) in columns.iter().zip(batch.row_values(row)) {
                if let Some(column) = column {
                    upsert.values[*column].set(at, *slot, batch);
                }
            }
        }
        upsert
    }

    fn add(&mut self, field: &str, field_type: FieldType, rows: usize) -> usize {
        self.columns.push((column_name(field), field_type));
        self.values.push(Filled::new(field_type, rows));
        self.values.len() - 1
    }

    /// Writes the rows; a field a row does not have stays as it is.
    pub(super) async fn send(&self, table: &Table) -> Result<WriteOutcome, Error> {
        let mut batch = RowBatch::new(Operation::Upsert, self.times.len())
            .column(0, Cells::Int64(&self.series))
            .column(1, Cells::Int64(&self.times));
        for ((name, _), filled) in self.columns.iter().zip(&self.values) {
            batch = filled.put_into(batch, table, name)?;
        }
        table.write(&batch).await
    }
}

impl Values<'_> {
    pub(super) fn cells(&self) -> Cells<'_> {
        match self {
            Self::Float(values) => Cells::Double(values),
            Self::Integer(values) => Cells::Int64(values),
            Self::Boolean(values) => Cells::Bool(values),
            Self::Text(values) => Cells::Slices(values),
        }
    }
}

impl<'a> Filled<'a> {
    /// A column without a value in any of so many rows.
    pub(super) fn new(field_type: FieldType, rows: usize) -> Self {
        Self {
            values: match field_type {
                FieldType::Float => Values::Float(vec![0.0; rows]),
                FieldType::Integer | FieldType::Unsigned => Values::Integer(vec![0; rows]),
                FieldType::Boolean => Values::Boolean(vec![false; rows]),
                FieldType::String => Values::Text(vec![&[]; rows]),
            },
            present: vec![0; rows.div_ceil(8)],
        }
    }

    /// Adds the column to rows for `table`, where it is called `name`.
    ///
    /// # Errors
    /// [`Error::SchemaChanged`] if the table has no such column any more.
    pub(super) fn put_into<'b>(
        &'b self,
        batch: RowBatch<'b>,
        table: &Table,
        name: &str,
    ) -> Result<RowBatch<'b>, Error> {
        let Some(index) = table.schema().find(name) else {
            let message = format!("column {name} is gone");
            return Err(Error::SchemaChanged { table: table.name().to_owned(), message });
        };
        let present = Bits(&self.present);
        Ok(batch.column_where(index, self.values.cells(), present, Missing::Unset))
    }

    pub(super) fn set(&mut self, row: usize, slot: u64, batch: &'a LineBatch<'_>) {
        self.present[row / 8] |= 1 << (row % 8);
        match &mut self.values {
            Values::Float(values) => values[row] = f64::from_bits(slot),
            Values::Integer(values) => values[row] = slot.cast_signed(),
            Values::Boolean(values) => values[row] = slot != 0,
            Values::Text(values) => values[row] = batch.string(slot),
        }
    }
}

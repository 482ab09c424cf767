//! Answers made of values that somebody else has: what a server says of itself.

use std::sync::Arc;

use model::{Column, Documents, Name, Scalar, SeriesHeader, Values};

use crate::Answer;
use crate::exec::stream::Part;

/// One series of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name of the series.
    pub name: Name,
    /// Tags, sorted by key.
    pub tags: Vec<(Name, Name)>,
    /// Names of the columns.
    pub columns: Vec<Name>,
    /// Rows, a value a column; those of a column are all of one type.
    pub rows: Vec<Vec<Scalar>>,
}

impl Answer {
    /// An answer of these series, also of those without rows.
    #[must_use]
    pub fn of_tables(tables: Vec<Table>) -> Self {
        let parts = tables.into_iter().map(part_of).collect();
        Self::ready(parts).in_documents(Documents::Statement)
    }
}

fn part_of(table: Table) -> Part {
    let Table { name, tags, columns, rows } = table;
    let cells = |at: usize| rows.iter().filter_map(move |row| row.get(at));
    let values =
        (0..columns.len()).map(|at| Column::new(column_of(&cells(at).collect::<Vec<_>>())));
    let values = values.collect();
    let columns = columns.into();
    let header = SeriesHeader { name, tags, columns, ..SeriesHeader::default() };
    Part::new(Arc::new(header), values)
}

fn column_of(cells: &[&Scalar]) -> Values {
    match cells.first() {
        Some(Scalar::Float(_)) => Values::Float(cells.iter().copied().filter_map(float).collect()),
        Some(Scalar::Integer(_)) => {
            Values::Integer(cells.iter().copied().filter_map(integer).collect())
        }
        Some(Scalar::Unsigned(_)) => {
            Values::Unsigned(cells.iter().copied().filter_map(unsigned).collect())
        }
        Some(Scalar::Boolean(_)) => {
            Values::Boolean(cells.iter().copied().filter_map(boolean).collect())
        }
        _ => Values::String(cells.iter().copied().filter_map(text).collect()),
    }
}

fn float(cell: &Scalar) -> Option<f64> {
    if let Scalar::Float(value) = cell { Some(*value) } else { None }
}

fn integer(cell: &Scalar) -> Option<i64> {
    if let Scalar::Integer(value) = cell { Some(*value) } else { None }
}

fn unsigned(cell: &Scalar) -> Option<u64> {
    if let Scalar::Unsigned(value) = cell { Some(*value) } else { None }
}

fn boolean(cell: &Scalar) -> Option<bool> {
    if let Scalar::Boolean(value) = cell { Some(*value) } else { None }
}

fn text(cell: &Scalar) -> Option<&str> {
    if let Scalar::String(value) = cell { Some(value) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_become_series() {
        let table = Table {
            name: "t".into(),
            tags: vec![("k".into(), "v".into())],
            columns: vec!["a".into(), "b".into()],
            rows: vec![
                vec![Scalar::Integer(1), Scalar::String("x".into())],
                vec![Scalar::Integer(2), Scalar::String("y".into())],
            ],
        };
        let empty = Table { rows: Vec::new(), ..table.clone() };
        let mut answer = Answer::of_tables(vec![table, empty]);
        let first = answer.next().unwrap().unwrap();
        assert_eq!((first.batch.rows, &*first.header.name), (2, "t"));
        assert!(matches!(&first.batch.columns[0].values, Values::Integer(v) if v[..] == [1, 2]));
        assert_eq!(answer.next().unwrap().unwrap().batch.rows, 0);
        assert!(answer.next().unwrap().is_none());
    }
}

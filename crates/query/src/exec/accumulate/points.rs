//! What a function found in a group: points in the order of the result.

use model::{Column, FieldType, Values};

use super::pick::Pick;
use crate::exec::column;

/// The points of one function in one group, in the order of the result.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    pub times: Vec<i64>,
    pub values: Column,
    pub aux: Vec<Column>,
}

impl Points {
    /// No points.
    pub(crate) fn none(result: FieldType, aux: impl Iterator<Item = FieldType>) -> Self {
        Self {
            times: Vec::new(),
            values: Column::new(Values::empty(result)),
            aux: aux.map(|t| Column::new(Values::empty(t))).collect(),
        }
    }

    /// The points of some slots, which all have one, with the times that `time` says; these have none yet.
    pub(crate) fn of_picked(
        mut self,
        pick: &Pick,
        slots: impl Iterator<Item = usize> + Clone,
        time: impl FnMut(usize) -> i64,
    ) -> Self {
        if !self.aux.is_empty() {
            for slot in slots.clone() {
                for (column, cell) in self.aux.iter_mut().zip(pick.aux(slot)) {
                    column.push(cell.as_ref());
                }
            }
        }
        let values = Column::new(pick.values(slots.clone()));
        Self { times: slots.map(time).collect(), values, aux: self.aux }
    }

    /// Bytes of memory taken.
    pub(crate) fn memory_bytes(&self) -> usize {
        let aux: usize = self.aux.iter().map(|column| column.values.memory_bytes()).sum();
        self.times.capacity() * 8 + self.values.values.memory_bytes() + aux
    }

    /// Makes missing floats numbers that are none: points all the same, unlike empty windows.
    pub(crate) fn name_missing(&mut self) {
        let (Values::Float(values), Some(validity)) =
            (&mut self.values.values, self.values.validity.take())
        else {
            return;
        };
        for (at, value) in values.iter_mut().enumerate() {
            if !validity.get(at) {
                *value = f64::NAN;
            }
        }
    }

    /// Adds the points of `more` behind these.
    pub(crate) fn append(&mut self, more: &Self) {
        self.times.extend_from_slice(&more.times);
        column::append(&mut self.values, &more.values);
        for (mine, theirs) in self.aux.iter_mut().zip(&more.aux) {
            column::append(mine, theirs);
        }
    }
}

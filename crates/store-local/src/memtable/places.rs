//! Where the rows of a memtable have the fields that are asked for.
//!
//! A row has the fields of its layout. A table of thousands of fields of which a row has a handful can have as many layouts
//! as rows: what is kept here, and what a row costs, goes with the values that there are, not with fields times layouts.

use std::sync::OnceLock;

use hashbrown::HashMap;
use model::FieldType;

use super::shard::StoredRow;
use super::{LayoutTable, StoredLayout};
use crate::rows::{FieldNo, MeasurementNo, NO_FIELD};

/// Fields to read of a measurement's rows, and where these have them: the same for all of its series, so it is found once.
/// It is about the layouts that there were when it was made; rows that are read must be as old.
#[derive(Debug)]
pub(crate) struct FieldPlaces {
    pub(super) types: Vec<FieldType>,
    /// Of each field its position in all of the measurement's rows, where there is one.
    everywhere: Vec<Option<u32>>,
    /// The fields that are at one position in all rows.
    pub(super) steady: Vec<Found>,
    /// The others that rows of a layout have, layout after layout; more than [`UNSORTED_MAX`] ascend by field.
    found: Vec<Found>,
    /// The number of the measurement's first layout; layouts are counted from it on, those of others among them, too.
    first_layout: u32,
    /// Where in `found` those of each layout begin, and behind the last.
    starts: Vec<usize>,
    /// Whether rows of a layout have any of the fields.
    with_fields: Vec<bool>,
    /// The fields that are not steady.
    pub(super) others: Vec<u32>,
    /// Of each field, layout by layout, the position or [`ABSENT`]; empty if that were too many.
    table: Vec<u32>,
    /// See [`Self::fields_there`]: with many layouts it takes a while.
    there: OnceLock<usize>,
}

const ABSENT: u32 = u32::MAX;

/// Entries of a table of positions at most: one that is as large stays in the second cache.
const TABLE_MAX: usize = 1 << 16;

/// A field of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its place among those that were asked for.
    pub(super) field: u32,
    /// Which of the row's values it is.
    pub(super) position: u32,
}

/// The fields that are asked for, by number.
enum Asked<'a> {
    /// So few that looking at each is fastest.
    Few(&'a [(FieldNo, FieldType)]),
    Many(HashMap<FieldNo, u32>),
}

impl<'a> Asked<'a> {
    fn new(fields: &'a [(FieldNo, FieldType)]) -> Self {
        if fields.len() <= FEW_FIELDS {
            return Self::Few(fields);
        }
        let mut many = HashMap::with_capacity(fields.len());
        for ((no, _), at) in fields.iter().zip(0..) {
            let before = if *no == NO_FIELD { None } else { many.insert(*no, at) };
            assert_eq!(before, None, "BUG: a field is asked for twice");
        }
        Self::Many(many)
    }

    fn place(&self, field: FieldNo) -> Option<u32> {
        match self {
            Self::Few(few) => few.iter().position(|(no, _)| *no == field).map(|at| at as u32),
            Self::Many(many) => many.get(&field).copied(),
        }
    }
}

/// Rows that have one in so many of the fields, or more, are dense: to look for a value costs so much less than to put one
/// in its place.
const DENSE_PART: usize = 4;

/// Fields that are looked through one by one.
const FEW_FIELDS: usize = 12;

/// So many fields of a layout are looked through one by one, and not sorted: of thousands of layouts few are looked at.
const UNSORTED_MAX: usize = 32;

impl FieldPlaces {
    pub(super) fn new(
        layouts: &LayoutTable,
        measurement: MeasurementNo,
        fields: &[(FieldNo, FieldType)],
    ) -> Self {
        let asked = Asked::new(fields);
        let in_layout = |layout: &StoredLayout, out: &mut Vec<Found>| {
            let found = layout.fields.iter().zip(0..).filter_map(|(no, position)| {
                asked.place(*no).map(|field| Found { field, position })
            });
            out.extend(found);
        };
        let mut of_rows = layouts.of(measurement).map(|(_, layout)| layout);
        let mut steady = Vec::new();
        of_rows.next().into_iter().for_each(|first| in_layout(first, &mut steady));
        for layout in of_rows {
            if steady.is_empty() {
                break;
            }
            let is_there = |found: &Found| {
                let no = layout.fields.get(found.position as usize);
                no.is_some_and(|no| asked.place(*no) == Some(found.field))
            };
            steady.retain(is_there);
        }
        let mut everywhere = vec![None; fields.len()];
        steady.iter().for_each(|some| everywhere[some.field as usize] = Some(some.position));
        let (mut found, mut of_layout) = (Vec::new(), Vec::new());
        let mut numbers = layouts.of(measurement).map(|(number, _)| number);
        let first_layout = numbers.next().unwrap_or(0);
        let last_layout = numbers.next_back().unwrap_or(first_layout);
        let n_layouts = (last_layout - first_layout) as usize + 1;
        let mut starts = Vec::with_capacity(n_layouts + 1);
        for (number, layout) in layouts.of(measurement) {
            // Those of other measurements between have nothing.
            starts.resize((number - first_layout) as usize + 1, found.len());
            in_layout(layout, &mut of_layout);
            if of_layout.len() > UNSORTED_MAX {
                of_layout.sort_unstable_by_key(|found| found.field);
            }
            found.extend(of_layout.drain(..).filter(|f| everywhere[f.field as usize].is_none()));
        }
        starts.resize(n_layouts + 1, found.len());
        let is_other = |field: &u32| everywhere[*field as usize].is_none();
        let others: Vec<u32> = (0..fields.len() as u32).filter(is_other).collect();
        let cells = fields.len() * n_layouts;
        let mut table = Vec::new();
        if !others.is_empty() && cells <= TABLE_MAX {
            table.resize(cells, ABSENT);
            for (at, range) in starts.windows(2).enumerate() {
                for found in &found[range[0]..range[1]] {
                    table[found.field as usize * n_layouts + at] = found.position;
                }
            }
        }
        let has_any = |range: &[usize]| !steady.is_empty() || range[0] < range[1];
        let with_fields = starts.windows(2).map(has_any).collect();
        let types = fields.iter().map(|(_, t)| *t).collect();
        Self {
            types,
            everywhere,
            steady,
            found,
            first_layout,
            starts,
            with_fields,
            others,
            table,
            there: OnceLock::new(),
        }
    }

    /// Fields that were asked for.
    pub(crate) fn columns(&self) -> usize {
        self.types.len()
    }

    /// The fields that rows of a layout have and not all rows at the same position.
    #[inline]
    pub(super) fn others_of(&self, layout: u32) -> &[Found] {
        let at = (layout - self.first_layout) as usize;
        &self.found[self.starts[at]..self.starts[at + 1]]
    }

    /// How many of the fields there are rows with.
    pub(super) fn fields_there(&self) -> usize {
        *self.there.get_or_init(|| {
            let mut is_there = vec![false; self.columns()];
            let all = self.steady.iter().chain(&self.found);
            all.for_each(|found| is_there[found.field as usize] = true);
            is_there.into_iter().filter(|is_there| *is_there).count()
        })
    }

    /// Whether rows of a layout have one of the fields: others are nothing but their time.
    #[inline]
    pub(super) fn has_fields(&self, layout: u32) -> bool {
        self.with_fields[(layout - self.first_layout) as usize]
    }

    /// The value of one of the fields in a row.
    #[inline]
    fn slot(&self, field: usize, row: &StoredRow<'_>) -> Option<u64> {
        if let Some(position) = self.everywhere[field] {
            return Some(row.values[position as usize]);
        }
        if !self.table.is_empty() {
            return self.slot_at(self.positions_of(field), row);
        }
        let (others, field) = (self.others_of(row.layout), field as u32);
        let found = if others.len() > UNSORTED_MAX {
            let at = others.binary_search_by_key(&field, |found| found.field).ok()?;
            Some(&others[at])
        } else {
            others.iter().find(|found| found.field == field)
        };
        found.map(|found| row.values[found.position as usize])
    }

    /// Whether rows have so many of the fields that are not steady that each field is better looked for in all of them.
    pub(super) fn are_dense(&self, rows: &[StoredRow<'_>]) -> bool {
        if self.table.is_empty() || self.others.len() <= FEW_FIELDS {
            return !self.table.is_empty();
        }
        let values: usize = rows.iter().map(|row| self.others_of(row.layout).len()).sum();
        values * DENSE_PART >= self.others.len() * rows.len()
    }

    /// The positions of a field in rows of each layout, where there is a table of them.
    pub(super) fn positions_of(&self, field: usize) -> &[u32] {
        let n_layouts = self.starts.len() - 1;
        &self.table[field * n_layouts..][..n_layouts]
    }

    /// The value of a field with these positions in a row.
    #[inline]
    pub(super) fn slot_at(&self, positions: &[u32], row: &StoredRow<'_>) -> Option<u64> {
        let position = positions[(row.layout - self.first_layout) as usize];
        (position != ABSENT).then(|| row.values[position as usize])
    }

    /// Whether a row has a value of one of some of the fields, or of any.
    pub(super) fn has_any(&self, row: &StoredRow<'_>, some: Option<&[usize]>) -> bool {
        match some {
            None => self.has_fields(row.layout),
            Some(some) => some.iter().any(|field| self.slot(*field, row).is_some()),
        }
    }
}

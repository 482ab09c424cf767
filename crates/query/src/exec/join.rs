//! A join as a source: rows of its sides that have the same time and the same tags become one row.
//!
//! Every combination of the tags that rows pair by is a series. Nothing is read until a cursor asks
//! for rows: then some series together, or one series a slice of time after another, are read on all
//! sides (`side`), merged in order of time (`merge`), and handed out as columns (`cursor`). Several
//! rows of one time and one series pair with each other, all with all, as SQL does it.
//!
//! Invariants
//! - What is read at a time, and the pairs that are made of it, are within the memory budget.
//! - All cursors see the rows that the sides' scans pinned.

mod cursor;
mod merge;
mod side;

use std::sync::Arc;

use influxql::JoinKind;
use model::{FieldType, Name, Reservation};
use store::{ExtentPart, Scan, ScanCursor, ScanSlice, ScanStats, SeriesTable, StoreError};

use self::cursor::JoinCursor;
use self::side::Side;
use super::extent::Extent;
use super::subquery::{SubqueryScan, tag_column};
use crate::plan::JoinSource;
use crate::{QueryContext, QueryError};

/// Stands for "this side has no such group".
const NO_GROUP: u32 = u32::MAX;

/// What all cursors share.
struct Joined {
    sides: Vec<Side>,
    /// The group of each side, series after series.
    groups: Vec<u32>,
    /// Where the columns wanted are: the side and the slot.
    places: Vec<(usize, usize)>,
    ascending: bool,
    /// Where on any side rows are.
    extent: Extent,
    context: QueryContext,
    _reservation: Reservation,
}

struct JoinScan {
    joined: Arc<Joined>,
    table: SeriesTable,
}

/// The rows of a join with the columns `fields` and the tags `tags`, to be read forward in time or
/// backward.
///
/// # Errors
/// Whatever opening the sides fails with; subqueries run here.
pub(super) fn scans(
    source: &JoinSource,
    fields: &[(Name, FieldType)],
    tags: &[Name],
    ascending: bool,
    context: &QueryContext,
) -> Result<Vec<SubqueryScan>, QueryError> {
    let wanted = |(name, _): &(Name, FieldType)| {
        let (side, column) = source.column(name).expect("BUG: the plan found this column");
        (side, column.own.clone(), column.kind)
    };
    let wanted: Vec<_> = fields.iter().map(wanted).collect();
    let mut sides = Vec::with_capacity(source.sides.len());
    let mut places = vec![(0, 0); wanted.len()];
    for at in 0..source.sides.len() {
        let of_side = wanted.iter().enumerate().filter(|(_, (side, ..))| *side == at);
        let (numbers, columns): (Vec<usize>, Vec<_>) =
            of_side.map(|(number, (_, own, kind))| (number, (own.clone(), *kind))).unzip();
        for (slot, number) in numbers.into_iter().enumerate() {
            places[number] = (at, slot);
        }
        sides.push(Side::open(source, at, columns, ascending, context)?);
    }
    let groups: usize = sides.iter().map(|side| side.unit.groups.len()).sum();
    let each = 64 + (32 + 16) * source.tags.len() + 4 * sides.len();
    let reservation = context.budget.reserve(groups * each)?;
    let (keys, groups) = series(&sides);
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let column = |tag: &Name| {
        let at = source.tags.iter().position(|own| own == tag);
        let value = |key: &Vec<Name>| at.map_or_else(|| Name::from(""), |at| key[at].clone());
        tag_column(tag.clone(), &keys.iter().map(value).collect::<Vec<_>>())
    };
    let table = SeriesTable::new(keys.len() as u32, tags.iter().map(column).collect());
    let extent = Extent::merged(sides.iter().map(|side| &side.unit.extent));
    let joined = Joined {
        sides,
        groups,
        places,
        ascending,
        extent,
        context: context.clone(),
        _reservation: reservation,
    };
    let scan = JoinScan { joined: Arc::new(joined), table };
    Ok(vec![SubqueryScan { name: source.name.clone(), scan: Box::new(scan) }])
}

/// The tags of each series that may have rows, sorted, and its groups.
fn series(sides: &[Side]) -> (Vec<Vec<Name>>, Vec<u32>) {
    let mut all: Vec<(Vec<Name>, Vec<u32>)> = Vec::new();
    for (at, side) in sides.iter().enumerate() {
        let unit = &side.unit;
        let values = |group| unit.groups.values(group, &unit.inputs).collect::<Vec<Name>>();
        let own = (0..unit.groups.len()).map(values);
        let mut own = own.zip(0u32..).peekable();
        let kind = if at == 0 { JoinKind::Full } else { side.kind };
        let mut paired: Vec<(Vec<Name>, Vec<u32>)> = Vec::with_capacity(all.len());
        let alone = |key: Vec<Name>, group: u32| {
            let mut groups = vec![NO_GROUP; at];
            groups.push(group);
            (key, groups)
        };
        for (key, mut groups) in all {
            while let Some((other, group)) = own.next_if(|(other, _)| *other < key) {
                if kind == JoinKind::Full {
                    paired.push(alone(other, group));
                }
            }
            match own.next_if(|(other, _)| *other == key) {
                Some((_, group)) => groups.push(group),
                None if kind == JoinKind::Inner => continue,
                None => groups.push(NO_GROUP),
            }
            paired.push((key, groups));
        }
        if kind == JoinKind::Full {
            paired.extend(own.map(|(key, group)| alone(key, group)));
        }
        all = paired;
    }
    let (keys, groups): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    (keys, groups.concat())
}

impl Joined {
    /// The group of each side that a series is made of.
    fn groups_of(&self, series: u32) -> &[u32] {
        let sides = self.sides.len();
        &self.groups[series as usize * sides..][..sides]
    }
}

impl Scan for JoinScan {
    fn series(&self) -> &SeriesTable {
        &self.table
    }

    fn extent(&self) -> Vec<ExtentPart> {
        self.joined.extent.parts().to_vec()
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let series = match &slice.series {
            Some(series) => Arc::clone(series),
            None => (0..self.table.len).collect(),
        };
        Ok(Box::new(JoinCursor::new(Arc::clone(&self.joined), series, slice.time)))
    }

    fn stats(&self) -> ScanStats {
        let inputs = self.joined.sides.iter().flat_map(|side| &side.unit.inputs);
        inputs.map(|input| input.scan.stats()).fold(ScanStats::default(), |sum, more| ScanStats {
            sources: sum.sources + more.sources,
            sources_pruned: sum.sources_pruned + more.sources_pruned,
            pages_read: sum.pages_read + more.pages_read,
            pages_pruned: sum.pages_pruned + more.pages_pruned,
            pages_summarised: sum.pages_summarised + more.pages_summarised,
            bytes_read: sum.bytes_read + more.bytes_read,
            rows: sum.rows + more.rows,
        })
    }
}

//! Deletes that are not carried out yet.
//!
//! A delete freezes the memtables it touches and hangs a tombstone on every source (segment or
//! frozen memtable) that exists at that moment; sources made later do not have it. So a tombstone
//! hides what was written before it and nothing else, with no clock or sequence per row. A flush or
//! compaction leaves out what its sources' tombstones hide.

mod rows;
mod set;

use std::sync::Arc;

use model::{DatabaseId, Name, PolicyId, SeriesId, TimeRange};
use roaring::RoaringTreemap;

use crate::bytes::{Malformed, PutBytes, Reader};
pub(crate) use rows::RowSet;
pub(crate) use set::TombstoneSet;

/// Rows that are gone although sources still have them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tombstone {
    /// Counted up by the store.
    pub(crate) id: u64,
    pub(crate) database: DatabaseId,
    /// `None`: every policy of the database.
    pub(crate) policy: Option<PolicyId>,
    /// `None`: every measurement.
    pub(crate) measurement: Option<Name>,
    pub(crate) series: HiddenSeries,
    /// First and last time that it can hide rows of.
    pub(crate) time: TimeRange,
}

/// Which series a tombstone hides rows of, and which rows of each.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum HiddenSeries {
    /// Of every series all rows.
    All,
    /// Of these series all rows.
    Some(RoaringTreemap),
    /// These rows.
    Rows(RowSet),
}

impl Tombstone {
    /// Whether it can hide rows of this measurement and time.
    pub(crate) fn touches(
        &self,
        database: DatabaseId,
        policy: PolicyId,
        measurement: &str,
        time: TimeRange,
    ) -> bool {
        self.database == database
            && self.policy.is_none_or(|p| p == policy)
            && self.measurement.as_ref().is_none_or(|m| **m == *measurement)
            && self.time.overlaps(&time)
    }

    /// Whether it can hide rows of a source with these series, first and last, and times.
    pub(crate) fn reaches(&self, series: (SeriesId, SeriesId), time: TimeRange) -> bool {
        let (first, last) = series;
        self.time.overlaps(&time)
            && match &self.series {
                HiddenSeries::All => true,
                HiddenSeries::Some(set) => set.range_cardinality(first.0..=last.0) > 0,
                HiddenSeries::Rows(rows) => rows.touches(series, time),
            }
    }

    /// Whether it hides single rows. Its bytes are another kind of record then.
    pub(crate) fn is_of_rows(&self) -> bool {
        matches!(self.series, HiddenSeries::Rows(_))
    }

    /// Memory it takes, as far as that depends on what it hides.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.series {
            HiddenSeries::All => 0,
            HiddenSeries::Some(set) => set.serialized_size(),
            HiddenSeries::Rows(rows) => rows.memory_bytes(),
        }
    }

    /// Adds its bytes.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_varint(self.id);
        out.put_varint(u64::from(self.database.0));
        out.put_varint(self.policy.map_or(0, |p| u64::from(p.0) + 1));
        out.put_u8(u8::from(self.measurement.is_some()));
        if let Some(name) = &self.measurement {
            out.put_block(name.as_bytes());
        }
        match &self.series {
            HiddenSeries::All => out.put_u8(0),
            HiddenSeries::Some(series) => {
                out.put_u8(1);
                put_treemap(series, out);
            }
            HiddenSeries::Rows(rows) => return rows.encode(out),
        }
        out.put_time_range(self.time);
    }

    /// Reads what [`Tombstone::encode`] wrote; `of_rows`: of single rows.
    pub(crate) fn decode(reader: &mut Reader<'_>, of_rows: bool) -> Result<Self, Malformed> {
        let id = reader.varint()?;
        let database = DatabaseId(reader.u32()?);
        let policy = match reader.varint()? {
            0 => None,
            n => Some(PolicyId(u32::try_from(n - 1).map_err(|_| reader.malformed())?)),
        };
        let measurement = if reader.u8()? == 0 { None } else { Some(reader.name()?) };
        let (series, time) = if of_rows {
            let rows = RowSet::decode(reader)?;
            let time = rows.time();
            (HiddenSeries::Rows(rows), time)
        } else {
            let all = reader.u8()? == 0;
            let series =
                if all { HiddenSeries::All } else { HiddenSeries::Some(read_treemap(reader)?) };
            (series, reader.time_range()?)
        };
        Ok(Self { id, database, policy, measurement, series, time })
    }
}

/// What tombstones leave of a stretch of a series.
#[derive(Debug)]
pub(crate) struct Visible {
    /// Where rows may be seen, ascending.
    pub(crate) parts: Vec<TimeRange>,
    /// Times of single rows that are hidden all the same, ascending.
    pub(crate) hidden: Option<Arc<[i64]>>,
}

/// What `tombstones` leave of a series within `range`.
fn visible<'a>(
    tombstones: impl IntoIterator<Item = &'a Arc<Tombstone>>,
    series: SeriesId,
    range: TimeRange,
) -> Visible {
    let (mut holes, mut hidden) = (Vec::new(), Vec::new());
    for tombstone in tombstones {
        match &tombstone.series {
            HiddenSeries::All => holes.push(tombstone.time),
            HiddenSeries::Some(set) if set.contains(series.0) => holes.push(tombstone.time),
            HiddenSeries::Some(_) => {}
            HiddenSeries::Rows(rows) => rows.times(series, range, &mut hidden),
        }
    }
    // Of several tombstones; those of each ascend, which such a sort is quick with.
    hidden.sort();
    hidden.dedup();
    let hidden = (!hidden.is_empty()).then(|| hidden.into());
    Visible { parts: subtract(range, &holes), hidden }
}

/// Adds a set of series with its length before it.
pub(crate) fn put_treemap(set: &RoaringTreemap, out: &mut Vec<u8>) {
    let mut bytes = Vec::with_capacity(set.serialized_size());
    set.serialize_into(&mut bytes).expect("BUG: writing to memory cannot fail");
    out.put_block(&bytes);
}

/// Reads a set of series.
pub(crate) fn read_treemap(reader: &mut Reader<'_>) -> Result<RoaringTreemap, Malformed> {
    let bytes = reader.block()?;
    RoaringTreemap::deserialize_from(bytes).map_err(|_| reader.malformed())
}

/// The parts of `range` that none of `holes` covers, ascending.
fn subtract(range: TimeRange, holes: &[TimeRange]) -> Vec<TimeRange> {
    let mut parts = vec![range];
    for hole in holes {
        parts = parts.into_iter().flat_map(|part| without(part, *hole)).collect();
    }
    parts
}

fn without(part: TimeRange, hole: TimeRange) -> impl Iterator<Item = TimeRange> {
    let (before, after) = if part.overlaps(&hole) {
        (
            (hole.min > part.min).then(|| TimeRange::new(part.min, hole.min - 1)),
            (hole.max < part.max).then(|| TimeRange::new(hole.max + 1, part.max)),
        )
    } else {
        (Some(part), None)
    };
    before.into_iter().chain(after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_left_is_what_no_hole_covers(
            range in (0i64..30, 0i64..30),
            holes in prop::collection::vec((0i64..30, 0i64..30), 0..5),
        ) {
            let range = TimeRange::new(range.0, range.1);
            let holes: Vec<_> = holes.into_iter().map(|(a, b)| TimeRange::new(a, b)).collect();
            let left = if range.is_empty() { vec![] } else { subtract(range, &holes) };
            for t in 0..30 {
                let expected = range.contains(t) && !holes.iter().any(|h| h.contains(t));
                prop_assert_eq!(left.iter().filter(|p| p.contains(t)).count(), usize::from(expected));
            }
            prop_assert!(left.windows(2).all(|w| w[0].max < w[1].min));
        }
    }

    #[test]
    fn what_is_visible_is_what_no_tombstone_hides() {
        let stone = |series, time| {
            let (database, policy, measurement) = (DatabaseId(1), None, None);
            Arc::new(Tombstone { id: 1, database, policy, measurement, series, time })
        };
        let rows = |times: &[i64]| {
            let rows = RowSet::new(vec![(SeriesId(1), times.to_vec())]);
            let time = rows.time();
            stone(HiddenSeries::Rows(rows), time)
        };
        let of_two = HiddenSeries::Some(RoaringTreemap::from_iter([2]));
        let stones = [
            rows(&[3, 7, 40]),
            stone(HiddenSeries::All, TimeRange::new(10, 19)),
            stone(of_two, TimeRange::ALL),
            rows(&[5, 7]),
        ];
        let seen = visible(&stones, SeriesId(1), TimeRange::new(4, 30));
        assert_eq!(seen.parts, [TimeRange::new(4, 9), TimeRange::new(20, 30)]);
        assert_eq!(seen.hidden.as_deref(), Some(&[5, 7][..]));
        let seen = visible(&stones, SeriesId(2), TimeRange::new(4, 30));
        assert!(seen.parts.is_empty() && seen.hidden.is_none());
        let seen = visible(&stones, SeriesId(3), TimeRange::new(0, 9));
        assert_eq!((seen.parts, seen.hidden), (vec![TimeRange::new(0, 9)], None));
    }

    #[test]
    fn encodes_and_decodes() {
        let some = RoaringTreemap::from_iter([1, 5, 1 << 40]);
        let rows = RowSet::new(vec![(SeriesId(3), vec![-5, 0, 5]), (SeriesId(1 << 40), vec![4])]);
        for (policy, measurement, series) in [
            (None, None, HiddenSeries::All),
            (Some(PolicyId(0)), Some("m".into()), HiddenSeries::Some(some)),
            (Some(PolicyId(7)), Some("m".into()), HiddenSeries::Rows(rows)),
        ] {
            let time = TimeRange::new(-5, 5);
            let database = DatabaseId(3);
            let stone = Tombstone { id: 9, database, policy, measurement, series, time };
            let mut out = Vec::new();
            stone.encode(&mut out);
            let mut reader = Reader::new(&out, "test");
            let of_rows = stone.is_of_rows();
            assert_eq!(Tombstone::decode(&mut reader, of_rows), Ok(stone));
            assert_eq!(reader.finish(), Ok(()));
            for cut in 0..out.len() {
                let cut = &mut Reader::new(&out[..cut], "test");
                assert!(Tombstone::decode(cut, of_rows).is_err());
            }
        }
    }
}

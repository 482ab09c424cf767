//! Deletes that are not carried out yet.
//!
//! A delete freezes the memtables it touches and hangs a tombstone on every source (segment or
//! frozen memtable) that exists at that moment; sources made later do not have it. So a tombstone
//! hides what was written before it and nothing else, with no clock or sequence per row. A flush or
//! compaction leaves out what its sources' tombstones hide.

use model::{DatabaseId, Name, PolicyId, SeriesId, TimeRange};
use roaring::RoaringTreemap;

use crate::bytes::{Malformed, PutBytes, Reader};

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
    /// `None`: every series.
    pub(crate) series: Option<RoaringTreemap>,
    pub(crate) time: TimeRange,
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

    /// Whether it hides rows of `series`.
    pub(crate) fn has_series(&self, series: SeriesId) -> bool {
        self.series.as_ref().is_none_or(|set| set.contains(series.0))
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
        out.put_u8(u8::from(self.series.is_some()));
        if let Some(series) = &self.series {
            put_treemap(series, out);
        }
        out.put_time_range(self.time);
    }

    /// Reads what [`Tombstone::encode`] wrote.
    pub(crate) fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            id: reader.varint()?,
            database: DatabaseId(reader.u32()?),
            policy: match reader.varint()? {
                0 => None,
                n => Some(PolicyId(u32::try_from(n - 1).map_err(|_| reader.malformed())?)),
            },
            measurement: if reader.u8()? == 0 { None } else { Some(reader.name()?) },
            series: if reader.u8()? == 0 { None } else { Some(read_treemap(reader)?) },
            time: reader.time_range()?,
        })
    }
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
pub(crate) fn subtract(range: TimeRange, holes: &[TimeRange]) -> Vec<TimeRange> {
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
    fn encodes_and_decodes() {
        for (policy, measurement, series) in [
            (None, None, None),
            (Some(PolicyId(0)), Some("m".into()), Some(RoaringTreemap::from_iter([1, 5, 1 << 40]))),
        ] {
            let time = TimeRange::new(-5, 5);
            let database = DatabaseId(3);
            let stone = Tombstone { id: 9, database, policy, measurement, series, time };
            let mut out = Vec::new();
            stone.encode(&mut out);
            let mut reader = Reader::new(&out, "test");
            assert_eq!(Tombstone::decode(&mut reader), Ok(stone));
            assert_eq!(reader.finish(), Ok(()));
            for cut in 0..out.len() {
                assert!(Tombstone::decode(&mut Reader::new(&out[..cut], "test")).is_err());
            }
        }
    }
}

//! A memtable as a source of rows: what it has of a series is copied at once.

use std::sync::Arc;

use model::{SeriesId, TimeRange};

use super::piece::Piece;
use super::span::{Span, SpanRows};
use crate::memtable::{Few, FieldEnds, FieldPlaces, Memtable, Pin};
use crate::tombstone::TombstoneSet;

/// A memtable as a source.
#[derive(Debug)]
pub(crate) struct MemtableSource {
    pub(crate) table: Arc<Memtable>,
    pub(crate) pin: Pin,
    pub(crate) places: Arc<FieldPlaces>,
    pub(crate) tombstones: TombstoneSet,
    /// Rows of a series that are enough.
    pub(crate) few: Option<Few>,
}

impl MemtableSource {
    /// Adds the spans of a series within `time`, ascending.
    pub(super) fn spans(
        &self,
        source: usize,
        series: SeriesId,
        time: TimeRange,
        out: &mut Vec<Span>,
    ) {
        let seen = self.tombstones.visible(series, time);
        // How many rows are enough is not known where some of them are hidden.
        let few = self.few.as_ref().filter(|_| seen.hidden.is_none());
        for time in seen.parts {
            let (pin, places) = (&self.pin, &self.places);
            let Some(block) = self.table.read(series, time, pin, places, few) else {
                continue;
            };
            let mut piece = Piece { times: block.times, columns: block.columns };
            if let Some(hidden) = &seen.hidden {
                piece.drop_times(hidden);
            }
            if let (Some(first), Some(last)) = (piece.times.first(), piece.times.last()) {
                let time = TimeRange::new(*first, *last);
                out.push(Span { source, time, rows: SpanRows::Held(piece), hidden: None });
            }
        }
    }

    /// Adds what each field has first in a series within `time`.
    pub(super) fn field_ends(&self, series: SeriesId, time: TimeRange, ends: &mut FieldEnds) {
        let seen = self.tombstones.visible(series, time);
        let hidden = seen.hidden.as_deref().unwrap_or_default();
        for part in seen.parts {
            self.table.field_ends((series, part), hidden, &self.pin, &self.places, ends);
        }
    }

    /// All rows of a series within `time` from one end to some row, `rows` of them at least if there are as many.
    pub(super) fn end(
        &self,
        series: SeriesId,
        time: TimeRange,
        rows: usize,
        from_end: bool,
    ) -> Option<Piece> {
        let few = Few { rows, from_end, with_any: None, is_alone: true };
        let block = self.table.read(series, time, &self.pin, &self.places, Some(&few))?;
        Some(Piece { times: block.times, columns: block.columns })
    }
}

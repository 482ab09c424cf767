//! The rows of some of a memtable's series.
//!
//! A series' rows stand in arrival order in a chain of chunks. A chunk is a header word (address of
//! the next chunk, address behind its last row) and rows; a row is its time, its layout and its
//! values, a word each: adding one touches one or two cache lines whatever the number of fields.
//! Chunks grow with the series, so that millions of series with a handful of rows stay small.
//!
//! Of a series with many rows the times of its chunks are kept beside them (`Series::full`): the last hour of
//! half a million rows is found without looking at the others. While rows are added to a chunk its header has
//! the earliest of their times instead.

use std::ops::ControlFlow;

use hashbrown::HashMap;
use model::{FieldType, SeriesId, TextPlace, TimeRange, string_slot_parts};

use super::arena::{Arena, CHUNK_WORDS_MAX};
use super::entries::Entries;
use super::texts::RecentTexts;
use crate::rows::MeasurementNo;

/// Words of a row before its values: its time, and a word that packs its layout, the number of its
/// values and its arrival number.
const ROW_HEADER_WORDS: usize = 2;
/// Bits of the arrival number: a memtable that is flushed at some hundred MiB has fewer rows.
const ARRIVAL_BITS: u32 = 24;
/// Bits of the number of values.
const LEN_BITS: u32 = 17;
const _: () = assert!(CHUNK_WORDS_MAX <= 1 << LEN_BITS, "every row's length fits");

/// Most rows a memtable can have: they may all be of one shard.
pub(crate) const ROWS_MAX: usize = (1 << ARRIVAL_BITS) - 1;

/// Most layouts a memtable can have.
pub(crate) const LAYOUTS_MAX: usize = 1 << (64 - ARRIVAL_BITS - LEN_BITS);
/// Rows the first chunk of a series has room for, and the most a later one has.
const CHUNK_ROWS: std::ops::RangeInclusive<usize> = 2..=128;

/// A series with so many rows has the times of its chunks at hand: shorter ones are as fast to read through.
const LONG_ROWS: u32 = 256;

/// Most values a row can have.
pub(crate) const ROW_VALUES_MAX: usize = CHUNK_WORDS_MAX - 2 - ROW_HEADER_WORDS;

/// No row has this time: it is before the first that can be stored.
const NEVER_LATE: i64 = i64::MIN;
const _: () = assert!(NEVER_LATE < model::MIN_TIME_NS);

/// Series and their rows.
#[derive(Debug, Default)]
pub(super) struct Shard {
    series: Entries,
    /// The place of the series that a row was added to last.
    last_place: usize,
    /// The full chunks of series of [`LONG_ROWS`] and more, in their order.
    long: HashMap<SeriesId, Vec<FullChunk>>,
    /// Number of them.
    full_chunks: usize,
    arena: Arena<u64>,
    text: Arena<u8>,
    recent: RecentTexts,
    /// Rows added so far: the next row's arrival number.
    rows: u32,
}

/// What is known of one series' rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesRows {
    pub(super) measurement: MeasurementNo,
    pub(super) rows: u32,
    pub(super) min_time: i64,
    pub(super) max_time: i64,
    /// The latest time of a row that was not later than all before it; [`NEVER_LATE`] where there is
    /// none. Rows with a later time arrived in order of time.
    pub(super) late_max: i64,
    first_chunk: u32,
    last_chunk: u32,
    /// Address of the first free word of the last chunk, and behind its last word.
    free: u32,
    end: u32,
}

/// A chunk behind the last row of which another chunk begins.
#[derive(Clone, Copy, Debug)]
struct FullChunk {
    /// Addresses of its first row and behind its last.
    start: u32,
    end: u32,
    /// No row in it is earlier.
    min_time: i64,
    /// No row in it or before it is later. So it ascends from chunk to chunk.
    max_time_so_far: i64,
}

/// A series to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series<'a> {
    pub(super) rows: &'a SeriesRows,
    /// All of its chunks but the last one; none of a short series.
    full: &'a [FullChunk],
}

/// A row as it stands in a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredRow<'a> {
    pub(super) time_ns: i64,
    /// How many rows of the shard arrived before it.
    pub(super) arrival: u32,
    pub(super) layout: u32,
    pub(super) values: &'a [u64],
}

/// Adds rows to one series.
pub(super) struct Appender<'a> {
    series: SeriesId,
    entry: &'a mut SeriesRows,
    long: &'a mut HashMap<SeriesId, Vec<FullChunk>>,
    full_chunks: &'a mut usize,
    arena: &'a mut Arena<u64>,
    text: &'a mut Arena<u8>,
    recent: &'a mut RecentTexts,
    rows: &'a mut u32,
}

impl Appender<'_> {
    /// Adds a row. String slots of `values` refer to `strings`; `types` are the values' types.
    #[inline]
    pub(super) fn append(
        &mut self,
        (time_ns, layout): (i64, u32),
        (values, types): (&[u64], &[FieldType]),
        strings: &[u8],
        has_strings: bool,
    ) {
        let entry = &mut *self.entry;
        let words = ROW_HEADER_WORDS + values.len();
        if (entry.end - entry.free) as usize <= words {
            if entry.rows >= LONG_ROWS {
                let full = self.long.entry(self.series).or_default();
                let before = full.len();
                entry.keep_full(self.arena, full);
                *self.full_chunks += full.len() - before;
            }
            entry.add_chunk(self.arena, words, time_ns);
        }
        let row = self.arena.items_mut(entry.free, words);
        row[0] = time_ns as u64;
        row[1] = pack(layout, values.len(), *self.rows);
        row[ROW_HEADER_WORDS..].copy_from_slice(values);
        if has_strings {
            for (slot, field_type) in row[ROW_HEADER_WORDS..].iter_mut().zip(types) {
                if *field_type == FieldType::String {
                    let (start, len) = string_slot_parts(*slot);
                    let text = &strings[start as usize..start as usize + len as usize];
                    *slot = self.recent.slot(text, self.text);
                }
            }
        }
        entry.free += words as u32;
        entry.note(time_ns, self.arena);
        *self.rows += 1;
        assert!(*self.rows < 1 << ARRIVAL_BITS, "BUG: rows that nobody set room aside for");
    }
}

impl Shard {
    /// Where the rows of a series are added, which may be known: its place in [`Self::look_up`].
    #[inline]
    pub(super) fn appender(
        &mut self,
        place: Option<usize>,
        series: SeriesId,
        measurement: MeasurementNo,
    ) -> Appender<'_> {
        let new = || SeriesRows::new(measurement);
        // The rows before may have brought it.
        let place = place.unwrap_or_else(|| self.series.place_or_insert(series, new));
        self.last_place = place;
        Appender {
            series,
            entry: self.series.at_mut(place),
            long: &mut self.long,
            full_chunks: &mut self.full_chunks,
            arena: &mut self.arena,
            text: &mut self.text,
            recent: &mut self.recent,
            rows: &mut self.rows,
        }
    }

    /// Looks up series that rows will be added to, as far as they are there, and asks for where their rows go: they are
    /// waited for together.
    #[inline]
    pub(super) fn look_up(
        &self,
        series: impl Iterator<Item = SeriesId>,
    ) -> [Option<usize>; LOOKED_UP] {
        let (mut places, mut last) = ([None; LOOKED_UP], self.last_place);
        for (place, series) in places.iter_mut().zip(series) {
            *place = self.series.place(last, series);
            last = place.unwrap_or(last);
        }
        for place in places.iter().flatten() {
            let SeriesRows { free, end, .. } = *self.series.at(*place);
            prefetch(words_of(&self.arena, (free, end.min(free + WRITTEN_WORDS))));
        }
        places
    }

    /// A series, if it has rows.
    pub(super) fn series(&self, series: SeriesId) -> Option<Series<'_>> {
        Some(self.with_chunks(series, self.series.get(series)?))
    }

    /// The same, looked for behind the place of the last one first. That becomes its place.
    #[inline]
    pub(super) fn series_near(&self, last: &mut usize, series: SeriesId) -> Option<Series<'_>> {
        let place = self.series.place(*last, series)?;
        *last = place;
        Some(self.with_chunks(series, self.series.at(place)))
    }

    #[inline]
    fn with_chunks<'a>(&'a self, series: SeriesId, rows: &'a SeriesRows) -> Series<'a> {
        let is_long = rows.rows > LONG_ROWS;
        let full = if is_long { self.long.get(&series) } else { None };
        Series { rows, full: full.map_or(&[], Vec::as_slice) }
    }

    /// No more rows of a series than this are within `time`, by the length of their chunks: no row is looked at.
    pub(super) fn rows_at_most(series: Series<'_>, time: TimeRange) -> usize {
        let rows = series.rows.rows as usize;
        if series.full.is_empty() {
            return rows;
        }
        let (full, last) = series.chunks_of(time);
        let words: usize = full.chain([last]).map(|(start, end)| (end - start) as usize).sum();
        // A row has a value.
        rows.min(words / (ROW_HEADER_WORDS + 1))
    }

    /// Asks for the first rows of a series, which will be read soon.
    pub(super) fn prefetch(&self, series: Series<'_>) {
        let SeriesRows { first_chunk, last_chunk, free, .. } = *series.rows;
        let end = if first_chunk == last_chunk { free } else { first_chunk + 1 };
        prefetch(words_of(&self.arena, (first_chunk, end.min(first_chunk + PREFETCHED_WORDS))));
    }

    /// Every series and its measurement.
    pub(super) fn all_series(&self) -> impl Iterator<Item = (SeriesId, MeasurementNo)> + '_ {
        self.series.iter().map(|(id, rows)| (id, rows.measurement))
    }

    /// How many series have rows.
    pub(super) fn series_count(&self) -> usize {
        self.series.len()
    }

    /// The series of a measurement that can have rows within `time`; in no order.
    pub(super) fn series_within(
        &self,
        measurement: MeasurementNo,
        time: TimeRange,
    ) -> impl Iterator<Item = SeriesId> + '_ {
        let is_within = move |rows: &SeriesRows| {
            let of_series = TimeRange { min: rows.min_time, max: rows.max_time };
            rows.measurement == measurement && of_series.overlaps(&time)
        };
        self.series.iter().filter(move |(_, rows)| is_within(rows)).map(|(series, _)| series)
    }

    /// Calls `visit` with the rows of a series, in arrival order, those within `time` at least.
    #[inline]
    pub(super) fn for_each_row<'a>(
        &'a self,
        series: Series<'_>,
        time: TimeRange,
        mut visit: impl FnMut(StoredRow<'a>),
    ) {
        let arena = &self.arena;
        if series.full.is_empty() {
            return series.rows.for_each_chunk(arena, |chunk| chunk_rows(arena, chunk, &mut visit));
        }
        let (full, last) = series.chunks_of(time);
        let mut chunks = full.chain(std::iter::once(last)).map(|chunk| words_of(arena, chunk));
        let mut now = chunks.next().unwrap_or_default();
        prefetch(now);
        loop {
            let next = chunks.next();
            // The next chunk is asked for line by line while this one is read.
            rows_of(now, next.unwrap_or_default(), &mut visit);
            match next {
                Some(next) => now = next,
                None => return,
            }
        }
    }

    /// Calls `visit` with the rows of a series, those within `time` at least, until it has enough: the first
    /// that arrived first, or the last.
    pub(super) fn rows_until_enough<'a>(
        &'a self,
        series: Series<'_>,
        time: TimeRange,
        from_end: bool,
        mut visit: impl FnMut(StoredRow<'a>) -> ControlFlow<()>,
    ) {
        let mut of_chunk = Vec::with_capacity((series.rows.rows as usize).min(*CHUNK_ROWS.end()));
        let visit_chunk = |chunk| {
            self.chunk_rows(chunk, |row| of_chunk.push(row));
            if from_end {
                of_chunk.reverse();
            }
            of_chunk.drain(..).try_for_each(&mut visit)
        };
        // A short series has a few chunks, linked forward only.
        let mut few = Vec::new();
        if series.full.is_empty() {
            series.rows.for_each_chunk(&self.arena, |chunk| few.push(chunk));
            few.pop();
        }
        let (full, last) = series.chunks_of(time);
        let (others, last) = (few.into_iter().chain(full), std::iter::once(last));
        // Ends with the chunks, or with whoever has enough: both are fine.
        let (ControlFlow::Continue(()) | ControlFlow::Break(())) = if from_end {
            last.chain(others.rev()).try_for_each(visit_chunk)
        } else {
            others.chain(last).try_for_each(visit_chunk)
        };
    }

    /// Calls `visit` with the rows of a series, those within `time` at least, chunk by chunk from one end of their
    /// arrival; `visit` says which times still matter, a part of those it said before.
    pub(super) fn rows_still_wanted<'a>(
        &'a self,
        series: Series<'_>,
        mut time: TimeRange,
        from_end: bool,
        mut visit: impl FnMut(StoredRow<'a>) -> TimeRange,
    ) {
        if series.full.is_empty() {
            return series.rows.for_each_chunk(&self.arena, |chunk| {
                self.chunk_rows(chunk, |row| time = visit(row));
            });
        }
        let last = (series.rows.last_chunk + 1, series.rows.free);
        if from_end {
            self.chunk_rows(last, |row| time = visit(row));
            for chunk in series.full.iter().rev() {
                if chunk.max_time_so_far < time.min {
                    return;
                }
                if chunk.min_time <= time.max {
                    self.chunk_rows((chunk.start, chunk.end), |row| time = visit(row));
                }
            }
        } else {
            for chunk in series.full {
                if chunk.max_time_so_far >= time.min && chunk.min_time <= time.max {
                    self.chunk_rows((chunk.start, chunk.end), |row| time = visit(row));
                }
            }
            self.chunk_rows(last, |row| time = visit(row));
        }
    }

    /// Calls `visit` with the rows between two addresses of one chunk.
    #[inline]
    fn chunk_rows<'a>(&'a self, chunk: (u32, u32), visit: impl FnMut(StoredRow<'a>)) {
        chunk_rows(&self.arena, chunk, visit);
    }

    /// Rows added so far.
    pub(super) fn rows(&self) -> u32 {
        self.rows
    }

    /// The text that a string slot of a stored row stands for.
    pub(super) fn text(&self, (start, len): TextPlace) -> &[u8] {
        self.text.items(start, len as usize)
    }

    /// Bytes of memory in use.
    pub(super) fn bytes(&self) -> usize {
        let long = size_of::<(SeriesId, Vec<FullChunk>)>() + 1;
        self.arena.bytes()
            + self.text.bytes()
            + self.recent.bytes()
            + self.series.bytes()
            + self.long.capacity() * long
            // As long as it may be for having grown by doubling.
            + self.full_chunks * 2 * size_of::<FullChunk>()
    }
}

/// Words that a processor fetches from memory together, of those this runs on.
const LINE_WORDS: usize = 64 / size_of::<u64>();

/// Series that are looked up together.
pub(super) const LOOKED_UP: usize = 16;

/// So many words are asked for where a row will be added: two or three lines.
const WRITTEN_WORDS: u32 = 2 * LINE_WORDS as u32;

/// So many words of a series are asked for before it is its turn: of more the processor has no room to wait for.
const PREFETCHED_WORDS: u32 = 4 * LINE_WORDS as u32;

/// Calls `visit` with the rows between two addresses of one chunk.
#[inline]
fn chunk_rows<'a>(arena: &'a Arena<u64>, chunk: (u32, u32), visit: impl FnMut(StoredRow<'a>)) {
    let words = words_of(arena, chunk);
    // Where a row begins is in the one before it, so each would be waited for by itself.
    prefetch(words);
    rows_of(words, &[], visit);
}

/// The words between two addresses of one chunk.
#[inline]
fn words_of(arena: &Arena<u64>, (start, end): (u32, u32)) -> &[u64] {
    arena.items(start, (end - start) as usize)
}

fn prefetch(words: &[u64]) {
    words.iter().step_by(LINE_WORDS).for_each(codec::prefetch);
}

/// Calls `visit` with the rows that some words are, and asks for as many words of the `next` rows with each.
#[inline]
fn rows_of<'a>(mut words: &'a [u64], mut next: &[u64], mut visit: impl FnMut(StoredRow<'a>)) {
    while let [time, packed, rest @ ..] = words {
        let (layout, len, arrival) = unpack(*packed);
        let (values, after) = rest.split_at(len);
        let (with_it, later) = next.split_at((ROW_HEADER_WORDS + len).min(next.len()));
        prefetch(with_it);
        visit(StoredRow { time_ns: *time as i64, arrival, layout, values });
        (words, next) = (after, later);
    }
    prefetch(next);
}

impl Series<'_> {
    /// The full chunks that may have rows within `time`, as far as they are known, and the last one.
    fn chunks_of(
        &self,
        time: TimeRange,
    ) -> (impl DoubleEndedIterator<Item = (u32, u32)>, (u32, u32)) {
        let from = self.full.partition_point(|chunk| chunk.max_time_so_far < time.min);
        let mut chunks = &self.full[from..];
        if self.rows.is_ascending() {
            chunks = &chunks[..chunks.partition_point(|chunk| chunk.min_time <= time.max)];
        }
        let chunks = chunks.iter().filter(move |chunk| chunk.min_time <= time.max);
        (chunks.map(|chunk| (chunk.start, chunk.end)), (self.rows.last_chunk + 1, self.rows.free))
    }
}

impl SeriesRows {
    pub(super) fn new(measurement: MeasurementNo) -> Self {
        Self {
            measurement,
            rows: 0,
            min_time: i64::MAX,
            max_time: i64::MIN,
            late_max: NEVER_LATE,
            first_chunk: 0,
            last_chunk: 0,
            free: 0,
            end: 0,
        }
    }

    /// Whether times ascend strictly in arrival order.
    pub(super) fn is_ascending(&self) -> bool {
        self.late_max == NEVER_LATE
    }

    /// Calls `visit` with the addresses that rows lie between, chunk by chunk.
    #[inline]
    fn for_each_chunk(&self, arena: &Arena<u64>, mut visit: impl FnMut((u32, u32))) {
        let mut chunk = self.first_chunk;
        while chunk != self.last_chunk {
            let header = arena.items(chunk, 1)[0];
            visit((chunk + 1, header as u32));
            chunk = (header >> 32) as u32;
        }
        visit((chunk + 1, self.free));
    }

    /// Adds what is to be kept of the last chunk, which is full, and the first time of those before it.
    fn keep_full(&self, arena: &Arena<u64>, full: &mut Vec<FullChunk>) {
        if full.is_empty() {
            // Their rows are in no cache any more: looking at the times of each made up a sixth of adding rows to thousands
            // of series. The bounds of all of them together are right for each, and so few are soon read through.
            let (min_time, max_time_so_far) = (self.min_time, self.max_time);
            self.for_each_chunk(arena, |(start, end)| {
                full.push(FullChunk { start, end, min_time, max_time_so_far });
            });
        } else {
            let min_time = arena.items(self.last_chunk, 1)[0] as i64;
            let (start, end) = (self.last_chunk + 1, self.free);
            full.push(FullChunk { start, end, min_time, max_time_so_far: self.max_time });
        }
    }

    /// Links a chunk with room for at least one row of `row_words`, the first of which is of `time_ns`.
    fn add_chunk(&mut self, arena: &mut Arena<u64>, row_words: usize, time_ns: i64) {
        let rows = (self.rows as usize).clamp(*CHUNK_ROWS.start(), *CHUNK_ROWS.end());
        // One word more than the rows need, so that "full" is never mistaken for "fits".
        let words = (2 + rows * row_words).min(CHUNK_WORDS_MAX).max(2 + row_words);
        let chunk = arena.allocate(words);
        if self.rows == 0 {
            self.first_chunk = chunk;
        } else {
            arena.items_mut(self.last_chunk, 1)[0] = u64::from(chunk) << 32 | u64::from(self.free);
        }
        self.last_chunk = chunk;
        self.free = chunk + 1;
        self.end = chunk + words as u32;
        arena.items_mut(chunk, 1)[0] = time_ns as u64;
    }

    fn note(&mut self, time_ns: i64, arena: &mut Arena<u64>) {
        if time_ns <= self.max_time && self.rows > 0 {
            self.late_max = self.late_max.max(time_ns);
            let earliest = &mut arena.items_mut(self.last_chunk, 1)[0];
            *earliest = time_ns.min(*earliest as i64) as u64;
        }
        self.rows += 1;
        self.min_time = self.min_time.min(time_ns);
        self.max_time = self.max_time.max(time_ns);
    }
}

#[inline]
fn pack(layout: u32, len: usize, arrival: u32) -> u64 {
    u64::from(layout) << (LEN_BITS + ARRIVAL_BITS)
        | (len as u64) << ARRIVAL_BITS
        | u64::from(arrival)
}

#[inline]
fn unpack(word: u64) -> (u32, usize, u32) {
    let len = (word >> ARRIVAL_BITS) as usize & ((1 << LEN_BITS) - 1);
    let arrival = word as u32 & ((1 << ARRIVAL_BITS) - 1);
    ((word >> (LEN_BITS + ARRIVAL_BITS)) as u32, len, arrival)
}

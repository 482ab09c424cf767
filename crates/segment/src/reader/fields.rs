//! Reading fields of a block: from the thawed form of a page, from its pieces, from its bytes, or nothing.
//!
//! Tight pages are decoded last, several at once: each of them spends most of its time waiting for its
//! own last step.

use std::ops::Range;
use std::sync::Arc;

use codec::Marks;
use model::{Column, FieldType, Values};
use platform::Page;

use super::SegmentReader;
use super::column::{self, NumbersPart, PageShape};
use super::pieces::{Pieces, is_in_pieces};
use super::thaw::{GROUP_PAGES, Groups, ThawedPages, are_few, is_slow_in_parts};
use super::thawed::Thawed;
use crate::SegmentError;
use crate::directory::{Block, PageEntry};
use crate::input::Malformed;
use crate::rows::fits;

/// Pages of a block are read together until they have so many bytes; others one by one, so that a block of
/// many long texts is not in memory as a whole.
pub(super) const READ_TOGETHER_BYTES: usize = 1 << 20;

/// Parts of a page that are asked for before the first of them is decoded, and each of the others so many parts before its
/// turn: as many as a processor can wait for at once.
const PARTS_AHEAD: usize = 8;

/// See [`SegmentReader::column`].
pub(super) fn column(
    reader: &SegmentReader,
    block: &Block,
    field: usize,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<(), SegmentError> {
    check(block, std::slice::from_ref(&rows));
    let mut groups = Groups::new(reader, block);
    let (parts, out) = (std::slice::from_ref(&rows), std::slice::from_mut(out));
    match read(&mut groups, field, None, parts, out)? {
        Some(tight) => read_tight(&mut groups, vec![(tight, out)], parts),
        None => Ok(()),
    }
}

/// See [`SegmentReader::columns`].
pub(super) fn columns(
    reader: &SegmentReader,
    block: &Block,
    parts: &[Range<usize>],
    fields: &[(Option<usize>, FieldType)],
    out: &mut [Column],
) -> Result<(), SegmentError> {
    check(block, parts);
    if parts.is_empty() || fields.is_empty() {
        return Ok(());
    }
    let of_each = out.len() / fields.len();
    let is_whole = of_each * fields.len() == out.len() && [1, parts.len()].contains(&of_each);
    assert!(is_whole, "BUG: not a column for each field or part");
    let mut groups = Groups::new(reader, block);
    // Each field's pages are behind several pointers that are not in the processor's cache. Followed for
    // all fields before any is decoded, they are waited for together.
    let mut thawed_at = Vec::new();
    let (mut extents, mut read_for, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (index, (field, _)) in fields.iter().enumerate() {
        let Some((place, page)) = field.and_then(|field| block.page_place(field)) else { continue };
        match groups.of(place).map(|group| (group.page(place), group.pieces(place, parts))) {
            // Whoever looked ahead has looked at that.
            Some((Some(_), _)) if block.known.group(place / GROUP_PAGES).is_some() => {}
            // Of many parts each is asked for shortly before its turn.
            Some((Some(_), _)) if parts.len() > PARTS_AHEAD => {}
            Some((Some(thawed), _)) => {
                parts.iter().for_each(|rows| thawed.prefetch_entry(rows.start));
                thawed_at.push(place);
            }
            Some((None, Some(_))) => {}
            _ if bytes < READ_TOGETHER_BYTES => {
                bytes += page.extent.len as usize;
                extents.push(page.extent);
                read_for.push(index);
            }
            _ => {}
        }
    }
    for place in thawed_at {
        let thawed = groups.of(place).and_then(|group| group.page(place));
        let thawed = thawed.expect("BUG: looked for above");
        parts.iter().for_each(|rows| thawed.prefetch(rows));
    }
    let pages = reader.shared.source.pages(&extents, reader.keep_pages)?;
    let mut pages = read_for.into_iter().zip(pages).peekable();
    let mut tight = Vec::new();
    for ((index, (field, _)), out) in fields.iter().enumerate().zip(out.chunks_mut(of_each)) {
        match field {
            Some(field) => {
                let bytes = pages.next_if(|(at, _)| *at == index).map(|(_, bytes)| bytes);
                let page = read(&mut groups, *field, bytes, parts, out)?;
                tight.extend(page.map(|page| (page, out)));
            }
            None => {
                for (part, rows) in parts.iter().enumerate() {
                    of_part(out, part).extend_missing(rows.len());
                }
            }
        }
    }
    read_tight(&mut groups, tight, parts)
}

/// See [`SegmentReader::presence`].
pub(super) fn presence(
    reader: &SegmentReader,
    block: &Block,
    field: usize,
    rows: Range<usize>,
    out: &mut Column,
) -> Result<bool, SegmentError> {
    check(block, std::slice::from_ref(&rows));
    assert!(fits(&out.values, block.field_type(field)), "BUG: a column of another type");
    let Some((_, page)) = block.page_place(field) else {
        out.extend_missing(rows.len());
        return Ok(false);
    };
    let (source, shape) = (&reader.shared.source, shape(block, page));
    if shape.count == shape.rows {
        column::extend_present(rows.len(), out);
        return Ok(false);
    }
    let bytes = source.page(&page.extent, reader.keep_pages)?;
    column::presence(&bytes, shape, rows, out)
        .map_err(|e| source.malformed(page.extent.offset, &e))?;
    Ok(true)
}

/// See [`SegmentReader::row`].
pub(super) fn row(
    reader: &SegmentReader,
    block: &Block,
    fields: &[(Option<usize>, FieldType)],
    row: usize,
    out: &mut Vec<Option<u64>>,
) -> Result<bool, SegmentError> {
    assert!(row < block.rows(), "BUG: a row outside of a block");
    out.clear();
    let mut groups = Groups::new(reader, block);
    // As in `columns`: the pages of several fields are looked for before any is decoded.
    for fields in fields.chunks(GROUP_PAGES) {
        let mut places = [None; GROUP_PAGES];
        for (slot, (field, field_type)) in places.iter_mut().zip(fields) {
            let Some((place, _)) = field.and_then(|field| block.page_place(field)) else {
                continue;
            };
            let group = if reader.keep_pages { groups.of(place) } else { None };
            let thawed = group.and_then(|group| group.page(place));
            let Some(thawed) = thawed.filter(|_| field_type.is_numeric()) else { return Ok(false) };
            *slot = Some(place);
            if block.known.group(place / GROUP_PAGES).is_none() {
                thawed.prefetch_entry(row);
            }
        }
        // Whoever looked ahead has looked at that.
        let unknown = |place: &&usize| block.known.group(**place / GROUP_PAGES).is_none();
        for place in places.iter().flatten().filter(unknown) {
            let thawed = groups.of(*place).and_then(|group| group.page(*place));
            thawed.into_iter().for_each(|thawed| thawed.prefetch_row(row));
        }
        for (place, (_, field_type)) in places.iter().zip(fields) {
            let Some(place) = *place else {
                out.push(None);
                continue;
            };
            let thawed = groups.of(place).and_then(|group| group.page(place));
            let thawed = thawed.expect("BUG: looked for above");
            // Where the page is matters if it is damaged, and has to be waited for.
            let malformed = |e: Malformed| {
                reader.shared.source.malformed(block.pages()[place].extent.offset, &e)
            };
            out.push(thawed.bits(row, *field_type).map_err(malformed)?);
        }
    }
    Ok(true)
}

fn check(block: &Block, parts: &[Range<usize>]) {
    let inside = |rows: &Range<usize>| rows.start <= rows.end && rows.end <= block.rows();
    assert!(parts.iter().all(inside), "BUG: rows outside of a block");
    assert!(parts.is_sorted_by(|a, b| a.end <= b.start), "BUG: parts that do not ascend");
}

/// The column of a part: its own, or that of all.
fn of_part(out: &mut [Column], part: usize) -> &mut Column {
    let at = if out.len() == 1 { 0 } else { part };
    &mut out[at]
}

fn wanted(parts: &[Range<usize>]) -> usize {
    parts.iter().map(Range::len).sum()
}

pub(super) fn shape(block: &Block, page: &PageEntry) -> PageShape {
    PageShape { rows: block.rows(), count: page.count as usize }
}

/// A tight page that is to be decoded.
pub(super) struct TightPage<'a> {
    pub(super) place: usize,
    pub(super) page: &'a PageEntry,
    pub(super) bytes: Arc<Page>,
    /// What is known of it, if a few rows are wanted; and whether its thawed form shall be kept.
    pub(super) group: Option<Arc<ThawedPages>>,
    pub(super) thaw: bool,
}

impl TightPage<'_> {
    /// Marks to start from and to add to.
    fn marks(&self) -> Option<&Marks> {
        // What is decoded from its head to be thawed needs none.
        self.group.as_ref().filter(|_| !self.thaw)?.marks(self.place)
    }

    /// Looks at where the page begins and where decoding goes on, so that both are on their way from memory
    /// while others are looked for. What it gives stands for nothing but keeps that from being left out.
    fn touch(&self, parts: &[Range<usize>]) -> usize {
        let from = |rows: &Range<usize>| self.marks().and_then(|marks| marks.before(rows.start));
        let marks = parts.iter().filter_map(from).fold(0, |all, mark| all ^ mark.next());
        marks ^ usize::from(self.bytes.first().copied().unwrap_or(0))
    }

    /// Rows that are decoded together and then cut into parts; if there are none, each part is decoded by
    /// itself. From one part to the next is decoded what lies between, unless marks make that needless.
    fn together(&self, block: &Block, parts: &[Range<usize>]) -> Option<Range<usize>> {
        let (first, last) = (parts.first()?, parts.last()?);
        if self.thaw {
            return Some(0..block.rows());
        }
        // Marks count values: these are rows if none is missing.
        let is_complete = self.page.count as usize == block.rows();
        let reach = |marks: &Marks| is_complete && marks.reach(last.start);
        let are_apart = parts.len() == 1 || self.marks().is_some_and(reach);
        (!are_apart).then_some(first.start..last.end)
    }
}

/// Reads parts of one field, unless its page is tight: that is returned. `bytes`: the page, if it
/// was read.
fn read<'a>(
    groups: &mut Groups<'a>,
    field: usize,
    bytes: Option<Arc<Page>>,
    parts: &[Range<usize>],
    out: &mut [Column],
) -> Result<Option<TightPage<'a>>, SegmentError> {
    let (reader, block) = (groups.reader, groups.block);
    let field_type = block.field_type(field);
    assert!(out.iter().all(|c| fits(&c.values, field_type)), "BUG: a column of another type");
    let mut each = parts.iter().cloned().enumerate();
    let Some((place, page)) = block.page_place(field) else {
        each.for_each(|(part, rows)| of_part(out, part).extend_missing(rows.len()));
        return Ok(None);
    };
    let (source, shape) = (&reader.shared.source, shape(block, page));
    let malformed = |e: Malformed| source.malformed(page.extent.offset, &e);
    // What is there is used for whole pages as well: a scan of one field takes a tenth less.
    if let Some(group) = groups.of(place) {
        if let Some(thawed) = group.page(place) {
            let done = decode_thawed(thawed, parts, out);
            return done.map_err(malformed).map(|()| None);
        }
        if let Some(pieces) = group.pieces(place, parts) {
            let done = each
                .try_for_each(|(part, rows)| pieces.decode(shape.rows, &rows, of_part(out, part)));
            return done.map_err(malformed).map(|()| None);
        }
    }
    let bytes = match bytes {
        Some(bytes) => bytes,
        None => source.page(&page.extent, reader.keep_pages)?,
    };
    let are_few = are_few(shape, wanted(parts));
    // Once that is known, the page need not be waited for to tell.
    let is_known = are_few && groups.of(place).is_some_and(|group| group.marks(place).is_some());
    if is_known || field_type.is_numeric() && is_slow_in_parts(&bytes, shape) {
        let few = are_few.then_some(parts.len());
        let (group, thaw) = reader.keep_pages.then(|| groups.touch(place, few)).unzip();
        let (group, thaw) = (group.filter(|_| are_few), thaw == Some(true));
        return Ok(Some(TightPage { place, page, bytes, group, thaw }));
    }
    if reader.keep_pages && are_few && is_in_pieces(shape, field_type) {
        let kind = (shape, field_type);
        let read = |pieces: &Pieces| {
            let mut each = parts.iter().enumerate();
            each.try_fold(0, |all, (part, rows)| {
                Ok(all + pieces.read(&bytes, kind, rows, of_part(&mut *out, part))?)
            })
        };
        if let Some(done) = groups.read_pieces(place, read) {
            return done.map_err(malformed).map(|()| None);
        }
    }
    let is_guided = reader.keep_pages && are_few && column::is_guided(&bytes, shape, field_type);
    let group =
        is_guided.then(|| groups.guide(place, || column::waypoints(&bytes, shape, field_type)));
    let waypoints = group.as_ref().and_then(|group| group.waypoints(place));
    let mut each = parts.iter().cloned().enumerate();
    each.try_for_each(|(part, rows)| {
        let waypoint = waypoints.map(|waypoints| waypoints.before(rows.start));
        column::decode_from(&bytes, shape, rows, waypoint, of_part(out, part))
    })
    .map_err(malformed)?;
    Ok(None)
}

/// Adds parts of a thawed page to their columns, or to that of all.
fn decode_thawed(
    thawed: &Thawed,
    parts: &[Range<usize>],
    out: &mut [Column],
) -> Result<(), Malformed> {
    if parts.len() > PARTS_AHEAD {
        parts.iter().for_each(|rows| thawed.prefetch_entry(rows.start));
        parts[..PARTS_AHEAD].iter().for_each(|rows| thawed.prefetch(rows));
    }
    for (part, rows) in parts.iter().enumerate() {
        if let Some(later) = parts.get(part + PARTS_AHEAD) {
            thawed.prefetch(later);
        }
        thawed.decode(rows.clone(), of_part(out, part))?;
    }
    Ok(())
}

/// Reads parts of tight pages, each to its columns.
pub(super) fn read_tight(
    groups: &mut Groups<'_>,
    mut pages: Vec<(TightPage<'_>, &mut [Column])>,
    parts: &[Range<usize>],
) -> Result<(), SegmentError> {
    let block = groups.block;
    std::hint::black_box(pages.iter().fold(0, |all, (page, _)| all ^ page.touch(parts)));
    // No more at once than help each other: what is decoded stays in the processor's caches.
    for pages in pages.chunks_mut(codec::STREAMS_TOGETHER) {
        let rows: Vec<_> = pages.iter().map(|(page, _)| page.together(block, parts)).collect();
        let type_of = |page: &TightPage<'_>| block.field_type(page.page.field as usize);
        // What is decoded before it is put where it belongs: rows that are decoded together, or parts that one column takes.
        let between = |((page, out), rows): (&(TightPage<'_>, &mut [Column]), &Option<_>)| {
            let apart = if out.len() < parts.len() { parts.len() } else { 0 };
            let columns = if rows.is_some() { 1 } else { apart };
            vec![Column::new(Values::empty(type_of(page))); columns]
        };
        let mut between: Vec<Vec<Column>> = pages.iter().zip(&rows).map(between).collect();
        let (mut numbers, mut page_of) = (Vec::new(), Vec::new());
        for (at, (((page, out), between), rows)) in
            pages.iter_mut().zip(&mut between).zip(&rows).enumerate()
        {
            let (bytes, shape, marks) = (&page.bytes[..], shape(block, page.page), page.marks());
            let part = |(rows, out): (&Range<usize>, _)| NumbersPart {
                page: bytes,
                shape,
                rows: rows.clone(),
                out,
                marks,
            };
            let to = if between.is_empty() { &mut **out } else { &mut **between };
            let rows = rows.as_ref().map_or(parts, std::slice::from_ref);
            numbers.extend(rows.iter().zip(to).map(part));
            page_of.resize(numbers.len(), at);
        }
        column::decode_together(&mut numbers).map_err(|(at, error)| {
            let source = &groups.reader.shared.source;
            source.malformed(pages[page_of[at]].0.page.extent.offset, &error)
        })?;
        for (((page, out), between), all) in pages.iter_mut().zip(between).zip(rows) {
            let Some(all) = all else {
                between.iter().for_each(|part| out[0].extend_from(part, 0..part.len()));
                continue;
            };
            let whole = &between[0];
            for (part, rows) in parts.iter().enumerate() {
                let rows = rows.start - all.start..rows.end - all.start;
                of_part(out, part).extend_from(whole, rows);
            }
            if page.thaw {
                groups.keep(page.place, whole);
            }
        }
    }
    Ok(())
}

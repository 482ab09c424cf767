//! Blocks of the directory: the measurements of a run, each with its tag keys.
//!
//! Layout: count u16; per measurement the length of its entry (varint) and the entry: database
//! u32, name, first series, series, first term (varints), list of its series, number of keys; per
//! key its name, number of terms, and 0 if every series has it, else 1 and the list of those that
//! do.
//! Series and terms are numbered through the run; the terms of the keys follow one another.

use std::ops::Range;

use model::DatabaseId;

use crate::bytes::{Reader, put_text, put_varint};
use crate::error::Malformed;
use crate::posting::PostingRef;

/// Gathers the entry of one measurement.
#[derive(Debug, Default)]
pub(crate) struct EntryBuilder {
    pub(crate) series_start: u32,
    pub(crate) series: u32,
    pub(crate) term_start: u32,
    keys: Vec<u8>,
    key_count: u64,
}

impl EntryBuilder {
    pub(crate) fn new(series_start: u32, term_start: u32) -> Self {
        Self { series_start, term_start, ..Self::default() }
    }

    /// Adds a key; `present` is the encoded list of its series, `None` for all.
    pub(crate) fn key(&mut self, name: &str, terms: u32, present: Option<&[u8]>) {
        put_text(&mut self.keys, name.as_bytes());
        put_varint(&mut self.keys, u64::from(terms));
        self.keys.push(u8::from(present.is_some()));
        self.keys.extend_from_slice(present.unwrap_or_default());
        self.key_count += 1;
    }

    pub(crate) fn put(self, database: DatabaseId, name: &str, all: &[u8], out: &mut Vec<u8>) {
        let mut entry = Vec::with_capacity(self.keys.len() + name.len() + all.len() + 32);
        entry.extend_from_slice(&database.0.to_le_bytes());
        put_text(&mut entry, name.as_bytes());
        put_varint(&mut entry, u64::from(self.series_start));
        put_varint(&mut entry, u64::from(self.series));
        put_varint(&mut entry, u64::from(self.term_start));
        entry.extend_from_slice(all);
        put_varint(&mut entry, self.key_count);
        entry.extend_from_slice(&self.keys);
        put_text(out, &entry);
    }
}

/// The bytes that measurements are sorted by.
pub(crate) fn sort_key(database: DatabaseId, name: &str) -> Vec<u8> {
    [&database.0.to_be_bytes(), name.as_bytes()].concat()
}

/// One measurement as read. Texts and lists are positions within the block.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) database: DatabaseId,
    pub(crate) name: Range<usize>,
    pub(crate) series: Range<u32>,
    pub(crate) terms: Range<u32>,
    pub(crate) all_at: usize,
    pub(crate) keys: Vec<EntryKey>,
}

#[derive(Clone, Debug)]
pub(crate) struct EntryKey {
    pub(crate) name: Range<usize>,
    pub(crate) terms: Range<u32>,
    /// Where the list of series is; `None`: every series has the key.
    pub(crate) present_at: Option<usize>,
}

/// What is needed of an entry to decide whether it is the wanted one.
#[derive(Clone, Debug)]
pub(crate) struct EntryHead<'a> {
    pub(crate) database: DatabaseId,
    pub(crate) name: &'a str,
    pub(crate) series: Range<u32>,
    body: Reader<'a>,
    name_at: usize,
}

/// The entries of a block, in order.
#[derive(Debug)]
pub(crate) struct EntryHeads<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> EntryHeads<'a> {
    pub(crate) fn new(block: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(block);
        let left = usize::from(reader.u16()?);
        Ok(Self { reader, left })
    }

    pub(crate) fn advance(&mut self) -> Result<Option<EntryHead<'a>>, Malformed> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let len = self.reader.varint_len()?;
        let mut body = self.reader;
        self.reader.take(len)?;
        let database = DatabaseId(body.u32()?);
        let name = body.text()?;
        let name_at = body.position() - name.len();
        let start = body.varint_u32()?;
        let end = start.checked_add(body.varint_u32()?).ok_or(TOO_MANY)?;
        Ok(Some(EntryHead { database, name, series: start..end, body, name_at }))
    }
}

const TOO_MANY: Malformed = Malformed("a measurement has more series or terms than there can be");

impl EntryHead<'_> {
    pub(crate) fn read(mut self) -> Result<Entry, Malformed> {
        let mut term = self.body.varint_u32()?;
        let terms_start = term;
        let all_at = self.body.position();
        PostingRef::read(&mut self.body)?;
        let count = self.body.varint_len()?;
        // A key takes three bytes or more, which bounds what a wrong count can allocate.
        let mut keys = Vec::with_capacity(count.min(self.body.remaining() / 3));
        for _ in 0..count {
            let name = self.body.text()?;
            let name_end = self.body.position();
            let end = term.checked_add(self.body.varint_u32()?).ok_or(TOO_MANY)?;
            let present_at = match self.body.u8()? {
                0 => None,
                1 => {
                    let at = self.body.position();
                    PostingRef::read(&mut self.body)?;
                    Some(at)
                }
                _ => return Err(Malformed("a tag key has an unknown flag")),
            };
            keys.push(EntryKey {
                name: name_end - name.len()..name_end,
                terms: term..end,
                present_at,
            });
            term = end;
        }
        Ok(Entry {
            database: self.database,
            name: self.name_at..self.name_at + self.name.len(),
            series: self.series,
            terms: terms_start..term,
            all_at,
            keys,
        })
    }
}

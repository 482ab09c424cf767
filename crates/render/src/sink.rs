//! What a format has to be able to do. The [`crate::Encoder`] calls these in a well-formed order:
//! documents hold results, results hold series, series hold rows.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use model::{ColumnBatch, SeriesHeader};

use crate::ZoneOffset;

/// A remark on a statement.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) level: String,
    pub(crate) text: String,
}

pub(crate) trait Sink: fmt::Debug + Send {
    fn begin_document(&mut self, out: &mut Vec<u8>);

    fn begin_result(&mut self, out: &mut Vec<u8>, id: u32, zone: Option<&ZoneOffset>);

    fn begin_series(&mut self, out: &mut Vec<u8>, header: &SeriesHeader);

    fn rows(&mut self, out: &mut Vec<u8>, batch: &Arc<ColumnBatch>, rows: Range<usize>);

    fn end_series(&mut self, out: &mut Vec<u8>, partial: bool);

    fn end_result(&mut self, out: &mut Vec<u8>, messages: &[Message], partial: bool);

    /// A whole result that is nothing but an error.
    fn error_result(&mut self, out: &mut Vec<u8>, id: u32, text: &str);

    /// Takes back everything since `begin_result`. `false`: some of it was handed out already.
    fn abandon_result(&mut self, out: &mut Vec<u8>) -> bool;

    /// Ends a result, part of which was handed out, with an error.
    fn fail_result(&mut self, out: &mut Vec<u8>, text: &str);

    fn end_document(&mut self, out: &mut Vec<u8>);

    /// The bytes in `out` were handed out.
    fn taken(&mut self);

    /// Bytes kept beside `out`.
    fn held_bytes(&self) -> usize;
}

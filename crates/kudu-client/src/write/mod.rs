//! Writing rows: from columns to the wire in one pass, tablet by tablet, exactly once.

mod batch;
mod encode;
mod request;
mod send;

pub use batch::{Bits, Cells, Missing, Operation, RowBatch};
pub use send::{RowError, WriteOutcome};

pub(crate) use request::Requests;

//! The words every crate shares: identifiers, time, schema, batches, predicates, limits.
//!
//! Plain data and pure functions only. Nothing here does IO, reads a clock or knows a store, a
//! language or a wire format.

mod batch;
mod bitmap;
#[doc(hidden)]
pub mod fuzzing;
mod id;
pub mod key;
mod limits;
mod line;
mod predicate;
mod result;
mod schema;
mod strings;
mod summary;
mod time;

pub use batch::{Column, ColumnBatch, SeriesRun, Values};
pub use bitmap::Bitmap;
pub use id::{DatabaseId, PolicyId, SeriesId};
pub use key::{KeyError, SeriesKey, key_hash};
pub use limits::{Budget, Interrupt, Interrupted, OverBudget, Reservation};
pub use line::{Layout, LayoutField, LineBatch, LineRow, LineText, string_slot, string_slot_parts};
pub use predicate::{CompareOp, FieldFilter, Holds, Operand, Scalar, TagExpr};
pub use regex::Regex;
pub use regex::bytes::Regex as BytesRegex;
pub use result::{Documents, ResultBatch, SeriesHeader};
pub use schema::{FieldType, MeasurementSchema, Name};
pub use strings::{Memo, Numbered, Strings, TextPattern, TextPieces, TextPlace, TextTest};
pub use summary::{FieldSummaries, SummaryBatch, SummarySpan, TimedValues};
pub use time::{MAX_TIME_NS, MIN_TIME_NS, TimeRange, partition_range};

//! Series dictionary and inverted index, on disk and memory-bounded.
//!
//! From series keys to ids, from ids to keys, from conditions on tags to sets of ids, and the
//! names of measurements, tag keys and tag values: for all databases of one store. Rows, the log
//! and time are not known here.

mod block;
mod bytes;
mod error;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod hash;
mod index;
mod inspect;
mod manifest;
mod mem;
mod merge;
mod part;
mod policy;
mod posting;
mod ranks;
mod run;
mod select;
mod source;

pub use error::{SeriesError, SeriesResult};
pub use index::{SeriesIndex, SeriesOptions, TagCodes, Totals};
pub use inspect::{IndexInfo, RunInfo, inspect};

//! Tables as the client sees them: columns and their types, values, keys, partitions.

mod column;
pub(crate) mod key;
mod partition;
mod row;
mod types;
mod value;

pub use column::{Column, Schema};
pub use partition::{HashDimension, PartitionSchema, RangePartition};
pub use types::{Compression, DataType, Encoding};
pub use value::Value;

pub(crate) use partition::{hash_to_message, ranges_of};
pub(crate) use row::Bounds;

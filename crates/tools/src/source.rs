//! Reads everything out of a running InfluxDB 1.x or Nyala: what there is, then rows slice by slice.
//!
//! Invariants
//! - A slice lies within one shard of the source, where it says so: inside a shard a field has one
//!   type, and no value is cast to another.
//! - Rows become lines without a detour over numbers: every digit the source writes is kept.
//! - One part of an answer is in memory at a time.

mod layout;
mod meta;
mod rows;
mod slices;

pub(crate) use layout::{FieldType, Layout, Value};
pub(crate) use meta::{Policy, User, continuous_queries, databases, measurements, policies, users};
pub(crate) use rows::{Row, line_of, read_slice};
pub(crate) use slices::{Shards, Slice, Window};

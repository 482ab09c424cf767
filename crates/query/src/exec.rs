//! Running plans: rows are read a batch at a time, worked on a column at a time.

pub(crate) mod accumulate;
pub(crate) mod after;
pub(crate) mod aggregate;
pub(crate) mod column;
pub(crate) mod expression;
pub(crate) mod extent;
pub(crate) mod groups;
pub(crate) mod input;
pub(crate) mod join;
mod order;
pub(crate) mod predicate;
pub(crate) mod raw;
pub(crate) mod rows;
pub(crate) mod stream;
pub(crate) mod subquery;
pub(crate) mod text_search;
pub(crate) mod transform;
pub(crate) mod unit;
pub(crate) mod window;

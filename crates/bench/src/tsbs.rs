//! Data shaped like the Time Series Benchmark Suite's: names, types and order of rows are the suite's, the
//! random numbers are our own.
//!
//! Rows come by time step; within a step by measurement; within a measurement by host.

mod fleet;
mod measurements;
mod tags;
mod trucks;

pub use fleet::Fleet;
pub use trucks::Trucks;

pub(crate) use measurements::CPU_FIELDS;

#[cfg(test)]
mod tests;

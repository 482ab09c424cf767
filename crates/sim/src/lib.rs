//! Seeded simulation of crashes and disk faults: the embedded store against the reference model.
//!
//! A *history* is a list of operations that follows from a seed. It is done to a store on a simulated
//! disk that loses power, fails and fills up, and to an *oracle* that knows what the store may hold
//! then. Every failure is printed with its seed and a short list of operations to paste into a test.
//!
//! Not here: what a right answer to a query is (`store::conformance`), the disk (`platform`).

mod content;
mod flips;
mod generate;
mod histories;
mod operation;
mod oracle;
mod pool;
mod random;
mod runner;
mod setup;
mod shrink;
#[cfg(test)]
mod tests;
mod threads;

pub use flips::{FlipSummary, run_flips};
pub use histories::{Failure, Shape, run_seed};
pub use operation::{Fault, Kind, Operation, Row, Trouble};
pub use runner::{Summary, run};
pub use threads::{ThreadSummary, run_threads};

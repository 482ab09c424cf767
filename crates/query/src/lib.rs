//! InfluxQL over any [`store::Store`]: planning and vectorised execution.
//!
//! A statement is checked and planned (`plan`), its view of the data is pinned, and its answer is
//! pulled a batch of columns at a time (`exec`). Nothing is ever turned into rows on the way.
//!
//! Invariants
//! - Memory is reserved from the statement's budget before it grows with the data.
//! - The interrupt is looked at between batches.
//! - A condition the store only takes as a hint is evaluated again here.
//!
//! Not here: which store, HTTP, encodings of results.

mod answer;
mod basis;
mod context;
mod continuous;
mod ddl;
mod delete;
mod error;
mod exec;
mod execute;
mod explain;
mod functions;
mod into;
mod names;
mod plan;
mod presence;
mod registry;
mod shards;
mod show;
mod subscriptions;
mod table;
mod users;
mod zone;

pub use answer::{Answer, Message};
pub use basis::Basis;
pub use context::{QueryContext, QueryLimits, QueryTuning};
pub use continuous::{
    ContinuousRun, ContinuousSchedule, ContinuousStatus, ContinuousWork, LastRun,
};
pub use error::QueryError;
pub use execute::{Cost, Prepared, estimate, execute, prepare};
pub use registry::{QueryRegistry, Registered};
pub use table::Table;
pub use zone::Zone;

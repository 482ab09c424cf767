#![allow(dead_code, missing_docs)]
//! Native asynchronous client of Apache Kudu.

mod config;
mod error;
mod proto;
mod rpc;

pub use config::{ClientConfig, Encryption};
pub use error::Error;
mod predicate;
mod prune;
mod schema;
mod retry;

//! Workload generators, HTTP load and query drivers, and side-by-side runs against peers.
//!
//! Everything here talks to a server over HTTP and knows nothing of how one is built: the same code drives
//! Nyala and its peers, so that a difference between two figures is a difference between two servers.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark tool works on real files and real processes, never in simulation"
)]

pub mod chance;
pub mod compare;
pub mod discard;
pub mod functions;
pub mod http;
pub mod json;
pub mod latency;
pub mod load;
pub mod plot;
pub mod process;
pub mod queries;
pub mod query_run;
pub mod random;
mod remote_write;
pub mod report;
pub mod scans;
pub mod services;
pub mod single_field;
pub mod system;
pub mod text;
pub mod tsbs;
pub mod workload;
pub mod ycsb;

#[cfg(test)]
mod fake_server;

//! The network: listeners, routes, admission, error mapping. A handler is decode, call, encode.
//!
//! - `/write` and `/query` in InfluxDB 1.x' manner, and what a server says of itself.
//! - Everything a client can make the server hold is bounded: connections, heads, bodies, waiting
//!   requests, answers that it does not take, and the time all of these may last.
//! - A bug that panics ends one request.
//!
//! Not here: which store it is, how a statement is executed, how a result is written down.

mod app;
mod binding;
mod body;
mod config;
mod connection;
mod continuous;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod gzip;
mod info;
mod metrics;
mod multipart;
mod panic;
mod params;
mod query;
mod record;
mod request_id;
mod response;
mod retention;
mod room;
mod routes;
mod server;
mod service;
mod write;

pub use config::{COMPATIBLE_VERSION, Patience, ServerConfig, UNPACKED_BODY_FACTOR};
pub use server::{Server, Stopped};

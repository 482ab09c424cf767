//! The network: listeners, routes, admission, error mapping. A handler is decode, call, encode.
//!
//! - `/write` and `/query` in InfluxDB 1.x' manner, what it has of version 2's paths, Prometheus'
//!   remote write and read, and what a server says of itself. Users and their privileges.
//! - Everything a client can make the server hold is bounded: connections, heads, bodies, waiting
//!   requests, answers that it does not take, and the time all of these may last.
//! - A bug that panics ends one request.
//!
//! Not here: which store it is, how a statement is executed, how a result is written down.

mod app;
mod auth;
mod binding;
mod blocking;
mod body;
mod config;
mod connection;
mod continuous;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod gzip;
mod info;
mod lines;
mod listener;
mod listeners;
mod metrics;
mod monitor;
mod multipart;
mod own;
mod panic;
mod params;
mod pool;
mod profile;
mod prometheus;
mod query;
mod record;
mod request_id;
mod response;
mod retention;
mod roaming;
mod room;
mod routes;
mod server;
mod service;
mod statistics;
mod subscriber;
mod threads;
mod tls;
mod urlencoded;
mod v2;
mod write;

pub use config::{
    AuthConfig, COMPATIBLE_VERSION, MonitorConfig, Patience, Secret, ServerConfig,
    UNPACKED_BODY_FACTOR,
};
/// Unit of timestamps.
pub use ingest::line_protocol::Precision;
pub use ingest::{collectd, graphite};
pub use listeners::{
    CollectdConfig, GraphiteConfig, ListenerConfig, ListenerTarget, OpenTsdbConfig, Transport,
    UdpConfig,
};
pub use server::{Server, Stopped};
pub use tls::TlsFiles;

//! The real program over real sockets.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests work on real files, and what fails in them is to be seen"
)]

mod bad_inputs;
mod bad_queries;
mod busy;
mod clients;
mod command_line;
mod connections;
mod continuous;
mod crash;
mod debug;
mod deletes;
mod formats;
mod import;
mod influx_cli;
mod inspect;
mod kudu;
mod kudu_security;
mod kudu_status;
mod lifecycle;
mod listeners;
mod prometheus;
mod query_cache;
mod random_statements;
mod recorded_answers;
mod shell;
mod statistics;
mod subscriptions;
mod support;
mod terminal;
mod udp;
mod users;
mod v2;
mod writes;

//! Result encoders: InfluxDB's JSON, CSV and MessagePack; Prometheus' remote read.
//!
//! An [`Encoder`] turns the answer of one request into bytes while the answer is made: statement by
//! statement, batch by batch. It never sees a row; each format has a typed loop a column kind. The
//! bytes are those of InfluxDB, but where streaming forbids it (see [`Encoder`]).

mod csv;
mod digits;
mod encoder;
mod json;
mod msgpack;
mod number;
mod options;
mod output;
pub mod prometheus;
mod sink;
mod text;
mod time;

pub use encoder::Encoder;
pub use options::{Epoch, Format, Options, ZoneOffset};

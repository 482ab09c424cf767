//! Gzip, both ways: agents send bodies so, and browsers, Grafana and Go's HTTP client ask for answers so.

mod pack;
mod unpack;

pub(crate) use pack::{Packer, pack};
pub(crate) use unpack::{UnpackError, announced_len, both_ways_agree, unpack};

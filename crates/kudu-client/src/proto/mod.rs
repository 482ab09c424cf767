//! Messages of Kudu's protocol (protobuf, proto2), as far as a client needs them.
//!
//! Written by hand: field numbers and types are what the wire has, so no protoc is needed. Fields
//! that the client neither sends nor reads are left out; protobuf skips them. `required` fields are
//! always encoded, also when they hold zero. Enumerations travel as `i32` and unknown values are
//! tolerated.

mod common;
mod master;
mod rpc;
mod tserver;

pub(crate) use common::*;
pub(crate) use master::*;
pub(crate) use rpc::*;
pub(crate) use tserver::*;

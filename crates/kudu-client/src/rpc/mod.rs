//! Kudu's RPC: frames over TCP or TLS, negotiation, calls multiplexed over one connection.

mod connection;
mod frame;
mod negotiate;
mod pool;
mod tls;
mod transport;

pub(crate) use connection::{Answer, Body, Call, CallError, Connection};
pub(crate) use frame::{Frame, take as take_frame};
pub(crate) use pool::{Endpoint, Pool};

/// Codes of `ErrorStatus`.
pub(crate) mod code {
    pub(crate) const APPLICATION: i32 = 1;
    pub(crate) const NO_SUCH_METHOD: i32 = 2;
    pub(crate) const NO_SUCH_SERVICE: i32 = 3;
    pub(crate) const SERVER_TOO_BUSY: i32 = 4;
    pub(crate) const INVALID_REQUEST: i32 = 5;
    pub(crate) const REQUEST_STALE: i32 = 6;
    pub(crate) const UNAVAILABLE: i32 = 7;
    pub(crate) const FATAL_SERVER_SHUTTING_DOWN: i32 = 11;
    pub(crate) const FATAL_UNAUTHORIZED: i32 = 15;
    pub(crate) const INVALID_AUTHENTICATION_TOKEN: i32 = 16;
    pub(crate) const INVALID_AUTHORIZATION_TOKEN: i32 = 17;
}

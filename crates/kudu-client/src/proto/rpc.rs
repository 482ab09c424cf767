//! Frame headers, negotiation, security tokens, and the status inside answers.

use bytes::Bytes;
use prost::Message;

/// Identifies a write over all its attempts.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RequestId {
    #[prost(string, required, tag = "1")]
    pub(crate) client_id: String,
    #[prost(int64, required, tag = "2")]
    pub(crate) seq_no: i64,
    #[prost(int64, required, tag = "3")]
    pub(crate) first_incomplete_seq_no: i64,
    #[prost(int64, required, tag = "4")]
    pub(crate) attempt_no: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RemoteMethod {
    #[prost(string, required, tag = "1")]
    pub(crate) service_name: String,
    #[prost(string, required, tag = "2")]
    pub(crate) method_name: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct RequestHeader {
    #[prost(int32, required, tag = "3")]
    pub(crate) call_id: i32,
    #[prost(message, optional, tag = "6")]
    pub(crate) remote_method: Option<RemoteMethod>,
    #[prost(uint32, optional, tag = "10")]
    pub(crate) timeout_millis: Option<u32>,
    #[prost(uint32, repeated, packed = "false", tag = "11")]
    pub(crate) required_feature_flags: Vec<u32>,
    #[prost(message, optional, tag = "15")]
    pub(crate) request_id: Option<RequestId>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ResponseHeader {
    #[prost(int32, required, tag = "1")]
    pub(crate) call_id: i32,
    #[prost(bool, optional, tag = "2")]
    pub(crate) is_error: Option<bool>,
    #[prost(uint32, repeated, packed = "false", tag = "3")]
    pub(crate) sidecar_offsets: Vec<u32>,
}

/// What a server says when it could not carry out a call at all.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ErrorStatus {
    #[prost(string, required, tag = "1")]
    pub(crate) message: String,
    #[prost(int32, optional, tag = "2")]
    pub(crate) code: Option<i32>,
    #[prost(uint32, repeated, packed = "false", tag = "3")]
    pub(crate) unsupported_feature_flags: Vec<u32>,
}

/// Values of `Negotiate::supported_features`.
pub(crate) mod rpc_feature {
    pub(crate) const APPLICATION_FEATURE_FLAGS: i32 = 1;
    pub(crate) const TLS: i32 = 2;
    pub(crate) const TLS_AUTHENTICATION_ONLY: i32 = 3;
}

/// Values of `Negotiate::step`.
pub(crate) mod step {
    pub(crate) const SASL_SUCCESS: i32 = 0;
    pub(crate) const NEGOTIATE: i32 = 1;
    pub(crate) const SASL_INITIATE: i32 = 2;
    pub(crate) const TLS_HANDSHAKE: i32 = 5;
    pub(crate) const TOKEN_EXCHANGE: i32 = 6;
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SaslMechanism {
    #[prost(string, required, tag = "2")]
    pub(crate) mechanism: String,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Empty {}

/// One way of proving who the client is: exactly one field is set.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AuthenticationType {
    #[prost(message, optional, tag = "1")]
    pub(crate) sasl: Option<Empty>,
    #[prost(message, optional, tag = "2")]
    pub(crate) token: Option<Empty>,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct Negotiate {
    #[prost(int32, repeated, packed = "false", tag = "1")]
    pub(crate) supported_features: Vec<i32>,
    #[prost(int32, required, tag = "2")]
    pub(crate) step: i32,
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(crate) token: Option<Bytes>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) sasl_mechanisms: Vec<SaslMechanism>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub(crate) tls_handshake: Option<Bytes>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) authn_types: Vec<AuthenticationType>,
    #[prost(message, optional, tag = "8")]
    pub(crate) authn_token: Option<SignedToken>,
}

/// A token of the cluster, opaque to clients.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct SignedToken {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(crate) token_data: Option<Bytes>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(crate) signature: Option<Bytes>,
    #[prost(int64, optional, tag = "3")]
    pub(crate) signing_key_seq_num: Option<i64>,
}

/// The status inside answers of both services.
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct AppStatus {
    #[prost(int32, required, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, optional, tag = "2")]
    pub(crate) message: Option<String>,
}

/// Error of a master (codes of `MasterErrorCode`) or a tablet server (`TabletErrorCode`).
#[derive(Clone, PartialEq, Eq, Message)]
pub(crate) struct ServiceError {
    #[prost(int32, required, tag = "1")]
    pub(crate) code: i32,
    #[prost(message, required, tag = "2")]
    pub(crate) status: AppStatus,
}

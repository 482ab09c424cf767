//! Prometheus' remote write and remote read, version 1: snappy and protocol buffers.

mod read;
mod write;

use hyper::header::HeaderValue;
use snap::raw::{Decoder, decompress_len};

pub(crate) use read::handle as read;
pub(crate) use write::handle as write;

use crate::app::App;
use crate::error::HttpError;
use crate::room::Room;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const SNAPPY: HeaderValue = HeaderValue::from_static("snappy");

/// Unpacks a body; takes memory for `factor` times its length first.
fn unpack(app: &App, packed: &[u8], room: &mut Room, factor: usize) -> Result<Vec<u8>, HttpError> {
    let corrupt = |_| HttpError::bad_request("snappy: corrupt input");
    let len = decompress_len(packed).map_err(corrupt)?;
    if len > app.config.unpacked_bytes_max() {
        return Err(HttpError::too_large());
    }
    room.grow(packed.len().saturating_add(len.saturating_mul(factor)))?;
    Decoder::new().decompress_vec(packed).map_err(corrupt)
}

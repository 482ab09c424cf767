//! Frames: `u32 BE length | varint header length | header | varint body length | body | sidecars`.
//!
//! Pure functions. The length counts everything after itself; the body's length counts the sidecars
//! too, and sidecar offsets are relative to the start of the body.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use crate::proto::ResponseHeader;

/// Longest frame that is accepted, bytes: room for the largest scan batch a server may be
/// configured to send.
const INCOMING_BYTES_MAX: usize = 256 << 20;
/// Room that is made for a frame because of its length alone, bytes: a length is but a claim. Larger
/// than the answers to scans that ask for usual batches.
const CLAIMED_BYTES_MAX: usize = 16 << 20;
/// Room that is left when a larger frame gets more.
const ROOM_BYTES_MIN: usize = 16 << 10;
/// Longest frame that is sent, bytes. A server drops the whole connection on a frame over its limit
/// (50 MiB by default), and a replicated write needs some room for the leader's own framing.
pub(crate) const OUTGOING_BYTES_MAX: usize = 48 << 20;

/// An answer as it came: the body and the sidecars share one buffer.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) header: ResponseHeader,
    pub(crate) body: Bytes,
    pub(crate) sidecars: Vec<Bytes>,
}

/// Everything of a frame that precedes the body's bytes.
pub(crate) fn prefix(header: &impl Message, body_len: usize) -> Bytes {
    let header_len = header.encoded_len();
    let total = encoded_len_varint(header_len as u64)
        + header_len
        + encoded_len_varint(body_len as u64)
        + body_len;
    let mut out = BytesMut::with_capacity(4 + total - body_len);
    out.put_u32(total as u32);
    encode_varint(header_len as u64, &mut out);
    header.encode_raw(&mut out);
    encode_varint(body_len as u64, &mut out);
    out.freeze()
}

/// Takes the first frame out of `buffer`, `None` if it is not complete yet (then room for the rest
/// is made, for that of a very long one step by step).
pub(crate) fn take(buffer: &mut BytesMut) -> Result<Option<Frame>, String> {
    let Some(length) = buffer.first_chunk::<4>() else { return Ok(None) };
    let total = u32::from_be_bytes(*length) as usize;
    if total == 0 || total > INCOMING_BYTES_MAX {
        return Err(format!("frame of {total} bytes"));
    }
    if buffer.len() < 4 + total {
        let missing = 4 + total - buffer.len();
        let room = buffer.capacity() - buffer.len();
        if missing <= CLAIMED_BYTES_MAX || room < ROOM_BYTES_MIN {
            buffer.reserve(missing.min(buffer.len().max(CLAIMED_BYTES_MAX)));
        }
        return Ok(None);
    }
    let mut frame = buffer.split_to(4 + total).freeze();
    let _ = frame.split_to(4);
    parse(frame).map(Some)
}

fn parse(mut frame: Bytes) -> Result<Frame, String> {
    let header = take_delimited(&mut frame).ok_or("frame with a bad header length")?;
    let header = ResponseHeader::decode(header).map_err(|e| format!("bad header: {e}"))?;
    let payload = take_delimited(&mut frame).ok_or("frame with a bad body length")?;
    if !frame.is_empty() {
        return Err(format!("{} bytes after the body", frame.len()));
    }
    let mut bounds = header.sidecar_offsets.iter().map(|o| *o as usize);
    let body_end = bounds.next().unwrap_or(payload.len());
    if body_end > payload.len() {
        return Err("sidecar outside of the frame".to_owned());
    }
    let body = payload.slice(..body_end);
    let mut sidecars = Vec::with_capacity(header.sidecar_offsets.len());
    let mut start = body_end;
    if !header.sidecar_offsets.is_empty() {
        for end in bounds.chain([payload.len()]) {
            if end < start || end > payload.len() {
                return Err("sidecar outside of the frame".to_owned());
            }
            sidecars.push(payload.slice(start..end));
            start = end;
        }
    }
    Ok(Frame { header, body, sidecars })
}

fn take_delimited(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    (length <= bytes.len()).then(|| bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AuthenticationType, SaslMechanism};
    use crate::proto::{Empty, Negotiate, RemoteMethod, RequestHeader, rpc_feature, step};

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    fn frame_bytes(header: &impl Message, body: &impl Message) -> Vec<u8> {
        let body = body.encode_to_vec();
        let mut bytes = prefix(header, body.len()).to_vec();
        bytes.extend(body);
        bytes
    }

    fn negotiation_header() -> RequestHeader {
        RequestHeader { call_id: -33, ..RequestHeader::default() }
    }

    #[test]
    fn a_claim_takes_little_memory_and_a_long_frame_comes_whole() {
        let mut buffer = BytesMut::new();
        buffer.put_u32(INCOMING_BYTES_MAX as u32);
        assert!(take(&mut buffer).unwrap().is_none());
        assert!(buffer.capacity() <= 2 * CLAIMED_BYTES_MAX, "{}", buffer.capacity());

        let header = ResponseHeader { call_id: 1, ..ResponseHeader::default() };
        let body = vec![7; 3 * CLAIMED_BYTES_MAX];
        let mut bytes = prefix(&header, body.len()).to_vec();
        bytes.extend(&body);
        let mut buffer = BytesMut::new();
        let mut frames = Vec::new();
        for piece in bytes.chunks(64 << 10) {
            buffer.extend_from_slice(piece);
            frames.extend(take(&mut buffer).unwrap());
        }
        assert_eq!(frames.len(), 1);
        assert!(frames[0].body == body, "another body");
    }

    #[test]
    fn negotiate_is_byte_for_byte_what_a_server_accepted() {
        let message = Negotiate {
            supported_features: vec![rpc_feature::APPLICATION_FEATURE_FLAGS],
            step: step::NEGOTIATE,
            authn_types: vec![AuthenticationType {
                sasl: Some(Empty {}),
                ..AuthenticationType::default()
            }],
            ..Negotiate::default()
        };
        let expected = hex("00000015 0b 18dfffffffffffffffff01 08 0801 1001 3a020a00");
        assert_eq!(frame_bytes(&negotiation_header(), &message), expected);
    }

    #[test]
    fn sasl_initiate_is_byte_for_byte_what_a_server_accepted() {
        let message = Negotiate {
            step: step::SASL_INITIATE,
            token: Some(Bytes::from_static(b"\0alice\0")),
            sasl_mechanisms: vec![SaslMechanism { mechanism: "PLAIN".to_owned() }],
            ..Negotiate::default()
        };
        let expected =
            hex("00000021 0b 18dfffffffffffffffff01 14 1002 1a0700616c69636500 22071205504c41494e");
        assert_eq!(frame_bytes(&negotiation_header(), &message), expected);
    }

    #[test]
    fn ping_is_byte_for_byte_what_a_server_accepted() {
        let header = RequestHeader {
            call_id: 0,
            remote_method: Some(RemoteMethod {
                service_name: "kudu.master.MasterService".to_owned(),
                method_name: "Ping".to_owned(),
            }),
            timeout_millis: Some(5000),
            ..RequestHeader::default()
        };
        let expected = hex(
            "0000002a 28 1800 3221 0a19 6b7564752e6d61737465722e4d617374657253657276696365 1204 \
             50696e67 508827 00",
        );
        assert_eq!(frame_bytes(&header, &Empty {}), expected);
    }

    #[test]
    fn answers_are_taken_only_when_complete() {
        let bytes = hex(
            "00000022 0b 08dfffffffffffffffff01 15 0801 0802 0803 1001 22071205504c41494e 3a020a00",
        );
        for cut in 0..bytes.len() {
            let mut buffer = BytesMut::from(&bytes[..cut]);
            assert!(take(&mut buffer).unwrap().is_none());
        }
        let mut buffer = BytesMut::from(&bytes[..]);
        let frame = take(&mut buffer).unwrap().unwrap();
        assert_eq!(frame.header.call_id, -33);
        let message = Negotiate::decode(frame.body).unwrap();
        assert_eq!(message.supported_features, [1, 2, 3]);
        assert_eq!(message.sasl_mechanisms[0].mechanism, "PLAIN");
        assert!(buffer.is_empty());
    }

    #[test]
    fn sidecars_are_cut_at_their_offsets() {
        let header = ResponseHeader { call_id: 7, is_error: None, sidecar_offsets: vec![2, 2, 5] };
        let mut bytes = BytesMut::from(&prefix(&header, 6)[..]);
        bytes.extend_from_slice(b"ab123z");
        let frame = take(&mut bytes).unwrap().unwrap();
        assert_eq!(&frame.body[..], b"ab");
        assert_eq!(frame.sidecars, [&b""[..], b"123", b"z"]);
    }

    #[test]
    fn damaged_frames_are_refused() {
        for (offsets, what) in [(vec![9], "first"), (vec![3, 2], "order"), (vec![0, 7], "end")] {
            let header = ResponseHeader { call_id: 7, is_error: None, sidecar_offsets: offsets };
            let mut bytes = BytesMut::from(&prefix(&header, 6)[..]);
            bytes.extend_from_slice(b"ab123z");
            assert!(take(&mut bytes).is_err(), "{what}");
        }
        assert!(take(&mut BytesMut::from(&b"\0\0\0\0"[..])).is_err());
        assert!(take(&mut BytesMut::from(&b"\xff\xff\xff\xff"[..])).is_err());
        assert!(take(&mut BytesMut::from(&b"\0\0\0\x02\xff\xff"[..])).is_err());
    }
}

//! Names for requests whose clients gave them none: version-1 UUIDs.

use std::hash::{BuildHasher, RandomState};

use hyper::header::HeaderValue;
use uuid::timestamp::context::ContextV1;
use uuid::{Timestamp, Uuid};

/// Makes ids that no other server makes.
#[derive(Debug)]
pub(crate) struct RequestIds {
    node: [u8; 6],
    context: ContextV1,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        // The standard library's hash seeds are the random numbers at hand.
        let random = RandomState::new().hash_one("node").to_le_bytes();
        let mut node = [0; 6];
        node.copy_from_slice(&random[..6]);
        // The multicast bit: no network card has such an address.
        node[0] |= 1;
        Self { node, context: ContextV1::new(u16::from_le_bytes([random[6], random[7]])) }
    }

    pub(crate) fn next(&self, now_ns: i64) -> HeaderValue {
        let now_ns = now_ns.max(0) as u64;
        let (seconds, nanos) = (now_ns / 1_000_000_000, (now_ns % 1_000_000_000) as u32);
        let timestamp = Timestamp::from_unix(&self.context, seconds, nanos);
        let mut text = Uuid::encode_buffer();
        let text = Uuid::new_v1(timestamp, &self.node).hyphenated().encode_lower(&mut text);
        HeaderValue::from_str(text).expect("BUG: a UUID is a legal header")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_at_one_time() {
        let ids = RequestIds::new();
        let (a, b) = (ids.next(1_700_000_000_000_000_000), ids.next(1_700_000_000_000_000_000));
        assert_ne!(a, b);
        assert_eq!(a.len(), 36);
        assert_eq!(a.as_bytes()[14], b'1', "version 1");
    }
}

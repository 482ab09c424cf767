//! Keys as bytes that sort like the values, and the hash that buckets are made of.

use super::{DataType, Value};

/// Appends an integer of `width` bytes: sign flipped, big-endian.
pub(crate) fn push_int(out: &mut Vec<u8>, value: i128, width: usize) {
    let mut bytes = value.to_be_bytes();
    let start = bytes.len() - width.clamp(1, 16);
    let own = &mut bytes[start..];
    own[0] ^= 0x80;
    out.extend_from_slice(own);
}

/// Appends bytes; unless they are the last column of their list they are escaped and terminated.
pub(crate) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8], is_last: bool) {
    if is_last {
        out.extend_from_slice(bytes);
        return;
    }
    let mut rest = bytes;
    while let Some(zero) = rest.iter().position(|b| *b == 0) {
        let (before, after) = rest.split_at(zero);
        out.extend_from_slice(before);
        out.extend_from_slice(&[0, 1]);
        rest = &after[1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Appends a value that was checked against its type.
pub(crate) fn push_value(out: &mut Vec<u8>, value: &Value, data_type: DataType, is_last: bool) {
    match (value, data_type.width()) {
        (Value::Int(v), Some(width)) => push_int(out, *v, width),
        (Value::Bytes(v), None) => push_bytes(out, v, is_last),
        // Other types are never in a key.
        _ => {}
    }
}

/// Takes a value off the front; `None`: the bytes are no such key.
pub(crate) fn take_value(bytes: &mut &[u8], data_type: DataType, is_last: bool) -> Option<Value> {
    if let Some(width) = data_type.width() {
        let (own, rest) = bytes.split_at_checked(width)?;
        *bytes = rest;
        let mut little: Vec<u8> = own.iter().rev().copied().collect();
        *little.last_mut()? ^= 0x80;
        return Value::from_wire(&little, data_type);
    }
    if is_last {
        return Some(Value::Bytes(std::mem::take(bytes).to_vec()));
    }
    let mut out = Vec::new();
    loop {
        let zero = bytes.iter().position(|b| *b == 0)?;
        let (before, after) = bytes.split_at(zero);
        out.extend_from_slice(before);
        let mark = *after.get(1)?;
        *bytes = after.get(2..)?;
        match mark {
            0 => return Some(Value::Bytes(out)),
            1 => out.push(0),
            _ => return None,
        }
    }
}

/// MurmurHash2, the 64-bit variant for 64-bit machines.
pub(crate) fn murmur2_64(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut k = u64::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> R)
}

/// The bucket of a dimension's encoded columns.
pub(crate) fn bucket(encoded: &[u8], seed: u32, buckets: u32) -> u32 {
    (murmur2_64(encoded, seed.into()) % u64::from(buckets.max(1))) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn int(value: i64, data_type: DataType) -> Vec<u8> {
        let mut out = Vec::new();
        push_value(&mut out, &Value::from(value), data_type, true);
        out
    }

    #[test]
    fn hash_vectors() {
        for (input, seed, expected) in [
            ("ab", 0, 7_115_271_465_109_541_368),
            ("abcdefg", 0, 2_601_573_339_036_254_301),
            ("quick brown fox", 42, 3_575_930_248_840_144_026),
            ("", 0, 0),
            ("cpu,hostname=host_0", 0, 3_615_828_067_125_019_524),
        ] {
            assert_eq!(murmur2_64(input.as_bytes(), seed), expected, "{input}");
        }
        assert_eq!(murmur2_64(&int(1, DataType::Int64), 0), 1_326_929_512_677_053_097);
        assert_eq!(murmur2_64(&int(1, DataType::Int32), 0), 12_037_724_581_692_909_349);
    }

    #[test]
    fn bucket_vectors() {
        let ids = [0, 1, 2, 3, 7, 1000, -1];
        let buckets = |data_type, n: u32| ids.map(|id| bucket(&int(id, data_type), 0, n));
        assert_eq!(buckets(DataType::Int32, 4), [0, 1, 1, 2, 3, 3, 0]);
        assert_eq!(buckets(DataType::Int32, 16), [0, 5, 13, 14, 15, 3, 4]);
        assert_eq!(buckets(DataType::Int64, 4), [2, 1, 0, 0, 2, 1, 1]);
        assert_eq!(buckets(DataType::Int64, 16), [10, 9, 8, 8, 14, 5, 1]);
        assert_eq!(bucket(b"d", 0, 3), 2);
    }

    #[test]
    fn encoding_vectors() {
        assert_eq!(int(0, DataType::Int32), [0x80, 0, 0, 0]);
        assert_eq!(int(-1, DataType::Int32), [0x7f, 0xff, 0xff, 0xff]);
        assert_eq!(int(-128, DataType::Int8), [0]);
        assert_eq!(
            int(1_451_606_400_000_000, DataType::UnixtimeMicros),
            [0x80, 0x05, 0x28, 0x3a, 0x73, 0xd3, 0x60, 0x00]
        );
        let mut out = Vec::new();
        push_bytes(&mut out, b"xxx\0yyy", false);
        push_bytes(&mut out, b"bar", true);
        assert_eq!(out, b"xxx\0\x01yyy\0\0bar");
    }

    proptest! {
        #[test]
        fn keys_sort_like_values_and_come_back(
            a in (any::<i64>(), prop::collection::vec(0_u8..3, 0..6), any::<i16>()),
            b in (any::<i64>(), prop::collection::vec(0_u8..3, 0..6), any::<i16>()),
        ) {
            let encode = |(x, s, y): &(i64, Vec<u8>, i16)| {
                let mut out = Vec::new();
                push_value(&mut out, &Value::from(*x % 3), DataType::Int64, false);
                push_value(&mut out, &Value::Bytes(s.clone()), DataType::Binary, false);
                push_value(&mut out, &Value::Int((*y).into()), DataType::Int16, true);
                out
            };
            let key = |(x, s, y): &(i64, Vec<u8>, i16)| (*x % 3, s.clone(), *y);
            prop_assert_eq!(encode(&a).cmp(&encode(&b)), key(&a).cmp(&key(&b)));
            let bytes = encode(&a);
            let mut rest = &bytes[..];
            let x = take_value(&mut rest, DataType::Int64, false);
            prop_assert_eq!(x, Some(Value::from(a.0 % 3)));
            let s = take_value(&mut rest, DataType::Binary, false);
            prop_assert_eq!(s, Some(Value::Bytes(a.1)));
            let y = take_value(&mut rest, DataType::Int16, true);
            prop_assert_eq!(y, Some(Value::Int(a.2.into())));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn decoding_anything_does_not_panic(bytes in prop::collection::vec(0_u8..3, 0..20)) {
            let mut rest = &bytes[..];
            while take_value(&mut rest, DataType::Binary, false).is_some() {}
            let mut rest = &bytes[..];
            while take_value(&mut rest, DataType::Int32, false).is_some() {}
        }
    }
}

//! A reader of MessagePack as far as the tests need one; times become [seconds, nanoseconds].

use serde_json::{Map, Value, json};

pub(super) fn read(bytes: &[u8]) -> Value {
    let mut rest = bytes;
    let value = value(&mut rest);
    assert!(rest.is_empty(), "bytes after the end");
    value
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (head, tail) = rest.split_at(len);
    *rest = tail;
    head
}

fn number(rest: &mut &[u8], len: usize) -> u64 {
    take(rest, len).iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn signed(rest: &mut &[u8], len: usize) -> i64 {
    let shift = 64 - 8 * len;
    (number(rest, len) << shift).cast_signed() >> shift
}

fn value(rest: &mut &[u8]) -> Value {
    let tag = take(rest, 1)[0];
    match tag {
        0..0x80 => json!(tag),
        0x80..0x90 => map(rest, usize::from(tag & 15)),
        0x90..0xa0 => array(rest, usize::from(tag & 15)),
        0xa0..0xc0 => text(rest, usize::from(tag & 31)),
        0xc0 => Value::Null,
        0xc2 | 0xc3 => json!(tag == 0xc3),
        0xc7 => {
            assert_eq!(take(rest, 2), [12, 5]);
            let seconds = signed(rest, 8);
            json!([seconds, number(rest, 4)])
        }
        0xcb => json!(f64::from_bits(number(rest, 8))),
        0xcc..=0xcf => json!(number(rest, 1 << (tag - 0xcc))),
        0xd0..=0xd3 => json!(signed(rest, 1 << (tag - 0xd0))),
        0xd9..=0xdb => {
            let len = number(rest, 1 << (tag - 0xd9));
            text(rest, len as usize)
        }
        0xdc | 0xdd => {
            let len = number(rest, 2 << (tag - 0xdc));
            array(rest, len as usize)
        }
        0xde | 0xdf => {
            let len = number(rest, 2 << (tag - 0xde));
            map(rest, len as usize)
        }
        0xe0.. => json!(tag.cast_signed()),
        _ => panic!("tag {tag:x}"),
    }
}

fn text(rest: &mut &[u8], len: usize) -> Value {
    json!(std::str::from_utf8(take(rest, len)).unwrap())
}

fn array(rest: &mut &[u8], len: usize) -> Value {
    (0..len).map(|_| value(rest)).collect()
}

fn map(rest: &mut &[u8], len: usize) -> Value {
    let entry = |_| (value(rest).as_str().unwrap().to_owned(), value(rest));
    Value::Object((0..len).map(entry).collect::<Map<_, _>>())
}

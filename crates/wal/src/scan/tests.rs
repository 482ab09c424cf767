use proptest::prelude::*;

use super::*;

/// Records with these payloads, from `base` on; `synced` is where each says it was durable.
pub(crate) fn encoded(base: Lsn, payloads: &[Vec<u8>], synced: Lsn) -> Vec<u8> {
    let mut data = Vec::new();
    for payload in payloads {
        let start = Lsn(base.0 + data.len() as u64);
        let header = RecordHeader {
            is_fill: false,
            payload_bytes: payload.len() as u32,
            payload_crc: crc32c::crc32c(payload),
            durable_back: (start.0 - synced.0) as u32,
        };
        data.extend_from_slice(&header.encode(start));
        data.extend_from_slice(payload);
    }
    data
}

/// The payloads of the good records and the damaged stretches.
fn scan(data: &[u8], base: Lsn) -> (Vec<Vec<u8>>, Vec<(u64, u64)>) {
    let (mut records, mut damage) = (Vec::new(), Vec::new());
    let mut at = base;
    for item in Scanner::new(data, base) {
        let end = match item {
            Item::Record { end, payload, .. } => {
                records.push(payload.to_vec());
                end
            }
            Item::Fill { end, .. } => end,
            Item::Damaged { start, end, recognised_end } => {
                assert_eq!(start, at);
                assert!(start <= recognised_end && recognised_end <= end);
                damage.push((start.0 - base.0, end.0 - base.0));
                end
            }
        };
        assert!(end > at);
        at = end;
    }
    assert_eq!(at.0 - base.0, data.len() as u64);
    (records, damage)
}

#[test]
fn records_are_found_behind_a_long_stretch_of_zeros() {
    let base = Lsn(77);
    for zeros in (0..600).chain([5000, 100_000]) {
        let mut data = vec![0; zeros];
        data.extend(encoded(Lsn(base.0 + zeros as u64), &[b"found".to_vec()], base));
        let (records, damage) = scan(&data, base);
        assert_eq!(records, [b"found"], "{zeros}");
        assert_eq!(damage.len(), usize::from(zeros > 0));
    }
}

#[test]
fn a_record_whose_header_starts_with_zeros_is_found() {
    // A seal: length, payload checksum and distance are zero.
    let base = Lsn(1000);
    let data = [vec![0; 700], encoded(Lsn(1700), &[Vec::new()], Lsn(1700))].concat();
    assert_eq!(scan(&data, base), (vec![Vec::new()], vec![(0, 700)]));
}

#[test]
fn a_damaged_payload_is_stepped_over_whole() {
    // The payload holds what looks like a record at its very position.
    let base = Lsn(0);
    let inner = encoded(Lsn(16), &[b"inner".to_vec()], base);
    let mut data = encoded(base, &[inner, b"after".to_vec()], base);
    assert_eq!(scan(&data, base).0.len(), 2);
    let last_of_inner = 16 + 16 + 5 - 1;
    data[last_of_inner] ^= 1;
    let (records, damage) = scan(&data, base);
    assert_eq!((records, damage), (vec![b"after".to_vec()], vec![(0, 37)]));
}

#[test]
fn damage_in_a_fill_costs_nothing_and_in_its_header_no_record() {
    let base = Lsn(500);
    let first = encoded(base, &[b"first".to_vec()], base);
    let at = Lsn(base.0 + first.len() as u64);
    let fill = RecordHeader { is_fill: true, payload_bytes: 30, payload_crc: 0, durable_back: 3 };
    let fill = [&fill.encode(at)[..], &[0; 30]].concat();
    let last = encoded(Lsn(at.0 + 46), &[b"last".to_vec()], base);
    let data = [&first[..], &fill, &last].concat();
    let records = vec![b"first".to_vec(), b"last".to_vec()];
    assert_eq!(scan(&data, base), (records.clone(), vec![]));
    let durable = Lsn(at.0 - 3);
    let second = Scanner::new(&data, base).nth(1);
    assert_eq!(second, Some(Item::Fill { end: Lsn(at.0 + 46), durable }));
    for bit in 0..8 * fill.len() {
        let mut data = data.clone();
        data[first.len() + bit / 8] ^= 1 << (bit % 8);
        let damage = if bit / 8 < 16 { vec![(21, 21 + 46)] } else { vec![] };
        assert_eq!(scan(&data, base), (records.clone(), damage), "{bit}");
    }
}

#[test]
fn bytes_of_an_earlier_life_are_no_records() {
    let payloads: Vec<_> = (0..100u8).map(|i| vec![i; 50]).collect();
    let mut data = encoded(Lsn(0), &payloads, Lsn(0));
    let base = Lsn(data.len() as u64);
    let fresh = encoded(base, &payloads[..3], base);
    data[..fresh.len()].copy_from_slice(&fresh);
    let (records, damage) = scan(&data, base);
    assert_eq!(records, payloads[..3]);
    assert_eq!(damage, [(fresh.len() as u64, data.len() as u64)]);
}

#[derive(Clone, Debug)]
enum Damage {
    Flip { at: prop::sample::Index, bit: u8 },
    Zero { at: prop::sample::Index, len: usize },
    Cut { at: prop::sample::Index },
    Noise { at: prop::sample::Index, bytes: Vec<u8> },
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 0..8u8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        (at(), 1..600usize).prop_map(|(at, len)| Damage::Zero { at, len }),
        at().prop_map(|at| Damage::Cut { at }),
        (at(), prop::collection::vec(any::<u8>(), 1..40))
            .prop_map(|(at, bytes)| Damage::Noise { at, bytes }),
    ]
}

proptest! {
    #[test]
    fn exactly_the_undamaged_records_are_found(
        base in 0..1u64 << 40,
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20),
        damages in prop::collection::vec(damage(), 0..4),
    ) {
        let base = Lsn(base);
        let good = encoded(base, &payloads, base);
        let mut data = good.clone();
        for damage in damages {
            match damage {
                Damage::Flip { at, bit } if !data.is_empty() => {
                    let at = at.index(data.len());
                    data[at] ^= 1 << bit;
                }
                Damage::Zero { at, len } if !data.is_empty() => {
                    let at = at.index(data.len());
                    let end = (at + len).min(data.len());
                    data[at..end].fill(0);
                }
                Damage::Cut { at } if !data.is_empty() => data.truncate(at.index(data.len())),
                Damage::Noise { at, bytes } if !data.is_empty() => {
                    let at = at.index(data.len());
                    let end = (at + bytes.len()).min(data.len());
                    data[at..end].copy_from_slice(&bytes[..end - at]);
                }
                _ => {}
            }
        }
        let mut expected = Vec::new();
        let mut at = 0;
        for payload in &payloads {
            let end = at + RECORD_HEADER_BYTES + payload.len();
            if data.get(at..end) == Some(&good[at..end]) {
                expected.push(payload.clone());
            }
            at = end;
        }
        prop_assert_eq!(scan(&data, base).0, expected);
    }

    #[test]
    fn no_bytes_make_it_panic(base in 0..1u64 << 40, data: Vec<u8>) {
        scan(&data, Lsn(base));
        let _ = crate::fuzzing::read_file(&data);
    }
}

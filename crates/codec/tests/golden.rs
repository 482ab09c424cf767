//! Pages written once and decoded forever.
//!
//! Every file in `tests/golden` was written by the first version that knew its encoding. A missing
//! file is written; a file that no longer decodes means that users' data no longer does.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::path::PathBuf;

use codec::{Effort, encoding_name};

fn golden(name: &str, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = dir.join(format!("{name}.bin"));
    match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(_) => {
            std::fs::create_dir_all(&dir).unwrap();
            let bytes = make();
            std::fs::write(&path, &bytes).unwrap();
            bytes
        }
    }
}

/// The same numbers on every machine and in every version.
fn noise(i: u64) -> u64 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

fn walk(n: u64) -> Vec<i64> {
    (0..n)
        .scan(50, |v, i| {
            *v += [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2][(noise(i) % 10) as usize];
            Some(*v)
        })
        .collect()
}

fn check_integers(name: &str, encoding: &str, effort: Effort, values: &[i64]) {
    let page = golden(name, || {
        let mut page = Vec::new();
        codec::encode_i64(values, effort, &mut page);
        page
    });
    assert_eq!(encoding_name(&page), encoding, "{name}");
    let mut out = Vec::new();
    codec::decode_i64(&page, values.len(), &mut out).unwrap();
    assert_eq!(out, values, "{name}: bytes on users' disks must keep their meaning");
    for first in (0..values.len()).step_by(997) {
        for rows in [first..first + 1, first..values.len(), 0..first, first / 2..first] {
            out.clear();
            codec::decode_i64_range(&page, values.len(), rows.clone(), &mut out).unwrap();
            assert_eq!(out, values[rows.clone()], "{name}, rows {rows:?}");
        }
    }
}

#[test]
fn integers() {
    use Effort::{Cold, Fast, Hot};
    let outliers: Vec<i64> =
        (0..300).map(|i| if i % 90 == 7 { i64::MAX - i } else { i * 7919 % 100 }).collect();
    let mut delta_outliers = walk(5000);
    delta_outliers[4500] = -1 << 60;
    check_integers("int-constant", "int-constant", Hot, &[-7; 5]);
    check_integers("int-regular", "int-regular", Hot, &[1000, 1010, 1020, 1030]);
    check_integers("int-for", "int-for", Fast, &[3, 17, 9, 4, 12, 3, 30, 8, 21, 5]);
    check_integers("int-for-exceptions", "int-for", Hot, &outliers);
    check_integers("int-delta", "int-delta", Fast, &walk(200));
    check_integers("int-delta-restarts", "int-delta", Hot, &delta_outliers);
    let times: Vec<i64> =
        (0..60).map(|i| 1_700_000_000_000_000_000 + i % 6 * 600_000_000_000).collect();
    check_integers("int-scaled", "int-scaled", Hot, &times);
    let runs: Vec<i64> = (0..2000).map(|i| i / 100 * 7919 % 251).collect();
    check_integers("int-runs", "int-runs", Hot, &runs);
    let raw: Vec<i64> = (0..9).map(|i| noise(i + 1) as i64).collect();
    check_integers("int-raw", "int-raw", Hot, &raw);
    check_integers("int-empty", "int-raw", Hot, &[]);
    check_integers("int-delta-entropy", "int-delta-entropy", Cold, &walk(20_000));
    check_integers("int-delta-tight", "int-delta-tight", Cold, &walk(20_000));
    let skewed: Vec<i64> =
        (0..3000).map(|i| (noise(i) & noise(i * 3) & noise(i * 7) & 0xfff) as i64).collect();
    check_integers("int-for-entropy", "int-for-entropy", Cold, &skewed);
    check_integers("int-for-tight", "int-for-tight", Cold, &skewed);
}

#[test]
fn floats() {
    let cents: Vec<f64> = walk(500).iter().map(|v| *v as f64 / 100.0).collect();
    let mut with_exceptions = cents.clone();
    with_exceptions[3] = f64::NAN;
    with_exceptions[77] = -0.0;
    with_exceptions[400] = 1.0 / 3.0;
    let smooth: Vec<f64> = (0..300u32).map(|i| 1.0 + f64::from(i).sqrt() / 1e3).collect();
    let noise: Vec<f64> = (0..9).map(|i| f64::from_bits(noise(i + 1))).collect();
    for (name, encoding, values) in [
        ("float-decimal", "float-decimal", cents),
        ("float-decimal-exceptions", "float-decimal", with_exceptions),
        ("float-bits", "float-bits", smooth),
        ("float-raw", "float-raw", noise),
    ] {
        let page = golden(name, || {
            let mut page = Vec::new();
            codec::encode_f64(&values, Effort::Hot, &mut page);
            page
        });
        assert_eq!(encoding_name(&page), encoding, "{name}");
        let mut out = Vec::new();
        codec::decode_f64(&page, values.len(), &mut out).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&out), bits(&values), "{name}: users' bytes must keep their meaning");
    }
}

#[test]
fn bits() {
    let mut sparse = vec![0u64; 16];
    sparse[2] = 1 << 9;
    sparse[11] = 1;
    let mut runs = vec![0u64; 16];
    runs[3..9].fill(u64::MAX);
    let plain: Vec<u64> = (0..4).map(noise).collect();
    for (name, words, count) in [
        ("bits-zeros", vec![0; 2], 100),
        ("bits-ones", vec![u64::MAX, 0xf_ffff_ffff], 100),
        ("bits-sparse", sparse, 1000),
        ("bits-runs", runs, 1000),
        ("bits-plain", plain, 256),
    ] {
        let page = golden(name, || {
            let mut page = Vec::new();
            codec::encode_bool(&words, count, &mut page);
            page
        });
        assert_eq!(encoding_name(&page), name);
        let mut out = Vec::new();
        codec::decode_bool(&page, count, &mut out).unwrap();
        assert_eq!(out, words, "{name}: users' bytes must keep their meaning");
    }
}

#[test]
fn strings() {
    let lines = |n: u64| (0..n).map(|i| format!("GET /items/{} 200 OK", noise(i) % 9999)).collect();
    let few = (0..200u64).map(|i| format!("host_{}", noise(i) % 7)).collect();
    let ids =
        (0..50).map(|i| format!("{:08x}-{:07X}", noise(i + 1) as u32, noise(i) >> 36)).collect();
    let of_times = (0..50)
        .map(|i| format!("{:012x}-{:012x}", 0x0190_0000_0000 + i * 5000, noise(i + 1) >> 16))
        .collect();
    let cases: [(&str, Effort, Vec<String>); 8] = [
        ("strings-constant", Effort::Hot, vec!["same".into(); 9]),
        ("strings-plain", Effort::Fast, vec!["a".into(), String::new(), "c\0\u{e9}".into()]),
        ("strings-dictionary", Effort::Hot, few),
        ("strings-lz4", Effort::Hot, lines(300)),
        ("strings-zstd", Effort::Cold, lines(300)),
        ("strings-templates", Effort::Cold, lines(300)),
        ("strings-alphabet", Effort::Hot, ids),
        ("strings-alphabet-heads", Effort::Hot, of_times),
    ];
    for (name, effort, strings) in cases {
        let mut offsets = vec![0];
        let mut bytes = Vec::new();
        for string in &strings {
            bytes.extend_from_slice(string.as_bytes());
            offsets.push(bytes.len() as u32);
        }
        let page = golden(name, || {
            let mut page = Vec::new();
            codec::encode_strings(&offsets, &bytes, effort, &mut page);
            page
        });
        assert_eq!(encoding_name(&page), name.trim_end_matches("-heads"));
        let (mut places, mut text) = (Vec::new(), Vec::new());
        codec::decode_strings(&page, strings.len(), 1 << 20, &mut places, &mut text).unwrap();
        let decoded = places.iter().map(|(start, len)| &text[*start as usize..][..*len as usize]);
        assert!(decoded.eq(strings.iter().map(String::as_bytes)), "{name}");
    }
}

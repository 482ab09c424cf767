//! Throughput of encoders, decoders and kernels: `cargo bench -p codec`.
//!
//! `examples/report.rs` prints sizes too and compares with pco; this is for watching one number
//! while working on it.

mod data;

use codec::{Effort, kernels};
use divan::{Bencher, counter::ItemsCount};

fn main() {
    divan::main();
}

const COUNTS: [usize; 3] = [100, 8192, 65_536];

fn encode(bencher: Bencher<'_, '_>, values: &[i64], effort: Effort) {
    let mut page = Vec::new();
    bencher.counter(ItemsCount::new(values.len())).bench_local(|| {
        page.clear();
        codec::encode_i64(divan::black_box(values), effort, &mut page);
        page.len()
    });
}

fn decode(bencher: Bencher<'_, '_>, values: &[i64], effort: Effort) {
    let mut page = Vec::new();
    codec::encode_i64(values, effort, &mut page);
    let mut out = Vec::with_capacity(values.len());
    bencher.counter(ItemsCount::new(values.len())).bench_local(|| {
        out.clear();
        codec::decode_i64(divan::black_box(&page), values.len(), &mut out).expect("a sound page");
        out.len()
    });
}

macro_rules! integers {
    ($name:ident, $effort:expr) => {
        mod $name {
            use super::*;

            #[divan::bench(args = COUNTS)]
            fn encode_cpu(bencher: Bencher<'_, '_>, n: usize) {
                encode(bencher, &data::cpu(n, 42), $effort);
            }

            #[divan::bench(args = COUNTS)]
            fn decode_cpu(bencher: Bencher<'_, '_>, n: usize) {
                decode(bencher, &data::cpu(n, 42), $effort);
            }

            #[divan::bench(args = COUNTS)]
            fn encode_times(bencher: Bencher<'_, '_>, n: usize) {
                encode(bencher, &data::times_jittered(n), $effort);
            }

            #[divan::bench(args = COUNTS)]
            fn decode_times(bencher: Bencher<'_, '_>, n: usize) {
                decode(bencher, &data::times_jittered(n), $effort);
            }
        }
    };
}

integers!(fast, Effort::Fast);
integers!(hot, Effort::Hot);
integers!(cold, Effort::Cold);

#[divan::bench(args = COUNTS)]
fn decode_and_sum(bencher: Bencher<'_, '_>, n: usize) {
    let mut page = Vec::new();
    codec::encode_i64(&data::cpu(n, 42), Effort::Hot, &mut page);
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        let mut sum = 0i64;
        codec::visit_i64(divan::black_box(&page), n, 0..n, |block| {
            sum = sum.wrapping_add(kernels::sum_i64(block));
        })
        .expect("a sound page");
        sum
    });
}

#[divan::bench(args = COUNTS)]
fn encode_decimals(bencher: Bencher<'_, '_>, n: usize) {
    let values = data::temperature(n);
    let mut page = Vec::new();
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        page.clear();
        codec::encode_f64(divan::black_box(&values), Effort::Hot, &mut page);
        page.len()
    });
}

#[divan::bench(args = COUNTS)]
fn decode_decimals(bencher: Bencher<'_, '_>, n: usize) {
    let mut page = Vec::new();
    codec::encode_f64(&data::temperature(n), Effort::Hot, &mut page);
    let mut out = Vec::with_capacity(n);
    bencher.counter(ItemsCount::new(n)).bench_local(|| {
        out.clear();
        codec::decode_f64(divan::black_box(&page), n, &mut out).expect("a sound page");
        out.len()
    });
}

#[divan::bench]
fn transpose_ten_columns(bencher: Bencher<'_, '_>) {
    let rows: Vec<u64> = (0..100_000).collect();
    let mut out = vec![0; rows.len()];
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        kernels::transpose_u64(divan::black_box(&rows), 10, &mut out);
    });
}

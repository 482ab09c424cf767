//! Prints size and speed of every encoding on typical columns:
//! `cargo run --release -p codec --example codec_rate`.

#![allow(clippy::print_stdout, missing_docs)]

#[path = "../benches/data/mod.rs"]
mod data;

use std::{hint::black_box, time::Instant};

use codec::{Effort, Marks, NumbersOut, PagePart, encoding_name, kernels};

/// What the server uses: buffers of a page do not go back to the system each time.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The best of several runs, in seconds.
fn best(mut run: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    let begin = Instant::now();
    let mut runs = 0;
    while runs < 5 || (begin.elapsed().as_millis() < 60 && runs < 4000) {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

fn line(what: &str, effort: &str, name: &str, n: usize, bytes: usize, encode: f64, decode: f64) {
    println!(
        "{what:<24} {effort:<5} {name:<20} {n:>7} {:>8.4} {:>8.0} {:>8.0}",
        bytes as f64 / n as f64,
        n as f64 / encode / 1e6,
        n as f64 / decode / 1e6
    );
}

fn integers(what: &str, values: &[i64], efforts: &[Effort]) {
    for &effort in efforts {
        let (mut page, mut out) = (Vec::new(), Vec::with_capacity(values.len()));
        let encode = best(|| {
            page.clear();
            codec::encode_i64(black_box(values), effort, &mut page);
        });
        let decode = best(|| {
            out.clear();
            codec::decode_i64(black_box(&page), values.len(), &mut out).expect("a sound page");
        });
        assert_eq!(out, values);
        let name = encoding_name(&page);
        line(what, &format!("{effort:?}"), name, values.len(), page.len(), encode, decode);
    }
}

/// Decodes tight pages of different columns at once, as a query about several fields does.
fn together(n: usize, pages: usize) {
    let columns: Vec<Vec<i64>> = (0..pages).map(|seed| data::cpu(n, seed as u64)).collect();
    let encode = |values: &Vec<i64>| {
        let mut page = Vec::new();
        codec::encode_i64(values, Effort::Cold, &mut page);
        page
    };
    let encoded: Vec<Vec<u8>> = columns.iter().map(encode).collect();
    let mut outs = vec![Vec::with_capacity(n); pages];
    let decode = best(|| {
        outs.iter_mut().for_each(Vec::clear);
        let part = |(bytes, out)| PagePart::new(bytes, n, 0..n, NumbersOut::I64(out));
        let mut parts: Vec<_> =
            encoded.iter().map(Vec::as_slice).zip(&mut outs).map(part).collect();
        codec::decode_together(black_box(&mut parts)).expect("sound pages");
    });
    assert_eq!(outs, columns);
    let rate = (n * pages) as f64 / decode / 1e6;
    println!("{pages} tight pages of {n} together {rate:>30.0} M values/s");

    // A few rows of each, from the marks that reading it left.
    let marks: Vec<Marks> = (0..pages).map(|_| Marks::new(n)).collect();
    for (bytes, marks) in encoded.iter().zip(&marks) {
        let (mut out, mut passed) = (Vec::new(), Vec::new());
        let mut part = PagePart::new(bytes, n, 0..n, NumbersOut::I64(&mut out));
        part.passed = Some(&mut passed);
        codec::decode_together(&mut [part]).expect("sound pages");
        marks.add(&passed);
    }
    let range = n / 2..n / 2 + 360;
    let look = best(|| {
        outs.iter_mut().for_each(Vec::clear);
        let part = |((bytes, out), marks): ((_, _), &Marks)| {
            let from = marks.before(range.start);
            PagePart { from, ..PagePart::new(bytes, n, range.clone(), NumbersOut::I64(out)) }
        };
        let bytes = encoded.iter().map(Vec::as_slice);
        let mut parts: Vec<_> = bytes.zip(&mut outs).zip(&marks).map(part).collect();
        codec::decode_together(black_box(&mut parts)).expect("sound pages");
    });
    println!("the same, 360 values from marks {:>31.2} us a page", look * 1e6 / pages as f64);
}

fn pco(what: &str, values: &[i64]) {
    let mut page = Vec::new();
    let config = pco::ChunkConfig::default();
    let encode = best(|| page = pco::standalone::simple_compress(values, &config).expect("pco"));
    let mut out: Vec<i64> = Vec::new();
    let decode = best(|| out = pco::standalone::simple_decompress(&page).expect("pco"));
    assert_eq!(out, values);
    line(what, "-", "(pco)", values.len(), page.len(), encode, decode);
}

fn pco_floats(what: &str, values: &[f64]) {
    let mut page = Vec::new();
    let config = pco::ChunkConfig::default();
    let encode = best(|| page = pco::standalone::simple_compress(values, &config).expect("pco"));
    let mut out: Vec<f64> = Vec::new();
    let decode = best(|| out = pco::standalone::simple_decompress(&page).expect("pco"));
    assert_eq!(out.len(), values.len());
    line(what, "-", "(pco)", values.len(), page.len(), encode, decode);
}

fn floats(what: &str, values: &[f64]) {
    for effort in ALL {
        let (mut page, mut out) = (Vec::new(), Vec::with_capacity(values.len()));
        let encode = best(|| {
            page.clear();
            codec::encode_f64(black_box(values), effort, &mut page);
        });
        let decode = best(|| {
            out.clear();
            codec::decode_f64(black_box(&page), values.len(), &mut out).expect("a sound page");
        });
        assert!(out.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits()));
        let name = encoding_name(&page);
        line(what, &format!("{effort:?}"), name, values.len(), page.len(), encode, decode);
    }
    pco_floats(what, values);
}

fn strings(what: &str, (offsets, bytes): &(Vec<u32>, Vec<u8>)) {
    let n = offsets.len() - 1;
    for effort in ALL {
        let (mut page, mut out) = (Vec::new(), (Vec::new(), Vec::new()));
        let encode = best(|| {
            page.clear();
            codec::encode_strings(offsets, bytes, effort, &mut page);
        });
        let decode = best(|| {
            out.0.clear();
            out.1.clear();
            codec::decode_strings(&page, n, 1 << 30, &mut out.0, &mut out.1).expect("sound");
        });
        assert!(out.0.iter().map(|(_, len)| *len).eq(offsets.windows(2).map(|w| w[1] - w[0])));
        line(what, &format!("{effort:?}"), encoding_name(&page), n, page.len(), encode, decode);
    }
}

const ALL: [Effort; 3] = [Effort::Fast, Effort::Hot, Effort::Cold];

fn kernel<R>(what: &str, n: usize, mut run: impl FnMut() -> R) {
    let per_run = 64;
    let seconds = best(|| (0..per_run).for_each(|_| drop(black_box(run())))) / f64::from(per_run);
    println!("{what:<44} {:>8.0} M values/s", n as f64 / seconds / 1e6);
}

fn kernels() {
    let n = 8192;
    let values = data::cpu(n, 1);
    let floats = data::temperature(n);
    let mut page = Vec::new();
    codec::encode_i64(&values, Effort::Hot, &mut page);
    kernel("decode + sum, int-delta, 8k page", n, || {
        let mut sum = 0i64;
        codec::visit_i64(black_box(&page), n, 0..n, |block| {
            sum = sum.wrapping_add(kernels::sum_i64(block));
        })
        .expect("a sound page");
        black_box(sum);
    });
    page.clear();
    codec::encode_i64(&values, Effort::Fast, &mut page);
    kernel("decode + sum, Fast page", n, || {
        let mut sum = 0i64;
        codec::visit_i64(black_box(&page), n, 0..n, |block| {
            sum = sum.wrapping_add(kernels::sum_i64(block));
        })
        .expect("a sound page");
        black_box(sum);
    });
    let mask: Vec<u64> =
        (0..n as u64 / 64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    kernel("sum_i64", n, || kernels::sum_i64(black_box(&values)));
    kernel("sum_i64_masked", n, || kernels::sum_i64_masked(black_box(&values), &mask));
    kernel("sum_f64", n, || kernels::sum_f64(black_box(&floats)));
    kernel("sum_f64_masked", n, || kernels::sum_f64_masked(black_box(&floats), &mask));
    kernel("min_max_i64", n, || kernels::min_max_i64(black_box(&values)));
    kernel("min_max_f64", n, || kernels::min_max_f64(black_box(&floats)));
    kernel("min_max_i64_masked", n, || kernels::min_max_i64_masked(black_box(&values), &mask));
    kernel("min_max_f64_masked", n, || kernels::min_max_f64_masked(black_box(&floats), &mask));
    let mut words = Vec::with_capacity(n / 64);
    kernel("compare_i64", n, || {
        words.clear();
        kernels::compare_i64(black_box(&values), kernels::Comparison::Greater, 50, &mut words);
    });
    kernel("compare_f64", n, || {
        words.clear();
        kernels::compare_f64(black_box(&floats), kernels::Comparison::Greater, 20.0, &mut words);
    });
    let mut picked = Vec::with_capacity(n);
    kernel("filter_i64", n, || {
        picked.clear();
        kernels::filter_i64(black_box(&values), &mask, &mut picked);
    });
    let indices: Vec<u32> = kernels::set_bits(&mask).map(|i| i as u32).collect();
    kernel("gather_i64 (per index)", indices.len(), || {
        picked.clear();
        kernels::gather_i64(black_box(&values), &indices, &mut picked);
    });
    let matrix: Vec<u64> = (0..10_000 * 10).collect();
    let mut out = vec![0; matrix.len()];
    kernel("transpose_u64, 10000 rows of 10", matrix.len(), || {
        kernels::transpose_u64(black_box(&matrix), 10, &mut out);
    });
}

fn main() {
    println!("simd: {}", codec::simd_name());
    println!(
        "{:<24} {:<5} {:<20} {:>7} {:>8} {:>8} {:>8}",
        "data", "", "encoding", "count", "B/value", "enc M/s", "dec M/s"
    );
    for n in [100, 1000, 8192, 65_536] {
        integers("cpu walk", &data::cpu(n, 42), &ALL);
    }
    for pages in [1, 2, 3, 4, 5, 10] {
        together(8192, pages);
    }
    pco("cpu walk", &data::cpu(8192, 42));
    pco("cpu walk", &data::cpu(65_536, 42));
    integers("cpu, 10-row series", &data::cpu_series(65_536, 10, 1), &ALL);
    integers("times regular", &data::times_regular(65_536), &ALL);
    integers("times interleaved", &data::times_interleaved(65_536), &ALL);
    integers("times jittered", &data::times_jittered(65_536), &ALL);
    pco("times jittered", &data::times_jittered(65_536));
    integers("times with gaps", &data::times_with_gaps(65_536), &ALL);
    pco("times with gaps", &data::times_with_gaps(65_536));
    integers("counter", &data::counter(65_536), &ALL);
    pco("counter", &data::counter(65_536));
    integers("states", &data::states(65_536), &ALL);
    pco("states", &data::states(65_536));
    let mut noise = data::Noise(1);
    let random: Vec<i64> = (0..65_536).map(|_| noise.next() as i64).collect();
    integers("random 64 bits", &random, &ALL);
    floats("temperature", &data::temperature(65_536));
    floats("wave", &data::wave(65_536));
    let nab = data::nab();
    for (i, part) in nab.chunks(65_536).enumerate().take(3) {
        floats(&format!("NAB {i}"), part);
    }
    strings("hosts", &data::hosts(65_536));
    strings("messages", &data::messages(65_536));
    kernels();
}

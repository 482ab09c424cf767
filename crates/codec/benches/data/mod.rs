//! Columns as they occur, for benchmarks and for the report.

// Each program that includes this module uses some of it.
#![allow(dead_code)]

/// Deterministic noise (splitmix64).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A gauge of the TSBS `cpu` workload: a walk clamped to 0..=100, truncated to an integer.
pub(crate) fn cpu(n: usize, seed: u64) -> Vec<i64> {
    let mut noise = Noise(seed);
    let mut value = noise.uniform() * 100.0;
    (0..n)
        .map(|_| {
            let shown = value as i64;
            value = (value + noise.normal()).clamp(0.0, 100.0);
            shown
        })
        .collect()
}

/// The same, many short series one after the other.
pub(crate) fn cpu_series(n: usize, rows_per_series: usize, seed: u64) -> Vec<i64> {
    (0..n.div_ceil(rows_per_series))
        .flat_map(|s| cpu(rows_per_series, seed.wrapping_add(s as u64 * 7919)))
        .take(n)
        .collect()
}

pub(crate) const START_NS: i64 = 1_700_000_000_000_000_000;

/// Every ten seconds, exactly.
pub(crate) fn times_regular(n: usize) -> Vec<i64> {
    (0..n as i64).map(|i| START_NS + i * 10_000_000_000).collect()
}

/// Six rows of every series, ten minutes apart.
pub(crate) fn times_interleaved(n: usize) -> Vec<i64> {
    (0..n as i64).map(|i| START_NS + i % 6 * 600_000_000_000).collect()
}

/// Ten seconds, give or take two milliseconds, in milliseconds.
pub(crate) fn times_jittered(n: usize) -> Vec<i64> {
    let mut noise = Noise(3);
    (0..n as i64)
        .map(|i| START_NS + i * 10_000_000_000 + (noise.normal() * 2.0).round() as i64 * 1_000_000)
        .collect()
}

/// Every ten seconds with one row in two hundred missing.
pub(crate) fn times_with_gaps(n: usize) -> Vec<i64> {
    let mut noise = Noise(4);
    let mut time = START_NS;
    (0..n)
        .map(|_| {
            time += 10_000_000_000 * if noise.next().is_multiple_of(200) { 2 } else { 1 };
            time
        })
        .collect()
}

/// Bytes sent by an interface: a counter with bursts.
pub(crate) fn counter(n: usize) -> Vec<i64> {
    let mut noise = Noise(5);
    let mut value = 1 << 40;
    (0..n)
        .map(|_| {
            value += (noise.normal().abs() * 20_000.0) as i64;
            value
        })
        .collect()
}

/// A state that rarely changes.
pub(crate) fn states(n: usize) -> Vec<i64> {
    let mut noise = Noise(6);
    let mut value = 200;
    (0..n)
        .map(|_| {
            if noise.next().is_multiple_of(150) {
                value = [200, 404, 500, 503][(noise.next() % 4) as usize];
            }
            value
        })
        .collect()
}

/// A temperature to one decimal.
pub(crate) fn temperature(n: usize) -> Vec<f64> {
    let mut noise = Noise(7);
    let mut value = 20.0;
    (0..n)
        .map(|_| {
            value += noise.normal() * 0.1;
            (value * 10.0f64).round() / 10.0
        })
        .collect()
}

/// A sine with noise in the last bits: nothing to gain from decimals.
pub(crate) fn wave(n: usize) -> Vec<f64> {
    let mut noise = Noise(8);
    (0..n).map(|i| (i as f64 / 500.0).sin() * 50.0 + noise.normal() * 0.01).collect()
}

/// Floats of the public NAB data set, one column per series.
pub(crate) fn nab() -> Vec<f64> {
    let path = "/work/shared/data/nab.lp.gz";
    let Ok(bytes) = std::fs::read(path) else {
        return temperature(65_536);
    };
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)
        .expect("the data set is gzip text");
    text.lines()
        .filter_map(|line| line.split(' ').nth(1)?.split('=').nth(1)?.parse().ok())
        .collect()
}

/// Log messages.
pub(crate) fn messages(n: usize) -> (Vec<u32>, Vec<u8>) {
    let mut noise = Noise(9);
    columns((0..n).map(|_| {
        format!(
            "GET /api/v1/items/{}/reviews?page={} HTTP/1.1\" 200 {}",
            noise.next() % 100_000,
            noise.next() % 20,
            noise.next() % 50_000
        )
    }))
}

/// Host names of a thousand hosts in random order.
pub(crate) fn hosts(n: usize) -> (Vec<u32>, Vec<u8>) {
    let mut noise = Noise(10);
    columns((0..n).map(|_| format!("host_{}.eu-west-1.example.net", noise.next() % 1000)))
}

fn columns(strings: impl Iterator<Item = String>) -> (Vec<u32>, Vec<u8>) {
    let (mut offsets, mut bytes) = (vec![0], Vec::new());
    for string in strings {
        bytes.extend_from_slice(string.as_bytes());
        offsets.push(bytes.len() as u32);
    }
    (offsets, bytes)
}

//! As many tag sets as wanted with one float field each: the measure of a series index.
//!
//! No state per series: a value is a hash of the series and the step, moved around a level of the series' own.

use crate::random::hash;
use crate::text::{push_decimal, push_int};
use crate::workload::{Batch, Generator, Spec, Steps};

const SITES: u64 = 1000;
const KINDS: [&[u8]; 4] = [b"temperature", b"humidity", b"pressure", b"power"];

/// Generator of the single-field workload.
#[derive(Debug)]
pub struct SingleField {
    seed: u64,
    scale: u64,
    steps: Steps,
    series: u64,
}

impl SingleField {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self { seed: spec.seed, scale: spec.scale, steps: Steps::new(spec), series: 0 }
    }
}

impl Generator for SingleField {
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        while batch.rows < rows_max && !self.steps.ended() {
            let bits = hash(self.seed, self.series);
            out.extend_from_slice(b"sensor,id=sensor_");
            push_int(out, self.series as i64);
            out.extend_from_slice(b",kind=");
            out.extend_from_slice(KINDS[(bits % 4) as usize]);
            out.extend_from_slice(b",site=site_");
            push_int(out, ((bits >> 8) % SITES) as i64);
            out.extend_from_slice(b" value=");
            let level = (bits >> 32) % 10_000;
            let noise = hash(bits, self.steps.time_ns as u64) % 100;
            push_decimal(out, (level * 10 + noise) as i64, 2);
            out.extend_from_slice(self.steps.line_end());
            batch += Batch { rows: 1, values: 1 };
            self.series += 1;
            if self.series == self.scale {
                self.series = 0;
                self.steps.advance();
            }
        }
        batch
    }
}

//! Rows shaped like the Yahoo Cloud Serving Benchmark's: ten string fields of 100 bytes under a key, keys in
//! hashed order, so that no insert is close to the one before it.

use crate::random::{Random, hash};
use crate::text::push_int;
use crate::workload::{Batch, Generator, Spec, Steps};

const FIELDS: u8 = 10;
const FIELD_BYTES: usize = 100;
/// Printable, and none of them needs an escape in line protocol.
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters that one 64-bit word gives.
const CHARACTERS_PER_WORD: usize = 10;

/// Generator of the ycsb workload: every key once per step.
#[derive(Debug)]
pub struct Ycsb {
    seed: u64,
    scale: u64,
    steps: Steps,
    random: Random,
    key: u64,
}

impl Ycsb {
    pub(crate) fn new(spec: &Spec) -> Self {
        Self {
            seed: spec.seed,
            scale: spec.scale,
            steps: Steps::new(spec),
            random: Random::new(spec.seed),
            key: 0,
        }
    }

    fn push_value(&mut self, out: &mut Vec<u8>) {
        let mut text = [0u8; FIELD_BYTES];
        for chunk in text.chunks_mut(CHARACTERS_PER_WORD) {
            let mut bits = self.random.bits();
            for byte in chunk {
                *byte = ALPHABET[(bits & 63) as usize];
                bits >>= 6;
            }
        }
        out.push(b'"');
        out.extend_from_slice(&text);
        out.push(b'"');
    }
}

impl Generator for Ycsb {
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        while batch.rows < rows_max && !self.steps.ended() {
            out.extend_from_slice(b"usertable,key=user");
            push_int(out, (hash(self.seed, self.key) >> 1) as i64);
            for field in 0..FIELDS {
                out.extend_from_slice(if field == 0 { b" field" } else { b",field" });
                out.push(b'0' + field);
                out.push(b'=');
                self.push_value(out);
            }
            out.extend_from_slice(self.steps.line_end());
            batch += Batch { rows: 1, values: u64::from(FIELDS) };
            self.key += 1;
            if self.key == self.scale {
                self.key = 0;
                self.steps.advance();
            }
        }
        batch
    }
}

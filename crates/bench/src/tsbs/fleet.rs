//! A fleet of hosts that report the cpu-only or the nine devops measurements.
//!
//! Memory: eight bytes per host and field. Tags are rendered once per host and measurement while all of them
//! fit in `HEADS_BYTES_MAX`; beyond that they are computed for every row.

use super::measurements::{CPU_ONLY, DEVOPS, Field, Measurement, Motion, Type};
use super::tags::push_host_tags;
use crate::random::Random;
use crate::text::{push_float, push_int};
use crate::workload::{Batch, Generator, Spec, Steps};

const HEADS_BYTES_MAX: usize = 256 << 20;
/// Rows of a series rarely differ from this much in length.
const HEAD_BYTES_TYPICAL: usize = 200;

/// Generator of the cpu-only and devops workloads.
#[derive(Debug)]
pub struct Fleet {
    seed: u64,
    hosts: u64,
    steps: Steps,
    random: Random,
    parts: Vec<Part>,
    part: usize,
    host: u64,
}

/// One measurement of all hosts.
#[derive(Debug)]
struct Part {
    measurement: &'static Measurement,
    /// ` first=` or `,other=`.
    labels: Vec<Vec<u8>>,
    /// Host-major field states.
    states: Vec<f64>,
    heads: Option<Heads>,
}

/// `measurement,tags` of every host, end to end.
#[derive(Debug)]
struct Heads {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Fleet {
    pub(crate) fn cpu_only(spec: &Spec) -> Self {
        Self::new(spec, CPU_ONLY)
    }

    pub(crate) fn devops(spec: &Spec) -> Self {
        Self::new(spec, DEVOPS)
    }

    fn new(spec: &Spec, measurements: &'static [Measurement]) -> Self {
        let mut random = Random::new(spec.seed);
        let cached =
            spec.scale as usize * measurements.len() * HEAD_BYTES_TYPICAL <= HEADS_BYTES_MAX;
        let parts = measurements
            .iter()
            .map(|measurement| Part::new(spec, measurement, cached, &mut random))
            .collect();
        Self {
            seed: spec.seed,
            hosts: spec.scale,
            steps: Steps::new(spec),
            random,
            parts,
            part: 0,
            host: 0,
        }
    }
}

impl Generator for Fleet {
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        while batch.rows < rows_max && !self.steps.ended() {
            let part = &mut self.parts[self.part];
            let until = self.hosts.min(self.host + (rows_max - batch.rows));
            for host in self.host..until {
                part.push_row(out, self.seed, host, &mut self.random, self.steps.line_end());
            }
            batch.rows += until - self.host;
            batch.values += (until - self.host) * part.measurement.fields.len() as u64;
            self.host = until;
            if self.host == self.hosts {
                self.host = 0;
                self.part += 1;
            }
            if self.part == self.parts.len() {
                self.part = 0;
                self.steps.advance();
            }
        }
        batch
    }
}

impl Part {
    fn new(
        spec: &Spec,
        measurement: &'static Measurement,
        cached: bool,
        random: &mut Random,
    ) -> Self {
        let mut states = Vec::with_capacity(spec.scale as usize * measurement.fields.len());
        for _ in 0..spec.scale {
            states.extend(measurement.fields.iter().map(|field| start_state(field, random)));
        }
        let labels = measurement.fields.iter().enumerate().map(|(index, field)| {
            let separator = if index == 0 { ' ' } else { ',' };
            format!("{separator}{}=", field.name).into_bytes()
        });
        let labels = labels.collect();
        let heads = cached.then(|| {
            let mut heads = Heads { bytes: Vec::new(), ends: Vec::new() };
            for host in 0..spec.scale {
                push_head(&mut heads.bytes, measurement, spec.seed, host);
                heads.ends.push(heads.bytes.len());
            }
            heads
        });
        Self { measurement, labels, states, heads }
    }

    fn push_row(
        &mut self,
        out: &mut Vec<u8>,
        seed: u64,
        host: u64,
        random: &mut Random,
        line_end: &[u8],
    ) {
        match &self.heads {
            Some(heads) => out.extend_from_slice(heads.of(host as usize)),
            None => push_head(out, self.measurement, seed, host),
        }
        let width = self.measurement.fields.len();
        let row = &mut self.states[host as usize * width..][..width];
        for (index, field) in self.measurement.fields.iter().enumerate() {
            out.extend_from_slice(&self.labels[index]);
            let value = field.value.map_or(row[index], |value| value(row));
            match field.field_type {
                Type::Integer => {
                    push_int(out, value as i64);
                    out.push(b'i');
                }
                Type::Float => push_float(out, value),
            }
        }
        for (field, state) in self.measurement.fields.iter().zip(row) {
            move_state(field, state, random);
        }
        out.extend_from_slice(line_end);
    }
}

impl Heads {
    fn of(&self, host: usize) -> &[u8] {
        let start = host.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        &self.bytes[start..self.ends[host]]
    }
}

fn push_head(out: &mut Vec<u8>, measurement: &Measurement, seed: u64, host: u64) {
    out.extend_from_slice(measurement.name.as_bytes());
    push_host_tags(out, seed, host);
    (measurement.push_tags)(out, seed, host);
}

fn start_state(field: &Field, random: &mut Random) -> f64 {
    match field.motion {
        Motion::Walk { low, high, .. } => low + random.unit() * (high - low),
        Motion::Choice(values) => *random.pick(values),
        Motion::Counter { .. } | Motion::Derived => 0.0,
    }
}

fn move_state(field: &Field, state: &mut f64, random: &mut Random) {
    match field.motion {
        Motion::Walk { low, high, deviation } => {
            *state = (*state + random.normal() * deviation).clamp(low, high);
        }
        Motion::Counter { mean, deviation } => {
            *state += (mean + random.normal() * deviation).max(0.0);
        }
        Motion::Choice(_) | Motion::Derived => {}
    }
}

//! What agents of services send: rows at times of their own, a little late or not at all; floats, a counter, a
//! state, a boolean, a field that every third row has and texts that every tenth row has, no two alike.
//!
//! The shape that benchmarks of databases leave out, and monitoring is made of: nothing in it is regular.

use crate::random::{Random, hash};
use crate::text::{push_decimal, push_float, push_int};
use crate::workload::{Batch, Generator, Spec, Steps};

/// Rows that do not come: one in so many.
const LOST: u64 = 20;
/// Rows come so much later than the step says at most, beside the phase of their host.
const LATE_NS: u64 = 9_000_000;
const STATES: [&[u8]; 5] = [b"running", b"stopped", b"failed", b"starting", b"unknown"];

/// Generator of the services workload.
#[derive(Debug)]
pub struct Services {
    seed: u64,
    random: Random,
    steps: Steps,
    step_ns: i64,
    hosts: Vec<Host>,
    host: usize,
    /// Steps that are done.
    step: u64,
}

#[derive(Debug, Clone)]
struct Host {
    latency: f64,
    requests: i64,
    state: u8,
}

impl Services {
    pub(crate) fn new(spec: &Spec) -> Self {
        let host = Host { latency: 50.0, requests: 0, state: 0 };
        Self {
            seed: spec.seed,
            random: Random::new(spec.seed),
            steps: Steps::new(spec),
            step_ns: spec.step_ns,
            hosts: vec![host; spec.scale as usize],
            host: 0,
            step: 0,
        }
    }

    /// Appends a row, or what is lost of it: nothing. Gives its values.
    fn push_row(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let (random, host) = (&mut self.random, &mut self.hosts[self.host]);
        host.latency += random.normal();
        host.requests += random.below(5000) as i64;
        if random.below(100) == 0 {
            host.state = random.below(STATES.len() as u64) as u8;
        }
        if random.below(LOST) == 0 {
            return None;
        }
        let number = self.host as i64;
        out.extend_from_slice(b"service,dc=dc");
        push_int(out, number % 5);
        out.extend_from_slice(b",host=host_");
        push_int(out, number);
        out.extend_from_slice(b",rack=r");
        push_int(out, number % 20);
        out.extend_from_slice(b" latency=");
        push_decimal(out, (host.latency * 100.0).round() as i64, 2);
        out.extend_from_slice(b",requests=");
        push_int(out, host.requests);
        out.extend_from_slice(if host.latency > 50.0 { b"i,slow=true" } else { b"i,slow=false" });
        out.extend_from_slice(b",state=\"");
        out.extend_from_slice(STATES[usize::from(host.state)]);
        out.push(b'"');
        let mut values = 4;
        if self.step.is_multiple_of(3) {
            out.extend_from_slice(b",share=");
            push_float(out, random.unit() * 100.0);
            values += 1;
        }
        if self.step.is_multiple_of(10) {
            out.extend_from_slice(b",message=\"GET:/items/");
            push_int(out, random.below(1_000_000_000) as i64);
            out.extend_from_slice(b":took:");
            push_int(out, random.below(1000) as i64);
            out.extend_from_slice(b"ms\"");
            values += 1;
        }
        let phase = hash(self.seed, self.host as u64) % (self.step_ns as u64 / 2).max(1);
        out.push(b' ');
        push_int(out, self.steps.time_ns + (phase + random.below(LATE_NS)) as i64);
        out.push(b'\n');
        Some(values)
    }
}

impl Generator for Services {
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        while batch.rows < rows_max && !self.steps.ended() {
            if let Some(values) = self.push_row(out) {
                batch += Batch { rows: 1, values };
            }
            self.host += 1;
            if self.host == self.hosts.len() {
                (self.host, self.step) = (0, self.step + 1);
                self.steps.advance();
            }
        }
        batch
    }
}

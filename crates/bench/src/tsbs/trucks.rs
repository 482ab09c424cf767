//! Trucks that report `readings` and `diagnostics`, with the disorder of a mobile fleet: a tag or some fields
//! missing now and then, rows that arrive steps late, rows that never arrive.
//!
//! Memory: twelve floats per truck, and the late rows (at most `LATE_ROWS_MAX`).

use crate::random::{Random, hash};
use crate::text::{push_decimal, push_int};
use crate::workload::{Batch, Generator, Spec, Steps};

const FLEETS: [&[u8]; 4] = [b"East", b"West", b"North", b"South"];
const DRIVERS: [&[u8]; 6] = [b"Derek", b"Rodney", b"Albert", b"Andy", b"Seth", b"Trish"];
const MODELS: [Model; 3] = [
    Model { name: b"F-150", load_capacity: 2000, fuel_capacity: 200, consumption: 15 },
    Model { name: b"G-2000", load_capacity: 5000, fuel_capacity: 300, consumption: 19 },
    Model { name: b"H-2", load_capacity: 1500, fuel_capacity: 150, consumption: 12 },
];
const VERSIONS: [&[u8]; 4] = [b"v1.0", b"v1.5", b"v2.0", b"v2.3"];

const TAG_MISSING: f64 = 0.03;
const FIELDS_MISSING: f64 = 0.05;
const ROW_LOST: f64 = 0.01;
const ROW_LATE: f64 = 0.05;
const LATE_ROWS_MAX: usize = 100_000;
const LATE_STEPS_MAX: u64 = 30;

struct Model {
    name: &'static [u8],
    load_capacity: i64,
    fuel_capacity: i64,
    consumption: i64,
}

/// A float field: how far it walks and how many digits it is printed with.
struct Walk {
    name: &'static [u8],
    low: f64,
    high: f64,
    deviation: f64,
    digits: u32,
}

const fn walk(name: &'static [u8], low: f64, high: f64, deviation: f64, digits: u32) -> Walk {
    Walk { name, low, high, deviation, digits }
}

const READINGS: [Walk; 7] = [
    walk(b"latitude=", -90.0, 90.0, 0.005, 5),
    walk(b"longitude=", -180.0, 180.0, 0.005, 5),
    walk(b"elevation=", 0.0, 5000.0, 1.0, 0),
    walk(b"velocity=", 0.0, 100.0, 10.0, 0),
    walk(b"heading=", 0.0, 360.0, 5.0, 0),
    walk(b"grade=", 0.0, 100.0, 5.0, 0),
    walk(b"fuel_consumption=", 0.0, 50.0, 5.0, 1),
];
const DIAGNOSTICS: [Walk; 2] =
    [walk(b"fuel_state=", 0.0, 1.0, 0.01, 1), walk(b"current_load=", 0.0, 5000.0, 300.0, 0)];
const STATES: usize = READINGS.len() + DIAGNOSTICS.len();
const STATUS_VALUES: u64 = 6;

/// Generator of the iot workload.
#[derive(Debug)]
pub struct Trucks {
    seed: u64,
    trucks: u64,
    steps: Steps,
    step: u64,
    random: Random,
    states: Vec<[f64; STATES]>,
    late: Vec<Late>,
    /// Buffers of late rows that have been sent, for reuse.
    spare: Vec<Vec<u8>>,
    phase: Phase,
    truck: u64,
}

#[derive(Debug)]
struct Late {
    due_step: u64,
    values: u64,
    line: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Late,
    Readings,
    Diagnostics,
}

impl Trucks {
    pub(crate) fn new(spec: &Spec) -> Self {
        let mut random = Random::new(spec.seed);
        let states = (0..spec.scale)
            .map(|_| {
                let mut walks = READINGS.iter().chain(&DIAGNOSTICS);
                [(); STATES].map(|()| {
                    walks
                        .next()
                        .map_or(0.0, |walk| walk.low + random.unit() * (walk.high - walk.low))
                })
            })
            .collect();
        Self {
            seed: spec.seed,
            trucks: spec.scale,
            steps: Steps::new(spec),
            step: 0,
            random,
            states,
            late: Vec::new(),
            spare: Vec::new(),
            phase: Phase::Late,
            truck: 0,
        }
    }

    /// The late rows whose time has come; all of them once the data has ended.
    fn fill_late(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        let ended = self.steps.ended();
        let mut index = 0;
        while index < self.late.len() && batch.rows < rows_max {
            if !ended && self.late[index].due_step > self.step {
                index += 1;
                continue;
            }
            let late = self.late.swap_remove(index);
            out.extend_from_slice(&late.line);
            batch += Batch { rows: 1, values: late.values };
            self.spare.push(late.line);
        }
        batch
    }

    /// One row of the current phase, which may be lost or put off.
    fn push_row(&mut self, out: &mut Vec<u8>) -> Batch {
        let lost = self.random.chance(ROW_LOST);
        let late = self.random.chance(ROW_LATE) && self.late.len() < LATE_ROWS_MAX;
        let start = out.len();
        let values = match self.phase {
            Phase::Diagnostics => self.push_diagnostics(out),
            Phase::Late | Phase::Readings => self.push_readings(out),
        };
        if lost {
            out.truncate(start);
            return Batch::default();
        }
        if late {
            let mut line = self.spare.pop().unwrap_or_default();
            line.clear();
            line.extend_from_slice(&out[start..]);
            out.truncate(start);
            let due_step = self.step + 1 + self.random.below(LATE_STEPS_MAX);
            self.late.push(Late { due_step, values, line });
            return Batch::default();
        }
        Batch { rows: 1, values }
    }

    fn push_readings(&mut self, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(b"readings");
        let model = self.push_tags(out);
        let values = self.push_walks(out, &READINGS, 0);
        self.push_model(out, model, values)
    }

    fn push_diagnostics(&mut self, out: &mut Vec<u8>) -> u64 {
        out.extend_from_slice(b"diagnostics");
        let model = self.push_tags(out);
        let values = self.push_walks(out, &DIAGNOSTICS, READINGS.len());
        out.extend_from_slice(b",status=");
        push_int(out, self.random.below(STATUS_VALUES) as i64);
        out.push(b'i');
        self.push_model(out, model, values + 1)
    }

    /// Appends the tags, one of them perhaps missing, and returns the truck's model.
    fn push_tags(&mut self, out: &mut Vec<u8>) -> &'static Model {
        let bits = hash(self.seed ^ 0x7472_7563, self.truck);
        let missing = self.random.chance(TAG_MISSING).then(|| self.random.below(5));
        let model = &MODELS[(bits >> 16) as usize % MODELS.len()];
        if missing != Some(0) {
            out.extend_from_slice(b",name=truck_");
            push_int(out, self.truck as i64);
        }
        let tags: [(&[u8], &[u8]); 4] = [
            (b",fleet=", FLEETS[bits as usize % FLEETS.len()]),
            (b",driver=", DRIVERS[(bits >> 8) as usize % DRIVERS.len()]),
            (b",model=", model.name),
            (b",device_version=", VERSIONS[(bits >> 24) as usize % VERSIONS.len()]),
        ];
        for (index, (key, value)) in tags.into_iter().enumerate() {
            if missing != Some(index as u64 + 1) {
                out.extend_from_slice(key);
                out.extend_from_slice(value);
            }
        }
        model
    }

    /// Appends the walking fields, the first always, others perhaps missing; returns how many.
    fn push_walks(&mut self, out: &mut Vec<u8>, walks: &[Walk], first_state: usize) -> u64 {
        let some_missing = self.random.chance(FIELDS_MISSING);
        let mut values = 0;
        for (index, walk) in walks.iter().enumerate() {
            let state = &mut self.states[self.truck as usize][first_state + index];
            *state = (*state + self.random.normal() * walk.deviation).clamp(walk.low, walk.high);
            if index > 0 && some_missing && self.random.chance(0.5) {
                continue;
            }
            out.push(if values == 0 { b' ' } else { b',' });
            out.extend_from_slice(walk.name);
            let scaled = (*state * 10f64.powi(walk.digits as i32)).round();
            push_decimal(out, scaled as i64, walk.digits);
            values += 1;
        }
        values
    }

    /// Appends the constants of the model and ends the line; returns the number of fields.
    fn push_model(&self, out: &mut Vec<u8>, model: &Model, values: u64) -> u64 {
        out.extend_from_slice(b",load_capacity=");
        push_int(out, model.load_capacity);
        out.extend_from_slice(b",fuel_capacity=");
        push_int(out, model.fuel_capacity);
        out.extend_from_slice(b",nominal_fuel_consumption=");
        push_int(out, model.consumption);
        out.extend_from_slice(self.steps.line_end());
        values + 3
    }

    fn next_truck(&mut self) {
        self.truck += 1;
        if self.truck < self.trucks {
            return;
        }
        self.truck = 0;
        if self.phase == Phase::Readings {
            self.phase = Phase::Diagnostics;
            return;
        }
        self.steps.advance();
        self.step += 1;
        self.phase = Phase::Late;
    }
}

impl Generator for Trucks {
    fn fill(&mut self, rows_max: u64, out: &mut Vec<u8>) -> Batch {
        let mut batch = Batch::default();
        while batch.rows < rows_max {
            if self.phase == Phase::Late {
                batch += self.fill_late(rows_max - batch.rows, out);
                if self.steps.ended() || batch.rows == rows_max {
                    return batch;
                }
                self.phase = Phase::Readings;
            }
            batch += self.push_row(out);
            self.next_truck();
        }
        batch
    }
}

//! Random operations from a seed. Names and times come from small pools, so that rows meet.

use model::{
    CompareOp, DatabaseId, FieldType, MAX_TIME_NS, MIN_TIME_NS, Name, PolicyId, Regex, Scalar,
    TagExpr, TimeRange,
};

use super::operation::{Operation, Picked, Probe, ProbeFilter};
use super::random::Random;
use crate::testing::{HOUR_NS, Row};
use crate::{DeleteTarget, MetadataKind, NameFilter, Policy, SummaryParts, TimeOrder, Windows};

/// The middle of the times that most rows have; partitions around it are an hour long.
pub(super) const NOW: i64 = 1_500_000_000_000_000_000;

/// Escaped and plain form.
const MEASUREMENTS: [(&str, &str); 3] =
    [("m", "m"), ("cpu\\ load", "cpu load"), ("m\u{e9}", "m\u{e9}")];
const TAG_KEYS: [&str; 4] = ["host", "dc", "a b", "\u{fc}"];
const TAG_VALUES: [&str; 5] = ["a", "b", "web-10", "x,y=z w", "\u{20ac}"];
const FIELDS: [(&str, FieldType); 7] = [
    ("f", FieldType::Float),
    ("load 1", FieldType::Float),
    ("i", FieldType::Integer),
    ("n", FieldType::Integer),
    ("u", FieldType::Unsigned),
    ("s", FieldType::String),
    ("b", FieldType::Boolean),
];

/// `count` operations and a last comparison of everything.
pub(super) fn operations(seed: u64, count: usize) -> Vec<Operation> {
    let mut generator = Generator { random: Random::new(seed), generation: 0 };
    let mut operations: Vec<Operation> = (0..count).map(|_| generator.operation()).collect();
    operations.extend([Operation::CheckAll, Operation::Reopen, Operation::CheckAll]);
    operations
}

struct Generator {
    random: Random,
    /// Counts dropped databases: their ids are never used again.
    generation: u32,
}

impl Generator {
    fn operation(&mut self) -> Operation {
        match self.random.below(100) {
            0..40 => self.write(),
            40..62 => Operation::Scan(self.probe()),
            62..72 => self.names(),
            72..75 => self.delete_rows(),
            75..79 => self.delete_matching(),
            79..81 => self.delete_measurement(),
            81..82 => self.delete_policy(),
            82..83 => self.delete_database(),
            83..86 => self.expire(),
            86..87 => self.drop_partition(),
            87..89 => Operation::SwapCatalog {
                fresh: self.random.chance(70),
                bytes: (0..self.random.below(40)).map(|i| i as u8).collect(),
            },
            89..94 => Operation::Maintain,
            94..96 => Operation::Reopen,
            _ => Operation::CheckAll,
        }
    }

    /// Two databases, the first with two policies of which one forgets.
    fn policy(&mut self) -> Policy {
        let which = self.random.below(3) as u32;
        let base = self.generation * 10;
        Policy {
            database: DatabaseId(base + if which < 2 { 1 } else { 2 }),
            id: PolicyId(base + 1 + which),
            partition_ns: HOUR_NS,
            retention_ns: (which == 1).then_some(4 * HOUR_NS),
        }
    }

    fn measurement(&mut self) -> (&'static str, &'static str) {
        self.random.pick(&MEASUREMENTS)
    }

    fn time(&mut self) -> i64 {
        match self.random.below(100) {
            0 => MIN_TIME_NS,
            1 => MAX_TIME_NS,
            2 => self.random.below(3) as i64 - 1,
            3..30 => NOW - 5 * HOUR_NS + self.random.below(10) as i64 * HOUR_NS,
            30..60 => NOW + self.random.below(40) as i64,
            _ => NOW - HOUR_NS + self.random.below(80) as i64 * (HOUR_NS / 20),
        }
    }

    fn time_range(&mut self) -> TimeRange {
        if self.random.chance(30) {
            return TimeRange::ALL;
        }
        let (a, b) = (self.time(), self.time());
        if self.random.chance(5) {
            TimeRange::new(a, b)
        } else {
            TimeRange::new(a.min(b), a.max(b))
        }
    }

    fn write(&mut self) -> Operation {
        let policy = self.policy();
        let rows = if self.random.chance(10) { 120 } else { 1 + self.random.below(12) };
        let rows = (0..rows).map(|_| self.row()).collect();
        Operation::Write { policy, now_ns: NOW, rows }
    }

    fn row(&mut self) -> Row {
        let mut key = self.measurement().0.to_owned();
        let start = self.random.below(TAG_KEYS.len());
        for at in 0..self.random.below(TAG_KEYS.len()) {
            let tag = TAG_KEYS[(start + at) % TAG_KEYS.len()];
            let value = self.tag_value();
            let escaped = |text| model::key::escape(text, b",= ").into_owned();
            key.push_str(&format!(",{}={}", escaped(tag), escaped(value)));
        }
        let mut time_ns = self.time();
        if self.random.chance(2) {
            // Only rows that nothing else is wrong with: which reason is named is not settled.
            time_ns = time_ns.max(NOW);
            key.push_str(self.random.pick(&[",x=", ",", ",time=1", ",=y", ",x=1,x=2"]));
        }
        let mut fields: Vec<(Name, Scalar)> = Vec::new();
        let start = self.random.below(FIELDS.len());
        for at in 0..=self.random.below(FIELDS.len()) {
            let (name, field_type) = FIELDS[(start + at) % FIELDS.len()];
            let odd = self.random.chance(1);
            let field_type = if odd { self.random.pick(&FieldType::ALL) } else { field_type };
            fields.push((name.into(), self.value(field_type)));
        }
        Row { key, time_ns, fields }
    }

    fn tag_value(&mut self) -> &'static str {
        self.random.pick(&TAG_VALUES)
    }

    fn value(&mut self, field_type: FieldType) -> Scalar {
        let small = self.random.below(20);
        let odd = self.random.chance(10);
        match field_type {
            FieldType::Float if odd => Scalar::Float(self.random.pick(&[
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                -0.0,
                f64::MAX,
                f64::MIN_POSITIVE,
                5e-324,
            ])),
            FieldType::Float if self.random.chance(50) => Scalar::Float(small as f64 / 4.0),
            FieldType::Float => Scalar::Float(self.random.next() as i64 as f64 * 1e-9),
            FieldType::Integer if odd => {
                Scalar::Integer(self.random.pick(&[i64::MIN, i64::MAX, 0, -1]))
            }
            FieldType::Integer => Scalar::Integer(small as i64 - 5),
            FieldType::Unsigned if odd => Scalar::Unsigned(self.random.pick(&[u64::MAX, 0])),
            FieldType::Unsigned => Scalar::Unsigned(small as u64),
            FieldType::String if odd => Scalar::String(
                self.random.pick(&["", "\u{20ac}\n\"\\", "a b,c=d"]).to_string().into(),
            ),
            FieldType::String => Scalar::String(format!("text-{small}").into()),
            FieldType::Boolean => Scalar::Boolean(small < 10),
        }
    }

    fn tag_expr(&mut self, depth: usize) -> TagExpr {
        let key: Name = (self.random.pick(&["host", "dc", "a b", "\u{fc}", "none"])).into();
        match self.random.below(if depth == 0 { 7 } else { 11 }) {
            0 | 1 => TagExpr::True,
            2 | 3 => {
                let value = if self.random.chance(20) { "" } else { self.tag_value() };
                TagExpr::Equals(key, value.into())
            }
            4 => {
                let mut values: Vec<Name> =
                    (0..self.random.below(4)).map(|_| self.tag_value().into()).collect();
                values.sort_unstable();
                values.dedup();
                TagExpr::In(key, values)
            }
            5 => TagExpr::Matches(key, self.regex()),
            6 => match self.random.below(2) {
                0 => TagExpr::SameValue(key, "host".into()),
                _ => TagExpr::False,
            },
            7 => TagExpr::Not(Box::new(self.tag_expr(depth - 1))),
            8 | 9 => TagExpr::And(self.tag_exprs(depth)),
            _ => TagExpr::Or(self.tag_exprs(depth)),
        }
    }

    fn tag_exprs(&mut self, depth: usize) -> Vec<TagExpr> {
        (0..self.random.below(4)).map(|_| self.tag_expr(depth - 1)).collect()
    }

    fn regex(&mut self) -> Regex {
        let text = self.random.pick(&[
            "^a$",
            "b|web",
            ".*",
            "^$",
            "[0-9]+",
            "^web-1",
            "^(a|web)",
            "^web-[02]$",
        ]);
        Regex::new(text).expect("BUG: a regex of the pool is valid")
    }

    fn name_filter(&mut self, pool: &[&str]) -> NameFilter {
        match self.random.below(6) {
            0..3 => NameFilter::All,
            3 => NameFilter::In(vec![(self.random.pick(pool)).into(), "nothing".into()]),
            4 => NameFilter::Matches(Regex::new("^[mhd]").expect("BUG: the regex is valid")),
            _ => NameFilter::Not(Box::new(NameFilter::In(vec![(self.random.pick(pool)).into()]))),
        }
    }

    fn measurement_filter(&mut self) -> NameFilter {
        self.name_filter(&MEASUREMENTS.map(|(_, plain)| plain))
    }

    fn probe(&mut self) -> Probe {
        let policy = self.policy();
        let mut probe = Probe::all(policy, self.measurement().1);
        probe.fields = (0..self.random.below(4)).map(|_| self.random.below(100)).collect();
        probe.series = self.tag_expr(2);
        probe.time = self.time_range();
        if self.random.chance(50) {
            probe.order = TimeOrder::Descending;
        }
        if self.random.chance(30) {
            probe.windows = Some(self.windows());
        } else {
            probe.rows_per_series = self.random.chance(30).then(|| self.random.below(6) as u64);
            if self.random.chance(30) {
                let places = 0..self.random.below(3);
                probe.with_any = Some(places.map(|_| self.random.below(100)).collect());
            }
        }
        // Of two series' values at one time neither is the first.
        let has_ends = probe.windows.is_some_and(|windows| windows.parts.first_last);
        let may_join = probe.rows_per_series.is_none() && !has_ends;
        probe.joins_series = may_join && self.random.chance(50);
        probe.filter = self.random.chance(30).then(|| self.filter());
        probe.series_parts = 1 + self.random.below(3) as u32;
        probe.cuts = (0..self.random.below(3)).map(|_| self.time()).collect();
        probe.cuts.sort_unstable();
        probe
    }

    fn filter(&mut self) -> ProbeFilter {
        let field_type = self.random.pick(&FieldType::ALL);
        let op = self.random.pick(&CompareOp::ALL);
        ProbeFilter {
            field: self.random.below(10),
            op,
            constant: self.value(field_type),
            other: self.random.chance(30).then(|| self.random.below(10)),
        }
    }

    fn windows(&mut self) -> Windows {
        let lengths =
            [None, Some(1), Some(7), Some(HOUR_NS / 4), Some(HOUR_NS), Some(5 * HOUR_NS + 3)];
        Windows {
            every_ns: self.random.pick(&lengths),
            offset_ns: self.random.pick(&[0, 3, -HOUR_NS / 8, NOW]),
            parts: SummaryParts {
                sum: self.random.chance(50),
                min_max: self.random.chance(50),
                first_last: self.random.chance(50),
            },
        }
    }

    fn names(&mut self) -> Operation {
        let kind = match self.random.below(5) {
            0 => MetadataKind::Measurements,
            1 => MetadataKind::Series,
            2 => MetadataKind::SeriesCounts,
            3 => MetadataKind::TagKeys,
            _ => MetadataKind::TagValues(self.name_filter(&TAG_KEYS)),
        };
        Operation::Names {
            database: self.policy().database,
            kind,
            measurements: self.measurement_filter(),
            series: self.tag_expr(2),
        }
    }

    fn delete_rows(&mut self) -> Operation {
        let target = DeleteTarget::Rows {
            measurements: self.measurement_filter(),
            series: self.tag_expr(1),
            time: self.time_range(),
        };
        Operation::Delete { database: self.policy().database, target }
    }

    fn delete_matching(&mut self) -> Operation {
        Operation::DeleteMatching(Picked {
            policy: self.policy(),
            measurement: self.measurement().1.into(),
            fields: (0..self.random.below(4)).map(|_| self.random.below(100)).collect(),
            series: self.tag_expr(1),
            time: self.time_range(),
            one_in: 1 + self.random.below(4),
            stale_one_in: self.random.below(5),
        })
    }

    fn delete_measurement(&mut self) -> Operation {
        let name = self.measurement().1.into();
        let target = DeleteTarget::Measurement(name);
        Operation::Delete { database: self.policy().database, target }
    }

    fn delete_policy(&mut self) -> Operation {
        let policy = self.policy();
        Operation::Delete { database: policy.database, target: DeleteTarget::Policy(policy.id) }
    }

    /// The rest of the run uses new ids, as the catalog would give.
    fn delete_database(&mut self) -> Operation {
        let database = self.policy().database;
        self.generation += 1;
        Operation::Delete { database, target: DeleteTarget::Database }
    }

    fn drop_partition(&mut self) -> Operation {
        let database = self.policy().database;
        Operation::DropPartition { database, nth: self.random.below(100) }
    }

    fn expire(&mut self) -> Operation {
        let policy = self.policy();
        let before_ns = if self.random.chance(80) {
            NOW - self.random.below(6) as i64 * HOUR_NS
        } else {
            self.time()
        };
        Operation::Expire { database: policy.database, policy: policy.id, before_ns }
    }
}

//! The index against a model: a map from keys to ids.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use model::{Budget, DatabaseId, Name, Regex, SeriesId, SeriesKey, TagExpr};
use platform::{Disk, PageCache, SystemDisk};
use proptest::prelude::*;
use roaring::RoaringTreemap;

use super::{SeriesIndex, SeriesOptions, Totals};

mod crash;
mod golden;
mod threads;

const MEASUREMENTS: [&str; 3] = ["cpu", "disk io", "m"];
const KEYS: [&str; 4] = ["a", "host", "h,o", "z"];

/// What happens to an index. Log entries are what the owner of an index would log.
#[derive(Clone, Debug)]
enum Step {
    Create(DatabaseId, SeriesKey),
    CreateBatch(DatabaseId, Vec<SeriesKey>),
    /// Every n-th live series.
    Remove(usize),
    RemoveDatabase(DatabaseId),
    Flush,
    Merge,
    Reopen,
}

#[derive(Clone, Debug)]
enum Logged {
    Created(DatabaseId, SeriesKey, SeriesId),
    Removed(RoaringTreemap),
    DatabaseRemoved(DatabaseId, SeriesId),
}

#[derive(Clone, Debug, Default)]
struct Model {
    live: BTreeMap<(DatabaseId, String), (u64, SeriesKey)>,
    log: Vec<Logged>,
}

/// Small, so that pages come and go.
fn cache() -> Arc<PageCache> {
    Arc::new(PageCache::new(1 << 20))
}

fn options() -> SeriesOptions {
    SeriesOptions {
        memory_bytes: 256 << 10,
        run_entries_max: 400,
        ..SeriesOptions::new(7, cache())
    }
}

fn open(dir: &Path) -> SeriesIndex {
    SeriesIndex::open(Arc::new(SystemDisk), dir, options()).unwrap()
}

fn database() -> impl Strategy<Value = DatabaseId> {
    (1u32..3).prop_map(DatabaseId)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..40u32).prop_map(|n| format!("host_{n}")),
        prop::sample::select(vec!["x", "x!", "\u{e9}", " ", "\\n"]).prop_map(str::to_owned),
    ]
}

fn key() -> impl Strategy<Value = SeriesKey> {
    let tags = prop::collection::btree_map(prop::sample::select(&KEYS), value(), 0..4);
    (prop::sample::select(&MEASUREMENTS), tags).prop_map(|(measurement, tags)| SeriesKey {
        measurement: measurement.into(),
        tags: tags.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (database(), key()).prop_map(|(db, key)| Step::Create(db, key)),
        4 => (database(), prop::collection::vec(key(), 0..60))
            .prop_map(|(db, keys)| Step::CreateBatch(db, keys)),
        2 => (1usize..20).prop_map(Step::Remove),
        1 => database().prop_map(Step::RemoveDatabase),
        4 => Just(Step::Flush),
        4 => Just(Step::Merge),
        2 => Just(Step::Reopen),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![prop::sample::select(&KEYS), Just("none")].prop_map(Name::from)
}

fn expr() -> impl Strategy<Value = TagExpr> {
    let any_value = prop_oneof![value(), Just(String::new())].prop_map(Name::from);
    let regex = prop::sample::select(vec![
        "^host_1",
        "^host_(?:0|12)",
        "^host_.$",
        "_[02]$",
        "^$",
        ".*",
        "^x",
        "x|^$",
        "nothing",
    ]);
    let leaf = prop_oneof![
        Just(TagExpr::True),
        Just(TagExpr::False),
        (name(), any_value.clone()).prop_map(|(k, v)| TagExpr::Equals(k, v)),
        (name(), prop::collection::btree_set(any_value, 0..4))
            .prop_map(|(k, v)| TagExpr::In(k, v.into_iter().collect())),
        (name(), regex).prop_map(|(k, r)| TagExpr::Matches(k, Regex::new(r).unwrap())),
        (name(), name()).prop_map(|(a, b)| TagExpr::SameValue(a, b)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(TagExpr::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(TagExpr::Or),
            inner.prop_map(|e| TagExpr::Not(Box::new(e))),
        ]
    })
}

fn replay(index: &SeriesIndex, log: &[Logged]) {
    for entry in log {
        match entry {
            Logged::Created(db, key, id) => index.restore(*db, key, *id).unwrap(),
            Logged::Removed(ids) => index.remove(ids),
            Logged::DatabaseRemoved(db, below) => index.remove_database(*db, *below).unwrap(),
        }
    }
}

impl Model {
    fn created(&mut self, db: DatabaseId, key: &SeriesKey, (id, new): (SeriesId, bool)) {
        let name = (db, key.to_string());
        if new {
            let used = self.log.iter().any(|l| matches!(l, Logged::Created(_, _, i) if *i == id));
            assert!(!used, "id {id:?} is given twice");
            assert!(self.live.insert(name, (id.0, key.clone())).is_none(), "{key} had an id");
            self.log.push(Logged::Created(db, key.clone(), id));
        } else {
            assert_eq!(self.live.get(&name).map(|found| found.0), Some(id.0), "{key}");
        }
    }

    fn every_nth(&self, n: usize) -> RoaringTreemap {
        self.live.values().step_by(n).map(|(id, _)| *id).collect()
    }

    fn remove(&mut self, ids: &RoaringTreemap) {
        self.live.retain(|_, (id, _)| !ids.contains(*id));
        self.log.push(Logged::Removed(ids.clone()));
    }

    fn remove_database(&mut self, db: DatabaseId, below: SeriesId) {
        self.live.retain(|(of, _), _| *of != db);
        self.log.push(Logged::DatabaseRemoved(db, below));
    }

    fn of(&self, db: DatabaseId, measurement: &str) -> BTreeMap<u64, &SeriesKey> {
        let here = self
            .live
            .iter()
            .filter(|((of, _), (_, key))| *of == db && *key.measurement == *measurement);
        here.map(|(_, (id, key))| (*id, key)).collect()
    }
}

/// Everything the index says, compared with the model.
fn check(index: &SeriesIndex, model: &Model, exprs: &[TagExpr]) {
    for ((db, text), (id, key)) in &model.live {
        assert_eq!(index.lookup(*db, key).unwrap(), Some(SeriesId(*id)), "{text}");
        assert_eq!(index.key(SeriesId(*id)).unwrap(), Some((*db, key.clone())));
    }
    for entry in &model.log {
        if let Logged::Created(_, _, id) = entry {
            let live = model.live.values().any(|(live, _)| live == &id.0);
            assert_eq!(index.key(*id).unwrap().is_some(), live, "{id:?}");
        }
    }
    for db in [1, 2, 3].map(DatabaseId) {
        let names: BTreeSet<Name> = model
            .live
            .iter()
            .filter(|((of, _), _)| *of == db)
            .map(|(_, (_, k))| k.measurement.clone())
            .collect();
        assert_eq!(index.measurements(db).unwrap(), names.iter().cloned().collect::<Vec<_>>());
        let all = model.live.keys().filter(|(of, _)| *of == db).count() as u64;
        let totals = Totals { series: all, measurements: names.len() as u64 };
        assert_eq!(index.totals().unwrap().remove(&db).unwrap_or_default(), totals);
        assert_eq!(index.cardinality(db, None).unwrap(), all);
        for measurement in MEASUREMENTS.into_iter().chain(["nope"]) {
            assert_eq!(
                index.has_measurement(db, measurement).unwrap(),
                names.contains(measurement)
            );
            check_measurement(index, &model.of(db, measurement), db, measurement, exprs);
        }
    }
}

fn check_measurement(
    index: &SeriesIndex,
    model: &BTreeMap<u64, &SeriesKey>,
    db: DatabaseId,
    measurement: &str,
    exprs: &[TagExpr],
) {
    assert_eq!(index.cardinality(db, Some(measurement)).unwrap(), model.len() as u64);
    for expr in exprs {
        let selected = index.select(db, measurement, expr).unwrap();
        let expected: RoaringTreemap = model
            .iter()
            .filter(|(_, key)| expr.evaluate(&|name| key.tag(name)))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(selected, expected, "{expr:?}");
        check_listings(index, model, db, measurement, Some(&selected));
    }
    check_listings(index, model, db, measurement, None);
}

fn check_listings(
    index: &SeriesIndex,
    model: &BTreeMap<u64, &SeriesKey>,
    db: DatabaseId,
    measurement: &str,
    among: Option<&RoaringTreemap>,
) {
    let model: BTreeMap<u64, &SeriesKey> = model
        .iter()
        .filter(|(id, _)| among.is_none_or(|among| among.contains(**id)))
        .map(|(id, key)| (*id, *key))
        .collect();
    let keys: BTreeSet<Name> =
        model.values().flat_map(|key| key.tags.iter().map(|(name, _)| name.clone())).collect();
    let found = index.tag_keys(db, measurement, among).unwrap();
    assert_eq!(found, keys.into_iter().collect::<Vec<_>>());
    for name in KEYS {
        let values: BTreeSet<Name> =
            model.values().map(|key| Name::from(key.tag(name))).filter(|v| !v.is_empty()).collect();
        let found = index.tag_values(db, measurement, name, among).unwrap();
        assert_eq!(found, values.into_iter().collect::<Vec<_>>(), "{name}");
        for (at, after) in found.iter().enumerate().step_by(3) {
            let mut rest = Vec::new();
            let visit = &mut |value: &str| {
                rest.push(Name::from(value));
                ControlFlow::Continue(())
            };
            index.for_each_tag_value(db, measurement, name, among, Some(after), visit).unwrap();
            assert_eq!(rest, found[at + 1..], "{name} after {after}");
        }
    }
    let mut expected: Vec<(u64, SeriesKey)> =
        model.iter().map(|(id, key)| (*id, (*key).clone())).collect();
    expected.sort_by(|a, b| a.1.tags.cmp(&b.1.tags));
    let mut found = Vec::new();
    let visit = &mut |id: SeriesId, key: &SeriesKey| {
        found.push((id.0, key.clone()));
        ControlFlow::Continue(())
    };
    index.for_each_key(db, measurement, among, None, visit).unwrap();
    assert_eq!(found, expected);
    for (at, (_, after)) in expected.iter().enumerate().step_by(7) {
        let mut rest = Vec::new();
        let visit = &mut |id: SeriesId, key: &SeriesKey| {
            rest.push((id.0, key.clone()));
            ControlFlow::Continue(())
        };
        index.for_each_key(db, measurement, among, Some(after), visit).unwrap();
        assert_eq!(rest, expected[at + 1..], "after {after}");
    }
    check_columns(index, &model, db, measurement);
}

fn check_columns(
    index: &SeriesIndex,
    model: &BTreeMap<u64, &SeriesKey>,
    db: DatabaseId,
    measurement: &str,
) {
    let names: Vec<Name> = KEYS.into_iter().chain(["none"]).map(Name::from).collect();
    let every: RoaringTreemap = model.keys().copied().collect();
    let few: RoaringTreemap = model.keys().copied().step_by(7).collect();
    let budget = Budget::new("query memory", 1 << 20);
    for ids in [every, few] {
        let columns = index.tag_columns(db, measurement, &ids, &names, &budget).unwrap();
        for (name, column) in names.iter().zip(columns) {
            let values: Vec<&str> =
                column.codes.iter().map(|code| column.values.get(*code as usize)).collect();
            let expected: Vec<&str> = ids.iter().map(|id| model[&id].tag(name)).collect();
            assert_eq!(values, expected, "{name}");
            let distinct: BTreeSet<&str> = expected.into_iter().collect();
            assert!(column.values.iter().eq(distinct), "{name}");
        }
    }
    assert_eq!(budget.used_bytes(), 0);
}

fn run(steps: &[Step], exprs: &[TagExpr]) {
    let dir = tempfile::tempdir().unwrap();
    let mut index = open(dir.path());
    let mut model = Model::default();
    for step in steps {
        match step {
            Step::Create(db, key) => model.created(*db, key, index.create(*db, key).unwrap()),
            Step::CreateBatch(db, keys) => {
                let created = index.create_batch(*db, keys).unwrap();
                assert_eq!(created.len(), keys.len());
                keys.iter().zip(created).for_each(|(key, made)| model.created(*db, key, made));
            }
            Step::Remove(n) => {
                let mut ids = model.every_nth(*n);
                index.remove(&ids);
                model.remove(&ids);
                ids.insert(1 << 50);
                index.remove(&ids);
            }
            Step::RemoveDatabase(db) => {
                let below = index.next_id();
                index.remove_database(*db, below).unwrap();
                model.remove_database(*db, below);
            }
            Step::Flush => index.flush().unwrap(),
            Step::Merge => {
                let wanted = index.merge_wanted();
                assert_eq!(index.merge_step().unwrap(), wanted);
            }
            Step::Reopen => {
                drop(index);
                index = open(dir.path());
                replay(&index, &model.log);
            }
        }
        check(&index, &model, &[]);
    }
    check(&index, &model, exprs);
    index.flush().unwrap();
    while index.merge_step().unwrap() {}
    check(&index, &model, exprs);
    drop(index);
    let index = open(dir.path());
    check(&index, &model, exprs);
    replay(&index, &model.log);
    check(&index, &model, exprs);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn answers_as_the_model(
        steps in prop::collection::vec(step(), 1..40),
        exprs in prop::collection::vec(expr(), 1..12),
    ) {
        run(&steps, &exprs);
    }
}

/// More series than fit a block, a page and a tier, so that every boundary is crossed.
#[test]
fn many_series_in_several_runs() {
    let dir = tempfile::tempdir().unwrap();
    let options = SeriesOptions { memory_bytes: 1 << 20, ..SeriesOptions::new(1, cache()) };
    let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
    let index = SeriesIndex::open(Arc::clone(&disk), dir.path(), options.clone()).unwrap();
    let db = DatabaseId(1);
    let key = |n: u32| {
        let text = format!("cpu,dc=dc{},host=host_{n},rack={}", n % 7, n % 1000);
        SeriesKey::parse(text.as_bytes()).unwrap()
    };
    let mut model = BTreeMap::new();
    for start in (0..30_000).step_by(3_000) {
        let keys: Vec<_> = (start..start + 3_000).map(key).collect();
        let made = index.create_batch(db, &keys).unwrap();
        for (key, (id, new)) in keys.into_iter().zip(made) {
            assert!(new);
            model.insert(id.0, key);
        }
        index.flush().unwrap();
        index.merge_step().unwrap();
    }
    let dead: RoaringTreemap = model.keys().copied().filter(|id| id % 5 == 0).collect();
    index.remove(&dead);
    model.retain(|id, _| !dead.contains(*id));
    let regex = TagExpr::Matches("host".into(), Regex::new("host_1.*7$").unwrap());
    let exprs = [
        TagExpr::Equals("host".into(), "host_12345".into()),
        TagExpr::Equals("rack".into(), "77".into()),
        TagExpr::Not(Box::new(TagExpr::Equals("dc".into(), "dc3".into()))),
        TagExpr::Matches("host".into(), Regex::new("^host_1.*7$").unwrap()),
        TagExpr::Matches("host".into(), Regex::new("^host_999[0-9]?").unwrap()),
        TagExpr::Matches("host".into(), Regex::new("^(a|zz)").unwrap()),
        TagExpr::Matches("rack".into(), Regex::new("^77").unwrap()),
        TagExpr::And(vec![regex, TagExpr::In("dc".into(), vec!["dc1".into(), "dc2".into()])]),
    ];
    // What is asked again and again is read once.
    let totals = Totals { series: model.len() as u64, measurements: 1 };
    let totals = std::collections::HashMap::from([(db, totals)]);
    assert_eq!(index.totals().unwrap(), totals);
    let looks = || {
        let stats = options.cache.stats();
        (stats.hits, stats.misses)
    };
    let before = looks();
    assert_eq!(index.totals().unwrap(), totals);
    assert_eq!(looks(), before);
    let compare = |index: &SeriesIndex| {
        let refs: BTreeMap<u64, &SeriesKey> = model.iter().map(|(id, key)| (*id, key)).collect();
        check_many(index, &refs, db, &exprs);
    };
    compare(&index);
    index.flush().unwrap();
    while index.merge_step().unwrap() {}
    compare(&index);
    drop(index);
    compare(&SeriesIndex::open(disk, dir.path(), options).unwrap());
}

fn check_many(
    index: &SeriesIndex,
    model: &BTreeMap<u64, &SeriesKey>,
    db: DatabaseId,
    exprs: &[TagExpr],
) {
    for expr in exprs {
        let selected = index.select(db, "cpu", expr).unwrap();
        let holds = model.iter().filter(|(_, key)| expr.evaluate(&|name| key.tag(name)));
        assert!(selected.iter().eq(holds.map(|(id, _)| *id)), "{expr:?}");
        let mut keys = 0;
        let mut last: Option<SeriesKey> = None;
        let visit = &mut |id: SeriesId, key: &SeriesKey| {
            assert_eq!(model[&id.0], key);
            assert!(last.as_ref().is_none_or(|last| last.tags < key.tags));
            last = Some(key.clone());
            keys += 1;
            ControlFlow::Continue(())
        };
        index.for_each_key(db, "cpu", Some(&selected), None, visit).unwrap();
        assert_eq!(keys, selected.len());
        let names = ["host".into(), "dc".into()];
        let columns =
            index.tag_columns(db, "cpu", &selected, &names, &Budget::unlimited()).unwrap();
        for (name, column) in names.iter().zip(&columns) {
            for (id, code) in selected.iter().zip(&column.codes) {
                assert_eq!(column.values.get(*code as usize), model[&id].tag(name));
            }
            let listed = index.tag_values(db, "cpu", name, Some(&selected)).unwrap();
            assert!(column.values.iter().eq(listed.iter().map(|value| &**value)));
        }
    }
    for (id, key) in model.iter().step_by(37) {
        assert_eq!(index.lookup(db, key).unwrap(), Some(SeriesId(*id)));
        assert_eq!(index.key(SeriesId(*id)).unwrap().as_ref(), Some(&(db, (*key).clone())));
    }
}

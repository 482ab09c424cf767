//! Long lists of names: they come in parts, and are right however many parts they take and whatever
//! happens to the index in between.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use model::{Scalar, TagExpr, Values};
use platform::{FaultConfig, SimDisk};
use store::testing::{POLICY, Row, names, unlimited, write};
use store::{MetadataKind, MetadataRequest, NameFilter, Store};
use store_local::LocalStore;

mod common;
use common::open;

/// Several walks' worth.
const SERIES: usize = 100_000;

fn key(at: usize) -> String {
    format!("m,a={},h={at:06}", at % 3)
}

fn filled() -> LocalStore {
    let store = open(&SimDisk::new(1, FaultConfig::default()), 64 << 20);
    // Most in a run, the rest in memory, side by side in order.
    for part in [0, 1] {
        let rows: Vec<Row> = (0..SERIES)
            .filter(|at| usize::from(at % 5 == 0) == part)
            .map(|at| Row::new(&key(at), &[("v", Scalar::Integer(1))], 1))
            .collect();
        write(&store, POLICY, &rows, 0).unwrap();
        if part == 0 {
            store.settle().unwrap();
        }
    }
    store
}

fn request(kind: MetadataKind, series: TagExpr) -> MetadataRequest {
    let (database, measurements) = (POLICY.database, NameFilter::All);
    let context = unlimited();
    MetadataRequest { database, kind, measurements, series, facts_max: None, context }
}

#[test]
fn nothing_is_missing_or_double() {
    let store = filled();
    let odd = TagExpr::Not(Box::new(TagExpr::Equals("a".into(), "0".into())));
    for (series, wanted) in [(TagExpr::True, 0..3), (odd, 1..3)] {
        let listed = names(&store, &request(MetadataKind::Series, series.clone())).unwrap();
        let mut keys: Vec<String> =
            (0..SERIES).filter(|at| wanted.contains(&(at % 3))).map(key).collect();
        keys.sort();
        let count = keys.len().to_string();
        assert!(listed.iter().map(|fact| &fact[1]).eq(&keys), "{series:?}");
        let counted = names(&store, &request(MetadataKind::SeriesCounts, series.clone())).unwrap();
        assert_eq!(counted, [["m".to_owned(), count]]);
        let kind = MetadataKind::TagValues(NameFilter::All);
        let values = names(&store, &request(kind, series)).unwrap();
        let mut hosts: Vec<&str> = keys.iter().map(|key| &key[key.len() - 6..]).collect();
        hosts.sort_unstable();
        let tags = wanted.len();
        assert!(values[..tags].iter().all(|fact| fact[1] == "a"));
        assert!(values[tags..].iter().map(|fact| fact[2].as_str()).eq(hosts));
    }
}

/// What was there from beginning to end is listed once, although all of it moves meanwhile.
#[test]
fn the_index_may_change_meanwhile() {
    let store = filled();
    let kind = MetadataKind::TagValues(NameFilter::In(vec!["h".into()]));
    let mut cursor = store.metadata(&request(kind, TagExpr::True)).unwrap();
    let mut listed: Vec<String> = Vec::new();
    let mut parts = 0;
    while let Some(part) = cursor.next().unwrap() {
        let Values::String(values) = &part.columns[2].values else { panic!("text") };
        listed.extend(values.iter().map(str::to_owned));
        parts += 1;
        if parts == 1 {
            let more: Vec<Row> = (0..1000)
                .map(|at| Row::new(&format!("m,h={at:06}x"), &[("v", Scalar::Integer(1))], 1))
                .collect();
            write(&store, POLICY, &more, 0).unwrap();
            store.settle().unwrap();
        }
    }
    assert!(listed.is_sorted_by(|a, b| a < b), "sorted, and nothing twice");
    listed.retain(|host| !host.ends_with('x'));
    assert_eq!(listed.len(), SERIES);
}

/// A listing of which little is wanted ends early, and other measurements follow all the same.
#[test]
fn little_may_be_wanted() {
    let store = filled();
    write(&store, POLICY, &[Row::new("n,h=x", &[("v", Scalar::Integer(1))], 1)], 0).unwrap();
    let mut request = request(MetadataKind::TagValues(NameFilter::All), TagExpr::True);
    request.facts_max = Some(5);
    let listed = names(&store, &request).unwrap();
    assert!((6..SERIES).contains(&listed.len()), "{}", listed.len());
    let text = |fact: [&str; 3]| fact.map(str::to_owned).to_vec();
    assert_eq!(listed[4], text(["m", "h", "000001"]));
    assert_eq!(listed.last(), Some(&text(["n", "h", "x"])));
}

use model::Scalar;
use store::Policy;
use store::reference::ReferenceStore;
use store::testing::{Row, read_all, write};

use super::*;
use crate::Privilege;

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;

fn new() -> (Arc<ReferenceStore>, Catalog) {
    let store = Arc::new(ReferenceStore::new());
    let catalog = Catalog::open(store.clone()).unwrap();
    (store, catalog)
}

fn spec(name: &str, duration_ns: i64) -> PolicySpec {
    PolicySpec { duration_ns: Some(duration_ns), ..PolicySpec::named(name) }
}

fn error(result: Result<(), CatalogError>) -> String {
    result.unwrap_err().to_string()
}

fn policies(catalog: &Catalog, database: &str) -> Vec<String> {
    let state = catalog.snapshot();
    let database = state.database(database).unwrap();
    let line = |p: &crate::PolicyInfo| {
        let default = if database.default_policy == p.name { " default" } else { "" };
        let hours = |ns: i64| ns / HOUR;
        let kept = hours(p.duration_ns.unwrap_or(0));
        format!("{} {kept}h {}h {}{default}", p.name, hours(p.shard_duration_ns), p.replica_n)
    };
    database.policies.iter().map(line).collect()
}

#[test]
fn databases_are_created_once_and_listed_in_order() {
    let (store, catalog) = new();
    for name in ["b", "a", "c", "a"] {
        catalog.create_database(name, None).unwrap();
    }
    let state = catalog.snapshot();
    let names: Vec<&str> = state.databases().iter().map(|d| &*d.name).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(policies(&catalog, "a"), ["autogen 0h 168h 1 default"]);
    assert_eq!(store.catalog().unwrap().version, 3, "creating again writes nothing");
    assert_eq!(error(catalog.create_database("a/b", None)), "invalid name");
    assert_eq!(error(catalog.create_database(&"x".repeat(256), None)), "name too long");
    catalog.drop_database("a").unwrap();
    catalog.create_database("a", None).unwrap();
    let again = catalog.snapshot();
    assert_ne!(again.database("a").unwrap().id, state.database("a").unwrap().id);
    assert!(state.database("a").is_some(), "a snapshot never changes");
}

#[test]
fn create_database_with_a_policy() {
    let (_, catalog) = new();
    let day = spec("day", DAY);
    catalog.create_database("d", Some(&day)).unwrap();
    assert_eq!(policies(&catalog, "d"), ["day 24h 1h 1 default"]);
    catalog.create_database("d", Some(&day)).unwrap();
    catalog.create_database("d", None).unwrap();
    let conflict = "retention policy conflicts with an existing policy";
    for other in [spec("day", 2 * DAY), spec("other", DAY), PolicySpec::default()] {
        assert_eq!(error(catalog.create_database("d", Some(&other))), conflict);
    }
    // Only the default policy may be described.
    catalog.create_policy("d", &spec("week", 7 * DAY), false).unwrap();
    assert_eq!(error(catalog.create_database("d", Some(&spec("week", 7 * DAY)))), conflict);
    let unnamed = spec("", 3 * DAY);
    catalog.create_database("e", Some(&unnamed)).unwrap();
    assert_eq!(policies(&catalog, "e"), ["autogen 72h 24h 1 default"]);
    assert_eq!(
        error(catalog.create_database("f", Some(&spec("x", HOUR - 1)))),
        "retention policy duration must be at least 1h0m0s"
    );
    assert_eq!(error(catalog.create_database("f", Some(&spec("x/y", DAY)))), "invalid name");
    assert!(catalog.snapshot().database("f").is_none());
}

#[test]
fn policies_are_created_altered_and_dropped() {
    let (_, catalog) = new();
    catalog.create_database("d", None).unwrap();
    let day = spec("day", DAY);
    catalog.create_policy("d", &day, false).unwrap();
    catalog.create_policy("d", &day, false).unwrap();
    assert_eq!(
        error(catalog.create_policy("d", &spec("day", 2 * DAY), false)),
        "retention policy already exists"
    );
    assert_eq!(
        error(catalog.create_policy("d", &day, true)),
        "retention policy conflicts with an existing policy"
    );
    assert_eq!(error(catalog.create_policy("x", &day, false)), "database not found: x");
    assert_eq!(error(catalog.create_policy("d", &PolicySpec::default(), false)), "invalid name");
    catalog.create_policy("d", &spec("week", 7 * DAY), true).unwrap();
    assert_eq!(
        policies(&catalog, "d"),
        ["autogen 0h 168h 1", "day 24h 1h 1", "week 168h 24h 1 default"]
    );
    let id = |name: &str| catalog.snapshot().resolve("d", Some(name)).unwrap().id;
    let before = id("day");
    let changed = PolicySpec { replica_n: Some(3), ..spec("day", 2 * DAY) };
    catalog.alter_policy("d", &changed, true).unwrap();
    assert_eq!(id("day"), before);
    assert_eq!(policies(&catalog, "d")[1], "day 48h 1h 3 default");
    assert_eq!(
        error(catalog.alter_policy("d", &spec("r9", DAY), false)),
        "retention policy not found: r9"
    );
    assert_eq!(error(catalog.alter_policy("x", &day, false)), "database not found: x");
    assert_eq!(
        error(catalog.alter_policy("d", &spec("week", HOUR), false)),
        "retention policy duration must be greater than the shard duration"
    );
    catalog.drop_policy("d", "none").unwrap();
    catalog.drop_policy("none", "day").unwrap();
    catalog.drop_policy("d", "day").unwrap();
    assert_eq!(policies(&catalog, "d"), ["autogen 0h 168h 1", "week 168h 24h 1"]);
    let unqualified = catalog.snapshot().resolve("d", None).map(drop);
    assert_eq!(error(unqualified), "retention policy not found: day");
    catalog.create_policy("d", &day, false).unwrap();
    assert_ne!(id("day"), before);
    assert!(catalog.snapshot().resolve("d", None).is_ok(), "the name still is the default");
}

#[test]
fn names_resolve_to_policies() {
    let (_, catalog) = new();
    catalog.create_database("d", Some(&spec("day", DAY))).unwrap();
    let state = catalog.snapshot();
    let database = state.database("d").unwrap();
    let policy = Policy {
        database: database.id,
        id: database.policies[0].id,
        partition_ns: HOUR,
        retention_ns: Some(DAY),
    };
    for name in [None, Some(""), Some("day")] {
        assert_eq!(state.resolve("d", name).unwrap(), policy);
    }
    assert_eq!(error(state.resolve("d", Some("Day")).map(drop)), "retention policy not found: Day");
    assert_eq!(error(state.resolve("x", None).map(drop)), "database not found: x");
    assert_eq!(state.expired(30 * DAY), [(policy.database, policy.id, 29 * DAY)]);
    assert_eq!(state.expired(i64::MIN)[0].2, i64::MIN);
}

#[test]
fn without_autocreation_there_is_no_policy() {
    let options = CatalogOptions { retention_autocreate: false };
    let catalog = Catalog::open_with(Arc::new(ReferenceStore::new()), options).unwrap();
    catalog.create_database("d", None).unwrap();
    let unqualified = catalog.snapshot().resolve("d", None).map(drop);
    assert_eq!(error(unqualified), "retention policy not found: ");
    catalog.create_database("d", Some(&spec("day", DAY))).unwrap();
    assert_eq!(policies(&catalog, "d"), ["day 24h 1h 1 default"]);
}

#[test]
fn two_handles_see_each_others_changes() {
    let (store, one) = new();
    let two = Catalog::open(store.clone()).unwrap();
    one.create_database("a", None).unwrap();
    two.create_database("b", None).unwrap();
    two.create_database("a", Some(&spec("x", DAY))).unwrap_err();
    one.create_database("c", None).unwrap();
    assert_eq!(two.snapshot().databases().len(), 2);
    assert_eq!(two.refresh().unwrap().databases().len(), 3);
    let mut ids: Vec<_> =
        two.snapshot().databases().iter().map(|d| (d.id, d.policies[0].id)).collect();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    std::thread::scope(|scope| {
        for (at, catalog) in [&one, &two, &one, &two].into_iter().enumerate() {
            scope.spawn(move || {
                for n in 0..20 {
                    catalog.create_database(&format!("{at}-{n}"), None).unwrap();
                }
            });
        }
    });
    let reopened = Catalog::open(store).unwrap().snapshot();
    assert_eq!(reopened.databases().len(), 83);
    let last = reopened.databases().iter().map(|d| d.id.0).max();
    assert_eq!(last, Some(83), "every id once");
}

#[test]
fn drops_remove_rows_and_an_interrupted_one_goes_on() {
    let (store, catalog) = new();
    catalog.create_database("d", None).unwrap();
    catalog.create_policy("d", &spec("day", DAY), false).unwrap();
    let state = catalog.snapshot();
    let (autogen, day) =
        (state.resolve("d", None).unwrap(), state.resolve("d", Some("day")).unwrap());
    let rows = [Row::new("m", &[("x", Scalar::Integer(1))], 5)];
    let fill = || {
        write(&*store, autogen, &rows, 0).unwrap();
        write(&*store, day, &rows, 0).unwrap();
    };
    let count = |policy| read_all(&*store, policy, "m").unwrap().len();
    fill();
    catalog.drop_policy("d", "day").unwrap();
    assert_eq!((count(autogen), count(day)), (1, 0));
    assert_eq!(catalog.snapshot().orphans, []);
    catalog.drop_database("d").unwrap();
    assert_eq!((count(autogen), count(day)), (0, 0));
    assert_eq!(catalog.snapshot().orphans, []);

    // A process that died between the two steps of a drop.
    catalog.create_database("e", None).unwrap();
    fill();
    let before = catalog.snapshot();
    let mut draft = Draft::of(&before);
    draft.drop_database("e");
    let mut orphaned = draft.finish(before.version + 1).unwrap();
    orphaned.orphans.push(Orphan { database: autogen.database, policy: Some(day.id) });
    store.swap_catalog(before.version, &document::encode(&orphaned)).unwrap();
    let reopened = Catalog::open(store.clone()).unwrap();
    assert_eq!((count(autogen), count(day)), (1, 0), "only what the orphans name");
    assert_eq!(reopened.snapshot().orphans, []);
    assert!(reopened.snapshot().database("e").is_none());
    let ids = document::decode(&store.catalog().unwrap()).unwrap();
    assert_eq!(ids.next_database_id, before.next_database_id, "ids are not given again");
}

#[test]
fn a_document_of_another_format_is_refused() {
    let store = Arc::new(ReferenceStore::new());
    store.swap_catalog(0, br#"{"format":99,"users":[]}"#).unwrap();
    let opened = Catalog::open(store).map(drop);
    assert_eq!(
        error(opened),
        "the catalog's document (version 1) cannot be used: it has format 99, this program knows 2"
    );
}

#[test]
fn users_are_created_changed_and_dropped() {
    let (store, catalog) = new();
    catalog.create_database("d", None).unwrap();
    catalog.create_user("ann", "secret", true).unwrap();
    catalog.create_user("ann", "secret", true).unwrap();
    assert_eq!(error(catalog.create_user("ann", "other", true)), "user already exists");
    assert_eq!(error(catalog.create_user("ann", "secret", false)), "user already exists");
    assert_eq!(error(catalog.create_user("", "secret", false)), "username required");
    catalog.create_user("bob", "", false).unwrap();
    catalog.set_password("bob", "new").unwrap();
    for missing in [
        catalog.set_password("eve", "x"),
        catalog.set_admin("eve", true),
        catalog.drop_user("eve"),
        catalog.grant("eve", "nowhere", Privilege::Read),
        catalog.revoke("eve", "d", Privilege::Read),
    ] {
        assert_eq!(error(missing), "user not found");
    }
    assert_eq!(error(catalog.grant("bob", "e", Privilege::Read)), "database not found: e");
    catalog.grant("bob", "d", Privilege::All).unwrap();
    catalog.revoke("bob", "d", Privilege::Read).unwrap();
    // Whoever opens the store next sees the same.
    let catalog = Catalog::open(store).unwrap();
    let state = catalog.snapshot();
    let (bob, d) = (state.user("bob").unwrap(), state.database("d").unwrap().id);
    assert!(bob.password.verify("new") && !bob.admin);
    assert_eq!(bob.grants, [(d, Privilege::Write)]);
    assert!(bob.may(Privilege::Write, Some(d)) && !bob.may(Privilege::Read, Some(d)));
    assert!(!bob.may(Privilege::Write, None));
    assert!(state.user("ann").unwrap().may(Privilege::All, None));
    catalog.set_admin("bob", true).unwrap();
    catalog.drop_user("ann").unwrap();
    let users = catalog.snapshot();
    assert_eq!(users.users().len(), 1);
    assert!(users.user("bob").unwrap().admin);
}

#[test]
fn grants_go_with_their_database() {
    let (_, catalog) = new();
    catalog.create_user("bob", "x", false).unwrap();
    for name in ["d", "e"] {
        catalog.create_database(name, None).unwrap();
        catalog.grant("bob", name, Privilege::Read).unwrap();
    }
    catalog.drop_database("d").unwrap();
    catalog.create_database("d", None).unwrap();
    let state = catalog.snapshot();
    let grants = &state.user("bob").unwrap().grants;
    assert_eq!(*grants, [(state.database("e").unwrap().id, Privilege::Read)]);
}

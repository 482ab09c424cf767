//! Tables, partitions and columns that somebody drops or changes behind the store's back: who reads or
//! writes is told what is gone and what to do, and is never answered as if there had been nothing.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use common::{fresh, one_server};
use kudu_client::{Client, ClientConfig, Column, DataType, Error, Table};
use model::{Scalar, TimeRange};
use store::testing::{HOUR_NS, POLICY, Row, read_all, scan_everything, write};
use store::{DeleteRequest, DeleteTarget, Store};
use store_kudu::{KuduOptions, KuduStore};

fn row(field: &str, time_ns: i64) -> Row {
    Row::new("m,h=1", &[(field, Scalar::Integer(time_ns))], time_ns)
}

/// Does something to the data table by hand.
fn by_hand<T>(
    options: &KuduOptions,
    act: impl AsyncFnOnce(Client, Table) -> Result<T, Error>,
) -> T {
    let config = ClientConfig::new(one_server().masters()).unwrap().user("tester", "");
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = Client::new(config);
        let table = client.open_table(&format!("{}.db1.rp1.m1.m", options.prefix)).await.unwrap();
        act(client, table).await.unwrap()
    })
}

fn why(options: &KuduOptions, what: Result<impl std::fmt::Debug, store::StoreError>) -> String {
    let error = what.unwrap_err().to_string();
    assert!(error.contains(&format!("table {}.db1.rp1.m1.m", options.prefix)), "{error}");
    error
}

/// Why a read fails, once it does: servers drop what they have a moment after the master.
fn why_not_read(options: &KuduOptions, store: &KuduStore) -> String {
    for _ in 0..600 {
        match read_all(store, POLICY, "m") {
            Ok(rows) => assert!(!rows.is_empty(), "an answer as if there had been nothing"),
            Err(error) => return why(options, Err::<(), _>(error)),
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nothing is missed");
}

#[test]
fn a_table() {
    let options = fresh(one_server());
    let stores = [(); 2].map(|()| KuduStore::open(&options).unwrap());
    write(&stores[0], POLICY, &[row("x", 1)], 0).unwrap();
    assert_eq!(read_all(&stores[0], POLICY, "m").unwrap().len(), 1);
    by_hand(&options, async |client, table| client.delete_table(table.name()).await);
    // Who had it open may learn of it in the middle.
    let first = why_not_read(&options, &stores[0]);
    assert!(first.contains("is gone"), "{first}");
    for store in &stores {
        for _ in 0..2 {
            let error = why(&options, read_all(store, POLICY, "m"));
            assert!(error.contains("by hand") && error.contains("DROP MEASUREMENT"), "{error}");
            let error = why(&options, write(store, POLICY, &[row("x", 2)], 0));
            assert!(error.contains("by hand") && error.contains("DROP MEASUREMENT"), "{error}");
        }
    }
    let target = DeleteTarget::Measurement("m".into());
    stores[1].delete(&DeleteRequest { database: POLICY.database, target }).unwrap();
    assert_eq!(read_all(&stores[0], POLICY, "m").unwrap(), []);
    write(&stores[0], POLICY, &[row("x", 3)], 0).unwrap();
    assert_eq!(read_all(&stores[1], POLICY, "m").unwrap(), [row("x", 3)]);
}

#[test]
fn a_partition() {
    let options = fresh(one_server());
    let stores = [(); 2].map(|()| KuduStore::open(&options).unwrap());
    write(&stores[0], POLICY, &[row("x", 0), row("x", HOUR_NS), row("x", 2 * HOUR_NS)], 0).unwrap();
    assert_eq!(read_all(&stores[0], POLICY, "m").unwrap().len(), 3);
    let drop_one = |index: usize| {
        by_hand(&options, async |_, table| {
            let range = table.range_partitions().await?.remove(index);
            table.alter().drop_range(range).apply().await
        })
    };
    drop_one(1);
    why_not_read(&options, &stores[0]);
    for store in &stores {
        for _ in 0..2 {
            let error = why(&options, read_all(store, POLICY, "m"));
            assert!(error.contains("the partition from") && error.contains("by hand"), "{error}");
        }
        // What does not touch it is not concerned.
        let mut request = scan_everything(store, POLICY, "m").unwrap();
        request.time = TimeRange::new(0, HOUR_NS - 1);
        store.scan(&request).unwrap();
    }
    // A row that is written makes it again.
    write(&stores[1], POLICY, &[row("x", HOUR_NS + 7)], 0).unwrap();
    for store in &stores {
        let rows = read_all(store, POLICY, "m").unwrap();
        assert_eq!(rows, [row("x", 0), row("x", HOUR_NS + 7), row("x", 2 * HOUR_NS)]);
    }
    // Once it is over it is not missed.
    drop_one(0);
    why_not_read(&options, &stores[0]);
    stores[1].expire(POLICY.database, POLICY.id, HOUR_NS).unwrap();
    assert_eq!(read_all(&stores[0], POLICY, "m").unwrap().len(), 2);
}

/// Each of two tables has the partitions of its own rows only.
#[test]
fn a_partition_of_the_other_table_is_not_missed() {
    let options = KuduOptions { columns: 1, ..fresh(one_server()) };
    let store = KuduStore::open(&options).unwrap();
    for (field, time) in [("x", 0), ("y", HOUR_NS)] {
        write(&store, POLICY, &[row(field, time)], 0).unwrap();
    }
    let other = KuduStore::open(&options).unwrap();
    for store in [&store, &other] {
        for field in ["x", "y"] {
            let mut request = scan_everything(store, POLICY, "m").unwrap();
            request.fields.retain(|(name, _)| &**name == field);
            store.scan(&request).unwrap();
        }
        assert_eq!(read_all(store, POLICY, "m").unwrap(), [row("x", 0), row("y", HOUR_NS)]);
    }
}

#[test]
fn a_column() {
    let options = fresh(one_server());
    let store = KuduStore::open(&options).unwrap();
    write(&store, POLICY, &[row("x", 1), row("y", 1)], 0).unwrap();
    let both = read_all(&store, POLICY, "m").unwrap();
    let rename = |from: &str, to: &str| {
        by_hand(&options, async |_, table| table.alter().rename_column(from, to).apply().await)
    };
    rename("x", "mine");
    let first = why(&options, read_all(&store, POLICY, "m"));
    assert!(first.contains("has changed"), "{first}");
    for _ in 0..2 {
        let error = why(&options, read_all(&store, POLICY, "m"));
        assert!(error.contains("column x") && error.contains("rename it back"), "{error}");
    }
    // A daemon that has never seen it cannot know; it says so in its log.
    let other = KuduStore::open(&options).unwrap();
    assert_eq!(read_all(&other, POLICY, "m").unwrap(), [row("y", 1)]);
    rename("mine", "x");
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), both);
    assert_eq!(read_all(&other, POLICY, "m").unwrap(), both);
    by_hand(&options, async |_, table| table.alter().drop_column("x").apply().await);
    write(&store, POLICY, &[row("x", 2)], 0).unwrap();
    assert_eq!(read_all(&store, POLICY, "m").unwrap(), [row("y", 1), row("x", 2)]);
}

#[test]
fn a_column_of_another_type() {
    let options = fresh(one_server());
    let store = KuduStore::open(&options).unwrap();
    write(&store, POLICY, &[row("x", 1), row("y", 1)], 0).unwrap();
    read_all(&store, POLICY, "m").unwrap();
    by_hand(&options, async |_, table| {
        table.alter().drop_column("x").apply().await?;
        let other = Column::new("x", DataType::String).nullable();
        table.alter().add_column(other).apply().await
    });
    // Who had the table open may see that it has changed first.
    let _ = why(&options, read_all(&store, POLICY, "m"));
    let other = KuduStore::open(&options).unwrap();
    for store in [&store, &other] {
        let error = why(&options, read_all(store, POLICY, "m"));
        assert!(error.contains("column x") && error.contains("rename it"), "{error}");
        let error = why(&options, write(store, POLICY, &[row("x", 2)], 0));
        assert!(error.contains("column x") && error.contains("rename it"), "{error}");
    }
    by_hand(&options, async |_, table| table.alter().rename_column("x", "mine").apply().await);
    write(&store, POLICY, &[row("x", 2)], 0).unwrap();
    assert_eq!(read_all(&other, POLICY, "m").unwrap(), [row("y", 1), row("x", 2)]);
}

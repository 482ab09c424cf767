//! Shows that what is wrong is found: an oracle or a store is broken on purpose.

use store::reference::ReferenceStore;
use store::testing::{self, Row as StoreRow};
use store::{DeleteRequest, DeleteTarget, Store};
use store_local::SyncPolicy;

use crate::Failure;
use crate::Operation::{self, *};
use crate::content::{Content, Scope};
use crate::generate;
use crate::operation::Row;
use crate::oracle::{Left, Oracle};
use crate::pool;
use crate::runner::{Runner, guarded};

fn row(value: u32) -> Row {
    Row { series: 1, time: 300, fields: 2, value }
}

fn write(value: u32) -> Operation {
    Write { policy: 0, rows: vec![row(value)] }
}

/// Runs a history in which the oracle forgets the operation with number `flaw`.
fn run_forgetful(operations: &[Operation], flaw: usize) -> Result<(), String> {
    guarded(|| {
        let mut runner = Runner::new(1);
        for (at, operation) in operations.iter().enumerate() {
            runner.apply(operation)?;
            if at == flaw {
                runner.oracle.forget_last();
            }
        }
        runner.finish()
    })
}

#[test]
fn an_oracle_that_forgets_does_not_agree_with_the_store() {
    let delete = DeleteRows { database: 0, measurement: None, host: None, times: None };
    let named = DeleteMatching { policy: 1, measurement: 1, fields: 2, one_in: 1, stale: false };
    let operations = [
        write(2),
        Write { policy: 2, rows: vec![row(3)] },
        Expire { policy: 2, before: 511 },
        delete,
        Write { policy: 1, rows: vec![row(4)] },
        SwapCatalog { bytes: 3 },
        Write { policy: 1, rows: vec![Row { series: 9, ..row(5) }] },
        named,
        Flush,
        Crash { kill: false, again: vec![] },
    ];
    assert_eq!(run_forgetful(&operations, usize::MAX), Ok(()));
    for flaw in [2, 3, 4, 5, 7] {
        let message = run_forgetful(&operations, flaw).unwrap_err();
        assert!(message.contains("none of 1 worlds"), "{message}");
    }
    assert_eq!(run_forgetful(&operations[..2], usize::MAX), Ok(()));
    assert!(run_forgetful(&operations[..2], 0).is_err());
}

/// Runs a history on a store that acknowledges without syncing.
fn run_careless(seed: u64, operations: &[Operation]) -> Result<(), String> {
    guarded(|| {
        let mut runner = Runner::new(seed);
        runner.setup.sync = SyncPolicy::Never;
        runner.run(operations)
    })
}

#[test]
fn a_store_that_does_not_sync_is_found_out_and_shown_shortly() {
    let mut found = 0;
    for seed in 1..8 {
        let operations = generate::history(seed, 40);
        if let Err(message) = run_careless(seed, &operations) {
            found += 1;
            let run = |some: &[Operation]| run_careless(seed, some);
            let failure = Failure::shrunk(seed, operations, message, &run);
            assert!(failure.operations.len() <= 8, "{failure}");
            assert!(failure.to_string().contains("let operations = ["), "{failure}");
            if found == 2 {
                return;
            }
        }
    }
    panic!("only {found} histories found it");
}

#[test]
fn panics_are_findings() {
    let message = guarded(|| -> Result<(), String> { panic!("broken {}", 5) }).unwrap_err();
    assert!(message.contains("broken 5") && message.contains("canary.rs"), "{message}");
}

/// What the oracle says of a store that holds `kept` of a write of three rows, two of them in one
/// partition, that failed.
fn torn_write(left: Left, kept: &[usize]) -> Result<(), String> {
    let at = |series, time| pool::store_row(&Row { series, time, fields: 3, value: 7 });
    let rows = [at(1, 0), at(2, 1), at(3, 400)];
    let policy = pool::policy(0, 0);
    let measurements = pool::measurements().map(Into::into).collect();
    let mut scope = Scope { measurements, ..Scope::default() };
    scope.add(policy);
    let mut oracle = Oracle::new(scope);
    oracle.uncertain_write(policy, &rows, left);
    let store = ReferenceStore::new();
    let write = |rows: &[StoreRow]| testing::write(&store, policy, rows, pool::NOW_NS).unwrap();
    // Whose rows are gone again: definitions stay.
    write(&rows);
    store
        .delete(&DeleteRequest {
            database: policy.database,
            target: DeleteTarget::Policy(policy.id),
        })
        .unwrap();
    let kept: Vec<StoreRow> = kept.iter().map(|at| rows[*at].clone()).collect();
    write(&kept);
    let content = Content::read(&store, &oracle.scope).unwrap();
    oracle.check(&content, true)
}

#[test]
fn a_torn_write_is_whole_in_each_partition() {
    for kept in [vec![], vec![0, 1, 2]] {
        assert_eq!(torn_write(Left::NoneOrAll, &kept), Ok(()), "{kept:?}");
        assert_eq!(torn_write(Left::NoneOrAllByPartition, &kept), Ok(()), "{kept:?}");
    }
    for kept in [vec![0, 1], vec![2]] {
        torn_write(Left::NoneOrAll, &kept).unwrap_err();
        assert_eq!(torn_write(Left::NoneOrAllByPartition, &kept), Ok(()), "{kept:?}");
    }
    for kept in [vec![0], vec![1, 2]] {
        torn_write(Left::NoneOrAll, &kept).unwrap_err();
        torn_write(Left::NoneOrAllByPartition, &kept).unwrap_err();
    }
    torn_write(Left::NoRows, &[2]).unwrap_err();
}

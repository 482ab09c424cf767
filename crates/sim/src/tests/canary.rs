//! Shows that what is wrong is found: an oracle or a store is broken on purpose.

use store_local::SyncPolicy;

use crate::Failure;
use crate::Operation::{self, *};
use crate::generate;
use crate::operation::Row;
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
    let operations = [
        write(2),
        Write { policy: 2, rows: vec![row(3)] },
        Expire { policy: 2, before: 511 },
        delete,
        Write { policy: 1, rows: vec![row(4)] },
        SwapCatalog { bytes: 3 },
        Flush,
        Crash { kill: false, again: vec![] },
    ];
    assert_eq!(run_forgetful(&operations, usize::MAX), Ok(()));
    for flaw in [2, 3, 4, 5] {
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

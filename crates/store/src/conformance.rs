//! The suite every store must pass: named cases, and random operations compared with the
//! reference model.
//!
//! Nothing here assumes ids, pages, an order of series or when maintenance happens, so that it fits
//! a remote store as well as an embedded one. Where the contract leaves a choice, either is taken.
//! A failing random run is cut down to few operations and printed.
//!
//! Beyond the contract's text the suite settles:
//! - Rows older than the retention are refused as such before their field types are looked at.
//! - `rows_per_series` together with filters counts rows that satisfy the filters.
//! - `sum`, `min` and `max` of text and booleans are not looked at.

mod apply;
mod cases;
mod compare;
mod generate;
mod operation;
mod partitions;
mod random;
mod revisions;
mod shrink;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use self::apply::Pair;
use self::cases::CASES;
use crate::Store;

/// A store under test, empty at first.
pub trait TestStore {
    /// The store.
    fn store(&self) -> &dyn Store;

    /// Closes the store and opens it again with everything it acknowledged.
    fn reopen(&mut self);

    /// Does work that would be done in the background in time: flushes, compactions, cleaning.
    fn maintain(&mut self);
}

/// Makes a new, empty store.
pub type Factory<'a> = &'a dyn Fn() -> Box<dyn TestStore>;

/// Runs the named cases and some random sequences.
///
/// # Panics
/// If the store fails, with everything that failed.
pub fn run(factory: Factory<'_>) {
    run_cases(factory);
    for seed in 1..=8 {
        run_random(factory, seed, 200);
    }
}

/// Runs the named cases only.
///
/// # Panics
/// If the store fails, with every case that failed.
pub fn run_cases(factory: Factory<'_>) {
    let mut failures = String::new();
    for (name, case) in CASES {
        let result = guard(|| {
            case(&mut Pair::new(factory()))?;
            Ok(())
        });
        if let Err(message) = result {
            write!(failures, "\ncase {name}: {message}").expect("BUG: text can always grow");
        }
    }
    assert!(failures.is_empty(), "the store does not conform:{failures}");
}

/// Runs `count` random operations that follow from `seed`.
///
/// # Panics
/// If the store differs from the reference model, with a short list of operations that shows it.
pub fn run_random(factory: Factory<'_>, seed: u64, count: usize) {
    let operations = generate::operations(seed, count);
    if let Err(first) = random::run(factory, &operations) {
        let (operations, message) = shrink::shrink(factory, operations, first);
        let mut list = String::new();
        for operation in &operations {
            write!(list, "\n  {operation}").expect("BUG: text can always grow");
        }
        panic!("seed {seed}: {message}\nafter:{list}");
    }
}

/// Runs `work`; a panic becomes its message.
fn guard(work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

mod canary;
mod found;

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::generate;
use crate::runner::Runner;
use crate::{FlipSummary, Shape, Summary, ThreadSummary, run_flips, run_seed, run_threads};

/// Operations of a random history.
const LENGTH: usize = 40;

fn random(seeds: std::ops::Range<u64>) -> Summary {
    let mut sum = Summary::default();
    for seed in seeds {
        match run_seed(seed, Shape::Random, LENGTH) {
            Ok(summary) => sum.add(&summary),
            Err(failure) => panic!("{failure}"),
        }
    }
    sum
}

// Two halves, so that two threads share the work.
#[test]
fn random_histories_end_well() {
    let sum = random(1..151);
    assert!(sum.crashes > 100 && sum.failed > 100 && sum.open_failures > 10, "{sum:?}");
}

#[test]
fn more_random_histories_end_well() {
    let sum = random(1_000..1_150);
    assert!(sum.rows_replayed > 10_000 && sum.checks > 500, "{sum:?}");
}

#[test]
fn power_may_be_lost_at_every_operation_of_the_disk() {
    let mut sum = Summary::default();
    for seed in 1..3 {
        match run_seed(seed, Shape::EveryCrash, LENGTH) {
            Ok(summary) => sum.add(&summary),
            Err(failure) => panic!("{failure}"),
        }
    }
    assert!(sum.crashes > 100 && sum.open_failures > 20, "{sum:?}");
}

#[test]
fn flipped_bits_are_noticed_and_spread_no_further() {
    let mut sum = FlipSummary::default();
    for seed in 1..20 {
        sum.add(&run_flips(seed, LENGTH, 12).unwrap());
    }
    assert!(sum.refused > 10 && sum.reported > 10 && sum.read_errors > 10, "{sum:?}");
    assert!(sum.mended > 40, "{sum:?}");
}

#[test]
fn threads_keep_what_they_were_told_is_kept() {
    let mut sum = ThreadSummary::default();
    for seed in 1..9 {
        sum.add(&run_threads(seed).unwrap());
    }
    assert!(sum.acknowledged > 1_000 && sum.cut_off > 10, "{sum:?}");
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    let trace = |seed: u64| -> (Summary, BTreeMap<PathBuf, Vec<u8>>) {
        let mut runner = Runner::new(seed);
        runner.run(&generate::history(seed, LENGTH)).unwrap();
        (runner.summary, runner.disk.contents())
    };
    for seed in [3, 4, 5, 6, 7, 8] {
        let (first, second) = (trace(seed), trace(seed));
        assert_eq!(first.0, second.0);
        assert!(first.1 == second.1, "the disk of seed {seed} differs");
    }
    assert_ne!(trace(3).0, trace(4).0);
}

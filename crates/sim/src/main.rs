//! Runs histories and says what they found.

use std::io::Write;

use clap::{Parser, ValueEnum};
use sim::{FlipSummary, Shape, Summary, run_flips, run_seed};

/// Simulates crashes and disk faults on the embedded store.
#[derive(Debug, Parser)]
struct Arguments {
    /// The first seed; each history takes the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many histories.
    #[arg(long, default_value_t = 1000)]
    histories: u64,
    /// Operations of a history.
    #[arg(long, default_value_t = 60)]
    length: usize,
    /// What is done with them.
    #[arg(long, value_enum, default_value_t = Mode::Random)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    /// Crashes and faults at random.
    Random,
    /// Short histories, with power lost at every operation of the disk.
    EveryCrash,
    /// Bits flip in files of a store that was filled.
    Flips,
}

/// Bits flipped in each store.
const FLIPS: u64 = 40;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    let (mut sum, mut flips) = (Summary::default(), FlipSummary::default());
    let mut failures = 0u64;
    for seed in arguments.seed..arguments.seed + arguments.histories {
        let length = arguments.length;
        let result = match arguments.mode {
            Mode::Random => run_seed(seed, Shape::Random, length).map(|s| sum.add(&s)),
            Mode::EveryCrash => run_seed(seed, Shape::EveryCrash, length).map(|s| sum.add(&s)),
            Mode::Flips => {
                let flipped = run_flips(seed, length, FLIPS);
                if let Err(message) = &flipped {
                    writeln!(out, "{message}\n")?;
                    failures += 1;
                }
                flips.add(&flipped.unwrap_or_default());
                continue;
            }
        };
        if let Err(failure) = result {
            writeln!(out, "{failure}\n")?;
            failures += 1;
        }
    }
    match arguments.mode {
        Mode::Flips => writeln!(out, "{flips:#?}")?,
        Mode::Random | Mode::EveryCrash => writeln!(out, "{sum:#?}")?,
    }
    anyhow::ensure!(failures == 0, "{failures} of {} histories failed", arguments.histories);
    Ok(())
}

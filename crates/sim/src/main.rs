//! Runs histories and says what they found.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use sim::{FlipSummary, Shape, Summary, ThreadSummary, run_flips, run_seed, run_threads};

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
    /// Threads work at the same time until power is lost. Not the same from run to run.
    Threads,
}

/// Bits flipped in each store.
const FLIPS: u64 = 40;

/// How often progress is shown.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Totals {
    histories: Summary,
    flips: FlipSummary,
    threads: ThreadSummary,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let mut out = std::io::stdout().lock();
    let mut totals = Totals::default();
    let mut failures = 0u64;
    let started = Instant::now();
    let mut told = started;
    for done in 0..arguments.histories {
        if let Err(failure) = run(&arguments, arguments.seed + done, &mut totals) {
            failures += 1;
            writeln!(out, "{failure}\n")?;
        }
        if told.elapsed() >= PROGRESS_EVERY {
            told = Instant::now();
            let (done, all) = (done + 1, arguments.histories);
            let per_second = done as f64 / started.elapsed().as_secs_f64();
            let left = (all - done) as f64 / per_second;
            let progress = format!("{done} of {all}, {failures} failed, {left:.0} s left");
            writeln!(std::io::stderr(), "{progress}")?;
        }
    }
    match arguments.mode {
        Mode::Random | Mode::EveryCrash => writeln!(out, "{:#?}", totals.histories)?,
        Mode::Flips => writeln!(out, "{:#?}", totals.flips)?,
        Mode::Threads => writeln!(out, "{:#?}", totals.threads)?,
    }
    anyhow::ensure!(failures == 0, "{failures} of {} histories failed", arguments.histories);
    Ok(())
}

/// Runs what follows from one seed.
fn run(arguments: &Arguments, seed: u64, totals: &mut Totals) -> Result<(), String> {
    let random = |shape| run_seed(seed, shape, arguments.length).map_err(|f| f.to_string());
    match arguments.mode {
        Mode::Random => totals.histories.add(&random(Shape::Random)?),
        Mode::EveryCrash => totals.histories.add(&random(Shape::EveryCrash)?),
        Mode::Flips => totals.flips.add(&run_flips(seed, arguments.length, FLIPS)?),
        Mode::Threads => totals.threads.add(&run_threads(seed)?),
    }
    Ok(())
}

//! Histories by seed: random ones, and short ones with power lost at every operation of the disk.

use std::fmt;

use crate::generate;
use crate::operation::{Operation, Trouble};
use crate::random::Random;
use crate::runner::{Summary, run};
use crate::shrink::shrink;

/// What a seed is made into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A long history in which things go wrong at random.
    Random,
    /// A short one, run once for each operation of the disk, with power lost there.
    EveryCrash,
}

/// A history that showed that the store is wrong.
#[derive(Debug)]
pub struct Failure {
    /// The seed it came from.
    pub seed: u64,
    /// As little of it as shows the same.
    pub operations: Vec<Operation>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.message)?;
        writeln!(f, "shown by:")?;
        writeln!(f, "    use sim::{{Fault::*, Kind, Operation::*, Row, Trouble::*, run}};")?;
        writeln!(f, "    let operations = [")?;
        for operation in &self.operations {
            writeln!(f, "        {operation},")?;
        }
        writeln!(f, "    ];")?;
        write!(f, "    run({}, &operations).unwrap();", self.seed)
    }
}

/// Operations of a short history.
const SHORT: usize = 8;

/// Runs the history that follows from `seed`.
///
/// # Errors
/// A short history that shows what the store does wrong.
pub fn run_seed(seed: u64, shape: Shape, length: usize) -> Result<Summary, Box<Failure>> {
    match shape {
        Shape::Random => run_one(seed, generate::history(seed, length)),
        Shape::EveryCrash => {
            let operations = generate::calm(seed, SHORT);
            let mut sum = run_one(seed, operations.clone())?;
            let mut random = Random::new(seed);
            for after in 0..sum.disk_operations {
                let mut crashing = operations.clone();
                let loss = Trouble::PowerLossAfter(after as u16);
                // While the store is made, or once it is.
                if random.chance(30) {
                    crashing.insert(0, Operation::Crash { kill: false, again: vec![loss] });
                } else {
                    crashing.insert(0, Operation::Begin(loss));
                }
                let again = Trouble::PowerLossAfter(random.below(30) as u16);
                crashing.push(Operation::Crash { kill: false, again: vec![again] });
                sum.add(&run_one(seed, crashing)?);
            }
            Ok(sum)
        }
    }
}

fn run_one(seed: u64, operations: Vec<Operation>) -> Result<Summary, Box<Failure>> {
    run(seed, &operations).map_err(|message| {
        Failure::shrunk(seed, operations, message, &|some| run(seed, some).map(drop))
    })
}

impl Failure {
    /// The failure with as few operations as still fail when they are `run`.
    pub(crate) fn shrunk(
        seed: u64,
        operations: Vec<Operation>,
        message: String,
        run: &dyn Fn(&[Operation]) -> Result<(), String>,
    ) -> Box<Self> {
        let (operations, message) = shrink(operations, message, run);
        Box::new(Self { seed, operations, message })
    }
}

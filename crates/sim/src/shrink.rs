//! Cuts a failing history down: what the failure does not need is left out.

use crate::operation::Operation;

/// Histories run at most.
const RUNS_MAX: usize = 500;

/// A shorter history that still fails, and how.
pub(crate) fn shrink(
    operations: Vec<Operation>,
    message: String,
    run: &dyn Fn(&[Operation]) -> Result<(), String>,
) -> (Vec<Operation>, String) {
    let mut shrinking = Shrinking { operations, message, run, runs: 0 };
    shrinking.drop_operations();
    shrinking.drop_rows();
    shrinking.drop_operations();
    (shrinking.operations, shrinking.message)
}

struct Shrinking<'a> {
    operations: Vec<Operation>,
    message: String,
    run: &'a dyn Fn(&[Operation]) -> Result<(), String>,
    runs: usize,
}

impl Shrinking<'_> {
    /// Takes over `candidate` if it fails too.
    fn fails(&mut self, candidate: Vec<Operation>) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        self.runs += 1;
        match (self.run)(&candidate) {
            Ok(()) => false,
            Err(message) => {
                (self.operations, self.message) = (candidate, message);
                true
            }
        }
    }

    fn drop_operations(&mut self) {
        let mut chunk = self.operations.len().div_ceil(2);
        while chunk > 0 {
            // From the end: what follows the failure goes first.
            let mut end = self.operations.len();
            while end > 0 {
                let start = end.saturating_sub(chunk);
                let mut candidate = self.operations.clone();
                candidate.drain(start..end);
                self.fails(candidate);
                end = start;
            }
            chunk /= 2;
        }
    }

    fn drop_rows(&mut self) {
        for at in 0..self.operations.len() {
            let mut chunk = self.rows_of(at).div_ceil(2);
            while chunk > 0 {
                let mut end = self.rows_of(at);
                while end > 0 {
                    let start = end.saturating_sub(chunk);
                    let mut candidate = self.operations.clone();
                    if let Operation::Write { rows, .. } = &mut candidate[at] {
                        rows.drain(start..end);
                    }
                    self.fails(candidate);
                    end = start;
                }
                chunk /= 2;
            }
        }
    }

    fn rows_of(&self, operation: usize) -> usize {
        match &self.operations[operation] {
            Operation::Write { rows, .. } => rows.len(),
            _ => 0,
        }
    }
}

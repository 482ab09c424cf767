//! Cuts a failing list of operations down: what the failure does not need is left out.

use super::operation::Operation;
use super::{Factory, random};

/// Stores made at most: on a slow store a long list is better than no list.
const RUNS_MAX: usize = 600;

/// A shorter list that still fails, and how.
pub(super) fn shrink(
    factory: Factory<'_>,
    operations: Vec<Operation>,
    message: String,
) -> (Vec<Operation>, String) {
    let mut shrinking = Shrinking { factory, operations, message, runs: 0 };
    shrinking.drop_operations();
    shrinking.drop_rows();
    shrinking.drop_operations();
    (shrinking.operations, shrinking.message)
}

struct Shrinking<'a> {
    factory: Factory<'a>,
    operations: Vec<Operation>,
    message: String,
    runs: usize,
}

impl Shrinking<'_> {
    /// Takes over `candidate` if it fails too.
    fn fails(&mut self, candidate: Vec<Operation>) -> bool {
        if self.runs >= RUNS_MAX {
            return false;
        }
        self.runs += 1;
        match random::run(self.factory, &candidate) {
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
            let mut at = 0;
            while at < self.operations.len() {
                let mut candidate = self.operations.clone();
                candidate.drain(at..(at + chunk).min(candidate.len()));
                if !self.fails(candidate) {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    fn drop_rows(&mut self) {
        for at in 0..self.operations.len() {
            let mut chunk = self.rows_of(at).div_ceil(2);
            while chunk > 0 {
                let mut row = 0;
                while row < self.rows_of(at) {
                    let mut candidate = self.operations.clone();
                    if let Operation::Write { rows, .. } = &mut candidate[at] {
                        rows.drain(row..(row + chunk).min(rows.len()));
                    }
                    if !self.fails(candidate) {
                        row += chunk;
                    }
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

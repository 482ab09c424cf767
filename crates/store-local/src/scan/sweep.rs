//! The order in time of rows that several pieces have: which neighbours of one piece come next, and which rows several
//! pieces have with the same times.
//!
//! Rows between which no other piece has one are one part, and so are rows that were written again with the same times: a few
//! late rows among thousands, or all of them sent twice, are few parts.

/// Rows of several pieces, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Neighbours in one piece, no other has any of their times.
    Rows { piece: u32, row: u32, rows: u32 },
    /// So many neighbours in each of several pieces, which have the same times, and no other piece has any of them. Where they
    /// begin in each are so many places from `first` on in [`Parts::same`].
    Same { first: u32, pieces: u32, rows: u32 },
}

/// The rows of all pieces.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// In order of time, as long as can be.
    pub(super) parts: Vec<Part>,
    /// Pieces that share times, oldest writes first, and where their rows of these times begin.
    pub(super) same: Vec<(u32, u32)>,
    /// Different times.
    pub(super) rows: usize,
}

/// The first row of a piece that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    time: i64,
    piece: u32,
}

/// Puts rows in order: `pieces` are the times of each, which ascend, oldest writes first. A piece has fewer than 2^32 rows, as
/// blocks and memtables have.
pub(super) fn sweep(pieces: &[&[i64]]) -> Parts {
    let mut found = Parts::default();
    let mut done = vec![0u32; pieces.len()];
    let head = |piece: u32, row: u32| {
        pieces[piece as usize].get(row as usize).map(|time| Head { time: *time, piece })
    };
    // The earliest first, of one time the oldest write. Mostly two are near each other and the others far behind.
    let mut heads: Vec<Head> = (0..pieces.len() as u32).filter_map(|at| head(at, 0)).collect();
    heads.sort_unstable();
    while let Some(Head { time, piece }) = heads.first().copied() {
        let shared = heads[1..].iter().take_while(|other| other.time == time).count();
        let bound = heads.get(1 + shared).map(|next| next.time);
        let row = done[piece as usize];
        let times = &pieces[piece as usize][row as usize..];
        let rows = if shared == 0 {
            let rows = bound.map_or(times.len(), |bound| leap(times, bound)) as u32;
            found.parts.push(Part::Rows { piece, row, rows });
            rows
        } else {
            let first = found.same.len() as u32;
            found.same.extend(heads[..=shared].iter().map(|h| (h.piece, done[h.piece as usize])));
            let rows = same_times(pieces, &found.same[first as usize..], bound) as u32;
            found.parts.push(Part::Same { first, pieces: 1 + shared as u32, rows });
            rows
        };
        found.rows += rows as usize;
        // From the last on, so that those before keep their places.
        for at in (0..=shared).rev() {
            let piece = heads[at].piece;
            done[piece as usize] += rows;
            match head(piece, done[piece as usize]) {
                Some(next) => put_behind(&mut heads, at, next),
                None => drop(heads.remove(at)),
            }
        }
    }
    found
}

/// Puts `next` in the place of the head at `at`, and then behind those that come before it.
fn put_behind(heads: &mut [Head], mut at: usize, next: Head) {
    while let Some(other) = heads.get(at + 1).copied()
        && other < next
    {
        heads[at] = other;
        at += 1;
    }
    heads[at] = next;
}

/// How many rows some pieces have the same times for, from where `firsts` says, where they have one at least, and before
/// `bound`.
fn same_times(pieces: &[&[i64]], firsts: &[(u32, u32)], bound: Option<i64>) -> usize {
    let times = |(piece, row): (u32, u32)| &pieces[piece as usize][row as usize..];
    let shared = firsts[1..]
        .iter()
        .fold(times(firsts[0]), |shared, other| &shared[..common_start(shared, times(*other))]);
    bound.map_or(shared.len(), |bound| leap(shared, bound))
}

/// How many times at the start of both are the same.
fn common_start(a: &[i64], b: &[i64]) -> usize {
    /// Compared at once.
    const STEP: usize = 32;
    // Mostly one row was written again.
    if let ([_, a, ..], [_, b, ..]) = (a, b)
        && a != b
    {
        return 1;
    }
    let steps = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[steps * STEP..], &b[steps * STEP..]);
    steps * STEP + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many of `times`, which ascend and the first of which is earlier, are earlier than `bound`: looked for where it is if
/// they are as far from each other as the first two, or near the beginning.
fn leap(times: &[i64], bound: i64) -> usize {
    let [first, second, ..] = *times else { return 1 };
    if second >= bound {
        return 1;
    }
    // Both are positive; they need not fit into an `i64`.
    let (step, distance) = (second.wrapping_sub(first) as u64, bound.wrapping_sub(first) as u64);
    let guess = usize::try_from(distance.div_ceil(step)).unwrap_or(usize::MAX).min(times.len());
    if times[guess - 1] < bound && times.get(guess).is_none_or(|time| *time >= bound) {
        return guess;
    }
    let mut reach = 2;
    while reach < times.len() && times[reach] < bound {
        reach *= 2;
    }
    let known = reach / 2;
    known + times[known..reach.min(times.len())].partition_point(|time| *time < bound)
}

/// Numbers pieces so that those which share a time, or share one with such a piece, have the same number.
pub(super) fn numbers_by_sharing(pieces: &[&[i64]]) -> Vec<u32> {
    let found = sweep(pieces);
    let mut numbers: Vec<u32> = (0..pieces.len() as u32).collect();
    for part in found.parts {
        let Part::Same { first, pieces, .. } = part else { continue };
        let sharing = &found.same[first as usize..(first + pieces) as usize];
        let number = numbers[sharing[0].0 as usize];
        for (piece, _) in &sharing[1..] {
            let other = numbers[*piece as usize];
            if other != number {
                numbers.iter_mut().filter(|n| **n == other).for_each(|n| *n = number);
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn leaps_end_before_the_bound() {
        for len in 1..70i64 {
            for gap_at in [0, 1, 20, 70] {
                let gap = |t: i64| if t > gap_at { i64::MAX / 2 } else { 0 };
                let times: Vec<i64> = (0..len).map(|t| i64::MIN / 2 + t * 2 + gap(t)).collect();
                for bound in times.iter().flat_map(|t| [t - 1, *t, t + 1]).chain([i64::MAX]) {
                    let wanted = times.iter().filter(|time| **time < bound).count();
                    if wanted > 0 {
                        assert_eq!(leap(&times, bound), wanted, "{times:?}, {bound}");
                    }
                }
            }
        }
    }

    #[test]
    fn pieces_that_share_times_have_one_number() {
        let pieces: [&[i64]; 6] = [&[1, 5], &[2, 6], &[6, 9], &[3], &[9, 12], &[4, 7]];
        let numbers = numbers_by_sharing(&pieces);
        assert!(numbers[1] == numbers[2] && numbers[2] == numbers[4]);
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), 4);
    }

    proptest! {
        #[test]
        fn parts_have_every_row_once_in_order_of_time(
            pieces in prop::collection::vec(prop::collection::btree_set(0i64..80, 0..60), 0..6),
        ) {
            let pieces: Vec<Vec<i64>> = pieces.into_iter().map(|p| p.into_iter().collect()).collect();
            let times: Vec<&[i64]> = pieces.iter().map(Vec::as_slice).collect();
            let mut wanted: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
            for (piece, times) in pieces.iter().zip(0u32..).map(|(times, piece)| (piece, times)) {
                times.iter().for_each(|time| wanted.entry(*time).or_default().push(piece));
            }
            let found = sweep(&times);
            let mut got: Vec<(i64, Vec<u32>)> = Vec::new();
            for part in &found.parts {
                let (of, rows) = match part {
                    Part::Rows { piece, row, rows } => (vec![(*piece, *row)], *rows),
                    Part::Same { first, pieces, rows } => {
                        (found.same[*first as usize..(first + pieces) as usize].to_vec(), *rows)
                    }
                };
                for at in 0..rows {
                    let time = |(piece, row): &(u32, u32)| times[*piece as usize][(row + at) as usize];
                    prop_assert!(of.iter().all(|place| time(place) == time(&of[0])));
                    got.push((time(&of[0]), of.iter().map(|(piece, _)| *piece).collect()));
                }
            }
            prop_assert_eq!(found.rows, got.len());
            prop_assert_eq!(got, wanted.into_iter().collect::<Vec<_>>());
        }
    }
}

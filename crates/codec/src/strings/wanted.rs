//! Which strings of a page are decoded.

use std::ops::Range;

/// Some strings of a page, ascending: those of a range, or those of them whose bit is set.
#[derive(Clone, Debug)]
pub(super) struct Wanted<'a> {
    range: Range<usize>,
    /// The bits, and which of them is that of the range's first string.
    bits: Option<(&'a [u64], usize)>,
}

impl<'a> Wanted<'a> {
    pub(super) fn all(range: Range<usize>) -> Self {
        Self { range, bits: None }
    }

    /// Those whose bit is set, the first bit being that of the range's first string.
    pub(super) fn selected(range: Range<usize>, bits: &'a [u64]) -> Self {
        Self { range, bits: Some((bits, 0)) }
    }

    /// From the first one that may be wanted to the last.
    pub(super) fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Those that are within a part of the page, counted from its first string.
    pub(super) fn within(&self, part: &Range<usize>) -> Self {
        let start = self.range.start.clamp(part.start, part.end);
        let end = self.range.end.clamp(start, part.end);
        let bits =
            self.bits.map(|(bits, first)| (bits, first + (start - self.range.start.min(start))));
        Self { range: start - part.start..end - part.start, bits }
    }

    /// Keeps what belongs to wanted strings of what belongs to those of the range.
    pub(super) fn keep<T: Copy>(&self, values: &mut Vec<T>) {
        if self.bits.is_some() {
            let mut kept = 0;
            for run in self.runs() {
                let run = run.start - self.range.start..run.end - self.range.start;
                values.copy_within(run.clone(), kept);
                kept += run.len();
            }
            values.truncate(kept);
        }
    }

    /// As few ranges as have the strings that are wanted and no other one.
    pub(super) fn runs(&self) -> Vec<Range<usize>> {
        let Some((bits, first)) = self.bits else {
            return Vec::from_iter((!self.range.is_empty()).then(|| self.range()));
        };
        let (mut at, end) = (first, first + self.range.len());
        let string = |bit: usize| self.range.start + (bit - first);
        let mut runs = Vec::new();
        while let Some(from) = next(bits, at..end, 0) {
            at = next(bits, from..end, u64::MAX).unwrap_or(end);
            runs.push(string(from)..string(at));
        }
        runs
    }
}

/// The first of some bits that differs from those of `word`.
fn next(bits: &[u64], range: Range<usize>, word: u64) -> Option<usize> {
    let mut at = range.start;
    while at < range.end {
        let rest = (bits[at / 64] ^ word) >> (at % 64);
        if rest != 0 {
            let found = at + rest.trailing_zeros() as usize;
            return (found < range.end).then_some(found);
        }
        at = (at / 64 + 1) * 64;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_have_what_is_wanted_and_no_other_one(
            stretches in prop::collection::vec((any::<bool>(), 1usize..90), 1..8),
            start in 0usize..100,
            part in any::<[prop::sample::Index; 2]>(),
        ) {
            let bits: Vec<bool> = stretches.iter().flat_map(|(bit, len)| vec![*bit; *len]).collect();
            let mut words = vec![0u64; bits.len().div_ceil(64)];
            bits.iter().enumerate().for_each(|(at, bit)| words[at / 64] |= u64::from(*bit) << (at % 64));
            let wanted = Wanted::selected(start..start + bits.len(), &words);
            let ends = part.map(|end| end.index(start + bits.len() + 50));
            let part = ends[0].min(ends[1])..ends[0].max(ends[1]);
            let expected: Vec<usize> = (0..bits.len()).filter(|at| bits[*at]).map(|at| start + at).collect();
            let runs = wanted.runs();
            prop_assert!(runs.iter().cloned().flatten().eq(expected.iter().copied()));
            let mut kept: Vec<usize> = wanted.range().collect();
            wanted.keep(&mut kept);
            prop_assert_eq!(&kept, &expected);
            prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
            let here = |string: &&usize| part.contains(*string);
            let within: Vec<usize> = wanted.within(&part).runs().into_iter().flatten().collect();
            let expected: Vec<usize> = expected.iter().filter(here).map(|at| at - part.start).collect();
            prop_assert_eq!(within, expected);
            let all = Wanted::all(start..start + bits.len()).within(&part).runs();
            let expected = (start..start + bits.len()).filter(|at| part.contains(at)).map(|at| at - part.start);
            prop_assert!(all.into_iter().flatten().eq(expected));
        }
    }
}

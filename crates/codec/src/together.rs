//! Parts of several pages at once: what decoding one of them waits for overlaps with the others.

use std::ops::Range;

use crate::{
    entropy::{Learned, Mark, STREAMS_TOGETHER, TightPart, decode_symbols},
    error::{DecodeError, check_range},
    float, int,
};

/// Rows of a page of numbers, and where they go.
#[derive(Debug)]
pub struct PagePart<'a> {
    /// The page.
    pub bytes: &'a [u8],
    /// How many values it has.
    pub count: usize,
    /// Which of them are wanted.
    pub range: Range<usize>,
    /// They are appended here.
    pub out: NumbersOut<'a>,
    /// A place at or before the first wanted value, where decoding starts if the page is entropy-coded;
    /// without one it starts further ahead.
    pub from: Option<Mark>,
    /// Receives the places that are passed, ascending, for those who will want other values.
    pub passed: Option<&'a mut Vec<Mark>>,
}

impl<'a> PagePart<'a> {
    /// Values of a page of which nothing is known, and nothing shall be.
    pub fn new(bytes: &'a [u8], count: usize, range: Range<usize>, out: NumbersOut<'a>) -> Self {
        Self { bytes, count, range, out, from: None, passed: None }
    }
}

/// Where numbers go.
#[derive(Debug)]
pub enum NumbersOut<'a> {
    /// Signed integers.
    I64(&'a mut Vec<i64>),
    /// Unsigned integers.
    U64(&'a mut Vec<u64>),
    /// Floats.
    F64(&'a mut Vec<f64>),
}

/// Decodes parts of several pages, each as its `decode_.._range` alone would, but faster if they are
/// entropy-coded.
///
/// # Errors
/// The first page that is damaged, by its place, and how; pages before it were decoded.
pub fn decode_together(parts: &mut [PagePart<'_>]) -> Result<(), (usize, DecodeError)> {
    let mut done = 0;
    while done < parts.len() {
        // What is decoded ahead is kept small enough for the processor's caches.
        let (mut ahead, mut n_streams) = (Vec::new(), 0);
        for part in &mut parts[done..] {
            let is_valid = check_range(&part.range, part.count).is_ok() && !part.range.is_empty();
            let learned = Learned { from: part.from, passed: part.passed.take() };
            let find = || TightPart::find(part.bytes, part.count, part.range.clone(), learned);
            let found = is_valid.then(find).flatten();
            n_streams += found.as_ref().map_or(0, TightPart::n_streams);
            ahead.push(found);
            if n_streams >= STREAMS_TOGETHER {
                break;
            }
        }
        decode_symbols(&mut ahead.iter_mut().flatten().collect::<Vec<_>>());
        for ahead in ahead {
            let PagePart { bytes, count, range, out, .. } = &mut parts[done];
            let (count, range) = (*count, range.clone());
            let decoded = match out {
                NumbersOut::I64(out) => int::append_i64(bytes, count, range, ahead, out),
                NumbersOut::U64(out) => int::append_u64(bytes, count, range, ahead, out),
                NumbersOut::F64(out) => float::append(bytes, count, range, ahead, out),
            };
            decoded.map_err(|error| (done, error))?;
            done += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Effort, encode_f64, encode_i64};

    /// A column of one of several kinds: noise, a walk, few values, decimals; longer than a chunk or not.
    fn values() -> impl Strategy<Value = (Vec<i64>, u8)> {
        let walk = |(n, step, seed): (usize, i64, u64)| {
            let (mut state, mut value) = (seed | 1, 0);
            let mut next = || {
                // xorshift64
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                value += (state >> 33) as i64 % (2 * step + 1) - step;
                value
            };
            (0..n).map(|_| next()).collect()
        };
        (
            (1usize..40_000, prop_oneof![Just(0i64), Just(3), Just(1 << 20)], any::<u64>())
                .prop_map(walk),
            0u8..3,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn marks_change_nothing_but_the_work(
            (values, kind) in values(),
            ranges in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..12),
        ) {
            let mut page = Vec::new();
            match kind {
                0 => encode_i64(&values, Effort::Cold, &mut page),
                1 => encode_i64(&values.iter().map(|v| v * 1000).collect::<Vec<_>>(), Effort::Cold, &mut page),
                _ => encode_f64(&values.iter().map(|v| *v as f64 / 100.0).collect::<Vec<_>>(), Effort::Cold, &mut page),
            }
            let marks = crate::Marks::new(values.len());
            for ends in ranges {
                let [a, b] = ends.map(|end| end.index(values.len() + 1));
                let range = a.min(b)..a.max(b);
                let (mut integers, mut floats, mut passed) = (Vec::new(), Vec::new(), Vec::new());
                let out = if kind < 2 { NumbersOut::I64(&mut integers) } else { NumbersOut::F64(&mut floats) };
                let mut part = PagePart::new(&page, values.len(), range.clone(), out);
                part.from = marks.before(range.start);
                part.passed = Some(&mut passed);
                decode_together(&mut [part]).unwrap();
                let wanted = &values[range.clone()];
                match kind {
                    0 => prop_assert_eq!(&integers, &wanted),
                    1 => prop_assert!(integers.iter().eq(wanted.iter().map(|v| v * 1000).collect::<Vec<_>>().iter())),
                    _ => prop_assert!(floats.iter().eq(wanted.iter().map(|v| *v as f64 / 100.0).collect::<Vec<_>>().iter())),
                }
                prop_assert!(passed.is_sorted_by_key(Mark::next));
                marks.add(&passed);
                for mark in &passed {
                    prop_assert_eq!(marks.before(mark.next()), Some(*mark));
                }
                // Whoever asks for the end of the same rows starts close to it.
                let last = range.end.saturating_sub(1);
                let in_chunk = last % 16_384;
                if crate::is_entropy_coded(&page)
                    && !range.is_empty()
                    && in_chunk > crate::MARK_REACH
                {
                    prop_assert!(marks.reach(last), "{last} is not reached");
                }
            }
        }
    }

    /// A stream's end has no marks, and takes more symbols the less each says.
    #[test]
    fn what_comes_last_in_a_page_is_reached() {
        let mut in_end = 0;
        for (count, rare) in (513u64..3000).step_by(37).flat_map(|n| [(n, 3), (n, 10), (n, 40)]) {
            // Multiples of the golden ratio are spread evenly.
            let is_rare = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) < u64::MAX / rare;
            let walk = (0..count).scan(0, |value, i| {
                *value += i64::from(is_rare(i * i));
                Some(*value)
            });
            let values: Vec<i64> = walk.collect();
            let mut page = Vec::new();
            encode_i64(&values, Effort::Cold, &mut page);
            if !crate::is_entropy_coded(&page) {
                continue;
            }
            let (mut passed, mut out) = (Vec::new(), Vec::new());
            let marks = crate::Marks::new(values.len());
            let out = NumbersOut::I64(&mut out);
            let mut part = PagePart::new(&page, values.len(), 0..values.len(), out);
            part.passed = Some(&mut passed);
            decode_together(&mut [part]).unwrap();
            marks.add(&passed);
            for value in crate::MARK_REACH + 1..values.len() {
                assert!(marks.reach(value), "{value} of {count} is not reached");
            }
            let last = passed.last().map_or(values.len(), Mark::next);
            in_end += usize::from(values.len() > last + 513);
        }
        assert!(in_end > 0, "no end was long");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn pages_are_what_each_is_alone(
            columns in prop::collection::vec((values(), any::<[prop::sample::Index; 2]>()), 1..9),
            damaged in prop::option::of(any::<[prop::sample::Index; 3]>()),
        ) {
            let mut pages = Vec::new();
            for ((values, kind), ends) in &columns {
                let mut page = Vec::new();
                let [a, b] = ends.map(|end| end.index(values.len() + 1));
                match kind {
                    0 => encode_i64(values, Effort::Cold, &mut page),
                    1 => encode_i64(&values.iter().map(|v| v * 1000).collect::<Vec<_>>(), Effort::Cold, &mut page),
                    _ => encode_f64(&values.iter().map(|v| *v as f64 / 100.0).collect::<Vec<_>>(), Effort::Cold, &mut page),
                }
                pages.push((page, values.len(), a.min(b)..a.max(b), *kind));
            }
            if let Some([which, at, bit]) = damaged {
                let page = which.get_mut(&mut pages[..]);
                let at = at.index(page.0.len());
                page.0[at] ^= 1 << bit.index(8);
            }
            let alone = pages.iter().map(|(page, count, range, kind)| {
                let (mut integers, mut floats) = (Vec::new(), Vec::new());
                match kind {
                    0 | 1 => crate::decode_i64_range(page, *count, range.clone(), &mut integers)?,
                    _ => crate::decode_f64_range(page, *count, range.clone(), &mut floats)?,
                }
                Ok((integers, floats))
            });
            let alone: Vec<Result<_, DecodeError>> = alone.collect();
            let mut outs = vec![(Vec::new(), Vec::new()); pages.len()];
            let parts = pages.iter().zip(&mut outs).map(|((bytes, count, range, kind), out)| {
                let out = if *kind < 2 { NumbersOut::I64(&mut out.0) } else { NumbersOut::F64(&mut out.1) };
                PagePart::new(bytes, *count, range.clone(), out)
            });
            let decoded = decode_together(&mut parts.collect::<Vec<_>>());
            let failed = alone.iter().position(Result::is_err);
            prop_assert_eq!(decoded.as_ref().err().map(|(at, _)| *at), failed);
            for (alone, out) in alone.iter().zip(&outs).take(failed.unwrap_or(pages.len())) {
                let (integers, floats) = alone.as_ref().unwrap();
                prop_assert_eq!(integers, &out.0);
                prop_assert!(floats.iter().map(|f| f.to_bits()).eq(out.1.iter().map(|f| f.to_bits())));
            }
        }
    }
}

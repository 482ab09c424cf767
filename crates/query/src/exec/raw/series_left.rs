//! Series of a group in the order in which rows of one time come: by the texts of leading tags, then as they were opened.
//!
//! Few of many are asked for: nothing is sorted but these.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use model::Name;
use store::SeriesOrders;

use super::leading::{Leading, LeadingTag, compare_series};
use crate::exec::unit::Unit;
use crate::plan::Select;

/// Series that are left, in the order in which rows of one time come.
pub(super) struct Left<'a> {
    /// All of them, ascending; `None`: the first `count`.
    series: Option<Arc<[u32]>>,
    count: usize,
    /// How many were taken, and the last one of them.
    taken: usize,
    last: Option<u32>,
    tags: Vec<LeadingTag<'a>>,
    ascending: bool,
    /// What is known of the order of all.
    orders: &'a SeriesOrders,
}

/// The series of a group, or all if these are `None`, which are left.
pub(super) fn series_in_order<'a>(
    select: &Select,
    unit: &'a Unit,
    series: Option<Arc<[u32]>>,
) -> Left<'a> {
    let of_input = unit.inputs[0].scan.series().len as usize;
    let count = series.as_ref().map_or(of_input, |series| series.len());
    let tags = match Leading::of(select, unit) {
        Leading::Tags(tags) => tags,
        Leading::Nothing | Leading::Texts(_) => Vec::new(),
    };
    let orders = &unit.inputs[0].scan.series().orders;
    Left { series, count, taken: 0, last: None, tags, ascending: select.ascending, orders }
}

impl Left<'_> {
    pub(super) fn len(&self) -> usize {
        self.count - self.taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How far they were taken.
    pub(super) fn place(&self) -> (usize, Option<u32>) {
        (self.taken, self.last)
    }

    /// Puts back what was taken since they were taken so far.
    pub(super) fn go_back(&mut self, (taken, last): (usize, Option<u32>)) {
        (self.taken, self.last) = (taken, last);
    }

    /// The series at a place among all, also those that were taken.
    #[inline]
    fn at(&self, place: usize) -> u32 {
        self.series.as_ref().map_or(place as u32, |series| series[place])
    }

    /// The first tags, as far as their ranks fit into one number: mostly these decide.
    fn leading(&self) -> &[LeadingTag<'_>] {
        let (mut count, mut all) = (0, 0);
        for tag in &self.tags {
            if all + tag.bits > KEY_BITS || all >= KEY_BITS_ENOUGH {
                break;
            }
            all += tag.bits;
            count += 1;
        }
        &self.tags[..count]
    }

    /// The numbers of the series at some places, as [`key_of`] says.
    fn fill_keys(&self, leading: &[LeadingTag], places: Range<usize>, keys: &mut Vec<u32>) {
        keys.clear();
        keys.resize(places.len(), 0);
        for tag in leading {
            match &self.series {
                None => {
                    for (key, rank) in keys.iter_mut().zip(tag.ranks(places.clone())) {
                        *key = with_rank(*key, tag, rank);
                    }
                }
                Some(series) => {
                    for (key, series) in keys.iter_mut().zip(&series[places.clone()]) {
                        *key = with_rank(*key, tag, tag.rank(*series));
                    }
                }
            }
        }
    }

    /// Whether series with these numbers all come behind one with that; `same_is_behind`: one with the same number does.
    fn are_behind(&self, keys: &[u32], bar: u32, same_is_behind: bool) -> bool {
        let keys = keys.iter().copied();
        let nearest = if self.ascending { keys.min() } else { keys.max() };
        nearest.is_none_or(|nearest| match nearest.cmp(&bar) {
            Ordering::Equal => same_is_behind,
            order => order.is_gt() == self.ascending,
        })
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let order = compare_series(&self.tags, a, b).then(a.cmp(&b));
        if self.ascending { order } else { order.reverse() }
    }

    /// Takes the next ones; they ascend by their numbers.
    pub(super) fn take(&mut self, count: usize) -> Arc<[u32]> {
        let count = count.min(self.len());
        let are_known = self.series.is_none()
            && self.taken == 0
            && self.count >= ORDERED_SERIES_MIN
            && count <= SeriesOrders::FIRST_MAX;
        let mut next = if are_known { self.first()[..count].to_vec() } else { self.find(count) };
        if let Some(last) = next.iter().copied().max_by(|a, b| self.compare(*a, *b)) {
            self.last = Some(last);
        }
        next.sort_unstable();
        self.taken += next.len();
        Arc::from(next)
    }

    /// The first of all, in order.
    fn first(&self) -> Arc<[u32]> {
        let keys: Vec<&Name> = self.tags.iter().map(|tag| tag.key).collect();
        self.orders.first((&keys, self.ascending), || {
            let mut first = self.find(SeriesOrders::FIRST_MAX.min(self.count));
            first.sort_unstable_by(|a, b| self.compare(*a, *b));
            first
        })
    }

    /// The next ones, in no order; at least one. Series are looked at once each: few of many are the next ones.
    fn find(&self, count: usize) -> Vec<u32> {
        if count == 0 {
            return Vec::new();
        }
        let leading = self.leading();
        let mut keys = Vec::with_capacity(SERIES_TOGETHER);
        let mut next: Vec<u32> = Vec::new();
        // As many as are wanted come before this one, or are it.
        let mut bar: Option<(u32, u32)> = None;
        let select = |next: &mut Vec<u32>| {
            if count < next.len() {
                next.select_nth_unstable_by(count - 1, |a, b| self.compare(*a, *b));
                next.truncate(count);
            }
            next.last().copied()
        };
        // Where tags do not decide it is the number of a series, which those that are looked at later have behind it.
        let same_is_behind = leading.len() == self.tags.len();
        let parts = self.count.div_ceil(SERIES_TOGETHER);
        for part in 0..parts {
            let from = SERIES_TOGETHER * if self.ascending { part } else { parts - 1 - part };
            let places = from..self.count.min(from + SERIES_TOGETHER);
            self.fill_keys(leading, places.clone(), &mut keys);
            // Mostly all of them are behind.
            if bar.is_some_and(|(of_bar, _)| self.are_behind(&keys, of_bar, same_is_behind)) {
                continue;
            }
            for (key, series) in keys.iter().zip(places.map(|place| self.at(place))) {
                let is_behind = |(of_bar, bar): (u32, u32)| match key.cmp(&of_bar) {
                    Ordering::Equal => self.compare(bar, series).is_le(),
                    order => order.is_gt() == self.ascending,
                };
                if bar.is_some_and(is_behind)
                    || self.last.is_some_and(|last| self.compare(series, last).is_le())
                {
                    continue;
                }
                next.push(series);
                if next.len() >= count.saturating_mul(2).max(SELECTED_MIN) {
                    bar = select(&mut next).map(|series| (key_of(leading, series), series));
                }
            }
        }
        select(&mut next);
        next
    }
}

/// Of so many series the first ones in order are found once: looking at each takes longer than what is asked for.
const ORDERED_SERIES_MIN: usize = 2048;

/// Bits of a number that series are compared by first, and after which no more tags are looked at.
const KEY_BITS: u32 = u32::BITS;
const KEY_BITS_ENOUGH: u32 = 16;

/// Series that are looked at together, one tag after another.
const SERIES_TOGETHER: usize = 1024;

/// The ranks of the first tags as a number that orders as they do.
#[inline]
fn key_of(leading: &[LeadingTag], series: u32) -> u32 {
    leading.iter().fold(0, |key, tag| with_rank(key, tag, tag.rank(series)))
}

/// A number with the rank of one more tag.
#[inline]
fn with_rank(key: u32, tag: &LeadingTag, rank: u32) -> u32 {
    // The first tag may have all bits.
    key.unbounded_shl(tag.bits) | rank
}

/// So many series are found before it is asked which of them are the first.
const SELECTED_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use store::TagColumn;

    use super::*;

    /// Up to ten texts, of which the first may stand for none.
    fn tag(codes: Vec<u32>, has_missing: bool) -> TagColumn {
        let first = if has_missing { "" } else { "0" };
        let values =
            Arc::new([first, "1", "2", "3", "4", "5", "6", "7", "8", "9"].into_iter().collect());
        TagColumn { key: "tag".into(), codes: codes.into(), values }
    }

    proptest! {
        #[test]
        fn all_series_are_taken_in_order(
            // Also of more series than are looked at together.
            codes in prop::collection::vec((0u32..5, 0u32..9), 1..SERIES_TOGETHER * 5 / 2),
            tags in 0usize..3,
            counts in prop::collection::vec(1usize..90, 1..20),
            ascending in any::<bool>(),
            every in 1usize..3,
            has_missing in any::<bool>(),
        ) {
            let (a, b): (Vec<u32>, Vec<u32>) = codes.iter().copied().unzip();
            let series: Vec<u32> = (0..codes.len() as u32).step_by(every).collect();
            let mut sorted = series.clone();
            let place = |code: u32| (has_missing && code == 0, code);
            sorted.sort_by_key(|series| {
                let (a, b) = codes[*series as usize];
                let places = [place(a), place(b)].map(Some);
                let used = |at: usize| places[at].filter(|_| at < tags);
                (used(0), used(1), *series)
            });
            if !ascending {
                sorted.reverse();
            }
            let listed = (every > 1).then(|| Arc::from(series.as_slice()));
            let (a, b) = (tag(a, has_missing), tag(b, has_missing));
            let (mut tags, used) = (vec![LeadingTag::of(&a), LeadingTag::of(&b)], tags);
            tags.truncate(used);
            let count = series.len();
            let orders = SeriesOrders::default();
            let mut left = Left { series: listed, count, taken: 0, last: None, tags, ascending, orders: &orders };
            let mut rest = sorted.as_slice();
            for count in counts {
                let (next, behind) = rest.split_at(count.min(rest.len()));
                let mut next = next.to_vec();
                next.sort_unstable();
                prop_assert_eq!(&*left.take(count), next.as_slice());
                rest = behind;
                prop_assert_eq!(left.len(), rest.len());
            }
        }
    }

    #[test]
    fn series_are_taken_in_the_order_of_their_tags() {
        let codes = tag(vec![2, 0, 1, 0, 2], false);
        let orders = SeriesOrders::default();
        let left = |ascending| {
            let tags = vec![LeadingTag::of(&codes)];
            Left { series: None, count: 5, taken: 0, last: None, tags, ascending, orders: &orders }
        };
        let mut forward = left(true);
        assert_eq!(*forward.take(2), [1, 3]);
        assert_eq!(*forward.take(2), [0, 2]);
        assert_eq!(*forward.take(9), [4]);
        assert!(forward.is_empty());
        let mut backward = left(false);
        assert_eq!(*backward.take(3), [0, 2, 4]);
    }
}

//! The best point of each of the combinations of a slot that may be chosen.
//!
//! Combinations may be millions, those that are chosen are few: what is behind as many as are chosen is forgotten.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::Point;

/// So many more than twice those that are chosen are known before some are forgotten.
const SLACK: usize = 8;

/// Best points by combination.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaders {
    best: HashMap<u32, Point>,
    /// As many combinations as are chosen have points that are this good or better.
    bar: Option<Point>,
    /// Some are forgotten when there are more.
    most: usize,
}

impl Leaders {
    /// Bytes a point takes in a table that is half empty.
    pub(super) const POINT_BYTES: usize = 2 * (size_of::<(u32, Point)>() + 1);

    pub(super) fn len(&self) -> usize {
        self.best.len()
    }

    /// What points of other combinations must beat, if that is known.
    pub(super) fn bar(&self) -> Option<Point> {
        self.bar
    }

    /// Of points that are equally good the first one is better.
    pub(super) fn may_pass(&self, point: Point) -> bool {
        self.bar.is_none_or(|bar| point < bar)
    }

    /// Takes a point of a combination if `count` others may not all be better; whether it was taken.
    pub(super) fn offer(&mut self, key: u32, point: Point, count: usize) -> bool {
        if !self.may_pass(point) {
            return false;
        }
        match self.best.entry(key) {
            Entry::Occupied(mut best) if point < *best.get() => *best.get_mut() = point,
            Entry::Occupied(_) => return false,
            Entry::Vacant(place) => {
                place.insert(point);
            }
        }
        if self.best.len() > self.most.max(count.saturating_mul(2).saturating_add(SLACK)) {
            self.forget(count);
        }
        true
    }

    fn forget(&mut self, count: usize) {
        let mut points: Vec<Point> = self.best.values().copied().collect();
        let Some(last) = count.checked_sub(1).filter(|last| *last < points.len()) else { return };
        let bar = *points.select_nth_unstable(last).1;
        // Those that are as good as the last one may have come before it.
        self.best.retain(|_, point| *point <= bar);
        self.bar = Some(bar);
        self.most = 2 * self.best.len();
    }
}

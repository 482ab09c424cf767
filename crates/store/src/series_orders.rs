//! Which series come first in some order: found once for all tables of the same series.

use std::sync::Arc;

use model::Name;
use parking_lot::Mutex;

/// The first series of a table in some orders, as far as somebody asked for them. Tables of the same series may share it.
#[derive(Clone, Debug, Default)]
pub struct SeriesOrders(Arc<Mutex<Vec<Order>>>);

#[derive(Debug)]
struct Order {
    tags: Vec<Name>,
    ascending: bool,
    first: Arc<[u32]>,
}

impl SeriesOrders {
    /// Series of one order that may be kept.
    pub const FIRST_MAX: usize = 1024;
    /// Orders that are kept.
    const ORDERS_MAX: usize = 8;

    /// Bytes of memory that may be kept of so many series.
    #[must_use]
    pub fn bytes_max(series: usize) -> usize {
        Self::ORDERS_MAX * series.min(Self::FIRST_MAX) * size_of::<u32>()
    }

    /// The first series in the order of some tags, [`SeriesOrders::FIRST_MAX`] of them or all, in that order, as `find` finds them
    /// if they are not known.
    ///
    /// # Panics
    /// If `find` finds more.
    pub fn first(
        &self,
        (tags, ascending): (&[&Name], bool),
        find: impl FnOnce() -> Vec<u32>,
    ) -> Arc<[u32]> {
        let is_this = |order: &Order| {
            order.ascending == ascending && order.tags.iter().eq(tags.iter().copied())
        };
        if let Some(order) = self.0.lock().iter().find(|order| is_this(order)) {
            return Arc::clone(&order.first);
        }
        // Not while others wait: two may find the same.
        let first: Arc<[u32]> = find().into();
        assert!(first.len() <= Self::FIRST_MAX, "BUG: more series than are kept");
        let mut orders = self.0.lock();
        if !orders.iter().any(is_this) {
            if orders.len() == Self::ORDERS_MAX {
                orders.remove(0);
            }
            let tags = tags.iter().map(|tag| Name::clone(tag)).collect();
            orders.push(Order { tags, ascending, first: Arc::clone(&first) });
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_found_once_as_long_as_it_is_kept() {
        let (orders, a, b) = (SeriesOrders::default(), Name::from("a"), Name::from("b"));
        let shared = orders.clone();
        assert_eq!(*shared.first((&[&a], true), || vec![3, 1]), [3, 1]);
        assert_eq!(*orders.first((&[&a], true), || panic!("known")), [3, 1]);
        assert_eq!(*orders.first((&[&a], false), || vec![1, 3]), [1, 3]);
        assert_eq!(*orders.first((&[&a, &b], true), || vec![2]), [2]);
        assert_eq!(*orders.first((&[], true), || vec![0]), [0]);
        for n in 0..8 {
            orders.first((&[&Name::from(format!("{n}").as_str())], true), || vec![n]);
        }
        assert_eq!(*orders.first((&[&a], true), || vec![4]), [4], "the oldest had to go");
    }
}

//! The position of an id within a set of ids.

use roaring::RoaringTreemap;

/// Positions of the ids of a set, which are mostly consecutive.
#[derive(Debug)]
pub(crate) struct IdRanks {
    /// First id of each stretch of consecutive ids, and its position.
    starts: Vec<u64>,
    positions: Vec<u32>,
    len: u32,
}

impl IdRanks {
    pub(crate) fn new(ids: &RoaringTreemap) -> Self {
        let mut ranks = Self { starts: Vec::new(), positions: Vec::new(), len: 0 };
        let mut next = None;
        for id in ids {
            if next != Some(id) {
                ranks.starts.push(id);
                ranks.positions.push(ranks.len);
            }
            next = id.checked_add(1);
            ranks.len += 1;
        }
        ranks
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    #[inline]
    pub(crate) fn position(&self, id: u64) -> Option<u32> {
        let at = self.starts.partition_point(|start| *start <= id).checked_sub(1)?;
        let end = self.positions.get(at + 1).copied().unwrap_or(self.len);
        let position = u64::from(self.positions[at]) + (id - self.starts[at]);
        (position < u64::from(end)).then_some(position as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ranks() {
        let ids: RoaringTreemap = [3, 4, 5, 9, 10, 1 << 40].into_iter().collect();
        let ranks = IdRanks::new(&ids);
        assert_eq!(ranks.len(), 6);
        for id in (0..20).chain([(1 << 40) - 1, 1 << 40, (1 << 40) + 1, u64::MAX]) {
            let expected = ids.contains(id).then(|| ids.rank(id) as u32 - 1);
            assert_eq!(ranks.position(id), expected, "{id}");
        }
    }
}

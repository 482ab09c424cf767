//! Lists of ids that grow.

use roaring::RoaringTreemap;

use crate::posting::{Posting, Union};

/// Ids of one term or shape, nearly always added in ascending order.
#[derive(Debug, Default)]
pub(crate) enum MemPosting {
    #[default]
    None,
    One(u64),
    /// In order of arrival.
    #[expect(clippy::box_collection, reason = "keeps the list of one id, the usual case, small")]
    Few(Box<Vec<u64>>),
    Many(Box<RoaringTreemap>),
}

/// Longest list kept as a vector: appending to one is much cheaper than to a set.
const FEW_MAX: usize = 512;

impl MemPosting {
    /// Adds an id that is not there; returns the bytes this took, estimated.
    pub(crate) fn push(&mut self, id: u64) -> usize {
        match self {
            Self::None => {
                *self = Self::One(id);
                0
            }
            Self::One(first) => {
                *self = Self::Few(Box::new(vec![*first, id]));
                64
            }
            Self::Few(ids) if ids.len() < FEW_MAX => {
                ids.push(id);
                // A doubling vector is three quarters full on average.
                10
            }
            Self::Few(ids) => {
                let freed = ids.capacity() * 8;
                let mut set: RoaringTreemap = ids.drain(..).collect();
                set.insert(id);
                *self = Self::Many(Box::new(set));
                2 * FEW_MAX.saturating_sub(freed / 2)
            }
            Self::Many(set) => {
                if set.try_push(id).is_err() {
                    set.insert(id);
                }
                2
            }
        }
    }

    pub(crate) fn load(&self, posting: &mut Posting) {
        posting.clear();
        match self {
            Self::None => {}
            Self::One(id) => posting.push(*id),
            Self::Few(ids) if ids.len() <= 64 => ids.iter().for_each(|id| posting.push(*id)),
            Self::Few(ids) => posting.set_to(ids.iter().copied().collect()),
            Self::Many(set) => posting.set_to((**set).clone()),
        }
    }

    pub(crate) fn add_to(&self, union: &mut Union) {
        match self {
            Self::None => {}
            Self::One(id) => union.push(*id),
            Self::Few(ids) => ids.iter().for_each(|id| union.push(*id)),
            Self::Many(set) => union.add_set(set),
        }
    }

    /// Whether `wanted` holds for some id.
    pub(crate) fn any(&self, mut wanted: impl FnMut(u64) -> bool) -> bool {
        match self {
            Self::None => false,
            Self::One(id) => wanted(*id),
            Self::Few(ids) => ids.iter().any(|id| wanted(*id)),
            Self::Many(set) => set.iter().any(wanted),
        }
    }
}

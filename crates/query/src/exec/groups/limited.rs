//! Which groups SLIMIT and SOFFSET leave: the first ones by a key, of those that count.
//!
//! Whether a group counts takes a look into the store, so only those are asked about that come first.

use std::collections::BinaryHeap;

use hashbrown::HashMap;

/// So many groups are looked at first.
const LOOKED_AT_MIN: usize = 32;
/// How many times as many the next time.
const GROWTH: usize = 8;
/// Where one in so many is wanted, or more, all are sorted.
const SORTED_PART: usize = 8;

/// The groups, ascending, of the `limit` keys behind the first `offset`, of those groups that are `present`. Groups may have
/// the same key; `key_of` writes one into a buffer.
pub(super) fn choose<E>(
    groups: usize,
    (limit, offset): (u64, u64),
    key_of: impl Fn(usize, &mut Vec<u8>),
    mut present: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let whole = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let (offset, end) = (whole(offset), whole(offset.saturating_add(limit)));
    let mut looked_at = end.saturating_mul(2).max(LOOKED_AT_MIN);
    let mut known: HashMap<usize, bool> = HashMap::new();
    loop {
        let first = first_by_key(groups, looked_at, &key_of);
        let (mut kept, mut keys, mut last) = (Vec::new(), 0, None);
        let mut is_enough = first.len() == groups;
        for (key, group) in &first {
            let is_new = last != Some(key);
            if is_new && keys == end {
                is_enough = true;
                break;
            }
            let is_present = match known.get(group) {
                Some(known) => *known,
                None => present(*group)?,
            };
            known.insert(*group, is_present);
            if is_present {
                keys += usize::from(is_new);
                last = Some(key);
                if keys > offset {
                    kept.push(*group);
                }
            }
        }
        if is_enough {
            kept.sort_unstable();
            return Ok(kept);
        }
        looked_at = looked_at.saturating_mul(GROWTH);
    }
}

/// The first `count` groups by their keys, and of one key by their numbers, in this order.
fn first_by_key(
    groups: usize,
    count: usize,
    key_of: impl Fn(usize, &mut Vec<u8>),
) -> Vec<(Vec<u8>, usize)> {
    if count >= groups / SORTED_PART {
        let keyed = |group| {
            let mut key = Vec::new();
            key_of(group, &mut key);
            (key, group)
        };
        let mut all: Vec<(Vec<u8>, usize)> = (0..groups).map(keyed).collect();
        all.sort_unstable();
        all.truncate(count);
        return all;
    }
    let mut first: BinaryHeap<(Vec<u8>, usize)> = BinaryHeap::new();
    let mut key = Vec::new();
    for group in 0..groups {
        key.clear();
        key_of(group, &mut key);
        if first.len() < count {
            first.push((key.clone(), group));
        } else if let Some(mut last) = first.peek_mut()
            && key < last.0
        {
            // Of one key the later group comes later.
            last.0.clone_from(&key);
            last.1 = group;
        }
    }
    first.into_sorted_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_keys_of_what_counts_are_chosen(
            groups in prop::collection::vec(("[a-c|]{0,3}", prop::bool::weighted(0.6)), 0..400),
            limit in 0u64..40,
            offset in 0u64..40,
        ) {
            let present: BTreeSet<&str> =
                groups.iter().filter(|group| group.1).map(|group| group.0.as_str()).collect();
            let wanted: BTreeSet<&str> =
                present.into_iter().skip(offset as usize).take(limit as usize).collect();
            let expected: Vec<usize> = (0..groups.len())
                .filter(|at| groups[*at].1 && wanted.contains(groups[*at].0.as_str()))
                .collect();
            let mut asked = BTreeSet::new();
            let found = choose(
                groups.len(),
                (limit, offset),
                |at, key| key.extend(groups[at].0.bytes()),
                |at| Ok::<_, Infallible>(asked.insert(at) && groups[at].1),
            );
            prop_assert_eq!(found, Ok(expected));
        }
    }

    #[test]
    fn few_are_asked_about() {
        let mut asked = 0;
        let key_of = |at: usize, key: &mut Vec<u8>| key.extend(format!("{at:06}").bytes());
        let present = |at: usize| {
            asked += 1;
            Ok::<_, Infallible>(at != 3)
        };
        let found = choose(100_000, (3, 2), key_of, present);
        assert_eq!(found, Ok(vec![2, 4, 5]));
        assert_eq!(asked, 6);
    }
}

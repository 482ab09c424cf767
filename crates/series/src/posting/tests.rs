use proptest::prelude::*;
use roaring::RoaringTreemap;
use std::collections::BTreeSet;

use super::*;

fn ids() -> impl Strategy<Value = BTreeSet<u64>> {
    let id = prop_oneof![5u64..100, 5u64..10_000, any::<u64>().prop_map(|id| id.max(5))];
    prop_oneof![
        prop::collection::btree_set(id, 1..150),
        (5u64..1 << 40, 1u64..3_000).prop_map(|(start, len)| (start..start + len).collect()),
    ]
}

fn posting(ids: &BTreeSet<u64>) -> Posting {
    ids.iter().rev().copied().collect()
}

proptest! {
    #[test]
    fn lists_come_back(ids in ids()) {
        let mut out = Vec::new();
        if put_inline(&posting(&ids), 5, &mut out) {
            let mut reader = Reader::new(&out);
            let PostingRef::Inline { count, deltas } = PostingRef::read(&mut reader).unwrap() else {
                panic!("an inline list reads as one")
            };
            prop_assert!(reader.is_empty());
            let mut read = Posting::default();
            read_inline(count, deltas, 5, &mut read).unwrap();
            prop_assert!(read.into_set().iter().eq(ids.iter().copied()));
        } else {
            prop_assert!(ids.len() > 10);
        }
        let mut out = Vec::new();
        let set: RoaringTreemap = ids.iter().copied().collect();
        put_set(&set, &mut out);
        prop_assert_eq!(read_set(&mut Reader::new(&out)), Ok(set));
    }

    #[test]
    fn sets_behave_like_sets(a in ids(), b in ids()) {
        let removed: RoaringTreemap = b.iter().copied().collect();
        let mut rest = posting(&a);
        prop_assert_eq!(rest.intersects(&removed), !a.is_disjoint(&b));
        rest.subtract(&removed);
        prop_assert!(rest.clone().into_set().iter().eq(a.difference(&b).copied()));
        prop_assert_eq!(rest.is_empty(), a.is_subset(&b));
        let mut both = posting(&a);
        both.union_with(&posting(&b));
        prop_assert!(both.into_set().iter().eq(a.union(&b).copied()));
        let mut union = Union::default();
        posting(&a).add_to(&mut union);
        posting(&b).add_to(&mut union);
        prop_assert!(union.finish().iter().eq(a.union(&b).copied()));
        let mut common = Vec::new();
        posting(&a).for_each_in(&removed, |id| common.push(id));
        prop_assert!(common.into_iter().eq(a.intersection(&b).copied()));
    }

    #[test]
    fn arbitrary_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::new(&bytes);
        if let Ok(PostingRef::Inline { count, deltas }) = PostingRef::read(&mut reader) {
            let _ = read_inline(count, deltas, 1 << 60, &mut Posting::default());
        }
        let _ = read_set(&mut Reader::new(&bytes));
    }
}

//! A map of bounded size that forgets what was not asked for lately.
//!
//! Two generations: what is asked for moves to the young one; when that is full the old one goes.

use std::collections::HashMap;
use std::hash::Hash;

use parking_lot::Mutex;

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    generations: Mutex<Generations<K, V>>,
    young_max: usize,
}

#[derive(Debug)]
struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Eq + Hash + Clone, V: Clone> Cache<K, V> {
    /// A map of at most `entries_max` entries.
    pub(crate) fn new(entries_max: usize) -> Self {
        let generations = Generations { young: HashMap::new(), old: HashMap::new() };
        Self { generations: Mutex::new(generations), young_max: (entries_max / 2).max(1) }
    }

    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.get_locked(&mut self.generations.lock(), key)
    }

    /// Entries of many keys; neighbours are often the same.
    pub(crate) fn get_all(&self, keys: impl Iterator<Item = K>) -> Vec<Option<V>> {
        let mut generations = self.generations.lock();
        let mut last: Option<(K, Option<V>)> = None;
        let mut found = Vec::with_capacity(keys.size_hint().0);
        for key in keys {
            let value = match last.take() {
                Some((same, value)) if same == key => value,
                _ => self.get_locked(&mut generations, &key),
            };
            found.push(value.clone());
            last = Some((key, value));
        }
        found
    }

    fn get_locked(&self, generations: &mut Generations<K, V>, key: &K) -> Option<V> {
        if let Some(value) = generations.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = generations.old.remove_entry(key)?;
        self.put(generations, key, value.clone());
        Some(value)
    }

    pub(crate) fn insert(&self, key: K, value: V) {
        let mut generations = self.generations.lock();
        generations.old.remove(&key);
        self.put(&mut generations, key, value);
    }

    fn put(&self, generations: &mut Generations<K, V>, key: K, value: V) {
        if generations.young.len() >= self.young_max {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(key, value);
    }

    /// Forgets entries.
    pub(crate) fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let mut generations = self.generations.lock();
        generations.young.retain(|key, value| keep(key, value));
        generations.old.retain(|key, value| keep(key, value));
    }

    pub(crate) fn len(&self) -> usize {
        let generations = self.generations.lock();
        generations.young.len() + generations.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_is_used_and_its_size() {
        let cache = Cache::new(10);
        for n in 0..100 {
            cache.insert(n, n);
            assert_eq!(cache.get(&0), Some(0), "{n}");
            assert_eq!(cache.get_all([0, 0, n, 0].into_iter()), [0, 0, n, 0].map(Some), "{n}");
            assert!(cache.len() <= 10);
        }
        assert_eq!(cache.get(&1), None);
        cache.retain(|key, _| *key != 0);
        assert_eq!(cache.get(&0), None);
    }
}

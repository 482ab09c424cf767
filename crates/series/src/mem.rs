//! The part of the index that is in memory: series created since the last flush.
//!
//! Texts are interned per measurement: a tag (key and value) is a *term*, a series is a tuple of
//! terms, so ten long tags cost forty bytes. A *shape* is the list of tag keys of a series; nearly
//! all series of a measurement share one.
//!
//! Invariants
//! - Ids are distinct. A hash names its newest series; an older one of the same hash is removed
//!   (see `removed` in the index's view).
//! - A sealed part never changes; only the active one is behind the index's lock.
//!
//! Not here: which series are removed, ids, locks (index).

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use model::{DatabaseId, Name, SeriesKey};
use roaring::RoaringTreemap;
use std::hash::BuildHasher;
use std::mem::size_of;

use crate::hash::KeyHash;
use crate::mem::posting::MemPosting;

mod posting;
mod read;
mod source;

pub(crate) use read::MemMeasurementView;
pub(crate) use source::MemSource;

#[derive(Debug, Default)]
pub(crate) struct Mem {
    measurements: Vec<MemMeasurement>,
    by_name: HashTable<u32>,
    series: Vec<MemSeries>,
    by_hash: HashTable<u32>,
    /// Positions in `series`, by ascending id.
    by_id: Vec<u32>,
    /// The tuples of all series: term numbers within their measurement.
    tuples: Vec<u32>,
    hasher: DefaultHashBuilder,
    /// What measurements hold beyond the vectors above, estimated as they grow.
    measurement_bytes: usize,
}

#[derive(Debug)]
struct MemSeries {
    hash: KeyHash,
    measurement: u32,
    id: u64,
    tuple_at: u32,
    tuple_len: u32,
}

#[derive(Debug)]
pub(crate) struct MemMeasurement {
    database: DatabaseId,
    name: Name,
    /// Tag keys in order of appearance, with the numbers of their terms.
    keys: Vec<(Name, Vec<u32>)>,
    by_key: HashMap<Name, u32>,
    terms: Vec<MemTerm>,
    by_value: HashTable<u32>,
    /// The values of the terms, one after another.
    text: Vec<u8>,
    shapes: Vec<(Box<[u32]>, MemPosting)>,
    by_shape: HashMap<Box<[u32]>, u32>,
    last_shape: u32,
    series: u32,
}

#[derive(Debug)]
struct MemTerm {
    text_at: u32,
    text_len: u32,
    key: u32,
    hash: u32,
    series: MemPosting,
}

impl Mem {
    pub(crate) fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.series.len()
    }

    /// Heap bytes in use, a little more or less.
    pub(crate) fn bytes(&self) -> usize {
        self.series.capacity() * size_of::<MemSeries>()
            + self.by_hash.capacity() * 6
            + self.by_id.capacity() * 4
            + self.tuples.capacity() * 4
            + self.measurement_bytes
    }

    pub(crate) fn find(&self, hash: KeyHash) -> Option<u64> {
        let same = |at: &u32| self.series[*at as usize].hash == hash;
        self.by_hash.find(hash.high, same).map(|at| self.series[*at as usize].id)
    }

    pub(crate) fn contains_id(&self, id: u64) -> bool {
        self.position(id).is_some()
    }

    fn position(&self, id: u64) -> Option<u32> {
        let at = self.by_id.binary_search_by_key(&id, |at| self.series[*at as usize].id).ok()?;
        Some(self.by_id[at])
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.by_id.iter().map(|at| self.series[*at as usize].id)
    }

    /// Adds a series whose id is not here yet. If the hash is here already, the id it stood for is
    /// returned: that series is dead.
    pub(crate) fn insert(
        &mut self,
        database: DatabaseId,
        key: &SeriesKey,
        hash: KeyHash,
        id: u64,
    ) -> Option<u64> {
        let number = self.measurement_number(database, &key.measurement);
        let measurement = &mut self.measurements[number as usize];
        let tuple_at = self.tuples.len();
        let bytes = measurement.insert(&self.hasher, key, id, &mut self.tuples);
        self.measurement_bytes += bytes;
        let at = as_u32(self.series.len());
        self.series.push(MemSeries {
            hash,
            measurement: number,
            id,
            tuple_at: as_u32(tuple_at),
            tuple_len: as_u32(key.tags.len()),
        });
        self.add_by_id(at, id);
        let series = &self.series;
        let same = |at: &u32| series[*at as usize].hash == hash;
        if let Some(older) = self.by_hash.find_mut(hash.high, same) {
            let older = std::mem::replace(older, at);
            return Some(self.series[older as usize].id);
        }
        self.by_hash.insert_unique(hash.high, at, |at| series[*at as usize].hash.high);
        None
    }

    fn add_by_id(&mut self, at: u32, id: u64) {
        let series = &self.series;
        let last = self.by_id.last().map(|last| series[*last as usize].id);
        if last.is_none_or(|last| last < id) {
            self.by_id.push(at);
        } else {
            // Logs replay nearly in order, so this moves little.
            let place = self.by_id.partition_point(|other| series[*other as usize].id < id);
            self.by_id.insert(place, at);
        }
    }

    fn measurement_number(&mut self, database: DatabaseId, name: &Name) -> u32 {
        let hash = self.hasher.hash_one((database, &**name));
        let measurements = &self.measurements;
        let same = |at: &u32| measurements[*at as usize].is(database, name);
        if let Some(at) = self.by_name.find(hash, same) {
            return *at;
        }
        let number = as_u32(measurements.len());
        self.measurements.push(MemMeasurement::new(database, name.clone()));
        self.measurement_bytes += size_of::<MemMeasurement>() + name.len() + 40;
        let (measurements, hasher) = (&self.measurements, &self.hasher);
        self.by_name.insert_unique(hash, number, |at| {
            let measurement = &measurements[*at as usize];
            hasher.hash_one((measurement.database, &*measurement.name))
        });
        number
    }

    fn tuple(&self, series: &MemSeries) -> &[u32] {
        let start = series.tuple_at as usize;
        &self.tuples[start..start + series.tuple_len as usize]
    }
}

impl MemMeasurement {
    fn new(database: DatabaseId, name: Name) -> Self {
        Self {
            database,
            name,
            keys: Vec::new(),
            by_key: HashMap::default(),
            terms: Vec::new(),
            by_value: HashTable::new(),
            text: Vec::new(),
            shapes: Vec::new(),
            by_shape: HashMap::default(),
            last_shape: 0,
            series: 0,
        }
    }

    fn is(&self, database: DatabaseId, name: &str) -> bool {
        self.database == database && *self.name == *name
    }

    /// Adds a series and appends its tuple; returns the bytes this took, estimated.
    fn insert(
        &mut self,
        hasher: &DefaultHashBuilder,
        key: &SeriesKey,
        id: u64,
        tuple: &mut Vec<u32>,
    ) -> usize {
        let (shape, mut bytes) = self.shape_number(key);
        self.last_shape = shape;
        self.series += 1;
        bytes += self.shapes[shape as usize].1.push(id);
        for (nth, (_, value)) in key.tags.iter().enumerate() {
            let key_number = self.shapes[shape as usize].0[nth];
            let hash = hasher.hash_one(&**value) as u32 ^ key_number.wrapping_mul(0x9e37_79b1);
            let wide = widen(hash);
            let (terms, text) = (&self.terms, &self.text);
            let same = |at: &u32| {
                let term = &terms[*at as usize];
                term.hash == hash && term.key == key_number && term.text(text) == value.as_bytes()
            };
            if let Some(at) = self.by_value.find(wide, same) {
                bytes += self.terms[*at as usize].series.push(id);
                tuple.push(*at);
                continue;
            }
            let at = as_u32(terms.len());
            bytes += size_of::<MemTerm>() + 10 + value.len();
            self.terms.push(MemTerm {
                text_at: as_u32(text.len()),
                text_len: as_u32(value.len()),
                key: key_number,
                hash,
                series: MemPosting::One(id),
            });
            self.text.extend_from_slice(value.as_bytes());
            self.keys[key_number as usize].1.push(at);
            let terms = &self.terms;
            self.by_value.insert_unique(wide, at, |at| widen(terms[*at as usize].hash));
            tuple.push(at);
        }
        bytes
    }

    fn shape_number(&mut self, key: &SeriesKey) -> (u32, usize) {
        if let Some((shape, _)) = self.shapes.get(self.last_shape as usize) {
            let names = shape.iter().map(|number| &*self.keys[*number as usize].0);
            if shape.len() == key.tags.len() && names.eq(key.tags.iter().map(|(name, _)| &**name)) {
                return (self.last_shape, 0);
            }
        }
        let mut bytes = 0;
        let numbers = key.tags.iter().map(|(name, _)| {
            if let Some(number) = self.by_key.get(name) {
                return *number;
            }
            let number = as_u32(self.keys.len());
            bytes += 2 * size_of::<(Name, Vec<u32>)>() + name.len() + 40;
            self.keys.push((name.clone(), Vec::new()));
            self.by_key.insert(name.clone(), number);
            number
        });
        let numbers: Box<[u32]> = numbers.collect();
        if let Some(shape) = self.by_shape.get(&numbers) {
            return (*shape, bytes);
        }
        let shape = as_u32(self.shapes.len());
        bytes += 2 * (numbers.len() * 4 + size_of::<Box<[u32]>>() + 16);
        self.shapes.push((numbers.clone(), MemPosting::default()));
        self.by_shape.insert(numbers, shape);
        (shape, bytes)
    }

    fn value(&self, term: u32) -> &str {
        let bytes = self.terms[term as usize].text(&self.text);
        std::str::from_utf8(bytes).expect("BUG: interned text was a string")
    }

    fn find_term(&self, hasher: &DefaultHashBuilder, key: u32, value: &str) -> Option<u32> {
        let hash = hasher.hash_one(value) as u32 ^ key.wrapping_mul(0x9e37_79b1);
        let same = |at: &u32| {
            let term = &self.terms[*at as usize];
            term.hash == hash && term.key == key && term.text(&self.text) == value.as_bytes()
        };
        self.by_value.find(widen(hash), same).copied()
    }

    fn all(&self) -> RoaringTreemap {
        self.union_of_shapes(|_| true)
    }

    fn union_of_shapes(&self, wanted: impl Fn(&[u32]) -> bool) -> RoaringTreemap {
        let mut union = crate::posting::Union::default();
        for (_, series) in self.shapes.iter().filter(|(keys, _)| wanted(keys)) {
            series.add_to(&mut union);
        }
        union.finish()
    }
}

impl MemTerm {
    fn text<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.text_at as usize..(self.text_at + self.text_len) as usize]
    }
}

/// Spreads a short hash over the bits the table looks at.
fn widen(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A part in memory is sealed long before it holds four billion of anything.
fn as_u32(n: usize) -> u32 {
    u32::try_from(n).expect("BUG: a part in memory passed 4 Gi entries")
}

//! The query cache: answers that are given again as long as everything they rest on is the same.
//!
//! An answer is kept with its [`Basis`] and found by all that the request says of it: text, bound
//! values, names, form, and who asks. A question that is found is neither parsed nor planned, and its
//! answer is never an old one: the basis is looked at each time.
//!
//! Keeping an answer costs a second look at its statement and a copy. So a question is kept when it
//! is asked for the second time, and one whose answers were never used again, or cannot be kept, is
//! left alone for ever more askings ([`Sights`]).
//!
//! Not here: what an answer rests on (`query::Basis`).

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hyper::body::Bytes;
use model::Reservation;
use query::{Basis, QueryContext};
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, OptionsBuilder, Weighter};
use render::Format;
use store::{Metric, MetricKind};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::request::{Asked, QueryRequest};
use crate::app::App;
use crate::auth::Caller;

/// One answer takes at most such a part of the cache, which has half as many parts that keep their
/// own account.
const ANSWER_PART: usize = 16;

/// Answers that are expected, to begin with: so many of this size fill the cache.
const ANSWER_BYTES_EXPECTED: usize = 16 << 10;

/// Memory of an entry beyond its bytes, about.
const ENTRY_BYTES: usize = 512;

/// Askings that a question is left alone for at most.
const PAUSE_MAX: u8 = 128;

/// Questions whose askings are counted, at most.
const SIGHTS: usize = 1 << 13;

/// Answers and who asked for them.
#[derive(Debug)]
pub(crate) struct QueryCache {
    /// `None`: nothing is kept.
    answers: Option<Cache<Key, Arc<Kept>, ByBytes>>,
    answer_bytes_max: usize,
    sights: Sights,
    seed: u64,
}

/// Everything that decides about an answer but the data, as the request has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    hash: u64,
    /// Format, gzip, GET, a user.
    form: [u8; 4],
    /// The statements, their bound values, database, policy, unit of times, and the user.
    parts: [&'a str; PARTS],
}

const PARTS: usize = 6;

/// The same, kept.
#[derive(Debug, PartialEq, Eq)]
struct Key {
    hash: u64,
    form: [u8; 4],
    parts: [Box<str>; PARTS],
}

#[derive(Debug)]
struct Kept {
    bytes: Bytes,
    basis: Basis,
    /// How often it was given again.
    uses: AtomicU32,
    /// Askings that passed before it was kept.
    pause: u8,
}

/// An answer that is to be kept once it is there.
#[derive(Debug)]
pub(crate) struct Keeping {
    key: Key,
    basis: Basis,
    pause: u8,
}

/// The pieces of an answer that is to be kept.
#[derive(Debug)]
pub(crate) struct Collecting {
    keeping: Keeping,
    bytes: Vec<u8>,
    /// What they take counts as the memory of queries.
    held: Reservation,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Key, Arc<Kept>> for ByBytes {
    fn weight(&self, key: &Key, kept: &Arc<Kept>) -> u64 {
        let key_bytes: usize = key.parts.iter().map(|part| part.len()).sum();
        (key_bytes + kept.bytes.len() + ENTRY_BYTES) as u64
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for Question<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for Question<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.hash == key.hash
            && self.form == key.form
            && self.parts.iter().zip(&key.parts).all(|(part, kept)| **part == **kept)
    }
}

impl<'a> Question<'a> {
    fn new(form: [u8; 4], parts: [&'a str; PARTS], seed: u64) -> Self {
        let start = seed ^ u64::from(u32::from_le_bytes(form));
        // Of each part the length counts as well, so that text cannot move from one into the next.
        let hash = parts.iter().fold(start, |hash, part| xxh3_64_with_seed(part.as_bytes(), hash));
        Self { hash, form, parts }
    }

    fn key(&self) -> Key {
        Key { hash: self.hash, form: self.form, parts: self.parts.map(Box::from) }
    }
}

impl QueryCache {
    /// An empty one for so many bytes; for 0 it stays empty.
    pub(crate) fn new(bytes: usize) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((bytes / ANSWER_BYTES_EXPECTED).max(1))
            .weight_capacity(bytes as u64)
            .shards(ANSWER_PART / 2)
            .build()
            .expect("BUG: capacities are given");
        let cache = || {
            let (hasher, lifecycle) = Default::default();
            Cache::with_options(options, ByBytes, hasher, lifecycle)
        };
        Self {
            answers: (bytes > 0).then(cache),
            answer_bytes_max: bytes / ANSWER_PART,
            sights: Sights::new(if bytes > 0 { SIGHTS } else { 0 }),
            seed: RandomState::new().hash_one(0),
        }
    }

    /// What a request asks; `None` if its answer is never kept.
    pub(crate) fn question<'a>(
        &self,
        asked: &'a Asked,
        format: Format,
        caller: &'a Caller,
    ) -> Option<Question<'a>> {
        self.answers.as_ref()?;
        let params = &asked.params;
        let user = match caller {
            Caller::Anyone => None,
            Caller::Founder => return None,
            Caller::User(user) => Some(&*user.name),
        };
        if params.get("chunked") == "true" || params.get("async") == "true" {
            return None;
        }
        let format = match format {
            Format::Json { pretty: false } => 0,
            Format::Json { pretty: true } => 1,
            Format::Csv => 2,
            Format::MessagePack => 3,
        };
        let form = [format, asked.gzip.into(), asked.is_get.into(), user.is_some().into()];
        let [bound, database, policy, epoch] =
            ["params", "db", "rp", "epoch"].map(|name| params.get(name));
        let parts =
            [params.query_text()?, bound, database, policy, epoch, user.unwrap_or_default()];
        Some(Question::new(form, parts, self.seed))
    }

    /// The answer, if it is kept and still is the answer.
    pub(crate) fn find(&self, question: &Question<'_>, app: &App) -> Option<Bytes> {
        let answers = self.answers.as_ref()?;
        let kept = answers.get(question)?;
        if kept.basis.holds(&*app.store, &app.catalog) {
            kept.uses.fetch_add(1, Ordering::Relaxed);
            app.metrics.query_cache_hits.add(1);
            return Some(kept.bytes.clone());
        }
        // What it rests on never comes back.
        answers.remove(question);
        let was_used = kept.uses.load(Ordering::Relaxed) > 0;
        self.sights.pause(question.hash, if was_used { 1 } else { kept.pause.saturating_mul(2) });
        None
    }

    /// Prepares for keeping the answer to `request`, if that is due: from here on nothing must change.
    pub(crate) fn prepare(
        &self,
        question: Question<'_>,
        request: &QueryRequest,
        app: &App,
    ) -> Option<Keeping> {
        let pause = self.sights.see(question.hash)?;
        let [statement] = &*request.statements else {
            self.sights.pause(question.hash, PAUSE_MAX);
            return None;
        };
        let (store, catalog) = (Arc::clone(&app.store), Arc::clone(&app.catalog));
        let context = QueryContext {
            database: request.database.clone(),
            policy: request.policy.clone(),
            ..QueryContext::new(store, catalog, app.clock.now_ns())
        };
        // Why it cannot be planned is found again when it is executed.
        match Basis::of(statement, &context).ok().flatten() {
            Some(basis) => Some(Keeping { key: question.key(), basis, pause }),
            None => {
                self.sights.pause(question.hash, PAUSE_MAX);
                None
            }
        }
    }

    /// Keeps an answer, unless something changed since [`QueryCache::prepare`].
    pub(crate) fn keep(&self, keeping: Keeping, bytes: &[u8], app: &App) {
        let Some(answers) = &self.answers else { return };
        let Keeping { key, basis, pause } = keeping;
        if bytes.len() > self.answer_bytes_max {
            return self.sights.pause(key.hash, PAUSE_MAX);
        }
        if !basis.holds(&*app.store, &app.catalog) {
            return self.sights.pause(key.hash, pause.saturating_mul(2));
        }
        let bytes = Bytes::copy_from_slice(bytes);
        answers.insert(key, Arc::new(Kept { bytes, basis, uses: AtomicU32::new(0), pause }));
    }

    /// What there is of it.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let (answers, bytes) = self.answers.as_ref().map_or((0, 0), |a| (a.len(), a.weight()));
        let gauge = |name, help, value| Metric {
            name,
            help,
            kind: MetricKind::Gauge,
            labels: Vec::new(),
            value,
        };
        vec![
            gauge("query_cache_answers", "Answers that are kept.", answers as f64),
            gauge("query_cache_bytes", "Memory of answers that are kept.", bytes as f64),
        ]
    }
}

impl Keeping {
    /// `None`: there is no memory to spare.
    pub(crate) fn collecting(self, app: &App) -> Option<Collecting> {
        let held = app.queries.budget().reserve(0).ok()?;
        Some(Collecting { keeping: self, bytes: Vec::new(), held })
    }
}

impl Collecting {
    /// Adds a piece, unless the answer is too long to be kept with it, or queries need the memory.
    pub(crate) fn add(mut self, piece: &[u8], app: &App) -> Option<Self> {
        let cache = &app.query_cache;
        let bytes = self.bytes.len() + piece.len();
        if bytes > cache.answer_bytes_max || self.held.resize(bytes).is_err() {
            cache.sights.pause(self.keeping.key.hash, PAUSE_MAX);
            return None;
        }
        self.bytes.extend_from_slice(piece);
        Some(self)
    }

    pub(crate) fn keep(self, app: &App) {
        app.query_cache.keep(self.keeping, &self.bytes, app);
    }
}

/// How often questions were asked lately, of those that share a place the last.
///
/// A place holds 48 bits of the hash, the pause its question was given last and what is left of it,
/// 8 bits each. Threads that meet here may lose a count.
#[derive(Debug)]
struct Sights(Box<[AtomicU64]>);

impl Sights {
    fn new(places: usize) -> Self {
        Self((0..places).map(|_| AtomicU64::new(0)).collect())
    }

    fn place(&self, hash: u64) -> &AtomicU64 {
        &self.0[hash as usize % self.0.len()]
    }

    /// Counts an asking. If it is one whose answer is worth keeping: the pause before it.
    fn see(&self, hash: u64) -> Option<u8> {
        let place = self.place(hash);
        let now = place.load(Ordering::Relaxed);
        if now >> 16 != hash >> 16 {
            place.store(hash >> 16 << 16 | 1 << 8, Ordering::Relaxed);
            return None;
        }
        if now & 0xff == 0 {
            return Some((now >> 8) as u8);
        }
        place.store(now - 1, Ordering::Relaxed);
        None
    }

    /// Of the next askings the one of this number is worth keeping, at most that of [`PAUSE_MAX`].
    fn pause(&self, hash: u64, pause: u8) {
        let pause = u64::from(pause.clamp(1, PAUSE_MAX));
        self.place(hash).store(hash >> 16 << 16 | pause << 8 | (pause - 1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_asking_is_worth_keeping_and_others_after_a_pause() {
        let sights = Sights::new(4);
        let hash = 0xabcd_0000_1234_0001;
        assert_eq!(
            (sights.see(hash), sights.see(hash), sights.see(hash)),
            (None, Some(1), Some(1))
        );
        sights.pause(hash, 1);
        assert_eq!(sights.see(hash), Some(1));
        sights.pause(hash, 4);
        let seen: Vec<_> = (0..5).map(|_| sights.see(hash)).collect();
        assert_eq!(seen, [None, None, None, Some(4), Some(4)]);
        sights.pause(hash, 255);
        let first = (1..).find(|_| sights.see(hash).is_some());
        assert_eq!(first, Some(usize::from(PAUSE_MAX)));
        // Another question takes the place.
        assert_eq!(sights.see(hash + (4 << 40)), None);
        assert_eq!(sights.see(hash), None);
    }
}

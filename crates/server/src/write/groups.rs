//! Short bodies of many connections become one write.
//!
//! A write waits for the disk. With a thread for each that waits, a crowd of clients keeps the kernel switching
//! threads; and a store that is handed a row at a time does for each what it could do once for many. So bodies
//! for the same policy queue up, and a few workers store what has gathered as one batch, which waits once.
//! Nobody waits for more to gather: a worker takes what there is, and while it waits for the disk others come.
//!
//! Invariants
//! - A queue that is not empty has a worker, at work or about to begin.
//! - A body in a group is read, stored and answered for as if it came alone: its lines end with it, it has its own
//!   precision and time of arrival, and what is wrong with it is told to its client only. What keeps the
//!   store from taking any rows (no memory, no disk) holds for all of a group, and a panic of ours does.
//!
//! Not here: connections with threads of their own, which wait for the disk by themselves (`threads`), and long
//! bodies, which are worth a thread each (`blocking`).

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use ingest::line_protocol::ParseOptions;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::{MEMORY_FACTOR, Place, Target};
use crate::app::App;
use crate::body::{Packing, PiecedBody};
use crate::error::HttpError;
use crate::panic::text_of;
use crate::room::Room;
use crate::threads;

/// Bodies up to here, bytes, share a write with others.
const BODY_BYTES_MAX: usize = 64 << 10;
/// So many bodies, and about so many bytes, are a group at most: the first of them waits for the last.
const GROUP_BODIES_MAX: usize = 256;
const GROUP_BYTES_MAX: usize = 128 << 10;
/// A queue has as many workers as there are threads that serve connections, two at least, so that one is at work while
/// another waits for the disk. More begin as long as a store takes so long that nothing was begun for this long ...
const PAUSE_MAX: Duration = Duration::from_millis(4);
/// ... up to so many: heavy queries and long writes need threads as well.
const WORKERS_MIN: usize = 2;
const WORKERS_MAX: usize = 64;

/// What a client is told, or what a panic said.
type Answer = Result<Result<(), HttpError>, String>;

/// All queues.
#[derive(Debug, Default)]
pub(crate) struct WriteGroups {
    queues: Mutex<HashMap<Place, Queue>>,
}

/// Bodies for one policy.
#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Waiting>,
    workers: usize,
    /// When a worker came or took something last.
    begun: Instant,
}

/// A body that waits to be stored.
#[derive(Debug)]
struct Waiting {
    text: Bytes,
    /// Held until it is stored.
    _room: Room,
    options: ParseOptions,
    now_ns: i64,
    answer: oneshot::Sender<Answer>,
}

impl Waiting {
    fn body(&self) -> (&[u8], ParseOptions) {
        (&self.text, self.options)
    }

    fn tell(self, answer: Answer) {
        // A client that is gone asks no more.
        let _ = self.answer.send(answer);
    }
}

/// The text of a body that shall share a write; it is unpacked here, so that workers only store. `None`: the body
/// is as it was, for a thread of its own.
pub(super) fn short_text(
    target: &Target,
    body: &mut PiecedBody,
    packing: Packing,
) -> Result<Option<Bytes>, HttpError> {
    let is_short = body.pieces.len() <= BODY_BYTES_MAX;
    if !is_short || !target.consistency_known || threads::own_runtime().is_some() {
        return Ok(None);
    }
    if packing == Packing::Gzip {
        return body.unpacked_short(BODY_BYTES_MAX, MEMORY_FACTOR);
    }
    Ok(Some(std::mem::take(&mut body.pieces).joined()))
}

/// Stores a body together with others.
pub(super) async fn store(
    app: &Arc<App>,
    target: Target,
    text: Bytes,
    room: Room,
) -> Result<(), HttpError> {
    app.metrics.write_bytes.add(text.len() as u64);
    let now_ns = app.clock.now_ns();
    let options = ParseOptions::at(target.precision, now_ns);
    let (answer, answered) = oneshot::channel();
    let waiting = Waiting { text, _room: room, options, now_ns, answer };
    if app.write_groups.push(&target.place, waiting, app.config.threads) {
        let worker = Worker { app: Arc::clone(app), place: target.place, is_done: false };
        tokio::task::spawn_blocking(move || worker.run());
    }
    match answered.await {
        Ok(Ok(answer)) => answer,
        // It goes on here, where a request ends with it.
        Ok(Err(panic)) => std::panic::resume_unwind(Box::new(panic)),
        Err(_) => Err(HttpError::overloaded("the server stops", Duration::from_secs(5))),
    }
}

impl Queue {
    fn new(now: Instant) -> Self {
        Self { waiting: VecDeque::new(), workers: 0, begun: now }
    }

    fn wants_worker(&self, threads: usize, now: Instant) -> bool {
        let is_slow = || now.saturating_duration_since(self.begun) > PAUSE_MAX;
        self.workers < threads.max(WORKERS_MIN) || self.workers < WORKERS_MAX && is_slow()
    }
}

impl WriteGroups {
    /// Adds a body; says whether one more worker shall begin.
    fn push(&self, place: &Place, waiting: Waiting, threads: usize) -> bool {
        let now = Instant::now();
        let mut queues = self.queues.lock();
        if !queues.contains_key(place) {
            queues.insert(place.clone(), Queue::new(now));
        }
        let queue = queues.get_mut(place).expect("BUG: it was just made");
        queue.waiting.push_back(waiting);
        let begins = queue.wants_worker(threads, now);
        if begins {
            queue.workers += 1;
            queue.begun = now;
        }
        begins
    }

    /// What one write shall hold. If that is nothing, the worker that asks is done.
    fn next(&self, place: &Place) -> Option<Vec<Waiting>> {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(place).expect("BUG: a worker without a queue");
        let mut bytes = 0;
        let taken = queue.waiting.iter().take(GROUP_BODIES_MAX).take_while(|next| {
            let goes_on = bytes < GROUP_BYTES_MAX;
            bytes += next.text.len();
            goes_on
        });
        let taken = taken.count();
        if taken == 0 {
            Self::leave(&mut queues, place);
            return None;
        }
        queue.begun = Instant::now();
        Some(queue.waiting.drain(..taken).collect())
    }

    /// One worker less. With the last one goes what waits: there is nobody to store it.
    fn leave(queues: &mut HashMap<Place, Queue>, place: &Place) {
        let queue = queues.get_mut(place).expect("BUG: a worker without a queue");
        queue.workers -= 1;
        if queue.workers == 0 {
            queues.remove(place);
        }
    }
}

/// Stores what waits in a queue, until nothing does.
struct Worker {
    app: Arc<App>,
    place: Place,
    is_done: bool,
}

impl Worker {
    fn run(mut self) {
        while let Some(group) = self.app.write_groups.next(&self.place) {
            self.app.store_group(&self.place, group);
        }
        self.is_done = true;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It never ran: the runtime ends.
        if !self.is_done {
            WriteGroups::leave(&mut self.app.write_groups.queues.lock(), &self.place);
        }
    }
}

impl App {
    /// Stores bodies in one write and answers for each.
    fn store_group(&self, place: &Place, group: Vec<Waiting>) {
        let Some(first) = group.first() else { return };
        let bodies: Vec<(&[u8], ParseOptions)> = group.iter().map(Waiting::body).collect();
        let stored =
            catch_unwind(AssertUnwindSafe(|| self.store_bodies(place, &bodies, first.now_ns)));
        match stored {
            Ok(answers) => {
                let told = group.into_iter().zip(answers);
                told.for_each(|(waiting, answer)| waiting.tell(Ok(answer)));
            }
            Err(panic) => {
                let text = text_of(&*panic);
                group.into_iter().for_each(|waiting| waiting.tell(Err(text.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ingest::line_protocol::Precision;

    use super::*;
    use crate::room::BodyRoom;

    fn place() -> Place {
        Place { database: "d".to_owned(), policy: String::new() }
    }

    /// Adds so many bodies of so many bytes; says how many workers shall begin.
    fn push(groups: &WriteGroups, bodies: usize, bytes: usize) -> usize {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let room = BodyRoom::new(16 << 20, Duration::from_secs(1));
        let begins = (0..bodies).filter(|_| {
            let waiting = Waiting {
                text: Bytes::from(vec![b'#'; bytes]),
                _room: runtime.block_on(room.start(1)).unwrap(),
                options: ParseOptions::at(Precision::Second, 0),
                now_ns: 0,
                answer: oneshot::channel().0,
            };
            // Whoever has begun long ago is slow: not here.
            groups.queues.lock().values_mut().for_each(|queue| queue.begun = Instant::now());
            groups.push(&place(), waiting, 3)
        });
        begins.count()
    }

    fn taken(groups: &WriteGroups) -> Option<usize> {
        groups.next(&place()).map(|group| group.len())
    }

    #[test]
    fn groups_are_bounded_and_a_queue_ends_with_its_last_worker() {
        let groups = WriteGroups::default();
        assert_eq!(push(&groups, GROUP_BODIES_MAX + 1, 1), 3);
        assert_eq!(push(&groups, 3, BODY_BYTES_MAX), 0);
        assert_eq!(taken(&groups), Some(GROUP_BODIES_MAX));
        assert_eq!(taken(&groups), Some(3), "a row, and then as long as the bytes allow one more");
        assert_eq!(taken(&groups), Some(1));
        assert_eq!([taken(&groups), taken(&groups)], [None; 2], "two workers leave");
        assert_eq!(push(&groups, 1, 1), 1, "and one is wanted again");
        assert_eq!(taken(&groups), Some(1));
        assert_eq!([taken(&groups), taken(&groups)], [None; 2]);
        assert!(groups.queues.lock().is_empty());
    }

    #[test]
    fn a_worker_more_begins_where_a_store_is_slow() {
        let now = Instant::now();
        let queue = |workers| Queue { workers, ..Queue::new(now) };
        let soon = now + PAUSE_MAX;
        let late = soon + Duration::from_micros(1);
        assert!(queue(1).wants_worker(1, now), "two on any machine");
        assert!(!queue(2).wants_worker(1, soon));
        assert!(queue(2).wants_worker(1, late));
        assert!(queue(WORKERS_MAX - 1).wants_worker(1, late));
        assert!(!queue(WORKERS_MAX).wants_worker(1, late));
    }

    #[test]
    fn who_waits_for_a_worker_that_never_runs_is_told() {
        let groups = WriteGroups::default();
        push(&groups, 1, 1);
        let (answer, mut answered) = oneshot::channel();
        let mut queues = groups.queues.lock();
        queues.get_mut(&place()).unwrap().waiting[0].answer = answer;
        WriteGroups::leave(&mut queues, &place());
        assert!(queues.is_empty());
        assert_eq!(answered.try_recv(), Err(oneshot::error::TryRecvError::Closed));
    }
}

//! A thread of its own for each connection whose client asks again as soon as it has its answer.
//!
//! All connections begin among those that the runtime's few threads serve, and most stay there. For a busy one
//! that costs more than many a request: somebody is told which socket is ready and wakes the thread that goes on,
//! and what waits for the disk goes to yet another thread and back. So a busy connection moves, as it is, to a
//! thread that serves nothing else: it waits for its socket and for the disk by itself. It moves back when its
//! client pauses, or when so many are busy ([`census`]) that their threads would interrupt each other in the
//! middle of requests: then it is better to finish one after another.
//!
//! A connection moves between two requests, never within one: whatever a handler waits for belongs to the place
//! where it began. Those of HTTP/2 stay where they are, since each of their requests is a task by itself.
//!
//! Not here: what a connection does, see `server`; how its socket comes along, see `roaming`.

mod census;

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{self, Handle};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::app::App;
use crate::connection::{Activity, Kind};
use crate::roaming::{leave, read_ahead};
use census::{Census, Look, Pace, WINDOW};

/// A client that sends fewer requests in a [`WINDOW`] has paused.
const STAY_REQUESTS: u64 = 2;

/// How long a thread may wait for its client's requests alone, before its runtime has a turn: for the timers, and for
/// whoever wants the connection to end.
const TURN_INTERVAL: Duration = Duration::from_millis(10);

/// What a thread that serves one connection knows of itself.
#[derive(Debug)]
struct Own {
    /// The runtime that all others share.
    pool: Handle,
    /// The thread's own, for one stay.
    runtime: runtime::Id,
    /// What the client did when the stay began.
    kind: Kind,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The runtime that all share: for work that does not end with a connection's stay on its thread.
pub(crate) fn pool() -> Handle {
    OWN.with_borrow(|own| own.as_ref().map(|own| own.pool.clone())).unwrap_or_else(Handle::current)
}

/// The runtime of this thread alone, if it serves one connection. Such a thread may wait for the disk.
pub(crate) fn own_runtime() -> Option<runtime::Id> {
    OWN.with_borrow(|own| own.as_ref().map(|own| own.runtime))
}

/// Whether this thread takes turns with a client that asks and waits.
pub(crate) fn answers_one() -> bool {
    OWN.with_borrow(|own| own.as_ref().is_some_and(|own| own.kind == Kind::Asks))
}

/// A connection that any thread may go on with.
pub(crate) struct Served {
    /// Ready at its end.
    connection: Pin<Box<dyn Future<Output = ()> + Send>>,
    activity: Activity,
    pace: Pace,
}

/// Why a connection is not served here any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaves {
    /// It has ended.
    Ended,
    /// It moves.
    Moves,
}

impl Served {
    /// One that has just begun.
    pub(crate) fn new(
        activity: Activity,
        connection: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { connection: Box::pin(connection), activity, pace: Pace::default() }
    }

    /// Serves, and takes note of what goes on; `moves` says, after each request of a busy client, whether to go on
    /// elsewhere.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        census: &Census,
        moves: impl FnOnce(u64) -> bool,
    ) -> Poll<Leaves> {
        if self.connection.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Leaves::Ended);
        }
        let requests = self.activity.requests();
        // So the clock is looked at once a request.
        if !self.pace.is_news(requests) || !self.activity.may_move() {
            return Poll::Pending;
        }
        let window = census.window();
        match self.pace.look(window, requests) {
            Look::Quiet => return Poll::Pending,
            Look::BusyNow => census.count(self.activity.kind(), window),
            Look::BusyStill => {}
        }
        if moves(window) { Poll::Ready(Leaves::Moves) } else { Poll::Pending }
    }
}

/// Moves connections to threads and back.
#[derive(Debug)]
pub(crate) struct Threads {
    app: Arc<App>,
    census: Census,
    /// Closed when connections shall end, whatever they are doing.
    open: watch::Receiver<()>,
}

impl Threads {
    pub(crate) fn new(app: &Arc<App>, open: watch::Receiver<()>) -> Self {
        Self { app: Arc::clone(app), census: Census::new(app.config.threads), open }
    }

    /// Serves a connection to its end, for a task of the runtime that all share.
    pub(crate) async fn serve(self: Arc<Self>, mut served: Served) {
        while self.among_others(&mut served).await == Leaves::Moves {
            let threads = Arc::clone(&self);
            let stay = tokio::task::spawn_blocking(move || threads.alone(served));
            // A panic ends the connection, as it does elsewhere.
            let Ok(Some(back)) = stay.await else { return };
            served = back;
        }
    }

    /// Until it ends, or shall have a thread.
    async fn among_others(&self, served: &mut Served) -> Leaves {
        let (activity, census) = (served.activity.clone(), &self.census);
        let gets_thread = |window| census.has_threads(activity.kind(), window);
        tokio::select! {
            biased;
            leaves = poll_fn(|cx| served.poll(cx, census, gets_thread)) => leaves,
            why = activity.watch(&self.app.config.patience) => ended(&activity, why),
        }
    }

    /// A stay on this thread; the connection, if it goes on elsewhere.
    fn alone(&self, mut served: Served) -> Option<Served> {
        let pool = Handle::current();
        let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::debug!("a connection gets no thread of its own: {error}");
                return Some(served);
            }
        };
        let _stay = Stay::begin(
            &self.app,
            Own { pool, runtime: runtime.handle().id(), kind: served.activity.kind() },
        );
        match runtime.block_on(self.until_pause(&mut served)) {
            Leaves::Ended => None,
            Leaves::Moves => Some(served),
        }
    }

    /// Until it ends, or shall have its thread no longer.
    async fn until_pause(&self, served: &mut Served) -> Leaves {
        let (activity, census) = (served.activity.clone(), &self.census);
        let mut open = self.open.clone();
        let mut too_slow = pin!(activity.watch(&self.app.config.patience));
        let mut ticks = interval_at(Instant::now() + WINDOW, WINDOW);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut requests_before = activity.requests();
        loop {
            tokio::select! {
                biased;
                leaves = poll_fn(|cx| serve_turn(served, cx, census)) => return leaves,
                _ = open.changed() => return Leaves::Ended,
                why = &mut too_slow => return ended(&activity, why),
                _ = ticks.tick() => {
                    let requests = activity.requests();
                    let has_paused = requests - requests_before < STAY_REQUESTS;
                    requests_before = requests;
                    let stays = !has_paused && census.has_threads(activity.kind(), census.window());
                    if !stays && activity.may_move() {
                        return Leaves::Moves;
                    }
                }
            }
        }
    }
}

/// Serves until there is nothing to do, or the runtime shall have its turn.
fn serve_turn(served: &mut Served, cx: &mut Context<'_>, census: &Census) -> Poll<Leaves> {
    let start = Instant::now();
    loop {
        let outcome = served.poll(cx, census, |_| false);
        let goes_on = outcome.is_pending()
            && served.activity.waits_for_request()
            && start.elapsed() < TURN_INTERVAL
            && read_ahead();
        if !goes_on {
            return outcome;
        }
    }
}

fn ended(activity: &Activity, why: &str) -> Leaves {
    tracing::debug!(peer = ?activity.peer(), "closed a connection: {why}");
    Leaves::Ended
}

/// Marks this thread as one that serves a connection alone, until dropped.
struct Stay<'a>(&'a App);

impl<'a> Stay<'a> {
    fn begin(app: &'a App, own: Own) -> Self {
        OWN.set(Some(own));
        app.metrics.connections_alone.add(1);
        Self(app)
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        OWN.set(None);
        leave();
        self.0.metrics.connections_alone.sub(1);
    }
}

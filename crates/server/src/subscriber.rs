//! Subscriptions: a copy of every write that is stored goes to whoever subscribed to its policy.
//!
//! The store is wrapped, so that rows are forwarded whichever way they came: over HTTP, UDP and the
//! other listeners, by SELECT INTO and continuous queries.
//!
//! Invariants
//! - A writer never waits: it hands a copy over or, if too much is waiting, drops and counts it.
//! - What waits is bounded, in writes and in bytes, for each destination and in all.
//! - Destinations do not hold up each other. One that cannot be reached loses what comes meanwhile.
//!
//! Nothing is sent twice, and nothing is kept over a restart.

mod destination;
mod lines;
mod secure;
mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogState, Database, PolicyInfo, Subscription, SubscriptionMode};
use model::{Name, PolicyId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use store::ForwardingStore;

use self::destination::Destination;
use crate::app::App;

/// Writes that wait at most: for being handed out, and for each destination.
const WAITING_WRITES_MAX: usize = 1000;

/// While there are subscriptions, those that are gone are noticed so often without a write.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);

/// A copy of the rows that a write stored.
#[derive(Debug)]
struct Copy {
    policy: PolicyId,
    rows: u64,
    /// Line protocol, times in nanoseconds.
    text: Vec<u8>,
    /// Room among what may wait; given back with the last copy of the copy.
    _room: OwnedSemaphorePermit,
}

/// Where writers leave copies.
#[derive(Clone, Debug)]
struct Inbox {
    sender: mpsc::Sender<Arc<Copy>>,
    room: Arc<Semaphore>,
}

impl Inbox {
    /// Takes a copy unless too much is waiting; says whether it did.
    fn put(&self, policy: PolicyId, rows: u64, text: Vec<u8>) -> bool {
        let bytes = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(bytes) else { return false };
        self.sender.try_send(Arc::new(Copy { policy, rows, text, _room: room })).is_ok()
    }
}

/// Hands copies out to whoever subscribed.
#[derive(Debug)]
pub(crate) struct Outbox {
    receiver: mpsc::Receiver<Arc<Copy>>,
}

/// Both ends; `bytes_max` may wait in all.
fn channel(bytes_max: usize) -> (Inbox, Outbox) {
    let (sender, receiver) = mpsc::channel(WAITING_WRITES_MAX);
    let room = Arc::new(Semaphore::new(bytes_max.min(Semaphore::MAX_PERMITS)));
    (Inbox { sender, room }, Outbox { receiver })
}

/// Where the copies for one destination of a subscription go, or for all in turn.
#[derive(Debug)]
struct Route {
    subscription: Subscription,
    queues: Vec<mpsc::Sender<Arc<Copy>>>,
}

/// The routes by policy and name of the subscription.
type Routes = HashMap<(PolicyId, Name), Route>;

impl Outbox {
    /// Hands out, for ever.
    pub(crate) async fn deliver(mut self, app: Arc<App>) {
        let mut routes = Routes::new();
        let mut workers = JoinSet::new();
        let mut version = None;
        loop {
            let received = if routes.is_empty() {
                Ok(self.receiver.recv().await)
            } else {
                timeout(FOLLOW_EVERY, self.receiver.recv()).await
            };
            let catalog = app.catalog.snapshot();
            if version != Some(catalog.version()) {
                follow(&app, &catalog, &mut routes, &mut workers);
                version = Some(catalog.version());
            }
            let copy = match received {
                Ok(Some(copy)) => copy,
                Ok(None) => return,
                Err(_) => continue,
            };
            for ((policy, _), route) in &routes {
                if *policy != copy.policy {
                    continue;
                }
                for queue in &route.queues {
                    if queue.try_send(Arc::clone(&copy)).is_err() {
                        app.metrics.subscription_writes_dropped.add(1);
                    }
                }
            }
            // Those whose subscription is gone have ended.
            while workers.try_join_next().is_some() {}
        }
    }
}

/// Makes the routes those of the catalog. Dropping a route ends its workers.
fn follow(app: &Arc<App>, catalog: &CatalogState, routes: &mut Routes, workers: &mut JoinSet<()>) {
    let mut wanted = HashMap::new();
    for database in catalog.databases() {
        for policy in &database.policies {
            for subscription in &policy.subscriptions {
                let key = (policy.id, subscription.name.clone());
                wanted.insert(key, (database, policy, subscription));
            }
        }
    }
    routes.retain(|key, route| {
        wanted.get(key).is_some_and(|(.., subscription)| **subscription == route.subscription)
    });
    for (key, (database, policy, subscription)) in wanted {
        routes
            .entry(key)
            .or_insert_with(|| Route::start(app, database, policy, subscription, workers));
    }
}

impl Route {
    fn start(
        app: &Arc<App>,
        database: &Database,
        policy: &PolicyInfo,
        subscription: &Subscription,
        workers: &mut JoinSet<()>,
    ) -> Self {
        let destination = |url: &Name| Destination::new(url, &database.name, &policy.name);
        let all: Vec<Destination> = subscription.destinations.iter().map(destination).collect();
        let groups: Vec<Vec<Destination>> = match subscription.mode {
            SubscriptionMode::All => all.into_iter().map(|one| vec![one]).collect(),
            SubscriptionMode::Any => vec![all],
        };
        let mut queues = Vec::new();
        for group in groups {
            let (sender, receiver) = mpsc::channel(WAITING_WRITES_MAX);
            queues.push(sender);
            workers.spawn(send(Arc::clone(app), receiver, group));
        }
        Self { subscription: subscription.clone(), queues }
    }
}

/// Sends each copy to one of the destinations, in turn; to the next one if that fails.
async fn send(
    app: Arc<App>,
    mut receiver: mpsc::Receiver<Arc<Copy>>,
    mut destinations: Vec<Destination>,
) {
    let count = destinations.len();
    let mut turn = 0;
    while let Some(copy) = receiver.recv().await {
        let mut sent = false;
        for step in 0..count {
            let destination = &mut destinations[(turn + step) % count];
            match destination.send(&copy.text).await {
                Ok(()) => {
                    app.metrics.subscription_rows.add(copy.rows);
                    sent = true;
                    break;
                }
                Err(error) => {
                    app.metrics.subscription_failures.add(1);
                    let url = destination.shown();
                    tracing::debug!(url, "a subscription's destination took no rows: {error}");
                }
            }
        }
        turn = (turn + 1) % count;
        if !sent {
            tracing::debug!(rows = copy.rows, "rows reached no destination of a subscription");
        }
    }
}

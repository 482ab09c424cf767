//! Subscriptions: a copy of every write that is stored goes to whoever subscribed to its policy.
//!
//! The store is wrapped, so that rows are forwarded whichever way they came: over HTTP, UDP and the
//! other listeners, by SELECT INTO and continuous queries.
//!
//! Invariants
//! - A writer never waits: it hands a copy over or, if too much is waiting, drops and counts it.
//! - What waits is bounded, in writes and in bytes, for each destination and in all. A copy that is
//!   more than there may be is let in alone.
//! - Destinations do not hold up each other: none holds more than its share. One that cannot be
//!   reached loses what comes meanwhile.
//! - What waits for a subscription ends with it.
//!
//! Nothing is sent twice, and nothing is kept over a restart.

mod destination;
mod queue;
mod secure;
mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::{CatalogState, Database, PolicyInfo, Subscription, SubscriptionMode};
use model::{Name, PolicyId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

pub(crate) use store::ForwardingStore;

use self::destination::Destination;
use self::queue::{Queue, Waiting};
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
    text: Bytes,
    /// Room among what may wait; given back with the last copy of the copy.
    _room: OwnedSemaphorePermit,
}

/// Where writers leave copies.
#[derive(Clone, Debug)]
struct Inbox {
    sender: mpsc::Sender<Arc<Copy>>,
    room: Arc<Semaphore>,
    bytes_max: usize,
}

/// A place for one copy.
#[derive(Debug)]
struct Place<'i> {
    inbox: &'i Inbox,
    sender: mpsc::Permit<'i, Arc<Copy>>,
    room: OwnedSemaphorePermit,
}

impl Inbox {
    /// A place for a copy of about `bytes`, unless too much is waiting.
    fn place(&self, bytes: usize) -> Option<Place<'_>> {
        let sender = self.sender.try_reserve().ok()?;
        Some(Place { inbox: self, sender, room: self.room_for(bytes)? })
    }

    fn room_for(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let wanted = u32::try_from(bytes.min(self.bytes_max)).unwrap_or(u32::MAX);
        Arc::clone(&self.room).try_acquire_many_owned(wanted).ok()
    }
}

impl Place<'_> {
    /// Leaves a copy; says whether there is room for what it turned out to be.
    fn put(self, policy: PolicyId, rows: u64, mut text: Vec<u8>) -> bool {
        let Self { inbox, sender, mut room } = self;
        text.shrink_to_fit();
        let (bytes, held) = (text.capacity().min(inbox.bytes_max), room.num_permits());
        drop(room.split(held.saturating_sub(bytes)));
        let Some(more) = inbox.room_for(bytes.saturating_sub(held)) else { return false };
        room.merge(more);
        sender.send(Arc::new(Copy { policy, rows, text: text.into(), _room: room }));
        true
    }
}

/// Hands copies out to whoever subscribed.
#[derive(Debug)]
pub(crate) struct Outbox {
    receiver: mpsc::Receiver<Arc<Copy>>,
    bytes_max: usize,
}

/// Both ends; `bytes_max` may wait in all.
fn channel(bytes_max: usize) -> (Inbox, Outbox) {
    let (sender, receiver) = mpsc::channel(WAITING_WRITES_MAX);
    let bytes_max = bytes_max.min(Semaphore::MAX_PERMITS);
    let room = Arc::new(Semaphore::new(bytes_max));
    (Inbox { sender, room, bytes_max }, Outbox { receiver, bytes_max })
}

/// Where the copies for a subscription go: to each of its destinations, or to all in turn.
#[derive(Debug)]
struct Route {
    subscription: Subscription,
    queues: Vec<Queue>,
    /// Who empties the queues; they end with the route.
    workers: Vec<AbortHandle>,
}

impl Drop for Route {
    fn drop(&mut self) {
        self.workers.iter().for_each(AbortHandle::abort);
    }
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
            // With one share left for what is not handed out yet.
            let queues: usize = routes.values().map(|route| route.queues.len()).sum();
            let share_bytes = self.bytes_max / queues.saturating_add(1);
            let subscribed = routes.iter().filter(|((policy, _), _)| *policy == copy.policy);
            for queue in subscribed.flat_map(|(_, route)| &route.queues) {
                if !queue.put(&copy, share_bytes) {
                    app.metrics.subscription_writes_dropped.add(1);
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
        let mut route =
            Self { subscription: subscription.clone(), queues: Vec::new(), workers: Vec::new() };
        for group in groups {
            let (queue, receiver) = Queue::new(WAITING_WRITES_MAX);
            route.queues.push(queue);
            route.workers.push(workers.spawn(send(Arc::clone(app), receiver, group)));
        }
        route
    }
}

/// Sends each copy to one of the destinations, in turn; to the next one if that fails.
async fn send(
    app: Arc<App>,
    mut receiver: mpsc::Receiver<Waiting>,
    mut destinations: Vec<Destination>,
) {
    let count = destinations.len();
    let mut turn = 0;
    while let Some(waiting) = receiver.recv().await {
        let copy = waiting.copy();
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

#[cfg(test)]
mod tests;

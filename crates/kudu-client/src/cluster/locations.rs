//! Where the tablets of a table are.
//!
//! Invariants
//! - A tablet in the cache may be out of date; servers say so and it is asked for again.
//! - A gap in the cache is believed only by operations that began before it was learned: another
//!   process may add a range at any time, and rows acknowledged there must be found.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::master::{Masters, master_code};
use crate::error::Error;
use crate::proto::{
    GetTableLocationsRequest, GetTableLocationsResponse, ServiceError, TableIdentifier,
    TabletLocations, TabletServerInfo, role,
};
use crate::retry::Attempts;
use crate::rpc::Endpoint;

/// Tablets asked for at once when one is looked for: the neighbours are likely to be next.
const PREFETCH: u32 = 10;
/// Tablets asked for, in turns, when prefetching failed because a neighbour is still being made: two
/// get past a gap, one past a neighbour.
const CAUTIOUS: [u32; 2] = [2, 1];
/// Tablets asked for when all are wanted.
pub(crate) const WHOLE: u32 = 1000;
/// How long locations are believed when the master does not say.
const TTL_DEFAULT: Duration = Duration::from_secs(300);

/// A copy of a tablet.
#[derive(Clone, Debug)]
pub(crate) struct Replica {
    pub(crate) endpoint: Endpoint,
    /// Identity of the server.
    pub(crate) server: Bytes,
    /// Whether it counts where a majority is needed. One that is still being filled does not.
    pub(crate) is_voter: bool,
    pub(crate) is_leader: bool,
    /// It was tried since the master told of it, and could not do what was asked.
    is_tried: bool,
}

/// A tablet and its copies.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub(crate) id: Bytes,
    pub(crate) start: Bytes,
    /// Exclusive; empty: no bound.
    pub(crate) end: Bytes,
    replicas: Mutex<Vec<Replica>>,
}

impl Tablet {
    /// The replica to write to: the leader, or one that may have become it. `None`: all have been
    /// tried, the master has to be asked.
    pub(crate) fn leader(&self) -> Option<Endpoint> {
        let replicas = self.replicas.lock();
        let untried = || replicas.iter().filter(|r| !r.is_tried);
        untried().find(|r| r.is_leader).or_else(|| untried().next()).map(|r| r.endpoint.clone())
    }

    /// The replica to read from if it has to be the leader. No guessing here: a follower would
    /// answer, too, with what it has so far. `None`: none is known, the master has to be asked.
    pub(crate) fn named_leader(&self) -> Option<Endpoint> {
        self.replicas.lock().iter().find(|r| r.is_leader).map(|r| r.endpoint.clone())
    }

    /// Any replica to read from.
    pub(crate) fn any(&self) -> Option<Endpoint> {
        let replicas = self.replicas.lock();
        let untried: Vec<&Replica> = replicas.iter().filter(|r| !r.is_tried).collect();
        let pick = rand::random_range(0..untried.len().max(1));
        untried.get(pick).map(|r| r.endpoint.clone())
    }

    /// All copies that are known.
    pub(crate) fn replicas(&self) -> Vec<Replica> {
        self.replicas.lock().clone()
    }

    /// This one could not do it.
    pub(crate) fn demote(&self, endpoint: &Endpoint) {
        for replica in self.replicas.lock().iter_mut().filter(|r| r.endpoint == *endpoint) {
            replica.is_tried = true;
            replica.is_leader = false;
        }
    }

    /// This one leads: it did what only a leader does.
    pub(crate) fn promote(&self, endpoint: &Endpoint) {
        for replica in self.replicas.lock().iter_mut() {
            replica.is_leader = replica.endpoint == *endpoint;
            replica.is_tried &= !replica.is_leader;
        }
    }
}

/// A stretch of partition keys with a tablet, or without.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    pub(crate) start: Bytes,
    /// Exclusive; empty: no bound.
    pub(crate) end: Bytes,
    /// `None`: no tablet is there.
    pub(crate) tablet: Option<Arc<Tablet>>,
    learned: Instant,
    expires: Instant,
}

impl Stretch {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && (self.end.is_empty() || key < self.end.as_ref())
    }

    pub(crate) fn is_believed(&self, since: Instant, now: Instant) -> bool {
        now < self.expires && (self.tablet.is_some() || self.learned >= since)
    }
}

/// Known stretches, ascending and disjoint.
pub(crate) type Snapshot = Arc<Vec<Stretch>>;

/// What is known of the tablets of one table.
#[derive(Debug)]
pub(crate) struct Locations {
    table_id: Bytes,
    known: Mutex<Snapshot>,
    /// One question at a time, so that those who miss together ask once.
    asking: Semaphore,
}

impl Locations {
    pub(crate) fn new(table_id: Bytes) -> Self {
        Self { table_id, known: Mutex::default(), asking: Semaphore::new(1) }
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Arc::clone(&self.known.lock())
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        *self.known.lock() = Snapshot::default();
    }

    /// Forgets a tablet, unless the master has told of it anew since.
    pub(crate) fn forget(&self, tablet: &Arc<Tablet>) {
        let mut known = self.known.lock();
        let is_it = |s: &Stretch| s.tablet.as_ref().is_some_and(|t| Arc::ptr_eq(t, tablet));
        if known.iter().any(is_it) {
            *known = Arc::new(known.iter().filter(|s| !is_it(s)).cloned().collect());
        }
    }

    /// The stretch of a key, as of `since` or later. `prefetch` is how many tablets may be asked
    /// for at once.
    pub(crate) async fn find(
        &self,
        key: &[u8],
        since: Instant,
        prefetch: Option<u32>,
        masters: &Masters,
        attempts: &mut Attempts,
    ) -> Result<Stretch, Error> {
        if let Some(stretch) = find_in(&self.snapshot(), key, since) {
            return Ok(stretch);
        }
        let mut wanted = prefetch.unwrap_or(PREFETCH);
        let mut cautious = CAUTIOUS.into_iter().cycle();
        loop {
            // Held for one question only: others may be after tablets that are there.
            let waiting = tokio::time::timeout(attempts.until_deadline(), self.asking.acquire());
            let turn = waiting.await.map_err(|_| attempts.timed_out())?;
            if let Some(stretch) = find_in(&self.snapshot(), key, since) {
                return Ok(stretch);
            }
            let learned = Instant::now();
            match self.ask(key, wanted, masters, attempts).await? {
                Ok(answer) => {
                    self.learn(key, &answer, wanted, learned)?;
                    if let Some(stretch) = find_in(&self.snapshot(), key, since) {
                        return Ok(stretch);
                    }
                    attempts.failed("master", &"its answer has not the key asked for");
                }
                // A neighbour is still being made, which fails the whole answer.
                Err(error) if error.code == master_code::TABLET_NOT_RUNNING => {
                    let message = error.status.message.unwrap_or_default();
                    attempts.failed("master", &message);
                }
                Err(error) => return Err(self.refused(&error)),
            }
            drop(turn);
            let was_bold = !CAUTIOUS.contains(&wanted);
            wanted = cautious.next().unwrap_or(1);
            if !was_bold {
                attempts.back_off().await?;
            }
        }
    }

    fn refused(&self, error: &ServiceError) -> Error {
        let table = String::from_utf8_lossy(&self.table_id).into_owned();
        if error.code == master_code::TABLE_NOT_FOUND {
            return Error::TableNotFound { table };
        }
        Error::Master {
            operation: format!("locations of table {table}"),
            code: error.code,
            status: error.status.code,
            message: error.status.message.clone().unwrap_or_default(),
        }
    }

    async fn ask(
        &self,
        key: &[u8],
        wanted: u32,
        masters: &Masters,
        attempts: &mut Attempts,
    ) -> Result<Result<GetTableLocationsResponse, ServiceError>, Error> {
        let request = GetTableLocationsRequest {
            table: TableIdentifier { table_id: Some(self.table_id.clone()), table_name: None },
            partition_key_start: Some(key.to_vec()),
            partition_key_end: None,
            max_returned_locations: Some(wanted),
            intern_ts_infos_in_response: Some(true),
        };
        Ok(masters.call("GetTableLocations", &request, &[], attempts).await?.answer)
    }

    /// Takes over an answer to a question for `key` on, with the gaps that it proves.
    pub(crate) fn learn(
        &self,
        key: &[u8],
        answer: &GetTableLocationsResponse,
        wanted: u32,
        learned: Instant,
    ) -> Result<(), Error> {
        let ttl = answer.ttl_millis.map_or(TTL_DEFAULT, |ms| Duration::from_millis(ms.into()));
        let expires = learned + ttl;
        let stretch =
            |start: Bytes, end: Bytes, tablet| Stretch { start, end, tablet, learned, expires };
        let mut fresh: Vec<Stretch> = Vec::new();
        let mut cursor = Some(Bytes::copy_from_slice(key));
        for located in &answer.tablet_locations {
            let tablet = tablet(located, &answer.ts_infos)?;
            let Some(from) = cursor else { break };
            if from < tablet.start {
                fresh.push(stretch(from.clone(), tablet.start.clone(), None));
            }
            // Before the first gap the tablet that precedes the key is told, too.
            cursor = (!tablet.end.is_empty()).then(|| from.max(tablet.end.clone()));
            fresh.push(stretch(tablet.start.clone(), tablet.end.clone(), Some(Arc::new(tablet))));
        }
        let is_all = (answer.tablet_locations.len() as u64) < u64::from(wanted);
        if let Some(from) = cursor.filter(|_| is_all) {
            fresh.push(stretch(from, Bytes::new(), None));
        }
        let mut known = self.known.lock();
        let mut merged: Vec<Stretch> = known
            .iter()
            .filter(|old| !fresh.iter().any(|new| overlap(old, new)))
            .chain(&fresh)
            .cloned()
            .collect();
        merged.sort_by(|a, b| a.start.cmp(&b.start));
        *known = Arc::new(merged);
        Ok(())
    }
}

fn overlap(a: &Stretch, b: &Stretch) -> bool {
    (a.end.is_empty() || b.start < a.end) && (b.end.is_empty() || a.start < b.end)
}

/// The believed stretch of a key in a snapshot.
pub(crate) fn find_in(known: &[Stretch], key: &[u8], since: Instant) -> Option<Stretch> {
    let stretch = known.get(place_of(known, key)?)?;
    stretch.is_believed(since, Instant::now()).then(|| stretch.clone())
}

/// Index of the stretch of a key.
pub(crate) fn place_of(known: &[Stretch], key: &[u8]) -> Option<usize> {
    let place = known.partition_point(|s| s.start.as_ref() <= key).checked_sub(1)?;
    known.get(place).is_some_and(|stretch| stretch.contains(key)).then_some(place)
}

fn tablet(located: &TabletLocations, servers: &[TabletServerInfo]) -> Result<Tablet, Error> {
    let partition = located.partition.clone().unwrap_or_default();
    let mut replicas = Vec::new();
    let mut add = |server: Option<&TabletServerInfo>, role: Option<i32>| -> Result<(), Error> {
        // A server that the master has not heard of since it started has no address.
        let Some(server) = server else { return Ok(()) };
        let Some(address) = server.rpc_addresses.first() else { return Ok(()) };
        let endpoint = Endpoint::try_from(address).map_err(|e| Error::protocol("master", e))?;
        let is_leader = role == Some(role::LEADER);
        replicas.push(Replica {
            endpoint,
            server: server.permanent_uuid.clone().unwrap_or_default(),
            is_voter: is_leader || role == Some(role::FOLLOWER),
            is_leader,
            is_tried: false,
        });
        Ok(())
    };
    for replica in &located.interned_replicas {
        add(servers.get(replica.ts_info_idx.unwrap_or(0) as usize), replica.role)?;
    }
    for replica in &located.replicas {
        add(replica.ts_info.as_ref(), replica.role)?;
    }
    Ok(Tablet {
        id: located.tablet_id.clone(),
        start: partition.partition_key_start.unwrap_or_default().into(),
        end: partition.partition_key_end.unwrap_or_default().into(),
        replicas: Mutex::new(replicas),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::PartitionMessage;

    fn answer(tablets: &[(&str, &str)]) -> GetTableLocationsResponse {
        let tablet_locations = tablets.iter().map(|(start, end)| TabletLocations {
            tablet_id: Bytes::copy_from_slice(start.as_bytes()),
            partition: Some(PartitionMessage {
                partition_key_start: Some(start.as_bytes().to_vec()),
                partition_key_end: Some(end.as_bytes().to_vec()),
            }),
            ..TabletLocations::default()
        });
        GetTableLocationsResponse {
            tablet_locations: tablet_locations.collect(),
            ..GetTableLocationsResponse::default()
        }
    }

    fn shape(locations: &Locations) -> Vec<(String, String, bool)> {
        let text = |b: &Bytes| String::from_utf8(b.to_vec()).unwrap();
        locations
            .snapshot()
            .iter()
            .map(|s| (text(&s.start), text(&s.end), s.tablet.is_some()))
            .collect()
    }

    fn expect(stretches: &[(&str, &str, bool)]) -> Vec<(String, String, bool)> {
        stretches.iter().map(|(s, e, t)| ((*s).to_owned(), (*e).to_owned(), *t)).collect()
    }

    #[test]
    fn gaps_are_learned_where_the_answer_proves_them() {
        let locations = Locations::new(Bytes::new());
        let now = Instant::now();
        locations.learn(b"", &answer(&[("b", "d"), ("d", "f"), ("h", "k")]), 10, now).unwrap();
        let all = [
            ("", "b", false),
            ("b", "d", true),
            ("d", "f", true),
            ("f", "h", false),
            ("h", "k", true),
            ("k", "", false),
        ];
        assert_eq!(shape(&locations), expect(&all));
        // Another process has filled the first gap; the preceding tablet comes along.
        locations.learn(b"g", &answer(&[("d", "f"), ("f", "h")]), 2, now).unwrap();
        let mut filled = all.to_vec();
        filled[3] = ("f", "h", true);
        assert_eq!(shape(&locations), expect(&filled));
    }

    #[test]
    fn a_gap_is_not_believed_by_those_who_come_later() {
        let locations = Locations::new(Bytes::new());
        let now = Instant::now();
        locations.learn(b"", &answer(&[("b", "d")]), 10, now).unwrap();
        let later = now + Duration::from_millis(1);
        let known = locations.snapshot();
        assert!(find_in(&known, b"a", now).is_some_and(|s| s.tablet.is_none()));
        assert!(find_in(&known, b"a", later).is_none());
        assert!(find_in(&known, b"c", later).is_some_and(|s| s.tablet.is_some()));
        assert!(find_in(&known, b"e", now).is_some_and(|s| s.tablet.is_none()));
    }

    #[test]
    fn a_table_without_tablets_is_one_gap() {
        let locations = Locations::new(Bytes::new());
        locations.learn(b"x", &answer(&[]), 10, Instant::now()).unwrap();
        assert_eq!(shape(&locations), expect(&[("x", "", false)]));
    }
}

//! The range ahead: made before rows come for it, so that no write has to wait for it.
//!
//! It is nobody's need yet. So it is made beside the writes, one at a time for a table, and where that
//! fails it is logged and tried again after a pause: the write that asked for it does not notice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use store::StoreError;

use crate::data::{DataTable, Known, Surprise};
use crate::measurement::{Measurement, range_entry};
use crate::ranges::{Needs, ahead, range_at};
use crate::shared::Shared;

/// How long nothing is tried after a failure.
const PAUSE: Duration = Duration::from_secs(30);

/// Whose turn it is to make a table's range ahead.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<Turn>);

#[derive(Debug, Default)]
enum Turn {
    #[default]
    Free,
    Taken,
    /// The last try failed.
    FreeAt(Instant),
}

impl Turns {
    /// Takes the turn; `false`: somebody has it, or a try has just failed.
    fn take(&self, now: Instant) -> bool {
        let mut turn = self.0.lock();
        let is_free = match &*turn {
            Turn::Free => true,
            Turn::Taken => false,
            Turn::FreeAt(at) => *at <= now,
        };
        if is_free {
            *turn = Turn::Taken;
        }
        is_free
    }

    fn give_back(&self, free_at: Option<Instant>) {
        *self.0.lock() = free_at.map_or(Turn::Free, Turn::FreeAt);
    }
}

impl Shared {
    /// Has the range made that rows like those of a write need soon. Does not wait for it.
    pub(crate) fn look_ahead(
        self: &Arc<Self>,
        measurement: &Arc<Measurement>,
        data: &Arc<DataTable>,
        known: &Known,
        needs: &Needs<'_>,
    ) {
        let Some(next) = ahead(&known.ranges, needs) else { return };
        if !data.ahead.take(Instant::now()) {
            return;
        }
        let (shared, policy) = (Arc::clone(self), needs.policy);
        let (measurement, data) = (Arc::clone(measurement), Arc::clone(data));
        self.handle.spawn(async move {
            let needs = Needs { policy, columns: &[], times: &[next], now_ns: i64::MIN };
            let made = shared.make_ahead(&measurement, &data, &needs).await;
            if let Err(error) = &made {
                let name = &measurement.name;
                tracing::warn!("cannot make the next partition of measurement {name} yet: {error}");
            }
            data.ahead.give_back(made.err().map(|_| Instant::now() + PAUSE));
        });
    }

    async fn make_ahead(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        needs: &Needs<'_>,
    ) -> Result<(), StoreError> {
        let Some(known) = data.known() else { return Ok(()) };
        match self.grow(measurement, data, &known, needs).await {
            Ok(()) => self.withdraw(measurement, data, needs).await,
            Err(Surprise::Changed) => {
                data.forget();
                Ok(())
            }
            Err(Surprise::Failed(error)) => Err(error),
        }
    }

    /// Takes back that the range is registered if its table was dropped meanwhile: no rows follow, so
    /// no writer would look.
    async fn withdraw(
        &self,
        measurement: &Measurement,
        data: &DataTable,
        needs: &Needs<'_>,
    ) -> Result<(), StoreError> {
        let name = self.data_name(measurement, data.kind(), needs.policy);
        if self.open_with_ranges(&name).await?.is_some() {
            return Ok(());
        }
        let Some(known) = data.known() else { return Ok(()) };
        data.forget();
        let made = needs.times.iter().filter_map(|time| range_at(&known.ranges, *time));
        let entries: Vec<_> = made.map(|range| range_entry(needs.policy.id, range)).collect();
        self.registry.delete(measurement.id, &entries).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tries_at_a_time_and_not_soon_after_a_failure() {
        let (turns, now) = (Turns::default(), Instant::now());
        assert!(turns.take(now) && !turns.take(now + PAUSE));
        turns.give_back(None);
        assert!(turns.take(now));
        turns.give_back(Some(now + PAUSE));
        assert!(!turns.take(now) && turns.take(now + PAUSE));
    }
}

//! Cuts time into slices that are read one by one.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;

use crate::http::Client;
use crate::influx::{ident, small_rows};

/// The times that rows can have.
const TIME_MIN_NS: i64 = i64::MIN + 2;
const TIME_MAX_NS: i64 = i64::MAX - 1;
/// A shard is cut into no more than this.
const SLICES_OF_SHARD_MAX: i128 = 24;
const DAY_NS: i128 = 86_400_000_000_000;

/// Times from the first to the last, both included, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

impl Slice {
    /// As a condition of InfluxQL.
    pub(crate) fn condition(&self) -> String {
        format!("time >= {} AND time <= {}", self.first_ns, self.last_ns)
    }
}

/// The times that are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) first_ns: i64,
    pub(crate) last_ns: i64,
}

impl Default for Window {
    fn default() -> Self {
        Self { first_ns: TIME_MIN_NS, last_ns: TIME_MAX_NS }
    }
}

impl Window {
    /// From texts as in RFC 3339; empty: no bound. The end is not part of it.
    ///
    /// # Errors
    /// They are no times.
    pub(crate) fn parse(start: &str, end: &str) -> Result<Self> {
        let mut window = Self::default();
        if !start.is_empty() {
            window.first_ns = nanoseconds(start)?;
        }
        if !end.is_empty() {
            window.last_ns = nanoseconds(end)?.saturating_sub(1);
        }
        Ok(window)
    }

    fn clip(&self, first: i64, last: i64) -> Option<Slice> {
        let slice = Slice { first_ns: first.max(self.first_ns), last_ns: last.min(self.last_ns) };
        (slice.first_ns <= slice.last_ns).then_some(slice)
    }
}

/// A time of RFC 3339; what lies outside becomes the nearest that rows can have.
pub(crate) fn nanoseconds(text: &str) -> Result<i64> {
    let time: Timestamp = text.parse().with_context(|| format!("{text:?} is not a time"))?;
    let time = time.as_nanosecond().clamp(TIME_MIN_NS.into(), TIME_MAX_NS.into());
    Ok(i64::try_from(time)?)
}

/// First and last time of each shard, by database and policy. `None` if the source does not tell.
pub(crate) struct Shards(Option<Spans>);

/// First and last times by database and policy.
type Spans = BTreeMap<(String, String), Vec<(i64, i64)>>;

impl Shards {
    /// Asks for the shards.
    pub(crate) fn ask(client: &mut Client) -> Self {
        Self(Self::try_ask(client).ok())
    }

    fn try_ask(client: &mut Client) -> Result<Spans> {
        let mut shards = Spans::new();
        for row in small_rows(client, "", "SHOW SHARDS")? {
            let get = |key: &str| row.get(key).with_context(|| format!("shards without {key}"));
            let key = (get("database")?.clone(), get("retention_policy")?.clone());
            let first = nanoseconds(get("start_time")?)?;
            let last = nanoseconds(get("end_time")?)?.saturating_sub(1);
            shards.entry(key).or_default().push((first, last));
        }
        for of_policy in shards.values_mut() {
            of_policy.sort_unstable();
            of_policy.dedup();
        }
        Ok(shards)
    }

    /// The slices in which a measurement of a policy is read.
    ///
    /// # Errors
    /// The source cannot be asked.
    pub(crate) fn slices(
        &self,
        client: &mut Client,
        place: (&str, &str, &str),
        window: &Window,
    ) -> Result<Vec<Slice>> {
        let (db, policy, _) = place;
        let shards = match &self.0 {
            Some(shards) => {
                shards.get(&(db.to_owned(), policy.to_owned())).cloned().unwrap_or_default()
            }
            None => extent(client, place)?.into_iter().collect(),
        };
        let shards = shards.into_iter().filter_map(|(first, last)| window.clip(first, last));
        Ok(shards.flat_map(cut).collect())
    }
}

/// The first and the last time of a measurement.
fn extent(client: &mut Client, place: (&str, &str, &str)) -> Result<Option<(i64, i64)>> {
    let (db, policy, name) = place;
    let from = format!("{}.{}.{}", ident(db), ident(policy), ident(name));
    let mut ends = Vec::new();
    for order in ["ASC", "DESC"] {
        let statement = format!("SELECT *::field FROM {from} ORDER BY time {order} LIMIT 1");
        let rows = small_rows(client, db, &statement)?;
        let Some(time) = rows.first().and_then(|row| row.get("time")) else { return Ok(None) };
        ends.push(time.parse::<i64>().context("not a time")?);
    }
    Ok(Some((ends[0], ends[1])))
}

/// Cuts a span into days, or into fewer parts if those were too many.
fn cut(span: Slice) -> Vec<Slice> {
    let (first, last) = (i128::from(span.first_ns), i128::from(span.last_ns));
    let length = last - first + 1;
    let width = DAY_NS.max(length / SLICES_OF_SHARD_MAX + 1);
    let mut slices = Vec::new();
    let mut start = first;
    while start <= last {
        let end = (start + width - 1).min(last);
        let bound = |time: i128| i64::try_from(time).unwrap_or(i64::MAX);
        slices.push(Slice { first_ns: bound(start), last_ns: bound(end) });
        start = end + 1;
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_a_span_once() {
        for (first, last) in [
            (0, 0),
            (-5, 5),
            (0, 7 * i64::try_from(DAY_NS).unwrap() - 1),
            (TIME_MIN_NS, TIME_MAX_NS),
        ] {
            let slices = cut(Slice { first_ns: first, last_ns: last });
            assert_eq!(slices[0].first_ns, first);
            assert_eq!(slices[slices.len() - 1].last_ns, last);
            assert!(slices.windows(2).all(|two| two[0].last_ns + 1 == two[1].first_ns));
            assert!(slices.len() <= 25);
        }
    }

    #[test]
    fn windows() {
        let window = Window::parse("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z").unwrap();
        assert_eq!(window.clip(0, i64::MAX).map(|s| s.first_ns), Some(1_000_000_000));
        assert_eq!(window.clip(0, i64::MAX).map(|s| s.last_ns), Some(1_999_999_999));
        assert_eq!(window.clip(5_000_000_000, i64::MAX), None);
        assert!(Window::parse("yesterday", "").is_err());
        assert_eq!(nanoseconds("1677-09-21T00:00:00Z").unwrap(), TIME_MIN_NS);
    }
}

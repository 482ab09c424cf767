//! What a server has: databases, policies, measurements, continuous queries, users.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::layout::{FieldType, Layout};
use crate::http::Client;
use crate::influx::{ident, small_rows};

/// Written by InfluxDB about itself.
const INTERNAL: &str = "_internal";

/// A retention policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) name: String,
    /// As the server prints it (`168h0m0s`); `0s` is for ever.
    pub(crate) duration: String,
    pub(crate) shard_duration: String,
    pub(crate) replication: String,
    pub(crate) is_default: bool,
}

impl Policy {
    /// The part of a statement that says how long and how replicated.
    pub(crate) fn clauses(&self) -> String {
        format!(
            "DURATION {} REPLICATION {} SHARD DURATION {}",
            without_zeros(&self.duration),
            self.replication,
            without_zeros(&self.shard_duration)
        )
    }

    /// The oldest time that the policy keeps now; `None`: all times.
    ///
    /// # Errors
    /// Its duration is nothing a server prints.
    pub(crate) fn kept_from_ns(&self) -> Result<Option<i64>> {
        let kept_ns = duration_ns(&self.duration)
            .with_context(|| format!("{:?} is not a duration", self.duration))?;
        let now = i64::try_from(Timestamp::now().as_nanosecond())?;
        Ok((kept_ns > 0).then(|| now.saturating_sub(kept_ns)))
    }
}

/// `168h0m0s` in nanoseconds.
fn duration_ns(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut number = String::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        let unit_ns = match c {
            'h' => 3_600_000_000_000,
            'm' => 60_000_000_000,
            's' => 1_000_000_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<i64>().ok()?.checked_mul(unit_ns)?)?;
        number.clear();
    }
    (number.is_empty() || number == "0").then_some(total)
}

/// `168h0m0s` as InfluxQL takes it: `168h`; nothing at all is `INF`.
fn without_zeros(duration: &str) -> String {
    let mut out = String::new();
    let mut number = String::new();
    for c in duration.chars() {
        if c.is_ascii_digit() {
            number.push(c);
            continue;
        }
        if number.chars().any(|digit| digit != '0') {
            out.push_str(&number);
            out.push(c);
        }
        number.clear();
    }
    if out.is_empty() { "INF".to_owned() } else { out }
}

/// A user, without the password: nobody can read that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) is_admin: bool,
    /// Databases and what is granted on them.
    pub(crate) grants: Vec<(String, String)>,
}

/// The databases; that in which InfluxDB watches itself only if it is among `named`.
pub(crate) fn databases(client: &mut Client, named: &[String]) -> Result<Vec<String>> {
    let names = column(client, "", "SHOW DATABASES", "name")?;
    if let Some(missing) = named.iter().find(|name| !names.contains(name)) {
        anyhow::bail!("{} has no database {missing:?}", client.endpoint());
    }
    let wanted = |name: &String| {
        if named.is_empty() { name != INTERNAL } else { named.contains(name) }
    };
    Ok(names.into_iter().filter(wanted).collect())
}

/// The retention policies of a database.
pub(crate) fn policies(client: &mut Client, db: &str) -> Result<Vec<Policy>> {
    let rows = small_rows(client, "", &format!("SHOW RETENTION POLICIES ON {}", ident(db)))?;
    rows.into_iter()
        .map(|mut row| {
            let mut take = |key: &str| row.remove(key).with_context(|| format!("no {key}"));
            Ok(Policy {
                name: take("name")?,
                duration: take("duration")?,
                shard_duration: take("shardGroupDuration")?,
                replication: take("replicaN")?,
                is_default: take("default")? == "true",
            })
        })
        .collect()
}

/// The measurements of a database, and how their rows look in any of its policies.
pub(crate) fn measurements(
    client: &mut Client,
    db: &str,
    policies: &[Policy],
) -> Result<Vec<Layout>> {
    type Fields = BTreeMap<String, Vec<FieldType>>;
    let mut found: BTreeMap<String, (Vec<String>, Fields)> = BTreeMap::new();
    // Without a policy, only the default one is looked at.
    for policy in policies {
        let from = format!("FROM {}./.*/", ident(&policy.name));
        for row in small_rows(client, db, &format!("SHOW FIELD KEYS {from}"))? {
            if let (Some(name), Some(key), Some(kind)) =
                (row.get("@name"), row.get("fieldKey"), row.get("fieldType"))
            {
                let (_, fields) = found.entry(name.clone()).or_default();
                fields.entry(key.clone()).or_default().push(FieldType::parse(kind)?);
            }
        }
        for mut row in small_rows(client, db, &format!("SHOW TAG KEYS {from}"))? {
            if let (Some(name), Some(key)) = (row.remove("@name"), row.remove("tagKey")) {
                let (tags, _) = found.entry(name).or_default();
                if !tags.contains(&key) {
                    tags.push(key);
                }
            }
        }
    }
    let layout = |(name, (tags, fields))| Layout::new(name, tags, fields);
    Ok(found.into_iter().map(layout).collect())
}

/// Statements that make the continuous queries of a database.
pub(crate) fn continuous_queries(client: &mut Client, db: &str) -> Result<Vec<String>> {
    let rows = small_rows(client, "", "SHOW CONTINUOUS QUERIES")?;
    let of_it = rows.into_iter().filter(|row| row.get("@name").is_some_and(|name| name == db));
    Ok(of_it.filter_map(|mut row| row.remove("query")).collect())
}

/// The users.
pub(crate) fn users(client: &mut Client) -> Result<Vec<User>> {
    let mut users = Vec::new();
    for mut row in small_rows(client, "", "SHOW USERS")? {
        let Some(name) = row.remove("user") else { continue };
        let grants = small_rows(client, "", &format!("SHOW GRANTS FOR {}", ident(&name)))?;
        let pair = |mut row: BTreeMap<String, String>| {
            Some((row.remove("database")?, row.remove("privilege")?))
        };
        users.push(User {
            is_admin: row.get("admin").is_some_and(|admin| admin == "true"),
            grants: grants.into_iter().filter_map(pair).collect(),
            name,
        });
    }
    Ok(users)
}

fn column(client: &mut Client, db: &str, statement: &str, name: &str) -> Result<Vec<String>> {
    let rows = small_rows(client, db, statement)?;
    Ok(rows.into_iter().filter_map(|mut row| row.remove(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(without_zeros("168h0m0s"), "168h");
        assert_eq!(without_zeros("1h30m0s"), "1h30m");
        assert_eq!(without_zeros("0s"), "INF");
        assert_eq!(without_zeros("0"), "INF");
        assert_eq!(without_zeros("1h0m10s"), "1h10s");
        assert_eq!(duration_ns("168h0m1s"), Some(604_801_000_000_000));
        assert_eq!(duration_ns("0s"), Some(0));
        assert_eq!(duration_ns("1x"), None);
    }
}

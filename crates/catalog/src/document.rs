//! The document: a JSON object whose member `format` says which other members it may have.
//!
//! A format has exactly its members; a program that adds one makes a new format, or leaves the
//! member out where it is empty: a program that does not know it refuses a document that has it. So
//! no version ever rewrites a document it understands only half of.

mod users;

use std::collections::HashSet;
use std::sync::Arc;

use model::{DatabaseId, PolicyId};
use serde::{Deserialize, Serialize};
use store::CatalogDocument;

use crate::CatalogError;
use crate::rules::check_destination;
use crate::state::{
    CatalogState, ContinuousQuery, Database, Orphan, Parts, PolicyInfo, Subscription,
    SubscriptionMode,
};
use users::UserEntry;

/// The format this version writes. Written to disk: counted up with every change of the members.
const FORMAT: u32 = 2;
/// The format before there were users; still read.
const FORMAT_WITHOUT_USERS: u32 = 1;

/// The first member, looked at before the others are.
#[derive(Deserialize)]
struct Head {
    format: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    next_database_id: u32,
    next_policy_id: u32,
    databases: Vec<DatabaseEntry>,
    orphans: Vec<OrphanEntry>,
    users: Vec<UserEntry>,
}

/// Format 1.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentWithoutUsers {
    format: u32,
    next_database_id: u32,
    next_policy_id: u32,
    databases: Vec<DatabaseEntry>,
    orphans: Vec<OrphanEntry>,
}

impl From<DocumentWithoutUsers> for Document {
    fn from(old: DocumentWithoutUsers) -> Self {
        Self {
            format: old.format,
            next_database_id: old.next_database_id,
            next_policy_id: old.next_policy_id,
            databases: old.databases,
            orphans: old.orphans,
            users: Vec::new(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DatabaseEntry {
    id: u32,
    name: String,
    default_policy: String,
    policies: Vec<PolicyEntry>,
    /// Left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    continuous_queries: Vec<ContinuousQueryEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContinuousQueryEntry {
    name: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyEntry {
    id: u32,
    name: String,
    duration_ns: Option<i64>,
    shard_duration_ns: i64,
    replica_n: u32,
    /// Left out where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<SubscriptionEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscriptionEntry {
    name: String,
    mode: ModeEntry,
    destinations: Vec<String>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModeEntry {
    All,
    Any,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OrphanEntry {
    database: u32,
    policy: Option<u32>,
}

/// Reads a document; version 0 is an empty catalog.
pub(crate) fn decode(stored: &CatalogDocument) -> Result<CatalogState, CatalogError> {
    let version = stored.version;
    if version == 0 {
        return Ok(CatalogState::new(0, Parts::empty()));
    }
    let wrong = |detail: String| CatalogError::Document { version, detail };
    let head: Head = serde_json::from_slice(&stored.bytes).map_err(|e| wrong(e.to_string()))?;
    let document = match head.format {
        FORMAT => serde_json::from_slice(&stored.bytes),
        FORMAT_WITHOUT_USERS => {
            serde_json::from_slice::<DocumentWithoutUsers>(&stored.bytes).map(Into::into)
        }
        format => {
            return Err(wrong(format!("it has format {format}, this program knows {FORMAT}")));
        }
    };
    let document: Document = document.map_err(|e| wrong(e.to_string()))?;
    check(&document).map_err(wrong)?;
    let users = users::decode(&document.users, &document.databases).map_err(wrong)?;
    let orphan = |entry: &OrphanEntry| Orphan {
        database: DatabaseId(entry.database),
        policy: entry.policy.map(PolicyId),
    };
    let parts = Parts {
        next_database_id: document.next_database_id,
        next_policy_id: document.next_policy_id,
        orphans: document.orphans.iter().map(orphan).collect(),
        databases: document.databases.into_iter().map(|d| Arc::new(database_of(d))).collect(),
        users,
    };
    Ok(CatalogState::new(version, parts))
}

/// Writes a document.
pub(crate) fn encode(state: &CatalogState) -> Vec<u8> {
    let document = Document {
        format: FORMAT,
        next_database_id: state.next_database_id,
        next_policy_id: state.next_policy_id,
        databases: state.databases.iter().map(|database| entry_of(database)).collect(),
        orphans: state
            .orphans
            .iter()
            .map(|o| OrphanEntry { database: o.database.0, policy: o.policy.map(|p| p.0) })
            .collect(),
        users: users::encode(&state.users),
    };
    serde_json::to_vec(&document).expect("BUG: the document has text keys only")
}

/// What the types do not say.
fn check(document: &Document) -> Result<(), String> {
    let (mut names, mut ids, mut policy_ids) = (HashSet::new(), HashSet::new(), HashSet::new());
    for database in &document.databases {
        let name = &database.name;
        if !names.insert(name) || !ids.insert(database.id) {
            return Err(format!("database {name:?} is there twice"));
        }
        if database.id == 0 || database.id >= document.next_database_id {
            return Err(format!("database {name:?} has an id that was never given"));
        }
        let mut queries = HashSet::new();
        if let Some(twice) = database.continuous_queries.iter().find(|q| !queries.insert(&q.name)) {
            return Err(format!("continuous query {:?} is there twice", twice.name));
        }
        let mut policies = HashSet::new();
        for policy in &database.policies {
            let name = &policy.name;
            if !policies.insert(name) || !policy_ids.insert(policy.id) {
                return Err(format!("policy {name:?} is there twice"));
            }
            if policy.id == 0 || policy.id >= document.next_policy_id {
                return Err(format!("policy {name:?} has an id that was never given"));
            }
            if policy.shard_duration_ns <= 0 || policy.duration_ns.is_some_and(|d| d <= 0) {
                return Err(format!("policy {name:?} has a duration that is not positive"));
            }
            check_subscriptions(policy)?;
        }
    }
    Ok(())
}

fn check_subscriptions(policy: &PolicyEntry) -> Result<(), String> {
    let mut names = HashSet::new();
    for SubscriptionEntry { name, destinations, .. } in &policy.subscriptions {
        if !names.insert(name) {
            return Err(format!("subscription {name:?} is there twice"));
        }
        if destinations.is_empty() {
            return Err(format!("subscription {name:?} has no destinations"));
        }
        destinations
            .iter()
            .try_for_each(|url| check_destination(url).map_err(|e| e.to_string()))?;
    }
    Ok(())
}

fn database_of(entry: DatabaseEntry) -> Database {
    let policy = |p: PolicyEntry| PolicyInfo {
        id: PolicyId(p.id),
        name: p.name.into(),
        duration_ns: p.duration_ns,
        shard_duration_ns: p.shard_duration_ns,
        replica_n: p.replica_n,
        subscriptions: p.subscriptions.into_iter().map(subscription_of).collect(),
    };
    let query =
        |q: ContinuousQueryEntry| ContinuousQuery { name: q.name.into(), text: q.text.into() };
    Database {
        id: DatabaseId(entry.id),
        name: entry.name.into(),
        default_policy: entry.default_policy.into(),
        policies: entry.policies.into_iter().map(policy).collect(),
        continuous_queries: entry.continuous_queries.into_iter().map(query).collect(),
    }
}

fn subscription_of(entry: SubscriptionEntry) -> Subscription {
    Subscription {
        name: entry.name.into(),
        mode: match entry.mode {
            ModeEntry::All => SubscriptionMode::All,
            ModeEntry::Any => SubscriptionMode::Any,
        },
        destinations: entry.destinations.into_iter().map(Into::into).collect(),
    }
}

fn subscription_entry(subscription: &Subscription) -> SubscriptionEntry {
    SubscriptionEntry {
        name: subscription.name.to_string(),
        mode: match subscription.mode {
            SubscriptionMode::All => ModeEntry::All,
            SubscriptionMode::Any => ModeEntry::Any,
        },
        destinations: subscription.destinations.iter().map(ToString::to_string).collect(),
    }
}

fn entry_of(database: &Database) -> DatabaseEntry {
    let policy = |p: &PolicyInfo| PolicyEntry {
        id: p.id.0,
        name: p.name.to_string(),
        duration_ns: p.duration_ns,
        shard_duration_ns: p.shard_duration_ns,
        replica_n: p.replica_n,
        subscriptions: p.subscriptions.iter().map(subscription_entry).collect(),
    };
    let query = |q: &ContinuousQuery| ContinuousQueryEntry {
        name: q.name.to_string(),
        text: q.text.to_string(),
    };
    DatabaseEntry {
        id: database.id.0,
        name: database.name.to_string(),
        default_policy: database.default_policy.to_string(),
        policies: database.policies.iter().map(policy).collect(),
        continuous_queries: database.continuous_queries.iter().map(query).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Result<CatalogState, String> {
        let document = CatalogDocument { version: 3, bytes: text.as_bytes().to_vec() };
        decode(&document).map_err(|error| error.to_string())
    }

    /// Format 1 for ever: this text must stay readable.
    const GOLDEN_1: &str = concat!(
        r#"{"format":1,"next_database_id":3,"next_policy_id":4,"databases":[{"id":2,"name":"d b","#,
        r#""default_policy":"autogen","policies":[{"id":1,"name":"autogen","duration_ns":null,"#,
        r#""shard_duration_ns":604800000000000,"replica_n":1},{"id":3,"name":"day","#,
        r#""duration_ns":86400000000000,"shard_duration_ns":3600000000000,"replica_n":2}]}],"#,
        r#""orphans":[{"database":1,"policy":null},{"database":2,"policy":2}]}"#
    );

    /// Format 2 for ever: this text must stay readable and be what is written.
    const GOLDEN: &str = concat!(
        r#"{"format":2,"next_database_id":3,"next_policy_id":4,"databases":[{"id":2,"name":"d b","#,
        r#""default_policy":"autogen","policies":[{"id":1,"name":"autogen","duration_ns":null,"#,
        r#""shard_duration_ns":604800000000000,"replica_n":1},{"id":3,"name":"day","#,
        r#""duration_ns":86400000000000,"shard_duration_ns":3600000000000,"replica_n":2}]}],"#,
        r#""orphans":[{"database":1,"policy":null},{"database":2,"policy":2}],"#,
        r#""users":[{"name":"root","password":"$argon2id$v=19$m=19456,t=2,p=1$"#,
        r#"c2FsdHNhbHRzYWx0c2FsdA$w8LlMlKDMSDG8GTsO3ubmBmaf1AFWZgAzSoWFSCxRuI","admin":true,"#,
        r#""grants":[]},{"name":"reader","password":"$argon2id$v=19$m=19456,t=2,p=1$"#,
        r#"c2FsdHNhbHRzYWx0c2FsdA$w8LlMlKDMSDG8GTsO3ubmBmaf1AFWZgAzSoWFSCxRuI","admin":false,"#,
        r#""grants":[{"database":2,"privilege":"read"}]}]}"#
    );

    #[test]
    fn format_1_is_read() {
        let state = decoded(GOLDEN_1).unwrap();
        assert!(state.users().is_empty() && state.database("d b").is_some());
        let today = GOLDEN_1.replacen("\"format\":1", "\"format\":2", 1);
        let today = format!("{},\"users\":[]}}", today.strip_suffix('}').unwrap());
        assert_eq!(String::from_utf8(encode(&state)).unwrap(), today);
        assert!(decoded(&today).is_ok());
        let mixed = today.replacen("\"format\":2", "\"format\":1", 1);
        assert!(decoded(&mixed).unwrap_err().contains("unknown field `users`"));
    }

    #[test]
    fn format_2_is_pinned() {
        let state = decoded(GOLDEN).unwrap();
        let reader = state.user("reader").unwrap();
        assert_eq!(reader.grants, [(DatabaseId(2), crate::Privilege::Read)]);
        assert!(state.user("root").unwrap().admin);
        assert_eq!(
            state.database("d b").unwrap().policies[1].duration_ns,
            Some(86_400 * 1_000_000_000)
        );
        assert_eq!(String::from_utf8(encode(&state)).unwrap(), GOLDEN);
    }

    #[test]
    fn continuous_queries_are_kept() {
        let queries = r#","continuous_queries":[{"name":"q","text":"CREATE ..."}]}],"orphans""#;
        let text = GOLDEN.replacen(r#"}],"orphans""#, queries, 1);
        let state = decoded(&text).unwrap();
        assert_eq!(&*state.database("d b").unwrap().continuous_queries[0].text, "CREATE ...");
        assert_eq!(String::from_utf8(encode(&state)).unwrap(), text);
        let twice = text.replacen(r#"[{"name":"q""#, r#"[{"name":"q","text":""},{"name":"q""#, 1);
        assert!(decoded(&twice).unwrap_err().contains("continuous query \"q\" is there twice"));
    }

    #[test]
    fn subscriptions_are_kept() {
        let list = concat!(
            r#""replica_n":2,"subscriptions":[{"name":"s","mode":"any","#,
            r#""destinations":["http://x:1","udp://y:2"]}]}"#
        );
        let text = GOLDEN.replacen(r#""replica_n":2}"#, list, 1);
        let state = decoded(&text).unwrap();
        assert!(state.has_subscriptions() && !decoded(GOLDEN).unwrap().has_subscriptions());
        let kept = &state.database("d b").unwrap().policies[1].subscriptions[0];
        assert_eq!((kept.mode, &*kept.destinations[1]), (SubscriptionMode::Any, "udp://y:2"));
        assert_eq!(String::from_utf8(encode(&state)).unwrap(), text);
        for (from, to) in [("http://x:1", "http://x"), ("\"any\"", "\"none\"")] {
            assert!(decoded(&text.replacen(from, to, 1)).is_err());
        }
    }

    #[test]
    fn the_example_in_the_documents_is_what_is_written() {
        let page = include_str!("../../../docs/formats/catalog.md");
        let (_, from) = page.split_once("```json\n").unwrap();
        let (listed, _) = from.split_once("```").unwrap();
        assert_eq!(listed.replace('\n', ""), GOLDEN);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (from, to, detail) in [
            ("\"format\":2", "\"format\":3", "it has format 3, this program knows 2"),
            ("\"orphans\"", "\"queries\":[],\"orphans\"", "unknown field `queries`"),
            ("\"id\":2", "\"id\":3", "never given"),
            ("\"id\":3", "\"id\":1", "policy \"day\" is there twice"),
            ("\"id\":3", "\"id\":4", "never given"),
            ("604800000000000", "0", "not positive"),
            ("86400000000000", "-1", "not positive"),
            ("]}]", "]}", "expected"),
            ("\"root\"", "\"reader\"", "user \"reader\" is there twice"),
            ("\"root\"", "\"\"", "without a name"),
            ("$argon2id", "$argon2i", "password of user \"root\""),
            ("\"database\":2,\"privilege\"", "\"database\":1,\"privilege\"", "does not exist"),
            ("\"read\"", "\"own\"", "unknown variant"),
        ] {
            let changed = GOLDEN.replacen(from, to, 1);
            assert_ne!(changed, GOLDEN);
            let error = decoded(&changed).unwrap_err();
            assert!(error.contains(detail) && error.contains("version 3"), "{error}");
        }
        assert!(decoded("").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(at in 0..GOLDEN.len(), byte in any::<u8>()) {
            let mut bytes = GOLDEN.as_bytes().to_vec();
            bytes[at] = byte;
            let _: Result<_, CatalogError> = decode(&CatalogDocument { version: 1, bytes });
        }
    }
}

//! The statement list, and the statements that define databases, policies, queries, subscriptions and users.

use std::fmt;

use super::{
    Expr, Measurement, SelectStatement, ShowCardinality, ShowCardinalityBy, ShowFieldKeys,
    ShowMeasurements, ShowSeries, ShowTagKeys, ShowTagValues,
};

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `SELECT`
    Select(Box<SelectStatement>),
    /// `EXPLAIN [ANALYZE] SELECT`
    Explain {
        /// Whether the query is run and measured.
        analyze: bool,
        /// The query.
        select: Box<SelectStatement>,
    },
    /// `DELETE`: `sources` or `condition` or both.
    Delete {
        /// `FROM`; empty = all. Never with database or retention policy.
        sources: Vec<Measurement>,
        /// `WHERE`
        condition: Option<Expr>,
    },
    /// `DROP SERIES`: `sources` or `condition` or both.
    DropSeries {
        /// `FROM`; empty = all. Never with database or retention policy.
        sources: Vec<Measurement>,
        /// `WHERE`
        condition: Option<Expr>,
    },
    /// `DROP MEASUREMENT`
    DropMeasurement {
        /// Measurement.
        name: String,
    },
    /// `DROP SHARD`
    DropShard {
        /// Shard id.
        id: u64,
    },
    /// `CREATE DATABASE`
    CreateDatabase(CreateDatabase),
    /// `DROP DATABASE`
    DropDatabase {
        /// Database.
        name: String,
    },
    /// `CREATE RETENTION POLICY`
    CreateRetentionPolicy(CreateRetentionPolicy),
    /// `ALTER RETENTION POLICY`
    AlterRetentionPolicy(AlterRetentionPolicy),
    /// `DROP RETENTION POLICY`
    DropRetentionPolicy {
        /// Policy.
        name: String,
        /// Database.
        database: String,
    },
    /// `CREATE CONTINUOUS QUERY`
    CreateContinuousQuery(CreateContinuousQuery),
    /// `DROP CONTINUOUS QUERY`
    DropContinuousQuery {
        /// Continuous query.
        name: String,
        /// Database.
        database: String,
    },
    /// `RUN CONTINUOUS QUERY`, which computes times that are past. An extension of Nyala.
    RunContinuousQuery {
        /// Continuous query.
        name: String,
        /// Database.
        database: String,
        /// `WHERE`
        condition: Option<Expr>,
    },
    /// `CREATE SUBSCRIPTION`
    CreateSubscription(CreateSubscription),
    /// `DROP SUBSCRIPTION`
    DropSubscription {
        /// Subscription.
        name: String,
        /// Database.
        database: String,
        /// Retention policy.
        retention_policy: String,
    },
    /// `CREATE USER`
    CreateUser {
        /// User.
        name: String,
        /// Password.
        password: Password,
        /// `WITH ALL PRIVILEGES`
        admin: bool,
    },
    /// `DROP USER`
    DropUser {
        /// User.
        name: String,
    },
    /// `SET PASSWORD FOR`
    SetPassword {
        /// User.
        name: String,
        /// New password.
        password: Password,
    },
    /// `GRANT .. ON .. TO`
    Grant {
        /// What is granted.
        privilege: Privilege,
        /// Database.
        database: String,
        /// User.
        user: String,
    },
    /// `GRANT ALL PRIVILEGES TO`
    GrantAdmin {
        /// User.
        user: String,
    },
    /// `REVOKE .. ON .. FROM`
    Revoke {
        /// What is revoked.
        privilege: Privilege,
        /// Database.
        database: String,
        /// User.
        user: String,
    },
    /// `REVOKE ALL PRIVILEGES FROM`
    RevokeAdmin {
        /// User.
        user: String,
    },
    /// `KILL QUERY`
    KillQuery {
        /// Query id.
        id: u64,
        /// `ON`
        host: Option<String>,
    },
    /// `SHOW DATABASES`
    ShowDatabases,
    /// `SHOW USERS`
    ShowUsers,
    /// `SHOW QUERIES`
    ShowQueries,
    /// `SHOW SHARDS`
    ShowShards,
    /// `SHOW SHARD GROUPS`
    ShowShardGroups,
    /// `SHOW SUBSCRIPTIONS`
    ShowSubscriptions,
    /// `SHOW CONTINUOUS QUERIES`
    ShowContinuousQueries,
    /// `SHOW CONTINUOUS QUERY STATUS`: when each ran and how that went. An extension of Nyala.
    ShowContinuousQueryStatus,
    /// `SHOW GRANTS FOR`
    ShowGrants {
        /// User.
        user: String,
    },
    /// `SHOW STATS`
    ShowStats {
        /// `FOR`
        module: Option<String>,
    },
    /// `SHOW DIAGNOSTICS`
    ShowDiagnostics {
        /// `FOR`
        module: Option<String>,
    },
    /// `SHOW RETENTION POLICIES`
    ShowRetentionPolicies {
        /// `ON`
        database: Option<String>,
    },
    /// `SHOW MEASUREMENTS`
    ShowMeasurements(ShowMeasurements),
    /// `SHOW SERIES`
    ShowSeries(ShowSeries),
    /// `SHOW TAG KEYS`
    ShowTagKeys(ShowTagKeys),
    /// `SHOW TAG VALUES`
    ShowTagValues(ShowTagValues),
    /// `SHOW FIELD KEYS`
    ShowFieldKeys(ShowFieldKeys),
    /// `SHOW .. CARDINALITY`
    ShowCardinality(ShowCardinality),
    /// `SHOW CARDINALITY .. BY ..`
    ShowCardinalityBy(ShowCardinalityBy),
    /// A SHOW that InfluxDB has no LIMIT and OFFSET for, with one of them. An extension of Nyala.
    Limited {
        /// The statement, which may be limited.
        statement: Box<Statement>,
        /// `LIMIT`; 0 = none.
        limit: u64,
        /// `OFFSET`
        offset: u64,
    },
}

impl Statement {
    /// Whether this is a SHOW without a LIMIT of its own.
    pub fn may_be_limited(&self) -> bool {
        matches!(
            self,
            Self::ShowDatabases
                | Self::ShowRetentionPolicies { .. }
                | Self::ShowUsers
                | Self::ShowGrants { .. }
                | Self::ShowQueries
                | Self::ShowShards
                | Self::ShowShardGroups
                | Self::ShowSubscriptions
                | Self::ShowContinuousQueries
                | Self::ShowContinuousQueryStatus
                | Self::ShowStats { .. }
                | Self::ShowDiagnostics { .. }
        )
    }

    /// The statement without LIMIT and OFFSET that [`Statement::Limited`] adds.
    pub fn without_limit(&self) -> &Self {
        match self {
            Self::Limited { statement, .. } => statement,
            other => other,
        }
    }
}

/// `CREATE DATABASE`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateDatabase {
    /// Database.
    pub name: String,
    /// `WITH`
    pub policy: Option<DatabasePolicy>,
}

/// The first retention policy of a new database; what is `None` takes its default. At least one is given after parsing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabasePolicy {
    /// How long rows are kept; 0 = for ever.
    pub duration_ns: Option<i64>,
    /// `REPLICATION`
    pub replication: Option<u32>,
    /// Time range of one shard group; 0 = by default.
    pub shard_duration_ns: Option<i64>,
    /// Name of the policy.
    pub name: Option<String>,
}

/// `CREATE RETENTION POLICY`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRetentionPolicy {
    /// Policy.
    pub name: String,
    /// Database.
    pub database: String,
    /// How long rows are kept; 0 = for ever.
    pub duration_ns: i64,
    /// `REPLICATION`
    pub replication: u32,
    /// Time range of one shard group; `None` or 0 = by default.
    pub shard_duration_ns: Option<i64>,
    /// Whether it becomes the default policy.
    pub default: bool,
}

/// `ALTER RETENTION POLICY`: what is `None` stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterRetentionPolicy {
    /// Policy.
    pub name: String,
    /// Database.
    pub database: String,
    /// How long rows are kept; 0 = for ever.
    pub duration_ns: Option<i64>,
    /// `REPLICATION`
    pub replication: Option<u32>,
    /// Time range of one shard group.
    pub shard_duration_ns: Option<i64>,
    /// Whether it becomes the default policy.
    pub default: bool,
}

/// `CREATE CONTINUOUS QUERY`
#[derive(Clone, Debug, PartialEq)]
pub struct CreateContinuousQuery {
    /// Continuous query.
    pub name: String,
    /// Database.
    pub database: String,
    /// `RESAMPLE EVERY`; 0 = not given.
    pub resample_every_ns: i64,
    /// `RESAMPLE FOR`; 0 = not given.
    pub resample_for_ns: i64,
    /// The body; always has an INTO after parsing.
    pub select: Box<SelectStatement>,
}

/// `CREATE SUBSCRIPTION`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateSubscription {
    /// Subscription.
    pub name: String,
    /// Database.
    pub database: String,
    /// Retention policy.
    pub retention_policy: String,
    /// `ALL` or `ANY`.
    pub mode: DestinationMode,
    /// URLs; never empty after parsing.
    pub destinations: Vec<String>,
}

/// Which destinations of a subscription get a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationMode {
    /// Every destination.
    All,
    /// One destination, in turn.
    Any,
}

impl DestinationMode {
    /// `ALL` or `ANY`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "ALL",
            Self::Any => "ANY",
        }
    }
}

/// What a user may do with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// `READ`
    Read,
    /// `WRITE`
    Write,
    /// `ALL PRIVILEGES`
    All,
}

impl Privilege {
    /// The privilege as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::All => "ALL PRIVILEGES",
        }
    }
}

/// A password; neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[REDACTED]")
    }
}

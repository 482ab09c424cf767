//! Statements, and those that define something.

use std::fmt::{self, Display, Formatter};

use super::{
    quote_ident, quote_string, write_clause, write_count, write_database, write_list,
    write_measurements,
};
use crate::ast::{
    AlterRetentionPolicy, CreateContinuousQuery, CreateDatabase, CreateRetentionPolicy,
    CreateSubscription, Expr, Measurement, Statement,
};
use crate::duration::{ClockDurationText, DurationText};

impl Display for Statement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Select(s) => s.fmt(f),
            Self::Explain { analyze: false, select } => write!(f, "EXPLAIN {select}"),
            Self::Explain { analyze: true, select } => write!(f, "EXPLAIN ANALYZE {select}"),
            Self::Delete { sources, condition } => {
                write_deletion(f, "DELETE", sources, condition.as_ref())
            }
            Self::DropSeries { sources, condition } => {
                write_deletion(f, "DROP SERIES", sources, condition.as_ref())
            }
            Self::DropShard { id } => write!(f, "DROP SHARD {id}"),
            Self::CreateDatabase(s) => s.fmt(f),
            Self::CreateRetentionPolicy(s) => s.fmt(f),
            Self::AlterRetentionPolicy(s) => s.fmt(f),
            Self::CreateContinuousQuery(s) => s.fmt(f),
            Self::CreateSubscription(s) => s.fmt(f),
            Self::KillQuery { id, host } => {
                write!(f, "KILL QUERY {id}")?;
                write_database(f, host.as_ref())
            }
            Self::ShowMeasurements(s) => s.fmt(f),
            Self::ShowSeries(s) => s.fmt(f),
            Self::ShowTagKeys(s) => s.fmt(f),
            Self::ShowTagValues(s) => s.fmt(f),
            Self::ShowFieldKeys(s) => s.fmt(f),
            Self::ShowCardinality(s) => s.fmt(f),
            Self::ShowCardinalityBy(s) => s.fmt(f),
            Self::Limited { statement, limit, offset } => {
                statement.fmt(f)?;
                write_count(f, "LIMIT", *limit)?;
                write_count(f, "OFFSET", *offset)
            }
            Self::CreateUser { .. }
            | Self::SetPassword { .. }
            | Self::Grant { .. }
            | Self::GrantAdmin { .. }
            | Self::Revoke { .. }
            | Self::RevokeAdmin { .. }
            | Self::DropUser { .. } => write_user_statement(f, self),
            _ => write_short_statement(f, self),
        }
    }
}

/// The statements about users.
fn write_user_statement(f: &mut Formatter<'_>, statement: &Statement) -> fmt::Result {
    match statement {
        Statement::CreateUser { name, password, admin } => {
            write!(f, "CREATE USER {} WITH PASSWORD {password}", quote_ident(name))?;
            if *admin { f.write_str(" WITH ALL PRIVILEGES") } else { Ok(()) }
        }
        Statement::SetPassword { name, password } => {
            write!(f, "SET PASSWORD FOR {} = {password}", quote_ident(name))
        }
        Statement::Grant { privilege, database, user } => {
            let (database, user) = (quote_ident(database), quote_ident(user));
            write!(f, "GRANT {} ON {database} TO {user}", privilege.as_str())
        }
        Statement::GrantAdmin { user } => {
            write!(f, "GRANT ALL PRIVILEGES TO {}", quote_ident(user))
        }
        Statement::Revoke { privilege, database, user } => {
            let (database, user) = (quote_ident(database), quote_ident(user));
            write!(f, "REVOKE {} ON {database} FROM {user}", privilege.as_str())
        }
        Statement::RevokeAdmin { user } => {
            write!(f, "REVOKE ALL PRIVILEGES FROM {}", quote_ident(user))
        }
        Statement::DropUser { name } => write!(f, "DROP USER {}", quote_ident(name)),
        _ => unreachable!("BUG: not a statement about users"),
    }
}

/// The statements of keywords and at most a few names.
fn write_short_statement(f: &mut Formatter<'_>, statement: &Statement) -> fmt::Result {
    let text = match statement {
        Statement::DropMeasurement { name } => {
            return write!(f, "DROP MEASUREMENT {}", quote_ident(name));
        }
        Statement::DropDatabase { name } => {
            return write!(f, "DROP DATABASE {}", quote_ident(name));
        }
        Statement::DropRetentionPolicy { name, database } => {
            let (name, database) = (quote_ident(name), quote_ident(database));
            return write!(f, "DROP RETENTION POLICY {name} ON {database}");
        }
        Statement::DropContinuousQuery { name, database } => {
            let (name, database) = (quote_ident(name), quote_ident(database));
            return write!(f, "DROP CONTINUOUS QUERY {name} ON {database}");
        }
        Statement::RunContinuousQuery { name, database, condition } => {
            let (name, database) = (quote_ident(name), quote_ident(database));
            write!(f, "RUN CONTINUOUS QUERY {name} ON {database}")?;
            return write_clause(f, "WHERE", condition.as_ref());
        }
        Statement::DropSubscription { name, database, retention_policy } => {
            let (name, database) = (quote_ident(name), quote_ident(database));
            let policy = quote_ident(retention_policy);
            return write!(f, "DROP SUBSCRIPTION {name} ON {database}.{policy}");
        }
        Statement::ShowGrants { user } => {
            return write!(f, "SHOW GRANTS FOR {}", quote_ident(user));
        }
        Statement::ShowStats { module } => {
            f.write_str("SHOW STATS")?;
            return write_clause(f, "FOR", module.as_deref().map(quote_string));
        }
        Statement::ShowDiagnostics { module } => {
            f.write_str("SHOW DIAGNOSTICS")?;
            return write_clause(f, "FOR", module.as_deref().map(quote_string));
        }
        Statement::ShowRetentionPolicies { database } => {
            f.write_str("SHOW RETENTION POLICIES")?;
            return write_database(f, database.as_ref());
        }
        Statement::ShowDatabases => "SHOW DATABASES",
        Statement::ShowUsers => "SHOW USERS",
        Statement::ShowQueries => "SHOW QUERIES",
        Statement::ShowShards => "SHOW SHARDS",
        Statement::ShowShardGroups => "SHOW SHARD GROUPS",
        Statement::ShowSubscriptions => "SHOW SUBSCRIPTIONS",
        Statement::ShowContinuousQueries => "SHOW CONTINUOUS QUERIES",
        Statement::ShowContinuousQueryStatus => "SHOW CONTINUOUS QUERY STATUS",
        _ => unreachable!("BUG: not a short statement"),
    };
    f.write_str(text)
}

fn write_deletion(
    f: &mut Formatter<'_>,
    verb: &str,
    sources: &[Measurement],
    condition: Option<&Expr>,
) -> fmt::Result {
    f.write_str(verb)?;
    write_measurements(f, sources)?;
    write_clause(f, "WHERE", condition)
}

impl Display for CreateDatabase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE DATABASE {}", quote_ident(&self.name))?;
        let Some(policy) = &self.policy else { return Ok(()) };
        f.write_str(" WITH")?;
        write_clause(f, "DURATION", policy.duration_ns.map(ClockDurationText))?;
        write_clause(f, "REPLICATION", policy.replication)?;
        write_clause(f, "SHARD DURATION", policy.shard_duration_ns.map(ClockDurationText))?;
        write_clause(f, "NAME", policy.name.as_ref().map(|name| quote_ident(name)))
    }
}

impl Display for CreateRetentionPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, database) = (quote_ident(&self.name), quote_ident(&self.database));
        let duration = DurationText(self.duration_ns);
        write!(f, "CREATE RETENTION POLICY {name} ON {database} DURATION {duration}")?;
        write_clause(f, "REPLICATION", Some(self.replication))?;
        write_clause(f, "SHARD DURATION", self.shard_duration_ns.map(DurationText))?;
        if self.default { f.write_str(" DEFAULT") } else { Ok(()) }
    }
}

impl Display for AlterRetentionPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, database) = (quote_ident(&self.name), quote_ident(&self.database));
        write!(f, "ALTER RETENTION POLICY {name} ON {database}")?;
        write_clause(f, "DURATION", self.duration_ns.map(DurationText))?;
        write_clause(f, "REPLICATION", self.replication)?;
        write_clause(f, "SHARD DURATION", self.shard_duration_ns.map(DurationText))?;
        if self.default { f.write_str(" DEFAULT") } else { Ok(()) }
    }
}

impl Display for CreateContinuousQuery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, database) = (quote_ident(&self.name), quote_ident(&self.database));
        write!(f, "CREATE CONTINUOUS QUERY {name} ON {database} ")?;
        if self.resample_every_ns != 0 || self.resample_for_ns != 0 {
            f.write_str("RESAMPLE ")?;
        }
        if self.resample_every_ns != 0 {
            write!(f, "EVERY {} ", DurationText(self.resample_every_ns))?;
        }
        if self.resample_for_ns != 0 {
            write!(f, "FOR {} ", DurationText(self.resample_for_ns))?;
        }
        write!(f, "BEGIN {} END", self.select)
    }
}

impl Display for CreateSubscription {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (name, database) = (quote_ident(&self.name), quote_ident(&self.database));
        let policy = quote_ident(&self.retention_policy);
        let mode = self.mode.as_str();
        write!(f, "CREATE SUBSCRIPTION {name} ON {database}.{policy} DESTINATIONS {mode} ")?;
        write_list(f, self.destinations.iter().map(|url| quote_string(url)))
    }
}

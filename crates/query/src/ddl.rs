//! Statements that define databases, retention policies, continuous queries and subscriptions.

use catalog::PolicySpec;
use influxql::Statement;

use crate::{Answer, QueryContext, QueryError, continuous, subscriptions};

/// Runs a statement that defines something.
///
/// # Errors
/// What the catalog says; [`QueryError::Unsupported`] for what only a server can say.
pub(crate) fn run(statement: &Statement, context: &QueryContext) -> Result<Answer, QueryError> {
    match statement {
        Statement::KillQuery { host: Some(_), .. } => {
            return Err(QueryError::unsupported("KILL QUERY on another host"));
        }
        Statement::KillQuery { id, host: None } => {
            context.queries.kill(*id)?;
            return Ok(Answer::empty());
        }
        _ => {}
    }
    if let Some(what) = elsewhere(statement) {
        return Err(QueryError::unsupported(what));
    }
    if context.read_only {
        return Err(QueryError::ReadOnly);
    }
    let catalog = &context.catalog;
    match statement {
        Statement::CreateDatabase(create) => {
            let spec = create.policy.as_ref().map(|policy| PolicySpec {
                name: policy.name.as_deref().map(Into::into),
                duration_ns: policy.duration_ns,
                shard_duration_ns: policy.shard_duration_ns,
                replica_n: policy.replication,
            });
            catalog.create_database(&create.name, spec.as_ref())?;
        }
        Statement::DropDatabase { name } => catalog.drop_database(name)?,
        Statement::CreateRetentionPolicy(create) => {
            let spec = PolicySpec {
                name: Some(create.name.as_str().into()),
                duration_ns: Some(create.duration_ns),
                shard_duration_ns: create.shard_duration_ns,
                replica_n: Some(create.replication),
            };
            catalog.create_policy(&create.database, &spec, create.default)?;
        }
        Statement::AlterRetentionPolicy(alter) => {
            let spec = PolicySpec {
                name: Some(alter.name.as_str().into()),
                duration_ns: alter.duration_ns,
                shard_duration_ns: alter.shard_duration_ns,
                replica_n: alter.replication,
            };
            catalog.alter_policy(&alter.database, &spec, alter.default)?;
        }
        Statement::DropRetentionPolicy { name, database } => {
            catalog.drop_policy(database, name)?;
        }
        Statement::CreateContinuousQuery(create) => continuous::create(create, context)?,
        Statement::DropContinuousQuery { name, database } => {
            catalog.drop_continuous_query(database, name)?;
        }
        Statement::CreateSubscription(create) => subscriptions::create(create, catalog)?,
        Statement::DropSubscription { name, database, retention_policy } => {
            catalog.drop_subscription(database, retention_policy, name)?;
        }
        other => panic!("BUG: {other:?} is executed elsewhere"),
    }
    Ok(Answer::empty())
}

/// What a statement is called that needs more than a store and a catalog.
fn elsewhere(statement: &Statement) -> Option<&'static str> {
    Some(match statement {
        Statement::ShowStats { .. } => "SHOW STATS outside of a server",
        Statement::ShowDiagnostics { .. } => "SHOW DIAGNOSTICS outside of a server",
        _ => return None,
    })
}

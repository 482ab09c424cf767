//! What a statement needs of who sends it: a pure function of the statement.

use catalog::Privilege;
use influxql::{Measurement, SelectStatement, Source, Statement};

/// One thing that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Requirement<'a> {
    /// To be an administrator.
    Admin,
    /// A privilege on a database; `None` is that of the request.
    On(Privilege, Option<&'a str>),
}

use Requirement::{Admin, On};

/// Everything that `statement` needs. InfluxDB lets some pass that are refused here: SHOW statements
/// that count exactly or name another database in FROM, and continuous queries that write to the
/// database they read.
pub(super) fn requirements(statement: &Statement) -> Vec<Requirement<'_>> {
    match statement {
        Statement::Limited { statement, .. } => requirements(statement),
        Statement::Select(select) | Statement::Explain { select, .. } => of_select(select),
        Statement::CreateContinuousQuery(create) => {
            let of_query = |requirement| match requirement {
                On(privilege, None) => On(privilege, Some(create.database.as_str())),
                other => other,
            };
            of_select(&create.select).into_iter().map(of_query).collect()
        }
        Statement::Delete { sources, .. } | Statement::DropSeries { sources, .. } => {
            named(Privilege::Write, None, sources)
        }
        Statement::DropRetentionPolicy { database, .. } => {
            vec![On(Privilege::Write, Some(database))]
        }
        Statement::DropContinuousQuery { database, .. } => {
            vec![On(Privilege::Write, Some(database))]
        }
        Statement::ShowDatabases => vec![On(Privilege::None, None)],
        // And whatever the query needs, which the catalog knows.
        Statement::RunContinuousQuery { database, .. } => {
            vec![On(Privilege::Write, Some(database))]
        }
        Statement::ShowQueries
        | Statement::ShowContinuousQueries
        | Statement::ShowContinuousQueryStatus => vec![On(Privilege::Read, None)],
        Statement::ShowRetentionPolicies { database } => {
            vec![On(Privilege::Read, database.as_deref())]
        }
        Statement::ShowMeasurements(show) => {
            named(Privilege::Read, show.database.as_deref(), show.source.as_slice())
        }
        Statement::ShowSeries(s) => named(Privilege::Read, s.database.as_deref(), &s.sources),
        Statement::ShowTagKeys(s) => named(Privilege::Read, s.database.as_deref(), &s.sources),
        Statement::ShowTagValues(s) => named(Privilege::Read, s.database.as_deref(), &s.sources),
        Statement::ShowFieldKeys(s) => named(Privilege::Read, s.database.as_deref(), &s.sources),
        Statement::ShowCardinality(s) => named(Privilege::Read, s.database.as_deref(), &s.sources),
        Statement::ShowCardinalityBy(s) => {
            named(Privilege::Read, s.database.as_deref(), &s.sources)
        }
        Statement::CreateDatabase(_)
        | Statement::DropDatabase { .. }
        | Statement::CreateRetentionPolicy(_)
        | Statement::AlterRetentionPolicy(_)
        | Statement::DropMeasurement { .. }
        | Statement::DropShard { .. }
        | Statement::CreateSubscription(_)
        | Statement::DropSubscription { .. }
        | Statement::ShowSubscriptions
        | Statement::CreateUser { .. }
        | Statement::DropUser { .. }
        | Statement::SetPassword { .. }
        | Statement::Grant { .. }
        | Statement::GrantAdmin { .. }
        | Statement::Revoke { .. }
        | Statement::RevokeAdmin { .. }
        | Statement::ShowUsers
        | Statement::ShowGrants { .. }
        | Statement::KillQuery { .. }
        | Statement::ShowShards
        | Statement::ShowShardGroups
        | Statement::ShowStats { .. }
        | Statement::ShowDiagnostics { .. } => vec![Admin],
    }
}

/// A privilege on the database of a statement, and on those that its sources name.
fn named<'a>(
    privilege: Privilege,
    database: Option<&'a str>,
    sources: &'a [Measurement],
) -> Vec<Requirement<'a>> {
    let of_sources = sources.iter().filter_map(|source| source.database.as_deref());
    [On(privilege, database)]
        .into_iter()
        .chain(of_sources.map(|database| On(privilege, Some(database))))
        .collect()
}

/// READ on what is read, WRITE on what is written.
fn of_select(select: &SelectStatement) -> Vec<Requirement<'_>> {
    let mut all = Vec::new();
    read_by(select, &mut all);
    if let Some(into) = &select.into {
        all.push(On(Privilege::Write, into.database.as_deref()));
    }
    all
}

fn read_by<'a>(select: &'a SelectStatement, all: &mut Vec<Requirement<'a>>) {
    select.sources.iter().for_each(|source| read_from(source, all));
}

fn read_from<'a>(source: &'a Source, all: &mut Vec<Requirement<'a>>) {
    match source {
        Source::Measurement(measurement) => {
            all.push(On(Privilege::Read, measurement.database.as_deref()));
        }
        // As deep as the parser lets statements nest.
        Source::SubQuery(inner) => read_by(inner, all),
        Source::Join(join) => join.sides().for_each(|side| read_from(&side.source, all)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Privilege::{Read, Write};

    fn check(text: &str, expected: &[Requirement<'_>]) {
        let query = influxql::parse_query(text, &influxql::Params::new());
        let query = query.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(requirements(&query.statements[0]), expected, "{text}");
    }

    #[test]
    fn statements_that_read() {
        check("SELECT v FROM m", &[On(Read, None)]);
        check("SELECT v FROM a..m, \"b\".\"rp\".m", &[On(Read, Some("a")), On(Read, Some("b"))]);
        check("SELECT v FROM (SELECT v FROM (SELECT v FROM a..m))", &[On(Read, Some("a"))]);
        check(
            "SELECT x.v FROM a..m AS x JOIN (SELECT v FROM b..m) AS y USING (h) JOIN m",
            &[On(Read, Some("a")), On(Read, Some("b")), On(Read, None)],
        );
        check("EXPLAIN SELECT v FROM a..m", &[On(Read, Some("a"))]);
        check("SHOW MEASUREMENTS ON a", &[On(Read, Some("a"))]);
        check("SHOW SERIES FROM a..m", &[On(Read, None), On(Read, Some("a"))]);
        check("SHOW SERIES EXACT CARDINALITY ON a", &[On(Read, Some("a"))]);
        check("SHOW TAG KEYS", &[On(Read, None)]);
        check("SHOW TAG VALUES ON a WITH KEY = k", &[On(Read, Some("a"))]);
        check("SHOW FIELD KEYS", &[On(Read, None)]);
        check("SHOW RETENTION POLICIES ON a", &[On(Read, Some("a"))]);
        check("SHOW QUERIES", &[On(Read, None)]);
        check("SHOW CONTINUOUS QUERIES", &[On(Read, None)]);
        check("SHOW CONTINUOUS QUERY STATUS", &[On(Read, None)]);
        check("SHOW DATABASES", &[On(Privilege::None, None)]);
    }

    #[test]
    fn statements_that_write() {
        check("SELECT v INTO x FROM m", &[On(Read, None), On(Write, None)]);
        check("SELECT v INTO b..x FROM a..m", &[On(Read, Some("a")), On(Write, Some("b"))]);
        check("DELETE FROM m", &[On(Write, None)]);
        check("DROP SERIES FROM m", &[On(Write, None)]);
        check("DROP RETENTION POLICY r ON a", &[On(Write, Some("a"))]);
        check("DROP CONTINUOUS QUERY c ON a", &[On(Write, Some("a"))]);
        check("RUN CONTINUOUS QUERY c ON a", &[On(Write, Some("a"))]);
        let create = |into: &str| {
            format!(
                "CREATE CONTINUOUS QUERY c ON a BEGIN SELECT mean(v) INTO {into} FROM m \
                 GROUP BY time(1m) END"
            )
        };
        let read = On(Read, Some("a"));
        check(&create("x"), &[read, On(Write, Some("a"))]);
        check(&create("b..x"), &[read, On(Write, Some("b"))]);
    }

    #[test]
    fn statements_of_administrators() {
        for text in [
            "CREATE DATABASE d",
            "DROP DATABASE d",
            "CREATE RETENTION POLICY r ON d DURATION 1h REPLICATION 1",
            "ALTER RETENTION POLICY r ON d DEFAULT",
            "DROP MEASUREMENT m",
            "DROP SHARD 1",
            "CREATE SUBSCRIPTION s ON d.r DESTINATIONS ALL 'udp://x:1'",
            "DROP SUBSCRIPTION s ON d.r",
            "SHOW SUBSCRIPTIONS",
            "CREATE USER u WITH PASSWORD 'p'",
            "DROP USER u",
            "SET PASSWORD FOR u = 'p'",
            "GRANT READ ON d TO u",
            "GRANT ALL TO u",
            "REVOKE READ ON d FROM u",
            "REVOKE ALL FROM u",
            "SHOW USERS",
            "SHOW GRANTS FOR u",
            "KILL QUERY 1",
            "SHOW SHARDS",
            "SHOW SHARD GROUPS",
            "SHOW STATS",
            "SHOW DIAGNOSTICS",
        ] {
            check(text, &[Admin]);
        }
    }
}

//! What kinds of statements there are, as far as the network is concerned.

use influxql::{SelectStatement, Source, Statement};
use query::Zone;

/// Whether a statement changes something, and waits for the disk when it does.
pub(super) fn changes(statement: &Statement) -> bool {
    match statement {
        Statement::Select(select) => select.into.is_some(),
        Statement::Limited { statement, .. } => changes(statement),
        Statement::Explain { .. }
        | Statement::ShowDatabases
        | Statement::ShowUsers
        | Statement::ShowQueries
        | Statement::ShowShards
        | Statement::ShowShardGroups
        | Statement::ShowSubscriptions
        | Statement::ShowContinuousQueries
        | Statement::ShowContinuousQueryStatus
        | Statement::ShowGrants { .. }
        | Statement::ShowStats { .. }
        | Statement::ShowDiagnostics { .. }
        | Statement::ShowRetentionPolicies { .. }
        | Statement::ShowMeasurements(_)
        | Statement::ShowSeries(_)
        | Statement::ShowTagKeys(_)
        | Statement::ShowTagValues(_)
        | Statement::ShowFieldKeys(_)
        | Statement::ShowCardinality(_)
        | Statement::ShowCardinalityBy(_) => false,
        _ => true,
    }
}

/// What a client is told that sends `statement` with GET, if it should not.
pub(super) fn get_warning(statement: &Statement) -> Option<String> {
    if !changes(statement) || matches!(statement, Statement::Delete { .. }) {
        return None;
    }
    Some(format!(
        "deprecated use of '{statement}' in a read only context, please use a POST request instead"
    ))
}

/// Why the time zones of a statement cannot be used. InfluxDB finds that out while it parses.
pub(super) fn check_zones(statement: &Statement) -> Result<(), String> {
    match statement {
        Statement::Select(select) | Statement::Explain { select, .. } => zones_of(select),
        _ => Ok(()),
    }
}

fn zones_of(select: &SelectStatement) -> Result<(), String> {
    if let Some(name) = &select.time_zone {
        Zone::load(name).map_err(|error| error.to_string())?;
    }
    select.sources.iter().try_for_each(zones_in)
}

fn zones_in(source: &Source) -> Result<(), String> {
    match source {
        Source::SubQuery(inner) => zones_of(inner),
        Source::Measurement(_) => Ok(()),
        Source::Join(join) => join.sides().try_for_each(|side| zones_in(&side.source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use influxql::{Params, parse_statement};

    #[test]
    fn warnings() {
        let of = |text| get_warning(&parse_statement(text, &Params::new()).unwrap());
        assert_eq!(
            of("create database  mydb").as_deref(),
            Some(
                "deprecated use of 'CREATE DATABASE mydb' in a read only context, please use a \
                 POST request instead"
            )
        );
        assert!(of("SELECT v INTO n FROM m").is_some());
        assert_eq!(of("SELECT v FROM m"), None);
        assert_eq!(of("DELETE FROM m"), None);
        assert_eq!(of("SHOW DATABASES"), None);
    }

    #[test]
    fn zones() {
        let of = |text| check_zones(&parse_statement(text, &Params::new()).unwrap());
        let unknown = Err("unable to find time zone Foo/Bar".to_owned());
        assert_eq!(of("SELECT v FROM m tz('Foo/Bar')"), unknown);
        assert_eq!(of("EXPLAIN SELECT v FROM (SELECT v FROM m tz('Foo/Bar'))"), unknown);
        assert_eq!(of("SELECT v FROM m tz('Europe/Berlin')"), Ok(()));
    }
}

//! Statements about subscriptions. Not here: who sends the rows (see `server`).

use std::sync::Arc;

use catalog::{Catalog, Database, PolicyInfo, Subscription, SubscriptionMode};
use influxql::{CreateSubscription, DestinationMode};
use model::SeriesHeader;

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::{Answer, QueryContext, QueryError};

/// Creates a subscription.
pub(crate) fn create(create: &CreateSubscription, catalog: &Catalog) -> Result<(), QueryError> {
    let subscription = Subscription {
        name: create.name.as_str().into(),
        mode: match create.mode {
            DestinationMode::All => SubscriptionMode::All,
            DestinationMode::Any => SubscriptionMode::Any,
        },
        destinations: create.destinations.iter().map(|url| url.as_str().into()).collect(),
    };
    catalog.create_subscription(&create.database, &create.retention_policy, &subscription)?;
    Ok(())
}

/// Runs SHOW SUBSCRIPTIONS: a series for each database that has some.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let parts = catalog.databases().iter().filter_map(|database| part_of(database)).collect();
    Answer::ready(parts, context.chunk_rows)
}

fn part_of(database: &Database) -> Option<Part> {
    let mut all: Vec<(&PolicyInfo, &Subscription)> = Vec::new();
    for policy in &database.policies {
        all.extend(policy.subscriptions.iter().map(|subscription| (policy, subscription)));
    }
    if all.is_empty() {
        return None;
    }
    let lists: Vec<String> = all.iter().map(|(_, s)| s.destinations.join("\n")).collect();
    let columns = vec![
        text_column(all.iter().map(|(policy, _)| &*policy.name)),
        text_column(all.iter().map(|(_, s)| &*s.name)),
        text_column(all.iter().map(|(_, s)| s.mode.as_str())),
        text_column(lists.iter().map(String::as_str)),
    ];
    let plain = header(&database.name, &["retention_policy", "name", "mode", "destinations"]);
    let header = Arc::new(SeriesHeader { list: Some(3), ..SeriesHeader::clone(&plain) });
    Some(Part { header, columns })
}

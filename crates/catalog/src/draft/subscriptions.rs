//! Changes of subscriptions.

use super::Draft;
use crate::CatalogError;
use crate::rules::check_destination;
use crate::state::{Database, PolicyInfo, Subscription};

impl Draft {
    pub(crate) fn create_subscription(
        &mut self,
        database: &str,
        policy: &str,
        subscription: &Subscription,
    ) -> Result<(), CatalogError> {
        subscription.destinations.iter().try_for_each(|url| check_destination(url))?;
        let found = existing_policy(self.existing(database)?, policy)?;
        if found.subscriptions.iter().any(|other| other.name == subscription.name) {
            return Err(CatalogError::SubscriptionExists);
        }
        self.change_policy(database, policy)?.subscriptions.push(subscription.clone());
        Ok(())
    }

    pub(crate) fn drop_subscription(
        &mut self,
        database: &str,
        policy: &str,
        name: &str,
    ) -> Result<(), CatalogError> {
        let found = existing_policy(self.existing(database)?, policy)?;
        let at = found.subscriptions.iter().position(|other| *other.name == *name);
        let at = at.ok_or(CatalogError::SubscriptionNotFound)?;
        self.change_policy(database, policy)?.subscriptions.remove(at);
        Ok(())
    }

    fn change_policy(
        &mut self,
        database: &str,
        policy: &str,
    ) -> Result<&mut PolicyInfo, CatalogError> {
        let policies = &mut self.change(database)?.policies;
        let found = policies.iter_mut().find(|info| *info.name == *policy);
        found.ok_or_else(|| CatalogError::PolicyNotFound(policy.to_owned()))
    }
}

fn existing_policy<'a>(
    database: &'a Database,
    policy: &str,
) -> Result<&'a PolicyInfo, CatalogError> {
    database.policy(policy).ok_or_else(|| CatalogError::PolicyNotFound(policy.to_owned()))
}

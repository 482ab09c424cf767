//! Statements about users and what they may do.

use catalog::Privilege;
use influxql::Statement;
use model::{Column, Values};

use crate::answer::{header, text_column};
use crate::exec::stream::Part;
use crate::{Answer, QueryContext, QueryError};

/// Runs a statement that changes users. Whether it may is not asked here.
///
/// # Errors
/// What the catalog says.
pub(crate) fn change(statement: &Statement, context: &QueryContext) -> Result<Answer, QueryError> {
    if context.read_only {
        return Err(QueryError::ReadOnly);
    }
    let catalog = &context.catalog;
    match statement {
        Statement::CreateUser { name, password, admin } => {
            catalog.create_user(name, &password.0, *admin)?;
        }
        Statement::DropUser { name } => catalog.drop_user(name)?,
        Statement::SetPassword { name, password } => catalog.set_password(name, &password.0)?,
        Statement::GrantAdmin { user } => catalog.set_admin(user, true)?,
        Statement::RevokeAdmin { user } => catalog.set_admin(user, false)?,
        Statement::Grant { privilege, database, user } => {
            catalog.grant(user, database, of_catalog(*privilege))?;
        }
        Statement::Revoke { privilege, database, user } => {
            catalog.revoke(user, database, of_catalog(*privilege))?;
        }
        other => panic!("BUG: {other:?} is executed elsewhere"),
    }
    Ok(Answer::empty())
}

fn of_catalog(privilege: influxql::Privilege) -> Privilege {
    match privilege {
        influxql::Privilege::Read => Privilege::Read,
        influxql::Privilege::Write => Privilege::Write,
        influxql::Privilege::All => Privilege::All,
    }
}

/// `SHOW USERS`: in order of creation.
pub(crate) fn show(context: &QueryContext) -> Answer {
    let catalog = context.catalog.snapshot();
    let names = text_column(catalog.users().iter().map(|user| &*user.name));
    let admin = catalog.users().iter().map(|user| user.admin).collect();
    let columns = vec![names, Column::new(Values::Boolean(admin))];
    let part = Part::new(header("", &["user", "admin"]), columns);
    Answer::ready(vec![part])
}

/// `SHOW GRANTS`: in order of the databases' names.
///
/// # Errors
/// There is no such user.
pub(crate) fn show_grants(name: &str, context: &QueryContext) -> Result<Answer, QueryError> {
    let catalog = context.catalog.snapshot();
    let user = catalog.user(name).ok_or(catalog::CatalogError::UserNotFound)?;
    let mut grants: Vec<(&str, String)> = catalog
        .databases()
        .iter()
        .filter_map(|database| {
            let grant = user.grants.iter().find(|(id, _)| *id == database.id)?;
            Some((&*database.name, grant.1.to_string()))
        })
        .collect();
    grants.sort_unstable();
    let columns = vec![
        text_column(grants.iter().map(|(database, _)| *database)),
        text_column(grants.iter().map(|(_, privilege)| privilege.as_str())),
    ];
    let part = Part::new(header("", &["database", "privilege"]), columns);
    Ok(Answer::ready(vec![part]))
}

//! Creating, altering and dropping tables.
//!
//! Masters do not recognise repeated requests. Where an attempt before may have been carried out,
//! "exists already" and "does not exist" are looked into before they count as errors.

mod alter;
mod create;

pub use alter::AlterTable;
pub use create::TableSpec;

use crate::client::{Client, master_error};
use crate::cluster::master::MasterReply;
use crate::error::Error;
use crate::proto::{
    DeleteTableRequest, ErrorOnlyResponse, IsDoneResponse, TableIdentifier, TableRequest,
};
use crate::retry::Attempts;

impl Client {
    /// Drops a table and what it has.
    ///
    /// # Errors
    /// [`Error::TableNotFound`] and others.
    pub async fn delete_table(&self, name: &str) -> Result<(), Error> {
        let mut attempts = self.attempts(format!("dropping table {name}"), None);
        let table = TableIdentifier { table_id: None, table_name: Some(name.to_owned()) };
        // By its id: repeated by name, the request could hit a table made meanwhile.
        let found = self.table_schema(table.clone(), name, &mut attempts).await?;
        let table = match found.table_id {
            Some(id) => TableIdentifier { table_id: Some(id), table_name: None },
            None => table,
        };
        let request = DeleteTableRequest { table, reserve_seconds: Some(0) };
        let reply: MasterReply<ErrorOnlyResponse> =
            self.inner.masters.call("DeleteTable", &request, &[], &mut attempts).await?;
        match reply.answer.map_err(|e| master_error("DeleteTable", name, &e)) {
            Err(Error::TableNotFound { .. }) if reply.repeated => Ok(()),
            answer => answer.map(drop),
        }
    }

    /// Waits until the master has done what it was asked for.
    async fn wait_until_done(
        &self,
        method: &'static str,
        table: TableIdentifier,
        shown: &str,
        attempts: &mut Attempts,
    ) -> Result<(), Error> {
        let request = TableRequest { table };
        loop {
            let reply: MasterReply<IsDoneResponse> =
                self.inner.masters.call(method, &request, &[], attempts).await?;
            let answer = reply.answer.map_err(|e| master_error(method, shown, &e))?;
            if answer.done == Some(true) {
                return Ok(());
            }
            attempts.back_off().await?;
        }
    }
}

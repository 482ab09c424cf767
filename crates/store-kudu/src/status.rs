//! How a cluster is doing, for people: what the leading master knows, and what each master says.
//!
//! Copies of tablets are judged by their servers: one whose server was not heard of lately is
//! missing, whatever the master still names it. What only the servers know of a copy is not asked
//! for (`kudu cluster ksck` does).

use std::collections::HashSet;
use std::fmt::Write;
use std::time::Duration;

use kudu_client::{Client, Error, Master, MasterState, Replica, Table, TabletServer};
use store::StoreError;

use crate::error::cluster;
use crate::layout::Names;
use crate::options::KuduOptions;
use crate::runtime::Runtime;

/// Servers that the master has not heard of for so long count as lost, milliseconds.
const HEARTBEAT_AGE_MAX_MS: i32 = 10_000;
/// Longest wait for what is asked about one table: one that is stuck shall not hide the others.
const TIMEOUT_MAX: Duration = Duration::from_secs(10);

/// Masters, tablet servers and this store's tables of a cluster as text, a line each; and whether
/// everything is well: all masters answer, there are tablet servers and all are heard of, and every
/// tablet has a leader and all of its copies.
///
/// # Errors
/// [`StoreError`]: the cluster cannot be reached.
pub fn cluster_status(options: &KuduOptions) -> Result<(String, bool), StoreError> {
    let runtime = Runtime::start()?;
    runtime.wait(read(options))
}

async fn read(options: &KuduOptions) -> Result<(String, bool), StoreError> {
    let config = options.client_config()?.operation_timeout(options.timeout.min(TIMEOUT_MAX));
    let client = Client::new(config);
    let mut status = Status { text: String::new(), is_well: true };
    status.masters(&client.list_masters().await.map_err(cluster)?);
    let servers = client.list_tablet_servers().await.map_err(cluster)?;
    status.tablet_servers(&servers);
    let heard = servers.iter().filter(|server| is_heard(server)).map(|s| s.uuid.clone());
    let heard: HashSet<String> = heard.collect();
    let prefix = Names { prefix: options.prefix.clone() }.own();
    let mut tables = client.list_tables(&prefix).await.map_err(cluster)?;
    tables.retain(|table| table.starts_with(&prefix));
    tables.sort_unstable();
    let mut copies_max = options.replicas.unwrap_or(1);
    for name in &tables {
        match status.table(&client, name, &heard).await {
            Ok(copies) => copies_max = copies_max.max(copies),
            // Dropped since it was listed.
            Err(Error::TableNotFound { .. }) => {}
            Err(error) => status.unwell(&format!("table           {name}: UNKNOWN, {error}")),
        }
    }
    if tables.is_empty() {
        status.line(&format!("table           none begins with {prefix}"));
    }
    if (heard.len() as u64) < u64::try_from(copies_max).unwrap_or(0) {
        let alive = heard.len();
        status.unwell(&format!(
            "TOO FEW SERVERS {alive} alive, {copies_max} copies wanted: new tables and time ranges \
             cannot be made"
        ));
    }
    Ok((status.text, status.is_well))
}

fn is_heard(server: &TabletServer) -> bool {
    server.heartbeat_age_ms <= HEARTBEAT_AGE_MAX_MS
}

struct Status {
    text: String,
    is_well: bool,
}

impl Status {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn unwell(&mut self, line: &str) {
        self.is_well = false;
        self.line(line);
    }

    fn masters(&mut self, masters: &[Master]) {
        for Master { address, is_given, state } in masters {
            let given = if *is_given { "" } else { ", not given: name it in the address, too" };
            match state {
                MasterState::Leads => self.line(&format!("master          {address} leads{given}")),
                MasterState::Follows => {
                    self.line(&format!("master          {address} follows{given}"));
                }
                MasterState::Failed(why) => {
                    self.unwell(&format!(
                        "master          {address} DOES NOT ANSWER{given}: {why}"
                    ));
                }
            }
        }
    }

    fn tablet_servers(&mut self, servers: &[TabletServer]) {
        for server in servers {
            let state = if is_heard(server) { "alive" } else { "LOST" };
            let version = server.version.as_deref().unwrap_or("of unknown version");
            let seconds = f64::from(server.heartbeat_age_ms) / 1000.0;
            let address = server.addresses.join(" ");
            self.is_well &= is_heard(server);
            self.line(&format!(
                "tablet server   {address} {state}, heard of {seconds:.1} s ago, {version}"
            ));
        }
        if servers.is_empty() {
            self.unwell("tablet server   NONE has reported to the leading master");
        }
    }

    /// Shows a table and gives the number of copies it wants.
    async fn table(
        &mut self,
        client: &Client,
        name: &str,
        heard: &HashSet<String>,
    ) -> Result<i32, Error> {
        let table = client.open_table(name).await?;
        let tablets = table.tablet_replicas().await?;
        let size = client.table_statistics(name).await?;
        let mut shown = format!("table           {}", copies(&table, &tablets, heard));
        if let (Some(rows), Some(bytes)) = (size.live_rows, size.disk_bytes) {
            write!(shown, ", about {rows} rows, {bytes} bytes").unwrap_or_default();
        }
        self.is_well &= is_whole(&table, &tablets, heard);
        self.line(&shown);
        Ok(table.replicas())
    }
}

/// Copies of a tablet that count and whose servers are heard of.
fn alive<'a>(
    tablet: &'a [Replica],
    heard: &'a HashSet<String>,
) -> impl Iterator<Item = &'a Replica> {
    tablet.iter().filter(|replica| replica.is_voter && heard.contains(&replica.server_uuid))
}

fn is_led(tablet: &[Replica], heard: &HashSet<String>) -> bool {
    alive(tablet, heard).any(|replica| replica.is_leader)
}

fn missing(tablet: &[Replica], heard: &HashSet<String>, wanted: i32) -> usize {
    usize::try_from(wanted).unwrap_or(0).saturating_sub(alive(tablet, heard).count())
}

fn is_whole(table: &Table, tablets: &[Vec<Replica>], heard: &HashSet<String>) -> bool {
    let mut tablets = tablets.iter();
    tablets.all(|t| is_led(t, heard) && missing(t, heard, table.replicas()) == 0)
}

/// A table's tablets and what is wrong with them.
fn copies(table: &Table, tablets: &[Vec<Replica>], heard: &HashSet<String>) -> String {
    let wanted = table.replicas();
    let mut shown = format!("{}: {} tablets, {wanted} copies each", table.name(), tablets.len());
    let lacking = tablets.iter().filter(|t| missing(t, heard, wanted) > 0).count();
    if lacking > 0 {
        let all: usize = tablets.iter().map(|t| missing(t, heard, wanted)).sum();
        write!(shown, ", {lacking} LACK COPIES ({all} in all)").unwrap_or_default();
    }
    let without = tablets.iter().filter(|t| !is_led(t, heard)).count();
    if without > 0 {
        write!(shown, ", {without} WITHOUT A LEADER").unwrap_or_default();
    }
    shown
}

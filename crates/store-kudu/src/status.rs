//! How a cluster is doing, for people.

use std::fmt::Write;

use kudu_client::Client;
use store::StoreError;

use crate::error::cluster;
use crate::layout::Names;
use crate::options::KuduOptions;
use crate::runtime::Runtime;

/// Servers that the master has not heard of for so long count as lost, milliseconds.
const HEARTBEAT_AGE_MAX_MS: i32 = 10_000;

/// Masters, tablet servers and this store's tables of a cluster as text, a line each; and whether
/// everything is well: all servers are heard of, and every tablet has a leader.
///
/// # Errors
/// [`StoreError`]: the cluster cannot be reached.
pub fn cluster_status(options: &KuduOptions) -> Result<(String, bool), StoreError> {
    let runtime = Runtime::start()?;
    runtime.wait(read(options))
}

async fn read(options: &KuduOptions) -> Result<(String, bool), StoreError> {
    let client = Client::new(options.client_config()?);
    let leader = client.leading_master().await.map_err(cluster)?;
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(&line);
        text.push('\n');
    };
    let mut is_well = true;
    line(format!("masters         {} given, {leader} leads", options.masters.len()));
    for server in client.list_tablet_servers().await.map_err(cluster)? {
        let is_heard = server.heartbeat_age_ms <= HEARTBEAT_AGE_MAX_MS;
        is_well &= is_heard;
        let state = if is_heard { "alive" } else { "LOST" };
        let version = server.version.unwrap_or_default();
        let seconds = f64::from(server.heartbeat_age_ms) / 1000.0;
        let address = server.addresses.join(" ");
        line(format!("tablet server   {address} {state}, heard of {seconds:.1} s ago, {version}"));
    }
    let prefix = Names { prefix: options.prefix.clone() }.own();
    let mut tables = client.list_tables(&prefix).await.map_err(cluster)?;
    tables.retain(|table| table.starts_with(&prefix));
    tables.sort_unstable();
    for name in &tables {
        let table = client.open_table(name).await.map_err(cluster)?;
        let leaders = table.tablet_leaders().await.map_err(cluster)?;
        let without = leaders.iter().filter(|leader| leader.is_empty()).count();
        let size = client.table_statistics(name).await.map_err(cluster)?;
        is_well &= without == 0;
        let mut shown = format!(
            "table           {name}: {} tablets, {} copies each",
            leaders.len(),
            table.replicas()
        );
        if without > 0 {
            write!(shown, ", {without} WITHOUT A LEADER").unwrap_or_default();
        }
        if let (Some(rows), Some(bytes)) = (size.live_rows, size.disk_bytes) {
            write!(shown, ", about {rows} rows, {bytes} bytes").unwrap_or_default();
        }
        line(shown);
    }
    if tables.is_empty() {
        line(format!("table           none begins with {prefix}"));
    }
    Ok((text, is_well))
}

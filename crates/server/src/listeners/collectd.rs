//! collectd's packets over UDP.

use std::sync::Arc;

use ingest::point::Lines;
use tokio::net::UdpSocket;

use super::batches::{self, DATAGRAM_BYTES_MAX};
use super::{CollectdConfig, ListenerStats};
use crate::app::App;

/// Serves packets, for ever.
pub(super) async fn serve(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    socket: UdpSocket,
    config: CollectdConfig,
) {
    let (sender, batches) = batches::of_listener(&config.target);
    let receiving = async {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let mut lines = Lines::default();
            let take = |packet: &[u8]| {
                app.metrics.bytes_in.add(packet.len() as u64);
                stats.bytes.add(packet.len() as u64);
                match config.parser.parse(packet, &mut lines) {
                    Ok(dropped) => stats.unparsable.add(dropped),
                    Err(error) => {
                        tracing::debug!("a packet of collectd was dropped: {error}");
                        stats.unparsable.add(1);
                    }
                }
            };
            batches::receive(&socket, &mut buffer, take).await;
            stats.points.add(lines.points() as u64);
            sender.put_lines(lines).await;
        }
    };
    tokio::join!(receiving, batches.store(Arc::clone(&app), Arc::clone(&stats)));
}

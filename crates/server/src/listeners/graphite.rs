//! Graphite's plain text over TCP and UDP.

use std::io;
use std::sync::Arc;

use ingest::graphite::GraphiteParser;
use ingest::point::Lines;
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::batches::{self, DATAGRAM_BYTES_MAX, Sender};
use super::connections::{self, LineReader, texts};
use super::{GraphiteConfig, ListenerStats};
use crate::app::App;

/// Serves connections, for ever.
pub(super) async fn serve_tcp(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    listener: TcpListener,
    config: GraphiteConfig,
) {
    let (sender, batches) = batches::of_listener(&config.target);
    let parser = Arc::new(config.parser);
    let serve = |stream: TcpStream| {
        let (app, stats) = (Arc::clone(&app), Arc::clone(&stats));
        read(app, stats, Arc::clone(&parser), sender.clone(), stream)
    };
    let accepting = connections::accept(listener, Arc::clone(&stats), serve);
    tokio::join!(accepting, batches.store(Arc::clone(&app), Arc::clone(&stats)));
}

async fn read(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    parser: Arc<GraphiteParser>,
    sender: Sender,
    stream: TcpStream,
) -> io::Result<()> {
    let mut reader = LineReader::new(stream, app.config.patience.lines);
    while let Some(text) = reader.lines().await? {
        let mut lines = Lines::default();
        add_points(&app, &stats, &parser, &text, &mut lines);
        sender.put_lines(lines).await;
    }
    Ok(())
}

/// Serves datagrams, for ever.
pub(super) async fn serve_udp(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    socket: UdpSocket,
    config: GraphiteConfig,
) {
    let (sender, batches) = batches::of_listener(&config.target);
    let receiving = async {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let mut lines = Lines::default();
            let take = |text: &[u8]| add_points(&app, &stats, &config.parser, text, &mut lines);
            batches::receive(&socket, &mut buffer, take).await;
            sender.put_lines(lines).await;
        }
    };
    tokio::join!(receiving, batches.store(Arc::clone(&app), Arc::clone(&stats)));
}

/// Adds the points of some lines.
fn add_points(
    app: &App,
    stats: &ListenerStats,
    parser: &GraphiteParser,
    text: &[u8],
    lines: &mut Lines,
) {
    let (texts, mut bad) = texts(text);
    let (now_ns, before) = (app.clock.now_ns(), lines.points());
    // Lines without a time are not all of the same time, or they would replace each other.
    for (time_ns, line) in (now_ns..).zip(&texts) {
        if let Err(error) = parser.parse(line, time_ns, lines) {
            tracing::debug!("a line of Graphite was dropped: {error}");
            bad += 1;
        }
    }
    app.metrics.bytes_in.add(text.len() as u64);
    stats.bytes.add(text.len() as u64);
    stats.unparsable.add(bad);
    stats.points.add((lines.points() - before) as u64);
}

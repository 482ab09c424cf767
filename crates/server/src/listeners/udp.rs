//! Line protocol over UDP. Nobody is answered, and nobody is asked who they are.
//!
//! Datagrams are gathered and stored together, one batch after another: while one is being stored
//! the next waits in the socket's buffer, and what does not fit there is lost, as UDP has it. So
//! memory stays bounded.
//!
//! Invariants
//! - A datagram with a line that cannot be read is dropped as a whole.
//! - Rows without a time have that at which their datagram came.

use std::sync::Arc;

use ingest::line_protocol::{LineParser, ParseOptions};
use tokio::net::UdpSocket;

use super::batches::{self, DATAGRAM_BYTES_MAX, Piece};
use super::{ListenerStats, UdpConfig};
use crate::app::App;
use crate::lines::lines;

/// Receives and stores, for ever.
pub(super) async fn serve(
    app: Arc<App>,
    stats: Arc<ListenerStats>,
    socket: UdpSocket,
    config: UdpConfig,
) {
    let (sender, batches) = batches::of_listener(&config.target);
    let receiving = async {
        let mut parser = LineParser::new();
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let Some(datagram) = batches::receive(&socket, &mut buffer).await else { continue };
            app.metrics.udp_datagrams.add(1);
            app.metrics.bytes_in.add(datagram.len() as u64);
            stats.bytes.add(datagram.len() as u64);
            let options = ParseOptions::at(config.precision, app.clock.now_ns());
            match readable(datagram, &options, &mut parser) {
                Some(piece) => {
                    stats.points.add(piece.points as u64);
                    sender.put(piece).await;
                }
                None => {
                    app.metrics.udp_datagrams_dropped.add(1);
                    stats.unparsable.add(1);
                }
            }
        }
    };
    tokio::join!(receiving, batches.store(Arc::clone(&app), Arc::clone(&stats)));
}

/// What is stored of a datagram, times in nanoseconds; `None`: it has a line that cannot be read.
fn readable(datagram: &[u8], options: &ParseOptions, parser: &mut LineParser) -> Option<Piece> {
    let parsed = parser.parse(datagram, options);
    let piece = parsed
        .problems
        .is_empty()
        .then(|| Piece { text: lines(&parsed.batch, &[]), points: parsed.batch.rows.len() });
    parser.recycle(parsed.batch);
    piece
}

#[cfg(test)]
mod tests {
    use ingest::line_protocol::Precision;

    use super::*;

    #[test]
    fn one_bad_line_drops_its_datagram() {
        let mut parser = LineParser::new();
        for (datagram, want) in [
            ("m v=1i", Some(("m v=1i 7000000\n", 1))),
            ("m v=2\nbad\nm v=3\n", None),
            ("", Some(("", 0))),
            ("m s=\"open", None),
            ("m v=4i 5\nm v=6i", Some(("m v=4i 5000000\nm v=6i 7000000\n", 2))),
        ] {
            let options = ParseOptions::at(Precision::Millisecond, 7_654_321);
            let piece = readable(datagram.as_bytes(), &options, &mut parser);
            let got = piece.map(|p| (String::from_utf8(p.text).unwrap(), p.points));
            assert_eq!(got, want.map(|(text, points)| (text.to_owned(), points)));
        }
    }
}

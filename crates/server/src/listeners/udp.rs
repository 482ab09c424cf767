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

use ingest::line_protocol::{LineParser, ParseOptions, Precision};
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
            let mut piece = Piece::default();
            let take = |datagram: &[u8]| {
                app.metrics.udp_datagrams.add(1);
                app.metrics.bytes_in.add(datagram.len() as u64);
                stats.bytes.add(datagram.len() as u64);
                let now_ns = app.clock.now_ns();
                if !add(&mut piece, datagram, (config.precision, now_ns), &mut parser) {
                    app.metrics.udp_datagrams_dropped.add(1);
                    stats.unparsable.add(1);
                }
            };
            batches::receive(&socket, &mut buffer, take).await;
            stats.points.add(piece.points as u64);
            sender.put(piece).await;
        }
    };
    tokio::join!(receiving, batches.store(Arc::clone(&app), Arc::clone(&stats)));
}

/// Adds what is stored of a datagram, times in nanoseconds; `false`: it has a line that cannot be read.
fn add(
    piece: &mut Piece,
    datagram: &[u8],
    (precision, now_ns): (Precision, i64),
    parser: &mut LineParser,
) -> bool {
    let parsed = parser.parse(datagram, &ParseOptions::at(precision, now_ns));
    let (batch, is_readable) = (parsed.batch, parsed.problems.is_empty());
    if is_readable {
        // Without a time it would be this one, and the text does not say so.
        let says_times = || batch.rows.iter().all(|row| row.time_ns != now_ns);
        if precision == Precision::Nanosecond && says_times() {
            piece.text.extend_from_slice(datagram);
            piece.text.push(b'\n');
        } else {
            piece.text.append(&mut lines(&batch, &[]));
        }
        piece.points += batch.rows.len();
    }
    parser.recycle(batch);
    is_readable
}

#[cfg(test)]
mod tests {
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
            let mut piece = Piece::default();
            let at = (Precision::Millisecond, 7_654_321);
            let is_readable = add(&mut piece, datagram.as_bytes(), at, &mut parser);
            let text = String::from_utf8(piece.text).unwrap();
            let got = is_readable.then_some((&*text, piece.points));
            assert_eq!(got, want);
            assert!(is_readable || text.is_empty());
        }
    }

    #[test]
    fn datagrams_that_say_all_times_are_stored_as_they_are() {
        let mut parser = LineParser::new();
        let mut piece = Piece::default();
        for (datagram, points) in [
            ("m v=1.0e0 5\n# no row\nm,a=b s=\"two\nlines\" 6", 2),
            ("m v=7 \n", 3),
            // The time that it has not said, by chance.
            ("m v=8 70", 4),
        ] {
            let at = (Precision::Nanosecond, 70);
            assert!(add(&mut piece, datagram.as_bytes(), at, &mut parser));
            assert_eq!(piece.points, points);
        }
        let want = "m v=1.0e0 5\n# no row\nm,a=b s=\"two\nlines\" 6\nm v=7.0 70\nm v=8.0 70\n";
        assert_eq!(String::from_utf8(piece.text).unwrap(), want);
    }
}

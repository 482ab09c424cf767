//! Many connections at once.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use server::{ServerConfig, Stopped};

use super::{Fault, Tested, connect, exchange, hold_slots};

/// Sends bodies, each of which has rows, over a connection each while the store holds all writes; once all have arrived it does as
/// `then` says. Gives the answers and the number of the store's writes.
fn crowd(tested: &Tested, bodies: &[String], then: Fault) -> (Vec<(u16, String)>, u64) {
    tested.store.set(Fault::Held);
    let before = tested.store.writes.load(Ordering::Relaxed);
    let answers = std::thread::scope(|scope| {
        let asks: Vec<_> =
            bodies.iter().map(|body| scope.spawn(move || tested.write(body))).collect();
        // And the one that asks for this.
        let all = format!("nyala_http_requests_active {}", bodies.len() + 1);
        tested.wait_for(|tested| tested.metric(&all));
        // The last ones may still be about to wait.
        sleep(Duration::from_millis(20));
        tested.store.set(then);
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    (answers, tested.store.writes.load(Ordering::Relaxed) - before)
}

#[test]
fn a_crowd_shares_writes_and_each_is_told_of_its_own() {
    let tested = Tested::start(ServerConfig::default());
    let body = |at: usize| match at % 5 {
        0 => format!("c,at={at} v={at} 1\nc,at={at} v=x 2"),
        1 => format!("c,at={at} v=\"text {at}\" 1\nc,at={at} v=1 2"),
        2 => format!("c,at={at} v=1 1\nc,at={at} s=\"open"),
        3 => format!("\n# nothing else\nc,at={at} v=1 1\n"),
        _ => format!("c,at={at} v={at}"),
    };
    assert_eq!(tested.write("c v=0 1").0, 204);
    let bodies: Vec<String> = (0..200).map(body).collect();
    let (answers, writes) = crowd(&tested, &bodies, Fault::None);
    // Workers hold some, up to 64 where bodies come slowly.
    assert!(writes < 150, "{writes} writes for 200 bodies");
    for (at, (status, text)) in answers.iter().enumerate() {
        let said = match at % 5 {
            0 => format!("partial write: unable to parse 'c,at={at} v=x 2'"),
            1 => "partial write: field type conflict: input field \\\"v\\\" on measurement"
                .to_owned(),
            2 => format!("\"partial write: unable to parse 'c,at={at} s="),
            _ => String::new(),
        };
        assert_eq!(*status, if said.is_empty() { 204 } else { 400 }, "{at}: {text}");
        assert!(text.contains(&said), "{at}: {text}");
        assert!(at % 5 != 1 || text.contains("dropped=1"), "{text}");
    }
    let counted = tested.query("SELECT count(v) FROM c").1;
    assert!(counted.contains(",201]"), "of each one, and one: {counted}");
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn what_fails_a_write_fails_all_that_share_it() {
    let tested = Tested::start(ServerConfig::default());
    let bodies: Vec<String> = (0..30).map(|at| format!("f,at={at} v={at} 1")).collect();
    for (then, status, said) in [
        (Fault::Overloaded, 503, "no room"),
        (Fault::Panic, 500, "internal error: BUG: as ordered"),
        (Fault::None, 204, ""),
    ] {
        let (answers, _) = crowd(&tested, &bodies, then);
        for (got, text) in &answers {
            assert!(*got == status && text.contains(said), "{then:?}: {text}");
        }
    }
    assert!(tested.metric("nyala_http_panics_total 30"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn heavy_queries_wait_for_their_turn_however_many_they_are() {
    const QUERIES: usize = 400;
    let tested = Tested::start(ServerConfig::default());
    let held = hold_slots(&tested);
    tested.store.set(Fault::Large);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || tested.query("SELECT stddev(v) FROM m");
        let asks: Vec<_> = (0..QUERIES).map(|_| scope.spawn(ask)).collect();
        tested.wait_for(|t| t.metric(&format!("nyala_queries_active {}", QUERIES + 2)));
        drop(held);
        asks.into_iter().map(|ask| ask.join().unwrap()).collect()
    });
    for (status, text) in answers {
        assert!(status == 200 && text.contains("\"values\":[["), "{text}");
    }
    assert!(tested.metric("nyala_queries_refused_total 0"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn packed_bodies_wait_for_memory_however_well_they_are_packed() {
    // Two at a time have room, of what comes of 400 bytes.
    let config = ServerConfig { body_memory_bytes: 2 << 20, ..ServerConfig::default() };
    let tested = Tested::start(config);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all("packed,host=a value=1 1\n".repeat(5000).as_bytes()).unwrap();
    let body = encoder.finish().unwrap();
    let head = format!(
        "POST /write?db=d HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n",
        body.len()
    );
    std::thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let (status, text) = exchange(connect(tested.address), &head, &body);
                assert_eq!(status, 204, "{text}");
            });
        }
    });
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

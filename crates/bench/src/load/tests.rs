use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::GzDecoder;

use super::*;
use crate::fake_server;
use crate::workload::generate_all;

fn options(url: String, workers: usize, pregenerate: bool) -> LoadOptions {
    LoadOptions {
        url,
        target: "/write?db=x".to_owned(),
        format: Format::Lines,
        workers,
        batch_rows: 100,
        rows_per_second: None,
        duration_max: None,
        pregenerate,
        pid: Some(std::process::id()),
        progress: false,
    }
}

#[test]
fn every_row_arrives_once_although_some_requests_are_refused() {
    let spec = Spec::cpu_only(7, 1);
    let (all, total) = generate_all(&spec).unwrap();
    for pregenerate in [false, true] {
        let (requests, rows) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (seen, stored) = (Arc::clone(&requests), Arc::clone(&rows));
        let url = fake_server::start(move |request| {
            assert_eq!(request.target, "/write?db=x");
            if seen.fetch_add(1, Ordering::Relaxed) % 10 == 3 {
                return (503, "{\"error\":\"busy\"}".to_owned());
            }
            let lines = request.body.iter().filter(|&&byte| byte == b'\n').count();
            stored.fetch_add(lines as u64, Ordering::Relaxed);
            (204, String::new())
        });
        let report = load(&spec, &options(url, 3, pregenerate)).unwrap();
        assert_eq!(rows.load(Ordering::Relaxed), total.rows);
        assert_eq!((report.sent, report.bytes), (total, all.len() as u64));
        assert!(report.refused > 0);
        assert_eq!(report.latencies.count(), requests.load(Ordering::Relaxed));
        assert!(report.cpu_us_per_value().is_some());
        assert!(report.to_string().contains("refused"));
    }
}

#[test]
fn packed_bodies_hold_the_same_rows() {
    let spec = Spec::cpu_only(7, 1);
    let (all, total) = generate_all(&spec).unwrap();
    for pregenerate in [false, true] {
        let unpacked = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&unpacked);
        let url = fake_server::start(move |request| {
            let mut lines = Vec::new();
            GzDecoder::new(&request.body[..]).read_to_end(&mut lines).unwrap();
            seen.fetch_add(lines.len() as u64, Ordering::Relaxed);
            (204, String::new())
        });
        let options = LoadOptions { format: Format::GzipLines, ..options(url, 2, pregenerate) };
        let report = load(&spec, &options).unwrap();
        assert_eq!(report.sent, total);
        assert_eq!(unpacked.load(Ordering::Relaxed), all.len() as u64);
        assert!(report.bytes < all.len() as u64 / 2);
    }
}

#[test]
fn an_error_ends_the_run() {
    let url = fake_server::start(|_| (400, "{\"error\":\"no\"}".to_owned()));
    let error = load(&Spec::cpu_only(10, 1), &options(url, 2, false)).unwrap_err();
    assert!(error.to_string().contains("400"), "{error}");
    assert!(load(&Spec::cpu_only(10, 1), &options("http://x:1".to_owned(), 0, false)).is_err());
}

//! A server over a store that fails, panics or never ends.
#![allow(clippy::unwrap_used, reason = "what fails in a test is to be seen")]

mod crowd;

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use catalog::Catalog;
use model::{ColumnBatch, DatabaseId, Interrupt, MeasurementSchema, PolicyId, TimeRange};
use server::{Patience, Server, ServerConfig, Stopped};
use store::reference::ReferenceStore;
use store::{
    CatalogDocument, DeleteRequest, ExtentPart, MetadataCursor, MetadataRequest, Metric, Revision,
    Scan, ScanCursor, ScanItem, ScanRequest, ScanSlice, ScanStats, SeriesTable, Store, StoreError,
    SwapOutcome, WriteOutcome, WriteRequest,
};
use tokio::sync::oneshot;

/// What the next calls do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    Panic,
    Overloaded,
    ReadOnly,
    Invalid,
    /// Writes wait until it is another.
    Held,
    /// Scans look large.
    Large,
    /// And hand out the same rows for ever.
    Endless,
}

/// The reference model with faults.
struct FaultyStore {
    inner: ReferenceStore,
    fault: Mutex<Fault>,
    /// Calls of `write` that have begun.
    writes: AtomicU64,
    expired: AtomicU64,
    /// Endless cursors that are alive.
    endless: Arc<AtomicU64>,
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl FaultyStore {
    fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    fn check(&self) -> Result<Fault, StoreError> {
        let fault = *self.fault.lock().unwrap();
        match fault {
            Fault::None | Fault::Held | Fault::Large | Fault::Endless => Ok(fault),
            Fault::Panic => panic!("BUG: as ordered"),
            Fault::Overloaded => Err(StoreError::Overloaded {
                reason: "no room".to_owned(),
                retry_after: Duration::from_secs(7),
            }),
            Fault::ReadOnly => Err(StoreError::ReadOnly("disk on fire".to_owned())),
            Fault::Invalid => Err(StoreError::Invalid("wrong".to_owned())),
        }
    }
}

impl Store for FaultyStore {
    fn write(&self, request: &WriteRequest<'_>) -> Result<WriteOutcome, StoreError> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        while self.check()? == Fault::Held {
            sleep(Duration::from_millis(1));
        }
        self.inner.write(request)
    }

    fn scan(&self, request: &ScanRequest) -> Result<Box<dyn Scan>, StoreError> {
        let fault = self.check()?;
        let inner = self.inner.scan(request)?;
        let alive = (fault == Fault::Endless).then(|| Arc::clone(&self.endless));
        match fault {
            Fault::Large | Fault::Endless => Ok(Box::new(LargeScan { inner, alive })),
            _ => Ok(inner),
        }
    }

    fn metadata(&self, request: &MetadataRequest) -> Result<Box<dyn MetadataCursor>, StoreError> {
        self.inner.metadata(request)
    }

    fn schema(
        &self,
        database: DatabaseId,
        measurement: &str,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<MeasurementSchema>>, StoreError> {
        self.inner.schema(database, measurement, interrupt)
    }

    fn revision(&self, policy: PolicyId, time: TimeRange) -> Result<Option<Revision>, StoreError> {
        self.inner.revision(policy, time)
    }

    fn delete(&self, request: &DeleteRequest) -> Result<(), StoreError> {
        self.inner.delete(request)
    }

    fn expire(&self, _: DatabaseId, _: PolicyId, _: i64) -> Result<u64, StoreError> {
        self.expired.fetch_add(1, Ordering::Relaxed);
        Ok(1)
    }

    fn catalog(&self) -> Result<CatalogDocument, StoreError> {
        self.inner.catalog()
    }

    fn swap_catalog(&self, expected: u64, bytes: &[u8]) -> Result<SwapOutcome, StoreError> {
        self.inner.swap_catalog(expected, bytes)
    }

    fn metrics(&self) -> Vec<Metric> {
        self.inner.metrics()
    }

    fn close(&self) -> Result<(), StoreError> {
        self.inner.close()
    }
}

struct LargeScan {
    inner: Box<dyn Scan>,
    /// Counts its cursors, which do not end; without it they do.
    alive: Option<Arc<AtomicU64>>,
}

impl Scan for LargeScan {
    fn series(&self) -> &SeriesTable {
        self.inner.series()
    }

    fn extent(&self) -> Vec<ExtentPart> {
        vec![ExtentPart { time: TimeRange { min: 0, max: 1000 }, rows: 1 << 40 }]
    }

    fn open(&self, slice: &ScanSlice) -> Result<Box<dyn ScanCursor>, StoreError> {
        let mut cursor = self.inner.open(slice)?;
        let Some(alive) = &self.alive else { return Ok(cursor) };
        alive.fetch_add(1, Ordering::Relaxed);
        let Some(ScanItem::Rows(rows)) = cursor.next()? else { panic!("the model has rows") };
        Ok(Box::new(EndlessCursor { rows, alive: Arc::clone(alive) }))
    }

    fn stats(&self) -> ScanStats {
        self.inner.stats()
    }
}

struct EndlessCursor {
    rows: ColumnBatch,
    alive: Arc<AtomicU64>,
}

impl ScanCursor for EndlessCursor {
    fn next(&mut self) -> Result<Option<ScanItem>, StoreError> {
        sleep(Duration::from_micros(100));
        Ok(Some(ScanItem::Rows(self.rows.clone())))
    }
}

impl Drop for EndlessCursor {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A server in a thread of its own.
struct Tested {
    store: Arc<FaultyStore>,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Stopped>>,
}

impl Tested {
    fn start(mut config: ServerConfig) -> Self {
        let store = Arc::new(FaultyStore {
            inner: ReferenceStore::default(),
            fault: Mutex::new(Fault::None),
            writes: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            endless: Arc::default(),
        });
        let dynamic: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let catalog = Arc::new(Catalog::open(Arc::clone(&dynamic)).unwrap());
        config.http_bind = "127.0.0.1:0".to_owned();
        config.threads = 2;
        let server = Server::bind(config, dynamic, catalog, Arc::new(|| 1_000_000)).unwrap();
        let address = server.local_addr();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            let runtime = builder.worker_threads(4).enable_all().build().unwrap();
            let served = runtime.block_on(server.serve(async {
                drop(stopped.await);
            }));
            runtime.shutdown_timeout(Duration::from_secs(5));
            served.unwrap()
        });
        let tested = Self { store, address, stop: Some(stop), thread: Some(thread) };
        assert_eq!(tested.query("CREATE DATABASE d").0, 200);
        assert_eq!(tested.write("m,host=a v=1 1\nm,host=b v=2 2\n").0, 204);
        tested
    }

    fn stop(mut self) -> Stopped {
        self.stop.take().unwrap().send(()).unwrap();
        self.thread.take().unwrap().join().unwrap()
    }

    fn write(&self, lines: &str) -> (u16, String) {
        let len = lines.len();
        exchange(
            connect(self.address),
            &format!("POST /write?db=d HTTP/1.1\r\nContent-Length: {len}\r\n"),
            lines,
        )
    }

    fn query(&self, statement: &str) -> (u16, String) {
        exchange(connect(self.address), &query_head(statement), "")
    }

    fn metric(&self, line: &str) -> bool {
        let (_, text) = exchange(connect(self.address), "GET /metrics HTTP/1.1\r\n", "");
        text.lines().any(|l| l == line)
    }

    fn wait_for(&self, what: impl Fn(&Self) -> bool) {
        let came = (0..3000).any(|_| {
            sleep(Duration::from_millis(5));
            what(self)
        });
        assert!(came);
    }
}

impl Drop for Tested {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // The server may have stopped by itself, by a panic that is reported already.
            let _ = stop.send(());
        }
    }
}

fn query_head(statement: &str) -> String {
    let encoded = statement.replace('%', "%25").replace(' ', "+").replace('\'', "%27");
    format!("GET /query?db=d&q={encoded} HTTP/1.1\r\n")
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Status, and head and body as one text.
fn exchange(mut stream: TcpStream, head: &str, body: impl AsRef<[u8]>) -> (u16, String) {
    let head = format!("{head}Host: x\r\nConnection: close\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body.as_ref()].concat()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[test]
fn failures_of_the_store_have_their_status() {
    let tested = Tested::start(ServerConfig::default());
    for (fault, status, text) in [
        (Fault::Overloaded, 503, "overloaded: no room; try again in 7 s"),
        (Fault::ReadOnly, 500, "disk on fire"),
        (Fault::Invalid, 400, "{\"error\":\"wrong\"}"),
    ] {
        tested.store.set(fault);
        let answer = tested.write("m v=1 1");
        assert_eq!(answer.0, status, "{}", answer.1);
        assert!(answer.1.contains(text), "{}", answer.1);
        let retry = answer.1.to_lowercase().contains("retry-after: 7");
        assert_eq!(retry, fault == Fault::Overloaded, "{}", answer.1);
        let answer = tested.query("SELECT v FROM m");
        assert_eq!(answer.0, 200, "a statement's failure is in its result");
        assert!(answer.1.contains("\"statement_id\":0,\"error\":"), "{}", answer.1);
    }
    tested.store.set(Fault::None);
    assert_eq!(tested.write("m v=1 1").0, 204);
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn a_panic_ends_one_request() {
    let tested = Tested::start(ServerConfig::default());
    tested.store.set(Fault::Panic);
    for answer in [tested.write("m v=1 1"), tested.query("SELECT v FROM m")] {
        assert_eq!(answer.0, 500);
        assert!(answer.1.contains("internal error: BUG: as ordered"), "{}", answer.1);
    }
    tested.store.set(Fault::None);
    assert_eq!(tested.write("m v=1 1").0, 204);
    assert!(tested.query("SELECT v FROM m").1.contains("\"values\""));
    assert!(tested.metric("nyala_http_panics_total 2"));
    assert!(tested.metric("nyala_queries_active 0"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn whoever_leaves_before_the_first_byte_ends_the_query() {
    let tested = Tested::start(ServerConfig::default());
    tested.store.set(Fault::Endless);
    let mut held: Vec<TcpStream> = (0..6)
        .map(|_| {
            let mut stream = connect(tested.address);
            let head = query_head("SELECT stddev(v) FROM m");
            stream.write_all(format!("{head}Host: x\r\n\r\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    tested.wait_for(|t| t.metric("nyala_queries_active 6"));
    // Two run and four wait for their turn: light queries have theirs all the same.
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) >= 2);
    tested.store.set(Fault::None);
    assert!(tested.query("SELECT v FROM m").1.contains("\"values\""));
    while let Some(stream) = held.pop() {
        drop(stream);
        let left = held.len();
        tested.wait_for(|t| t.metric(&format!("nyala_queries_active {left}")));
    }
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) == 0);
    assert!(tested.metric("nyala_http_requests_total{route=\"/query\",status=\"499\"} 6"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn deadlines_and_the_limit_of_queries() {
    let config = ServerConfig {
        query_timeout: Duration::from_secs(6),
        max_concurrent_queries: 1,
        ..ServerConfig::default()
    };
    let tested = Tested::start(config);
    tested.store.set(Fault::Endless);
    let mut first = connect(tested.address);
    let head = query_head("SELECT stddev(v) FROM m");
    first.write_all(format!("{head}Host: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    tested.wait_for(|t| t.metric("nyala_queries_active 1"));
    let (status, text) = tested.query("SELECT v FROM m");
    assert_eq!(status, 200);
    let error = "{\"results\":[{\"statement_id\":0,\"error\":\"max-concurrent-queries limit exceeded(1, 1)\"}]}";
    assert!(text.contains(error), "{text}");
    let mut answer = String::new();
    first.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"error\":\"query-timeout limit exceeded\""), "{answer}");
    tested.wait_for(|t| t.metric("nyala_queries_active 0"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

/// As many endless queries as may compute, until the connections are dropped.
fn hold_slots(tested: &Tested) -> [TcpStream; 2] {
    tested.store.set(Fault::Endless);
    let streams = [(); 2].map(|()| {
        let mut stream = connect(tested.address);
        let head = query_head("SELECT stddev(v) FROM m");
        stream.write_all(format!("{head}Host: x\r\n\r\n").as_bytes()).unwrap();
        stream
    });
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) >= 2);
    streams
}

#[test]
fn too_many_heavy_queries_are_refused() {
    let config =
        ServerConfig { admission_wait: Duration::from_millis(50), ..ServerConfig::default() };
    let tested = Tested::start(config);
    let held = hold_slots(&tested);
    let (status, text) = tested.query("SELECT stddev(v) FROM m");
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("all processors are busy with other queries"), "{text}");
    assert!(text.to_lowercase().contains("retry-after: 1"), "{text}");
    drop(held);
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn queries_that_do_not_end_are_cut_off_when_the_server_stops() {
    let config =
        ServerConfig { shutdown_grace: Duration::from_millis(100), ..ServerConfig::default() };
    let tested = Tested::start(config);
    tested.store.set(Fault::Endless);
    let address = tested.address;
    let told = Arc::new(AtomicBool::new(false));
    let client = {
        let told = Arc::clone(&told);
        std::thread::spawn(move || {
            let (_, text) = exchange(connect(address), &query_head("SELECT stddev(v) FROM m"), "");
            told.store(text.contains("query interrupted"), Ordering::Relaxed);
        })
    };
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) >= 1);
    assert_eq!(tested.stop(), Stopped::InHaste);
    client.join().unwrap();
    assert!(told.load(Ordering::Relaxed), "its client is told");
}

/// Has two connections ask until they have threads of their own.
fn with_threads(tested: &Tested) -> [TcpStream; 2] {
    let streams = [(); 2].map(|()| connect(tested.address));
    tested.wait_for(|tested| {
        for _ in 0..20 {
            streams
                .iter()
                .for_each(|stream| assert_eq!(ask_again(stream, "SELECT v FROM m").0, 200));
        }
        tested.metric("nyala_http_connections_alone 2")
    });
    streams
}

/// Status, and head and body as one text; the connection stays open.
fn ask_again(mut stream: &TcpStream, statement: &str) -> (u16, String) {
    stream.write_all(format!("{}Host: x\r\n\r\n", query_head(statement)).as_bytes()).unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.ends_with("}\n") {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

#[test]
fn a_panic_on_a_thread_of_its_own_ends_one_request() {
    let tested = Tested::start(ServerConfig::default());
    let streams = with_threads(&tested);
    tested.store.set(Fault::Panic);
    for stream in &streams {
        let (status, text) = ask_again(stream, "SELECT v FROM m LIMIT 5");
        assert!(status == 500 && text.contains("internal error: BUG: as ordered"), "{text}");
    }
    tested.store.set(Fault::None);
    for stream in &streams {
        assert_eq!(ask_again(stream, "SELECT v FROM m LIMIT 5").0, 200);
    }
    tested.wait_for(|tested| tested.metric("nyala_http_connections_alone 0"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn threads_of_connections_end_with_the_server() {
    let config =
        ServerConfig { shutdown_grace: Duration::from_millis(100), ..ServerConfig::default() };
    let tested = Tested::start(config);
    let streams = with_threads(&tested);
    tested.store.set(Fault::Endless);
    for mut stream in &streams {
        let head = query_head("SELECT v FROM m WHERE host = 'a'");
        stream.write_all(format!("{head}Host: x\r\n\r\n").as_bytes()).unwrap();
    }
    // Nobody takes the answers, which have no end; the threads' connections do not hold up the server's.
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) >= 2);
    assert_eq!(tested.stop(), Stopped::InHaste);
}

/// The frames of an HTTP/2 client that asks for `path` once and says nothing more: no room is ever given
/// back, so that an answer stops where the first window of 64 KiB is full (RFC 9113, RFC 7541).
fn http2_request(path: &str) -> Vec<u8> {
    let text = |name: u8, value: &str| {
        let mut field = vec![name, u8::try_from(value.len()).unwrap()];
        assert!(value.len() < 127);
        field.extend_from_slice(value.as_bytes());
        field
    };
    // GET and http out of the static table; :path and :authority with values of their own.
    let head = [vec![0x82, 0x86], text(4, path), text(1, "x")].concat();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let mut frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        bytes.extend_from_slice(&[
            0,
            0,
            u8::try_from(payload.len()).unwrap(),
            kind,
            flags,
            0,
            0,
            0,
        ]);
        bytes.push(stream);
        bytes.extend_from_slice(payload);
    };
    frame(4, 0, 0, &[]);
    frame(1, 0x5, 1, &head);
    bytes
}

#[test]
fn an_http2_client_that_takes_no_more_is_let_go() {
    let patience = Patience { write: Duration::from_millis(400), ..Patience::default() };
    let tested = Tested::start(ServerConfig { patience, ..ServerConfig::default() });
    tested.store.set(Fault::Endless);
    let mut stream = connect(tested.address);
    let path = "/query?db=d&chunked=true&q=SELECT+v+FROM+m+WHERE+host%3D%27a%27";
    stream.write_all(&http2_request(path)).unwrap();
    tested.wait_for(|t| t.metric("nyala_queries_active 1"));
    let mut answer = Vec::new();
    // The end of the connection, however it comes.
    let _ = stream.read_to_end(&mut answer);
    let (window, frames) = (65_535, 16 << 10);
    assert!((window..window + frames).contains(&answer.len()), "{} bytes", answer.len());
    tested.wait_for(|t| t.metric("nyala_queries_active 0"));
    tested.wait_for(|t| t.store.endless.load(Ordering::Relaxed) == 0);
    tested.store.set(Fault::None);
    assert!(tested.query("SELECT v FROM m").1.contains("\"values\""));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

#[test]
fn retention_is_enforced_again_and_again() {
    let config = ServerConfig {
        retention_check_interval: Duration::from_millis(20),
        ..ServerConfig::default()
    };
    let tested = Tested::start(config);
    let create = "CREATE RETENTION POLICY short ON d DURATION 1h REPLICATION 1";
    assert_eq!(tested.query(create).0, 200);
    tested.wait_for(|t| t.store.expired.load(Ordering::Relaxed) >= 3);
    tested.wait_for(|t| !t.metric("nyala_retention_partitions_dropped_total 0"));
    assert_eq!(tested.stop(), Stopped::Gracefully);
}

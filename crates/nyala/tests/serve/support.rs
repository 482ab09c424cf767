//! A server process, and an HTTP client so small that it can also send what no client would.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test, with an environment of its own.
pub(crate) fn nyala() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nyala"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("NYALA_") {
            command.env_remove(name);
        }
    }
    command
}

/// A running server. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    pub(crate) address: SocketAddr,
    log: Option<PathBuf>,
}

impl Server {
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[])
    }

    pub(crate) fn start_with(dir: &Path, flags: &[&str]) -> Self {
        Self::spawn(dir, &[&["--log-level", "warn"], flags].concat(), Stdio::inherit())
    }

    /// The same with a log that [`Server::stop_and_read_log`] reads.
    pub(crate) fn start_logging(dir: &Path, flags: &[&str]) -> Self {
        let log = std::fs::File::create(dir.join("test.log")).unwrap();
        let mut server = Self::spawn(dir, flags, log.into());
        server.log = Some(dir.join("test.log"));
        server
    }

    /// Stops in good order, and gives what was logged.
    pub(crate) fn stop_and_read_log(mut self) -> String {
        let path = self.log.take().expect("a server with a log");
        self.stop();
        std::fs::read_to_string(path).unwrap()
    }

    /// A server that trusts the certificates of a file, and no others.
    pub(crate) fn start_trusting(dir: &Path, certificates: &Path) -> Self {
        let mut command = nyala();
        command.env("SSL_CERT_FILE", certificates);
        Self::spawn_command(command, dir, &["--log-level", "warn"], Stdio::inherit())
    }

    fn spawn(dir: &Path, flags: &[&str], log: Stdio) -> Self {
        Self::spawn_command(nyala(), dir, flags, log)
    }

    fn spawn_command(mut command: Command, dir: &Path, flags: &[&str], log: Stdio) -> Self {
        let mut process = command
            .arg("serve")
            .args(["--http-bind", "127.0.0.1:0", "--data-dir"])
            .arg(dir)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut screen = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        let address = loop {
            line.clear();
            assert!(screen.read_line(&mut line).unwrap() > 0, "the server did not start");
            if let Some((_, address)) =
                line.split_once("listening").and_then(|(_, l)| l.split_once("://"))
            {
                break address.split_whitespace().next().unwrap().parse().unwrap();
            }
        };
        Self { process, address, log: None }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn wait(mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the server does not stop");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As `kill -9`.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops in good order.
    pub(crate) fn stop(self) {
        self.signal(rustix::process::Signal::TERM);
        assert_eq!(self.wait().code(), Some(0));
    }

    /// Most memory that was ever resident, bytes.
    pub(crate) fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    pub(crate) fn request(&self, head: &str, body: &[u8]) -> Answer {
        request(self.address, head, body)
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.request(&format!("GET {target} HTTP/1.1\r\n"), b"")
    }

    pub(crate) fn post(&self, target: &str, body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let head = format!("POST {target} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        self.request(&head, body)
    }

    /// Writes lines to database `db`.
    pub(crate) fn write(&self, db: &str, lines: impl AsRef<[u8]>) -> Answer {
        self.post(&format!("/write?db={db}"), lines)
    }

    /// Executes statements in database `db`, with POST and a form.
    pub(crate) fn query(&self, db: &str, statements: &str) -> Answer {
        self.query_with(db, statements, "", "")
    }

    /// The same with more parameters and headers.
    pub(crate) fn query_with(
        &self,
        db: &str,
        statements: &str,
        params: &str,
        headers: &str,
    ) -> Answer {
        let body = format!("db={db}&q={}{params}", encode(statements));
        let head = format!(
            "POST /query HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\n{headers}",
            body.len()
        );
        self.request(&head, body.as_bytes())
    }

    pub(crate) fn create_database(&self, db: &str) {
        let answer = self.query("", &format!("CREATE DATABASE {db}"));
        assert_eq!(answer.text(), "{\"results\":[{\"statement_id\":0}]}\n");
    }

    /// The server is alive and well.
    pub(crate) fn check_alive(&self) {
        assert_eq!(self.get("/ping").status, 204);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until `holds`; if it never does, fails and shows what `now` says.
pub(crate) fn eventually(holds: impl Fn() -> bool, now: impl Fn() -> String) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{}", now());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An address that nobody listens on.
pub(crate) fn free_udp_address() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

pub(crate) fn temp_dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Percent-encodes everything that may need it.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|b| match b {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect()
}

/// What a server answers.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// What has arrived of an answer, once its head is whole; the body as it was sent.
    pub(crate) fn begun(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some(Self { status, head, body: bytes[end + 4..].to_vec() })
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request, whose head lacks only its end, on a connection of its own.
pub(crate) fn request(address: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let mut stream = connect(address);
    stream.write_all(format!("{head}Host: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    // A server that refuses a body may close before it has all of it.
    let _ = stream.write_all(body);
    read_answer(&mut stream)
}

/// Reads an answer that ends with its connection.
pub(crate) fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert!(!bytes.is_empty(), "no answer: {error}"),
    }
    let mut answer = Answer::begun(&bytes).expect("a whole head");
    if answer.header("transfer-encoding") == Some("chunked") {
        answer.body = without_chunks(&answer.body);
    }
    answer
}

fn without_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

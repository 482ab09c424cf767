//! Subscriptions: copies of writes, received by real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{Server, eventually, temp_dir};

/// Takes writes over HTTP, as many as come, and hands out their first line and body.
fn receiver() -> (SocketAddr, mpsc::Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let sender = sender.clone();
            std::thread::spawn(move || {
                loop {
                    let (mut first, mut len) = (String::new(), 0);
                    if reader.read_line(&mut first).unwrap_or(0) == 0 {
                        return;
                    }
                    loop {
                        let mut line = String::new();
                        reader.read_line(&mut line).unwrap();
                        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                            len = value.trim().parse().unwrap();
                        }
                        if line == "\r\n" {
                            break;
                        }
                    }
                    let mut body = vec![0; len];
                    reader.read_exact(&mut body).unwrap();
                    let body = String::from_utf8(body).unwrap();
                    if sender.send((first, body)).is_err() {
                        return;
                    }
                    reader.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
                }
            });
        }
    });
    (address, received)
}

const PATIENCE: Duration = Duration::from_secs(60);

fn subscribe(server: &Server, statement: &str) {
    let answer = server.query("", statement);
    assert_eq!(answer.text(), "{\"results\":[{\"statement_id\":0}]}\n", "{statement}");
}

#[test]
fn every_destination_of_all_gets_every_write() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let (http, received) = receiver();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_read_timeout(Some(PATIENCE)).unwrap();
    let udp_address = udp.local_addr().unwrap();
    subscribe(
        &server,
        &format!(
            "CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ALL 'http://{http}', 'udp://{udp_address}'"
        ),
    );
    let shown = server.query("", "SHOW SUBSCRIPTIONS").text().to_owned();
    let want = format!(r#"["autogen","s","ALL",["http://{http}","udp://{udp_address}"]]"#);
    assert!(shown.contains(&want), "{shown}");
    // Only what is stored is forwarded.
    server
        .post("/write?db=d&precision=s", "m,h=a v=1i,s=\"x y\" 1\nbad\nm,h=a v=2 2\nm,h=b v=3i 3");
    let want = "m,h=a v=1i,s=\"x y\" 1000000000\nm,h=b v=3i 3000000000\n";
    let (first, body) = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(body, want);
    assert_eq!(first.trim(), "POST /write?consistency=one&db=d&precision=ns&rp=autogen HTTP/1.1");
    let mut datagram = [0; 2000];
    let len = udp.recv(&mut datagram).unwrap();
    assert_eq!(std::str::from_utf8(&datagram[..len]).unwrap(), want);
    // Over the same connection, and also what statements write.
    subscribe_result(&server);
    let (_, body) = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(body, "copy v=1i 1000000000\ncopy v=3i 3000000000\n");
    // A destination that is gone is no longer sent to.
    subscribe(&server, "DROP SUBSCRIPTION s ON d.autogen");
    server.write("d", "m v=9i 9");
    let missing = server.query("", "DROP SUBSCRIPTION s ON d.autogen");
    assert!(missing.text().contains("subscription not found"));
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("nyala_subscription_writes_total 2\n"), "{}", metrics.text());
    server.stop();
    assert!(received.try_recv().is_err());
}

fn subscribe_result(server: &Server) {
    let answer = server.query("d", "SELECT v INTO copy FROM m");
    assert!(answer.text().contains("\"written\""), "{}", answer.text());
}

#[test]
fn any_takes_turns_and_goes_on_without_those_that_are_down() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let ((one, at_one), (two, at_two)) = (receiver(), receiver());
    let down = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    subscribe(
        &server,
        &format!(
            "CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ANY 'http://{one}', 'http://{down}', \
             'http://{two}'"
        ),
    );
    for time in 1..=6 {
        assert_eq!(server.write("d", format!("m v={time}i {time}")).status, 204);
    }
    let mut lines: Vec<String> = Vec::new();
    for received in [at_one.recv_timeout(PATIENCE), at_two.recv_timeout(PATIENCE)] {
        lines.push(received.unwrap().1);
    }
    while lines.len() < 6 {
        let more = at_one.try_recv().or_else(|_| at_two.recv_timeout(Duration::from_millis(100)));
        lines.extend(more.map(|(_, body)| body));
    }
    lines.sort();
    let want: Vec<String> = (1..=6).map(|time| format!("m v={time}i {time}\n")).collect();
    assert_eq!(lines, want);
    let failures = || server.query("", "SHOW STATS FOR 'subscriber'").text().to_owned();
    eventually(|| failures().contains("[[6,2]]"), failures);
    // Subscriptions are kept, and go with their policy.
    server.kill();
    let server = Server::start(dir.path());
    assert!(server.query("", "SHOW SUBSCRIPTIONS").text().contains("\"ANY\""));
    server.query("", "DROP RETENTION POLICY autogen ON d");
    let shown = server.query("", "SHOW SUBSCRIPTIONS");
    assert_eq!(shown.text(), "{\"results\":[{\"statement_id\":0}]}\n");
    server.stop();
}

#[test]
fn destinations_with_tls() {
    let dir = temp_dir();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = dir.path().join("cert.pem");
    let both = dir.path().join("tls.pem");
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&both, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let flags = ["--https-certificate", both.to_str().unwrap()];
    let target = Server::start_with(&dir.path().join("target"), &flags);
    let port = target.address.port();
    let server = Server::start_trusting(&dir.path().join("server"), &certificate);
    server.create_database("d");
    // The target has no database yet; its refusal shows that it was reached.
    subscribe(
        &server,
        &format!("CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ALL 'https://localhost:{port}'"),
    );
    let ask = |q: &str| {
        let url = format!("https://localhost:{port}/query?db=d&q={}", crate::support::encode(q));
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-m", "60", "-X", "POST", "--cacert"]).arg(&certificate).arg(&url);
        String::from_utf8(curl.output().unwrap().stdout).unwrap()
    };
    let figures = || server.query("", "SHOW STATS FOR 'subscriber'").text().to_owned();
    server.write("d", "m v=1i 1");
    eventually(|| figures().contains("[[0,1]]"), figures);
    assert!(ask("CREATE DATABASE d").contains("statement_id"), "{}", ask("SHOW DATABASES"));
    server.write("d", "m v=2i 2\nm v=3i 3");
    eventually(|| figures().contains("[[2,1]]"), figures);
    assert!(ask("SELECT sum(v) FROM m").contains(",5]"));
    // A server that does not trust the certificate sends nothing.
    let stranger = Server::start(&dir.path().join("stranger"));
    stranger.create_database("d");
    subscribe(
        &stranger,
        &format!("CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ALL 'https://localhost:{port}'"),
    );
    stranger.write("d", "m v=100i 9");
    let figures = || stranger.query("", "SHOW STATS FOR 'subscriber'").text().to_owned();
    eventually(|| figures().contains("[[0,1]]"), figures);
    assert!(ask("SELECT sum(v) FROM m").contains(",5]"));
    stranger.stop();
    server.stop();
}

#[test]
fn what_cannot_be_sent_to_is_refused() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let said = |url: &str| {
        let statement = format!("CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ALL '{url}'");
        server.query("", &statement).text().to_owned()
    };
    assert!(said("bad").contains("invalid subscription URL: bad"));
    server.stop();
}

#[test]
fn one_that_hangs_holds_up_nobody() {
    let dir = temp_dir();
    // A MiB for all copies that wait.
    let server = Server::start_with(dir.path(), &["--memory-limit", "64MB"]);
    server.create_database("d");
    let hung = TcpListener::bind("127.0.0.1:0").unwrap();
    let (good, received) = receiver();
    let hung_address = hung.local_addr().unwrap();
    subscribe(
        &server,
        &format!(
            "CREATE SUBSCRIPTION s ON d.autogen DESTINATIONS ALL 'http://{hung_address}', \
             'http://{good}'"
        ),
    );
    let long = "x".repeat(60_000);
    for time in 0..160 {
        assert_eq!(server.write("d", format!("m s=\"{long}\" {time}")).status, 204);
        let (_, body) = received.recv_timeout(PATIENCE).unwrap();
        assert_eq!(body, format!("m s=\"{long}\" {time}\n"));
    }
    server.stop();
}

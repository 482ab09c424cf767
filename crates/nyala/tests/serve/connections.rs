//! TLS, HTTP/2, Unix sockets.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crate::support::{Server, connect, nyala, temp_dir};

/// What curl says, arguments first: status and protocol of the answer, a space, its body.
fn curl(args: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-s", "-m", "60", "-w", " %{http_code} %{http_version}"])
        .args(args)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Writes a certificate for `localhost` and its key to `cert.pem` and `key.pem`.
fn make_certificate(dir: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    // The key first: a server that looks in between keeps what it has.
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
}

#[test]
fn http2_with_prior_knowledge() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let write = format!("{}/write?db=d", server.url());
    let h2 = "--http2-prior-knowledge";
    let lines = (0..20_000).map(|n| format!("m,n={n} v={n} 1\n")).collect::<String>();
    let file = dir.path().join("lines");
    std::fs::write(&file, lines).unwrap();
    let data = format!("@{}", file.display());
    assert_eq!(curl(&[h2, "--data-binary", &data, &write]), " 204 2");
    let query = format!("{}/query?db=d&q=SELECT+count(v)+FROM+m", server.url());
    assert!(curl(&[h2, &query]).contains(",20000]"));
    // An answer of many pieces.
    let all = format!("{}/query?db=d&q=SELECT+*+FROM+m", server.url());
    let (http1, http2) = (curl(&[&all]), curl(&[h2, &all]));
    assert!(http1.len() > 400_000, "{} bytes", http1.len());
    assert_eq!(http1.strip_suffix("200 1.1"), http2.strip_suffix("200 2"));
    assert!(curl(&[h2, "-I", &format!("{}/ping", server.url())]).contains("x-influxdb-version"));
    server.stop();
}

#[test]
fn tls_with_a_certificate_that_changes() {
    let dir = temp_dir();
    make_certificate(dir.path());
    let (cert, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let data = dir.path().join("data");
    let flags = ["--https-certificate", cert, "--https-private-key", key];
    let server = Server::start_with(&data, &flags);
    let ping = format!("https://localhost:{}/ping", server.address.port());
    let local = format!("localhost:{}:127.0.0.1", server.address.port());
    let ask =
        |more: &[&str]| curl(&[&["--resolve", &local, "--cacert", cert, &ping][..], more].concat());
    assert_eq!(ask(&[]), " 204 2", "the better protocol is agreed on");
    assert_eq!(ask(&["--http1.1"]), " 204 1.1");
    // So many requests of two clients that each gets a thread of its own.
    let again = format!("{ping}?n=[1-3000]");
    std::thread::scope(|scope| {
        let many = || curl(&["--resolve", &local, "--cacert", cert, "--http1.1", &again]);
        for client in [(); 2].map(|()| scope.spawn(many)) {
            assert_eq!(client.join().unwrap(), " 204 1.1".repeat(3000));
        }
    });
    // Without TLS there is no answer.
    let mut plain = connect(server.address);
    plain.write_all(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP"));
    // Another certificate, which curl trusts alone from now on; then one that is none.
    make_certificate(dir.path());
    let changed = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        ask(&[]) == " 204 2"
    });
    assert!(changed);
    let good = std::fs::read(cert).unwrap();
    std::fs::write(cert, "garbage").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    std::fs::write(dir.path().join("good.pem"), good).unwrap();
    let trusted = dir.path().join("good.pem");
    let still = curl(&["--resolve", &local, "--cacert", trusted.to_str().unwrap(), &ping]);
    assert_eq!(still, " 204 2");
    // A handshake that does not go on does not hold up the end.
    let _idle = connect(server.address);
    server.stop();
}

#[test]
fn certificates_that_cannot_be_used() {
    let dir = temp_dir();
    make_certificate(dir.path());
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(file("empty.pem"), "").unwrap();
    let failure = |flags: &[&str]| {
        let data = file("data");
        let always = ["serve", "--http-bind", "127.0.0.1:0", "--data-dir", &data];
        let output = nyala().args(always).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let (cert, key, empty) = (file("cert.pem"), file("key.pem"), file("empty.pem"));
    for (flags, named) in [
        (vec!["--https-certificate", "/nosuch.pem"], "/nosuch.pem"),
        (vec!["--https-certificate", &empty], "empty.pem"),
        (vec!["--https-certificate", &cert], "cert.pem"),
        (vec!["--https-certificate", &cert, "--https-private-key", &cert], "cert.pem"),
        (vec!["--https-private-key", &key], "https-certificate"),
        (vec!["--bind-socket", "/nosuch/socket"], "/nosuch/socket"),
    ] {
        let text = failure(&flags);
        assert!(text.contains(named), "{flags:?}: {text}");
    }
}

#[test]
fn unix_socket() {
    let dir = temp_dir();
    let path = dir.path().join("socket");
    let data = dir.path().join("data");
    let flags = ["--bind-socket", path.to_str().unwrap()];
    let server = Server::start_with(&data, &flags);
    server.create_database("d");
    let ask = || {
        let mut stream = UnixStream::connect(&path).unwrap();
        let request =
            "GET /query?q=SHOW+DATABASES HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    assert!(ask().contains("[[\"d\"]]"));
    // A second server does not take it away; one that was killed leaves a file that is in nobody's way.
    let output = nyala()
        .args(["serve", "--http-bind", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path().join("other"))
        .args(flags)
        .output()
        .unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("socket"));
    assert!(ask().contains("[[\"d\"]]"));
    server.kill();
    assert!(path.exists());
    let server = Server::start_with(&data, &flags);
    assert!(ask().contains("[[\"d\"]]"));
    server.stop();
    assert!(!path.exists());
}

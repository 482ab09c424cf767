//! Line protocol over UDP.

use std::net::UdpSocket;

use crate::support::{Server, eventually, free_udp_address, temp_dir};

#[test]
fn datagrams_are_stored_or_dropped_whole() {
    let dir = temp_dir();
    let address = free_udp_address();
    let flags = ["--udp-bind", &address, "--udp-database", "u", "--udp-precision", "s"];
    let server = Server::start_with(dir.path(), &flags);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in ["m v=1 1\nm v=2 2\n", "m v=4 3\nbad\n", "m v=8 4"] {
        socket.send_to(datagram.as_bytes(), &address).unwrap();
    }
    let select = || server.query_with("u", "SELECT v FROM m", "&epoch=s", "").text().to_owned();
    eventually(|| select().contains("[4,8]"), select);
    assert!(select().contains("[[1,1],[2,2],[4,8]]"), "{}", select());
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("nyala_udp_datagrams_total 3\n"));
    assert!(metrics.text().contains("nyala_udp_datagrams_dropped_total 1\n"));
    server.stop();
}

#[test]
fn rows_have_the_time_at_which_they_came() {
    let dir = temp_dir();
    let address = free_udp_address();
    let server = Server::start_with(dir.path(), &["--udp-bind", &address, "--udp-database", "u"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    // All of them are stored together.
    for value in 0..50 {
        socket.send_to(format!("m v={value}i").as_bytes(), &address).unwrap();
    }
    let select = || server.query("u", "SELECT count(v), sum(v) FROM m").text().to_owned();
    eventually(|| select().contains(",50,1225]"), select);
    server.stop();
}

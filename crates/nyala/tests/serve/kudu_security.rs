//! Daemons over clusters that encrypt, that do not, and that do not let everybody in.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::net::{SocketAddr, TcpListener};

use kudu_test_cluster::{Cluster, Options, kudu_version};

use crate::support::{Server, nyala, request, temp_dir};

fn store(cluster: &Cluster, options: &str) -> String {
    format!("kudu://{}/?buckets=2&timeout-s=60&{options}", cluster.master_list())
}

/// A daemon with this store works: it keeps what is written and hands it out.
fn works(store: &str, password: Option<&str>) {
    let dir = temp_dir();
    let password = password.map_or(vec![], |password| vec!["--store-password", password]);
    let server = Server::start_with(dir.path(), &[&["--store", store][..], &password].concat());
    server.create_database("d");
    assert_eq!(server.write("d", "m v=42 1\n").status, 204);
    let answer = server.query("d", "SELECT v FROM m");
    assert!(answer.text().contains(",42]"), "{}", answer.text());
    server.stop();
}

/// A daemon with this store does not start; what it says.
fn refused(store: &str, password: Option<&str>) -> String {
    let dir = temp_dir();
    let mut command = nyala();
    command.args(["serve", "--http-bind", "127.0.0.1:0", "--store", store, "--data-dir"]);
    command.arg(dir.path());
    // As docs/kudu.md advises.
    command.envs(password.map(|password| ("NYALA_STORE_PASSWORD", password)));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The cluster's own certificate is fetched in the ways that docs/kudu.md names, and everything is encrypted.
#[test]
fn certificates_are_checked_before_the_password_is_sent() {
    let web = free_address();
    let options = Options::new(1)
        .flag("--rpc_encryption=required")
        .flag("--rpc_encrypt_loopback_connections=true")
        .master_flag("--webserver_enabled=true")
        .master_flag("--webserver_interface=127.0.0.1")
        .master_flag(&format!("--webserver_port={}", web.port()));
    let cluster = Cluster::start(&options).unwrap();
    let dir = temp_dir();
    let (own, other) = (dir.path().join("own.pem"), dir.path().join("other.pem"));
    let told = nyala()
        .args(["cluster", "authority", "--store", &store(&cluster, "user=tester")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{text}");
    // The page came with 1.17.
    if kudu_version() >= (1, 17) {
        let page = request(web, "GET /ipki-ca-cert-pem HTTP/1.1\r\n", b"");
        assert_eq!(page.text().trim_end(), String::from_utf8_lossy(&told.stdout).trim_end());
    }
    std::fs::write(&own, &told.stdout).unwrap();
    let foreign = rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap();
    std::fs::write(&other, foreign.cert.pem()).unwrap();
    let with = |ca: &std::path::Path| {
        store(&cluster, &format!("user=tester&ca-file={}", ca.to_str().unwrap()))
    };
    works(&with(&own), Some("secret"));
    works(&with(&own), None);
    let text = refused(&with(&other), Some("secret"));
    assert!(text.contains("TLS with") && text.contains("ertificate"), "{text}");
    let text = refused(&store(&cluster, "user=tester&encryption=disabled"), None);
    assert!(text.contains("refuses the client") && text.contains("--rpc_encryption"), "{text}");
}

#[test]
fn a_password_needs_encryption_or_a_word_that_it_does_not() {
    let options = Options::new(1).flag("--rpc_encryption=disabled");
    let cluster = Cluster::start(&options.flag("--rpc_authentication=disabled")).unwrap();
    let text = refused(&store(&cluster, "user=tester"), Some("secret"));
    assert!(text.contains("does not offer TLS") && text.contains("password"), "{text}");
    works(&store(&cluster, "user=tester&encryption=disabled"), Some("secret"));
    works(&store(&cluster, "user=tester"), None);
}

/// The rights that docs/kudu.md names are enough, and without them the start says so.
#[test]
fn only_users_of_the_cluster_get_in() {
    let options = Options::new(1).flag("--user_acl=tester");
    let options = options.tablet_server_flag("--tserver_enforce_access_control=true");
    let cluster = Cluster::start(&options).unwrap();
    works(&store(&cluster, "user=tester"), None);
    let text = refused(&store(&cluster, "user=stranger"), None);
    assert!(text.contains("refuses the client") && text.contains("--user_acl"), "{text}");
}

//! Encryption, certificates, tokens, and refusals, each on a small cluster of its own.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::time::Duration;

use common::proxy::Proxy;
use common::{client, config, count, metrics, put};
use kudu_client::{Cells, Client, ClientConfig, Encryption, Error, Operation, RowBatch};
use kudu_test_cluster::{Cluster, Options};

const ENCRYPTED: [&str; 2] =
    ["--rpc_encryption=required", "--rpc_encrypt_loopback_connections=true"];

async fn works(client: &Client, name: &str) {
    let table = client.create_table(&metrics(name).replicas(1)).await.unwrap();
    // Longer than a TLS record, in both directions.
    let rows: Vec<(i64, i64)> = (0..20_000).map(|i| (i % 7, i)).collect();
    assert_eq!(put(&table, Operation::Insert, &rows).await.unwrap().row_errors, []);
    assert_eq!(common::keys(table.scan()).await.unwrap().len(), rows.len());
}

fn encrypted(client: ClientConfig) -> ClientConfig {
    client.encryption(Encryption::Required)
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_with_tokens_and_pinned_certificates() {
    let options = ENCRYPTED.iter().fold(Options::new(1), |options, flag| options.flag(flag));
    let options = options.master_flag("--authn_token_validity_seconds=4");
    let cluster = Cluster::start(&options).unwrap();
    let client = Client::new(encrypted(config(&cluster)));
    works(&client, "first").await;
    // Without encryption nobody gets in.
    let plain = Client::new(config(&cluster).encryption(Encryption::Disabled));
    let refused = plain.connect().await;
    assert!(matches!(refused, Err(Error::NotAuthorized { .. })), "{refused:?}");
    // The cluster's own authority may be pinned, another one not.
    let authorities = client.authorities().await.unwrap();
    let pinned = encrypted(config(&cluster)).pin_authorities_der(authorities.clone());
    works(&Client::new(pinned), "pinned").await;
    let mistaken = encrypted(config(&cluster)).pin_certificates(&[[7; 32]]);
    let refused = Client::new(mistaken).connect().await;
    assert!(matches!(refused, Err(Error::Tls { .. })), "{refused:?}");
    let other = Cluster::start(&Options::new(0)).unwrap();
    let foreign = common::client(&other).authorities().await.unwrap();
    assert_ne!(foreign, authorities);
    let mistaken = encrypted(config(&cluster)).pin_authorities_der(foreign);
    let refused = Client::new(mistaken).connect().await;
    assert!(matches!(refused, Err(Error::Tls { .. })), "{refused:?}");
    // The token has expired meanwhile; a new connection to the tablet server finds out.
    tokio::time::sleep(Duration::from_secs(5)).await;
    cluster.tablet_server(0).restart(&[]).unwrap();
    let table = client.open_table("first").await.unwrap();
    assert_eq!(count(table.scan()).await.unwrap(), 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_with_tls_1_2_and_access_control() {
    let options = ENCRYPTED.iter().fold(Options::new(1), |options, flag| options.flag(flag));
    let options = options
        .flag("--rpc_tls_excluded_protocols=TLSv1.3")
        .tablet_server_flag("--tserver_enforce_access_control=true")
        .master_flag("--authz_token_validity_seconds=2");
    let cluster = Cluster::start(&options).unwrap();
    let client = client(&cluster);
    works(&client, "old").await;
    // The authorization has expired; a new one is fetched.
    let table = client.open_table("old").await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(count(table.scan()).await.unwrap(), 20_000);
    assert_eq!(put(&table, Operation::Upsert, &[(1, 1)]).await.unwrap().row_errors, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_without_tls_and_servers_that_refuse() {
    let options = Options::new(1).flag("--rpc_encryption=disabled");
    let cluster = Cluster::start(&options.flag("--rpc_authentication=disabled")).unwrap();
    works(&client(&cluster), "plain").await;
    let refused = Client::new(encrypted(config(&cluster))).connect().await;
    assert!(matches!(refused, Err(Error::EncryptionUnavailable { .. })), "{refused:?}");
    let with_password = config(&cluster).user("tester", "secret");
    let refused = Client::new(with_password.clone()).connect().await;
    assert!(matches!(refused, Err(Error::EncryptionUnavailable { .. })), "{refused:?}");
    works(&Client::new(with_password.encryption(Encryption::Disabled)), "clear").await;

    // The tool that waits for the cluster is let in over its own network only.
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    cluster.master(0).restart(&["--trusted_subnets=10.0.0.0/8"]).unwrap();
    let limited = config(&cluster).operation_timeout(Duration::from_secs(20));
    let refused = Client::new(limited).connect().await;
    assert!(matches!(refused, Err(Error::NotAuthorized { .. })), "{refused:?}");
}

/// Encryption that a client asks for itself, and handshakes without encryption on one machine.
#[tokio::test(flavor = "multi_thread")]
async fn default_servers_speak_all_ways() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    works(&Client::new(config(&cluster).encryption(Encryption::Disabled)), "disabled").await;
    works(&Client::new(config(&cluster).encryption(Encryption::Optional)), "optional").await;
    works(&Client::new(config(&cluster).encryption(Encryption::Required)), "required").await;
    let nameless = Client::new(config(&cluster).user("", "")).connect().await;
    assert!(matches!(nameless, Err(Error::NotAuthorized { .. })), "{nameless:?}");
}

/// Every server is reached under another address than the cluster tells, where somebody listens: what
/// he sees has the password and the rows in it only where encryption is disabled.
#[tokio::test(flavor = "multi_thread")]
async fn who_listens_between_learns_no_password() {
    let cluster = Cluster::start(&Options::new(1)).unwrap();
    let servers = [cluster.master(0).address(), cluster.tablet_server(0).address()];
    for encryption in [Encryption::Optional, Encryption::Disabled] {
        let mut config = config(&cluster).user("tester", "a-secret").encryption(encryption);
        let mut proxies = Vec::new();
        for server in &servers {
            let proxy = Proxy::start(server.clone()).await;
            config = config.override_address(server, proxy.address()).unwrap();
            proxies.push(proxy);
        }
        let client = Client::new(config);
        let table = client.create_table(&metrics(&format!("{encryption:?}")).replicas(1)).await;
        let table = table.unwrap();
        let batch = RowBatch::new(Operation::Insert, 1)
            .column(0, Cells::Int64(&[1]))
            .column(1, Cells::Int64(&[1]))
            .column(3, Cells::Slices(&[b"visible"]));
        assert_eq!(table.write(&batch).await.unwrap().row_errors, []);
        assert_eq!(count(table.scan()).await.unwrap(), 1);
        let saw = |proxy: &Proxy, text: &str| {
            proxy.sent().windows(text.len()).any(|bytes| bytes == text.as_bytes())
        };
        let is_clear = encryption == Encryption::Disabled;
        assert_eq!(saw(&proxies[0], "a-secret"), is_clear);
        assert_eq!(saw(&proxies[1], "visible"), is_clear);
        // It has gone over the relays, or nothing was proved.
        assert!(proxies.iter().all(|proxy| proxy.sent().len() > 200));
    }
    assert!(config(&cluster).override_address("a:b:c", "x").is_err());
    assert!(config(&cluster).override_address("a", "").is_err());
}

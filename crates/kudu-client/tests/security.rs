//! Encryption, certificates, tokens, and refusals, each on a small cluster of its own.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use std::time::Duration;

use common::{client, config, count, metrics, put};
use kudu_client::{Client, ClientConfig, Encryption, Error, Operation};
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

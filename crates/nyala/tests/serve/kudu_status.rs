//! `nyala cluster status`, on clusters that are well and on others.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use kudu_test_cluster::{Cluster, Options};

use crate::support::{Server, eventually, nyala, temp_dir};

/// What it prints, and whether it says that all is well.
fn status(cluster: &Cluster, options: &str) -> (String, bool) {
    let store = format!("kudu://{}/?user=tester{options}", cluster.master_list());
    let output = nyala().args(["cluster", "status", "--store", &store]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

/// Waits until it complains, and says all of this.
fn complains(cluster: &Cluster, options: &str, parts: &[&str]) {
    let now = || status(cluster, options);
    let holds = || {
        let (text, is_well) = now();
        !is_well && parts.iter().all(|part| text.contains(part))
    };
    eventually(holds, || format!("{parts:?}: {}", now().0));
}

fn is_well(cluster: &Cluster, options: &str) {
    eventually(|| status(cluster, options).1, || status(cluster, options).0);
}

/// Without servers nothing can be stored, however well the master is.
#[test]
fn a_cluster_without_tablet_servers_is_unwell() {
    let cluster = Cluster::start(&Options::new(0)).unwrap();
    complains(&cluster, "", &["leads", "NONE has reported", "TOO FEW SERVERS 0 alive, 1 copies"]);
}

/// Masters and tablet servers die one after another, and come back.
#[test]
fn what_is_dead_is_seen() {
    let cluster = Cluster::start(&Options::new(3).masters(3)).unwrap();
    // So many tablets that no server leads all of them: one that does goes on when the others are dead.
    let store = format!("kudu://{}/?buckets=5&user=tester", cluster.master_list());
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--store", &store]);
    server.create_database("d");
    assert_eq!(server.write("d", "m v=1 1\n").status, 204);
    server.stop();
    let (text, well) = status(&cluster, "");
    assert!(well, "{text}");
    for (part, count) in [("leads", 1), ("follows", 2), ("alive", 3), ("3 copies each", 4)] {
        assert_eq!(text.matches(part).count(), count, "{part}: {text}");
    }

    let leads = text.lines().find(|line| line.ends_with("leads")).unwrap();
    let leader = leads.split_whitespace().nth(1).unwrap();
    let dead = (cluster.master_at(leader).unwrap() + 1) % 3;
    cluster.master(dead).kill();
    let address = cluster.master(dead).address();
    complains(&cluster, "", &["leads", &format!("{address} DOES NOT ANSWER")]);
    cluster.master(dead).restart(&[]).unwrap();
    is_well(&cluster, "");
    // One that is not in the address is seen, too, and named.
    let alone = format!("kudu://{leader}/?user=tester");
    let output = nyala().args(["cluster", "status", "--store", &alone]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.matches("follows, not given").count(), 2, "{text}");

    cluster.tablet_server(0).kill();
    let few = "TOO FEW SERVERS 2 alive, 3 copies wanted";
    complains(&cluster, "", &["LOST", "LACK COPIES", few]);
    cluster.tablet_server(1).kill();
    complains(&cluster, "", &["WITHOUT A LEADER", "TOO FEW SERVERS 1 alive"]);
    for dead in 0..2 {
        cluster.tablet_server(dead).restart(&[]).unwrap();
    }
    is_well(&cluster, "");
    complains(&cluster, "&replicas=5", &["TOO FEW SERVERS 3 alive, 5 copies wanted"]);
}

//! Which crate may use which. Dependencies point down only: docs/ARCHITECTURE.md says why.

use std::collections::BTreeSet;

use anyhow::Result;
use cargo_metadata::{DependencyKind, MetadataCommand};

/// Each crate and the crates of this project it may use. A crate that is not listed may use none.
const ALLOWED: &[(&str, &[&str])] = &[
    // 5: the binary
    (
        "nyala",
        &["catalog", "model", "platform", "server", "store", "store-kudu", "store-local", "tools"],
    ),
    // 5: clients, beside it
    ("tools", &["influxql", "model"]),
    // 4: the network
    ("server", &["catalog", "influxql", "ingest", "model", "query", "render", "store"]),
    // 3: what is done with rows
    ("query", &["catalog", "codec", "influxql", "model", "store"]),
    ("store-local", &["codec", "model", "platform", "segment", "series", "store", "wal"]),
    ("store-kudu", &["kudu-client", "model", "store"]),
    ("catalog", &["model", "store"]),
    ("render", &["model"]),
    // 2: contracts and files
    ("store", &["model"]),
    ("segment", &["codec", "model", "platform"]),
    ("series", &["codec", "model", "platform"]),
    ("kudu-client", &[]),
    // 1: formats and languages
    ("codec", &[]),
    ("wal", &["platform"]),
    ("influxql", &[]),
    ("ingest", &["model"]),
    // 0: words, and the outside world
    ("model", &[]),
    ("platform", &[]),
    // T: nothing depends on these
    ("bench", &[]),
    ("differential", &["bench"]),
    ("kudu-test-cluster", &[]),
    ("sim", &["model", "platform", "store", "store-local"]),
    ("xtask", &[]),
];

/// Complaints about dependencies that are not allowed. Those of tests may point anywhere.
pub(crate) fn check() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().no_deps().exec()?;
    let ours: BTreeSet<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    let mut complaints = Vec::new();
    for package in &metadata.packages {
        let allowed = ALLOWED.iter().find(|(name, _)| *name == package.name.as_str());
        let allowed = allowed.map_or(&[][..], |(_, allowed)| *allowed);
        for dependency in &package.dependencies {
            let ok = dependency.kind == DependencyKind::Development
                || !ours.contains(&dependency.name)
                || allowed.contains(&dependency.name.as_str());
            if !ok {
                complaints.push(format!(
                    "crate {} may not depend on {}: see xtask/src/edges.rs",
                    package.name, dependency.name
                ));
            }
        }
    }
    Ok(complaints)
}

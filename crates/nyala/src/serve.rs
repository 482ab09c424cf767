//! `nyala serve`: puts the parts together, runs them, and takes them apart in good order.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use catalog::{Catalog, CatalogOptions};
use model::PolicyId;
use platform::{Clock, SystemClock, SystemDisk};
use server::{Server, ServerConfig, Stopped};
use store::Store;
use store_kudu::{KuduOptions, KuduStore};
use store_local::{Kept, LocalStore, StoreOptions, SyncPolicy};

use crate::banner::{self, Place};
use crate::logging;
use crate::machine;
use crate::settings::{LogFormat, MemoryPlan, Settings, Sync};
use crate::signals::Signals;

/// Threads that may wait for the disk or for slow clients. Writes and queries bound themselves far
/// below; threads are made when they are needed.
const BLOCKING_THREADS_MAX: usize = 1024;
/// Share of the store's memory that is used for what is remembered of a cluster's series.
const CACHE_SHARE: usize = 4;
/// How often the catalog of a cluster is looked at.
const CATALOG_INTERVAL: Duration = Duration::from_secs(1);
/// Work that was cut off has so long to notice.
const LEFT_BEHIND_MAX: Duration = Duration::from_secs(5);

/// Runs the server until it is told to stop.
///
/// # Errors
/// It cannot start, or cannot stop in good order.
pub(crate) fn serve(settings: &Settings) -> anyhow::Result<()> {
    logging::start(settings)?;
    let plan = settings.memory_plan();
    let Opened { store, local, place } = open_store(settings, &plan)?;
    let options = CatalogOptions { retention_autocreate: settings.retention_autocreate };
    let catalog = Catalog::open_with(Arc::clone(&store), options)
        .with_context(|| format!("cannot read the catalog in {}", place.data))?;
    let catalog = Arc::new(catalog);
    if let Some(local) = local {
        let catalog = Arc::downgrade(&catalog);
        local.join_partitions(move |policy| kept(&*catalog.upgrade()?, policy));
    }
    let clock = Arc::new(|| SystemClock.now_ns());
    let config = server_config(settings, &plan);
    let server = Server::bind(config, Arc::clone(&store), Arc::clone(&catalog), clock)
        .map_err(|error| bind_error(settings, &error))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(machine::processors())
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("nyala")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let stopped = runtime.block_on(async {
        let signals = Signals::listen().context("cannot listen to signals")?;
        announce(settings, &plan, &server, &place);
        if settings.store.is_some() {
            tokio::spawn(follow_catalog(catalog));
        }
        server.serve(signals.first()).await.context("cannot listen")
    })?;
    if stopped == Stopped::InHaste {
        tracing::warn!("cut off requests that took longer than shutdown-timeout");
    }
    runtime.shutdown_timeout(LEFT_BEHIND_MAX);
    store.close().context("cannot close the store")?;
    tracing::info!("stopped");
    Ok(())
}

/// How long a policy keeps its rows.
fn kept(catalog: &Catalog, policy: PolicyId) -> Option<Kept> {
    let state = catalog.snapshot();
    Some(state.policy_by_id(policy)?.duration_ns.map_or(Kept::ForEver, Kept::ForNs))
}

/// An open store, and what there is to say about it.
struct Opened {
    store: Arc<dyn Store>,
    /// The same, if it is in a directory of this machine.
    local: Option<Arc<LocalStore>>,
    place: Place,
}

/// Opens the store: in a directory, or over a cluster.
fn open_store(settings: &Settings, plan: &MemoryPlan) -> anyhow::Result<Opened> {
    match &settings.store {
        Some(options) => open_cluster(options, plan),
        None => open_directory(settings, plan),
    }
}

fn open_directory(settings: &Settings, plan: &MemoryPlan) -> anyhow::Result<Opened> {
    let sync = match settings.wal_sync {
        Sync::Always => SyncPolicy::Always,
        Sync::Interval(interval) => SyncPolicy::Interval(interval),
        Sync::Never => SyncPolicy::Never,
    };
    let idle_after = settings.idle_after;
    let options = StoreOptions::new(&settings.data_dir, plan.store);
    let options = StoreOptions { sync, idle_after, ..options };
    let data = shown_path(&settings.data_dir);
    let local = LocalStore::open(Arc::new(SystemDisk), options)
        .with_context(|| format!("cannot open the data directory {data}"))?;
    let report = local.open_report();
    for damage in &report.damage {
        tracing::error!("damage: {damage}");
    }
    let durability = banner::durability(settings.wal_sync);
    let place = Place { data, durability, recovered: Some(banner::recovered(report)) };
    let local = Arc::new(local);
    Ok(Opened { store: Arc::clone(&local) as Arc<dyn Store>, local: Some(local), place })
}

fn open_cluster(options: &KuduOptions, plan: &MemoryPlan) -> anyhow::Result<Opened> {
    let data = format!("Kudu cluster {}, tables {}.*", options.masters.join(","), options.prefix);
    let share = plan.store / CACHE_SHARE;
    let options = KuduOptions { cache_bytes: share, work_bytes: share, ..options.clone() };
    let store = KuduStore::open(&options).with_context(|| format!("cannot use {data}"))?;
    let copies = store.replicas();
    let durability = format!(
        "every write is in the logs of {} of {copies} copies before it is acknowledged",
        copies / 2 + 1
    );
    let place = Place { data, durability, recovered: None };
    Ok(Opened { store: Arc::new(store), local: None, place })
}

/// Takes over what other daemons on the cluster change of databases, policies and users.
async fn follow_catalog(catalog: Arc<Catalog>) {
    loop {
        tokio::time::sleep(CATALOG_INTERVAL).await;
        let worker = Arc::clone(&catalog);
        match tokio::task::spawn_blocking(move || worker.refresh().map(drop)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("cannot read the catalog: {error}"),
            Err(failed) => tracing::error!("reading the catalog failed by a bug: {failed}"),
        }
    }
}

fn server_config(settings: &Settings, plan: &MemoryPlan) -> ServerConfig {
    ServerConfig {
        http_bind: settings.http_bind.clone(),
        auth: settings.auth.clone(),
        tls: settings.tls.clone(),
        unix_socket: settings.unix_socket.clone(),
        access_log: settings.access_log,
        listeners: settings.sections.listeners.clone(),
        monitor: settings.sections.monitor.clone(),
        max_connections: settings.max_connections,
        max_body_bytes: settings.max_body_bytes,
        body_memory_bytes: plan.bodies,
        query_memory_bytes: plan.query,
        queries_memory_bytes: plan.queries,
        query_cache_bytes: plan.query_cache,
        query_timeout: settings.query_timeout,
        max_concurrent_queries: settings.max_concurrent_queries,
        max_row_limit: settings.max_row_limit,
        max_select_point: settings.max_select_point,
        max_select_series: settings.max_select_series,
        max_select_buckets: settings.max_select_buckets,
        threads: machine::processors(),
        retention_check_interval: settings.retention_check_interval,
        continuous_query_interval: settings.continuous_query_interval,
        shutdown_grace: settings.shutdown_timeout,
        ..ServerConfig::default()
    }
}

fn bind_error(settings: &Settings, error: &io::Error) -> anyhow::Error {
    let address = &settings.http_bind;
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "cannot listen on {address}: another program does already; stop it, or choose another \
             address with --http-bind"
        ),
        io::ErrorKind::PermissionDenied => anyhow!(
            "cannot listen on {address}: not permitted; ports below 1024 are for root, choose \
             another with --http-bind"
        ),
        // It names its file.
        io::ErrorKind::Other => anyhow!("cannot listen: {error}"),
        _ => anyhow!("cannot listen on {address}: {error}; choose another with --http-bind"),
    }
}

/// Says what runs: a screen for people, an event for machines.
fn announce(settings: &Settings, plan: &MemoryPlan, server: &Server, place: &Place) {
    let address = server.local_addr();
    match settings.log_format {
        LogFormat::Text => {
            let screen = banner::screen(settings, plan, address, place);
            // Nobody may be looking.
            let mut out = io::stdout().lock();
            let _ = out.write_all(screen.as_bytes()).and_then(|()| out.flush());
        }
        LogFormat::Json => tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            address = %format!("{}://{address}", banner::scheme(settings)),
            data_dir = place.data,
            memory_bytes = plan.total,
            durability = place.durability,
            recovered = place.recovered,
            "started"
        ),
    }
}

/// A path as people look for it.
fn shown_path(path: &Path) -> String {
    let full = std::path::absolute(path);
    full.as_deref().unwrap_or(path).display().to_string()
}

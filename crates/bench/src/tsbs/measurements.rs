//! The nine devops measurements: tags of their own, field names, types and how each field moves.

use crate::random::hash;
use crate::text::push_int;

/// How the state of one field moves from a step to the next.
#[derive(Debug, Clone, Copy)]
pub(super) enum Motion {
    /// A random walk with normal steps, clamped; starts uniform between the bounds.
    Walk { low: f64, high: f64, deviation: f64 },
    /// A counter that only grows, by `max(0, normal(mean, deviation))`.
    Counter { mean: f64, deviation: f64 },
    /// Chosen once per host.
    Choice(&'static [f64]),
    /// No state: the value is computed from the states of the row's other fields.
    Derived,
}

/// How a value is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Integer,
    Float,
}

/// One field of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) motion: Motion,
    /// The printed value from all states of the row; `None` prints the field's own state.
    pub(super) value: Option<fn(&[f64]) -> f64>,
    pub(super) field_type: Type,
}

/// One measurement of the fleet.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
    /// Appends the tags that follow the ten of the host.
    pub(super) push_tags: fn(&mut Vec<u8>, u64, u64),
}

const fn field(name: &'static str, motion: Motion) -> Field {
    Field { name, motion, value: None, field_type: Type::Integer }
}

const fn walk(name: &'static str, high: f64, deviation: f64) -> Field {
    field(name, Motion::Walk { low: 0.0, high, deviation })
}

const fn counter(name: &'static str, mean: f64, deviation: f64) -> Field {
    field(name, Motion::Counter { mean, deviation })
}

const fn derived(name: &'static str, value: fn(&[f64]) -> f64) -> Field {
    Field { name, motion: Motion::Derived, value: Some(value), field_type: Type::Integer }
}

const fn derived_float(name: &'static str, value: fn(&[f64]) -> f64) -> Field {
    Field { name, motion: Motion::Derived, value: Some(value), field_type: Type::Float }
}

/// A walk over a share of the row's first field, printed as an amount.
const fn share(name: &'static str, value: fn(&[f64]) -> f64) -> Field {
    Field {
        name,
        motion: Motion::Walk { low: 0.0, high: 1.0, deviation: 0.005 },
        value: Some(value),
        field_type: Type::Integer,
    }
}

const fn percent(name: &'static str) -> Field {
    walk(name, 100.0, 1.0)
}

/// The ten fields of `cpu` in the order of TSBS, which is the order of the M-field queries.
pub(crate) const CPU_FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

const CPU: [Field; 10] = {
    let mut fields = [percent(""); 10];
    let mut index = 0;
    while index < fields.len() {
        fields[index] = percent(CPU_FIELDS[index]);
        index += 1;
    }
    fields
};

const DISKIO: [Field; 7] = [
    counter("reads", 50.0, 1.0),
    counter("writes", 50.0, 1.0),
    counter("read_bytes", 100.0, 1.0),
    counter("write_bytes", 100.0, 1.0),
    counter("read_time", 5.0, 1.0),
    counter("write_time", 5.0, 1.0),
    counter("io_time", 5.0, 1.0),
];

const DISK_TOTAL_BYTES: [f64; 1] = [(1u64 << 40) as f64];
const DISK_INODES: f64 = (1u64 << 28) as f64;

const DISK: [Field; 7] = [
    field("total", Motion::Choice(&DISK_TOTAL_BYTES)),
    share("free", |s| (s[0] * (1.0 - s[1])).floor()),
    derived("used", |s| s[0] - (s[0] * (1.0 - s[1])).floor()),
    derived("used_percent", |s| s[1] * 100.0),
    derived("inodes_total", |_| DISK_INODES),
    derived("inodes_free", |s| (DISK_INODES * (1.0 - s[1])).floor()),
    derived("inodes_used", |s| DISK_INODES - (DISK_INODES * (1.0 - s[1])).floor()),
];

/// A boot time per host: one of eight seconds before the data starts.
const BOOT_TIMES_S: [f64; 8] = [
    1_451_600_017.0,
    1_451_589_113.0,
    1_451_571_947.0,
    1_451_520_211.0,
    1_451_495_333.0,
    1_451_460_601.0,
    1_451_431_877.0,
    1_451_400_059.0,
];

const KERNEL: [Field; 6] = [
    field("boot_time", Motion::Choice(&BOOT_TIMES_S)),
    counter("interrupts", 5.0, 1.0),
    counter("context_switches", 5.0, 1.0),
    counter("processes_forked", 5.0, 1.0),
    counter("disk_pages_in", 5.0, 1.0),
    counter("disk_pages_out", 5.0, 1.0),
];

const MEMORY_TOTAL_BYTES: [f64; 3] =
    [(8u64 << 30) as f64, (12u64 << 30) as f64, (16u64 << 30) as f64];

const MEM: [Field; 9] = [
    field("total", Motion::Choice(&MEMORY_TOTAL_BYTES)),
    derived("available", |s| s[0] - (s[0] * s[2]).floor()),
    share("used", |s| (s[0] * s[2]).floor()),
    derived("free", |s| s[0] - (s[0] * s[2]).floor()),
    share("cached", |s| (s[0] * s[4]).floor()),
    share("buffered", |s| (s[0] * s[5]).floor()),
    derived_float("used_percent", |s| s[2] * 100.0),
    derived_float("available_percent", |s| (1.0 - s[2]) * 100.0),
    derived_float("buffered_percent", |s| s[5] * 100.0),
];

const NET: [Field; 8] = [
    counter("bytes_sent", 50.0, 1.0),
    counter("bytes_recv", 50.0, 1.0),
    counter("packets_sent", 50.0, 1.0),
    counter("packets_recv", 50.0, 1.0),
    counter("err_in", 5.0, 1.0),
    counter("err_out", 5.0, 1.0),
    counter("drop_in", 5.0, 1.0),
    counter("drop_out", 5.0, 1.0),
];

const NGINX: [Field; 7] = [
    counter("accepts", 5.0, 1.0),
    walk("active", 100.0, 5.0),
    counter("handled", 5.0, 1.0),
    walk("reading", 100.0, 5.0),
    counter("requests", 5.0, 1.0),
    walk("waiting", 100.0, 5.0),
    walk("writing", 100.0, 5.0),
];

const POSTGRESL: [Field; 16] = [
    walk("numbackends", 1000.0, 5.0),
    walk("xact_commit", 1000.0, 5.0),
    walk("xact_rollback", 1000.0, 5.0),
    walk("blks_read", 1000.0, 5.0),
    walk("blks_hit", 1000.0, 5.0),
    walk("tup_returned", 1000.0, 5.0),
    walk("tup_fetched", 1000.0, 5.0),
    walk("tup_inserted", 1000.0, 5.0),
    walk("tup_updated", 1000.0, 5.0),
    walk("tup_deleted", 1000.0, 5.0),
    walk("conflicts", 1000.0, 5.0),
    walk("temp_files", 1000.0, 5.0),
    walk("temp_bytes", 1_048_576.0, 1024.0),
    walk("deadlocks", 1000.0, 5.0),
    walk("blk_read_time", 1000.0, 5.0),
    walk("blk_write_time", 1000.0, 5.0),
];

const REDIS: [Field; 31] = [
    counter("uptime_in_seconds", 10.0, 0.0),
    counter("total_connections_received", 5.0, 1.0),
    counter("expired_keys", 50.0, 1.0),
    counter("evicted_keys", 50.0, 1.0),
    counter("keyspace_hits", 50.0, 1.0),
    counter("keyspace_misses", 50.0, 1.0),
    walk("instantaneous_ops_per_sec", 100.0, 1.0),
    walk("instantaneous_input_kbps", 100.0, 1.0),
    walk("instantaneous_output_kbps", 100.0, 1.0),
    walk("connected_clients", 10_000.0, 50.0),
    walk("used_memory", 17_179_869_184.0, 1_048_576.0),
    walk("used_memory_rss", 17_179_869_184.0, 1_048_576.0),
    walk("used_memory_peak", 17_179_869_184.0, 1_048_576.0),
    walk("used_memory_lua", 17_179_869_184.0, 1_048_576.0),
    counter("rdb_changes_since_last_save", 50.0, 1.0),
    counter("sync_full", 5.0, 1.0),
    counter("sync_partial_ok", 5.0, 1.0),
    counter("sync_partial_err", 5.0, 1.0),
    walk("pubsub_channels", 100.0, 5.0),
    walk("pubsub_patterns", 100.0, 5.0),
    counter("latest_fork_usec", 5.0, 1.0),
    walk("connected_slaves", 100.0, 5.0),
    counter("master_repl_offset", 5.0, 1.0),
    counter("repl_backlog_active", 5.0, 1.0),
    counter("repl_backlog_size", 5.0, 1.0),
    counter("repl_backlog_histlen", 5.0, 1.0),
    walk("mem_fragmentation_ratio", 100.0, 5.0),
    counter("used_cpu_sys", 5.0, 1.0),
    counter("used_cpu_user", 5.0, 1.0),
    counter("used_cpu_sys_children", 5.0, 1.0),
    counter("used_cpu_user_children", 5.0, 1.0),
];

fn no_tags(_: &mut Vec<u8>, _: u64, _: u64) {}

fn diskio_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    out.extend_from_slice(b",serial=");
    for what in [1, 2, 8] {
        push_int(out, digits(seed, host, what) as i64 % 900 + 100);
        out.push(b'-');
    }
    out.pop();
}

fn disk_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    const FILE_SYSTEMS: [&[u8]; 3] = [b"ext3", b"ext4", b"btrfs"];
    out.extend_from_slice(b",path=/dev/sda");
    push_int(out, (digits(seed, host, 3) % 10) as i64);
    out.extend_from_slice(b",fstype=");
    out.extend_from_slice(FILE_SYSTEMS[(digits(seed, host, 4) % 3) as usize]);
}

fn net_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    out.extend_from_slice(b",interface=eth");
    push_int(out, (digits(seed, host, 5) % 4) as i64);
}

fn nginx_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    server_tags(out, b"nginx_", digits(seed, host, 6));
}

fn redis_tags(out: &mut Vec<u8>, seed: u64, host: u64) {
    server_tags(out, b"redis_", digits(seed, host, 7));
}

fn server_tags(out: &mut Vec<u8>, prefix: &[u8], number: u64) {
    out.extend_from_slice(b",port=");
    push_int(out, (number % 20_000 + 1024) as i64);
    out.extend_from_slice(b",server=");
    out.extend_from_slice(prefix);
    push_int(out, (number % 100_000) as i64);
}

fn digits(seed: u64, host: u64, what: u64) -> u64 {
    hash(seed ^ (what << 56), host) % 1_000_000
}

pub(super) const CPU_ONLY: &[Measurement] =
    &[Measurement { name: "cpu", fields: &CPU, push_tags: no_tags }];

pub(super) const DEVOPS: &[Measurement] = &[
    Measurement { name: "cpu", fields: &CPU, push_tags: no_tags },
    Measurement { name: "diskio", fields: &DISKIO, push_tags: diskio_tags },
    Measurement { name: "disk", fields: &DISK, push_tags: disk_tags },
    Measurement { name: "kernel", fields: &KERNEL, push_tags: no_tags },
    Measurement { name: "mem", fields: &MEM, push_tags: no_tags },
    Measurement { name: "net", fields: &NET, push_tags: net_tags },
    Measurement { name: "nginx", fields: &NGINX, push_tags: nginx_tags },
    Measurement { name: "postgresl", fields: &POSTGRESL, push_tags: no_tags },
    Measurement { name: "redis", fields: &REDIS, push_tags: redis_tags },
];

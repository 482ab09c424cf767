//! What the machine has.

/// Assumed where the system does not say, bytes.
#[cfg(not(target_os = "linux"))]
const ASSUMED_BYTES: u64 = 2 << 30;

/// Memory of the machine, or of the container if that has less, bytes.
#[cfg(target_os = "linux")]
pub(crate) fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
    container_limit_bytes().map_or(machine, |limit| limit.min(machine))
}

/// As on Linux; other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn memory_bytes() -> u64 {
    ASSUMED_BYTES
}

/// The least limit of the control groups that this process is in.
#[cfg(target_os = "linux")]
fn container_limit_bytes() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    // Version 2 has one line, `0::/path`; inside a container the path is often just `/`.
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut dir = std::path::PathBuf::from("/sys/fs/cgroup");
    let mut limits = vec![dir.join("memory.max")];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        dir.push(part);
        limits.push(dir.join("memory.max"));
    }
    // `max`, or a missing file, is no limit.
    let of_file =
        |path: &std::path::PathBuf| std::fs::read_to_string(path).ok()?.trim().parse().ok();
    limits.iter().filter_map(of_file).min()
}

/// Processors this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

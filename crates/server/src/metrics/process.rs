//! What the operating system says of this process.

/// Bytes of memory that are resident; `None` where the system does not say.
#[cfg(target_os = "linux")]
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// As on Linux; other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(crate) fn resident_bytes() -> Option<u64> {
    None
}

/// Seconds of processor time used, in user and system mode together.
#[cfg(target_os = "linux")]
pub(super) fn cpu_seconds() -> Option<f64> {
    // The fields behind the name in parentheses: state is the first, utime and stime the 12th and
    // 13th, in ticks of which Linux counts 100 a second on every architecture it shows them on.
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / 100.0)
}

/// As on Linux; other systems are not asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn cpu_seconds() -> Option<f64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_says() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}

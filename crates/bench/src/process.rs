//! What a server process has used: processor time, memory, disk traffic, disk space.

use std::fs;
use std::io;
use std::path::Path;

/// Counters of a process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// User and system time of all threads.
    pub cpu_seconds: f64,
    /// Resident memory now.
    pub resident_bytes: u64,
    /// Largest resident memory so far.
    pub resident_peak_bytes: u64,
    /// Bytes that reached the block layer for writing; `None` where the kernel does not let us see.
    pub written_bytes: Option<u64>,
    /// Bytes that were read from the block layer; `None` where the kernel does not let us see.
    pub read_bytes: Option<u64>,
}

/// Reads the counters of a running process.
///
/// # Errors
/// When there is no such process, or `/proc` is not that of Linux.
pub fn usage(pid: u32) -> io::Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok();
    let counter = |name| io.as_deref().and_then(|text| labelled(text, name));
    Ok(Usage {
        cpu_seconds: cpu_seconds(&fs::read_to_string(format!("/proc/{pid}/stat"))?)?,
        resident_bytes: labelled(&status, "VmRSS:").unwrap_or(0) * 1024,
        resident_peak_bytes: labelled(&status, "VmHWM:").unwrap_or(0) * 1024,
        written_bytes: counter("write_bytes:"),
        read_bytes: counter("read_bytes:"),
    })
}

/// utime and stime are the 12th and 13th field after the command name, which may hold spaces and parentheses.
fn cpu_seconds(stat: &str) -> io::Result<f64> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "malformed /proc/PID/stat");
    let (_, rest) = stat.rsplit_once(')').ok_or_else(malformed)?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = 0;
    for _ in 0..2 {
        let field = fields.next().and_then(|field| field.parse::<u64>().ok());
        ticks += field.ok_or_else(malformed)?;
    }
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn labelled(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Space that the files below a directory occupy. Files that vanish meanwhile are not counted.
///
/// # Errors
/// When the directory cannot be read.
pub fn disk_bytes(directory: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && total > 0 => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => pending.push(entry.path()),
                Ok(metadata) => total += metadata.blocks() * 512,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.resident_bytes > 0 && usage.resident_peak_bytes >= usage.resident_bytes / 2);
        assert!(super::usage(u32::MAX).is_err());
    }

    #[test]
    fn a_command_name_may_hold_parentheses() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        let seconds = cpu_seconds(stat).unwrap();
        assert!((seconds - 200.0 / rustix::param::clock_ticks_per_second() as f64).abs() < 1e-9);
        assert!(cpu_seconds("7 (a) S 1").is_err());
    }

    #[test]
    fn space_is_summed_over_directories() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("below/file"), vec![1; 100_000]).unwrap();
        assert!(disk_bytes(directory.path()).unwrap() >= 100_000);
        assert!(disk_bytes(&directory.path().join("absent")).is_err());
    }
}

//! One daemon under its guarding shell.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::shell;

/// Starts the daemon, tells its process id, and kills it when standard input ends.
/// Signals to the whole group of processes (Ctrl-C, `timeout`) must not end the guard before.
const GUARD: &str = r#"
trap '' HUP INT TERM
log=$1; shift
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
pid=$!
echo $pid
read -r _ <&3
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
"#;

/// Removes the directory once everything in it has ended.
const SWEEP: &str = r#"trap '' HUP INT TERM; read -r _; sleep 1; rm -rf "$1""#;

/// How long to wait before looking again whether it has stopped.
const STOPPING: Duration = Duration::from_millis(1);

/// A master or tablet server.
#[derive(Debug)]
pub struct Daemon {
    home: PathBuf,
    program: String,
    directory: PathBuf,
    port: u16,
    flags: Vec<String>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    pid: Pid,
    guard: Child,
    started_us: u128,
    _pipe: ChildStdin,
}

impl Daemon {
    pub(crate) fn start(
        home: &Path,
        program: &str,
        directory: &Path,
        port: u16,
        flags: Vec<String>,
    ) -> Result<Self> {
        let daemon = Self {
            home: home.to_owned(),
            program: program.to_owned(),
            directory: directory.to_owned(),
            port,
            flags,
            running: Mutex::new(None),
        };
        daemon.restart(&[])?;
        Ok(daemon)
    }

    /// Host and port.
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts it (again), with further flags.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn restart(&self, more_flags: &[&str]) -> Result<()> {
        self.kill();
        let started_us = UNIX_EPOCH.elapsed().unwrap_or_default().as_micros();
        let inner = command(&self.home, &self.program);
        let mut guard = shell(GUARD);
        guard
            .arg(self.directory.join("output"))
            .arg(inner.get_program())
            .args(&self.flags)
            .args(more_flags)
            .envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut guard = guard.spawn().context("cannot start sh")?;
        let pipe = guard.stdin.take().context("no pipe")?;
        let mut line = String::new();
        BufReader::new(guard.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let pid = Pid::from_raw(line.trim().parse()?).context("no process id")?;
        *lock(&self.running) = Some(Running { pid, guard, started_us, _pipe: pipe });
        Ok(())
    }

    /// `kill -9`; returns when it is gone.
    pub fn kill(&self) {
        let running = lock(&self.running).take();
        if let Some(Running { mut guard, _pipe: pipe, .. }) = running {
            drop(pipe);
            let _gone_anyway = guard.wait();
        }
    }

    /// Freezes it (SIGSTOP). Returns when none of its threads runs any more: on a busy machine some go
    /// on for a while.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        while self.pid().is_some_and(|pid| !is_stopped(pid)) {
            std::thread::sleep(STOPPING);
        }
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        if let Some(running) = &*lock(&self.running) {
            let _gone_anyway = kill_process(running.pid, signal);
        }
    }

    /// When it was started, microseconds since 1970; 0 while it is dead.
    pub(crate) fn started_us(&self) -> u128 {
        lock(&self.running).as_ref().map_or(0, |running| running.started_us)
    }

    /// Its process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        lock(&self.running).as_ref().map(|running| running.pid.as_raw_nonzero().get())
    }

    /// Whether it has ended by itself. Its shell waits for the pipe and so leaves it a zombie.
    pub(crate) fn failed(&self) -> bool {
        lock(&self.running).as_ref().is_some_and(|running| {
            let of_process = PathBuf::from(format!("/proc/{}", running.pid.as_raw_nonzero()));
            state_of(&of_process).is_none_or(|state| state == 'Z')
        })
    }

    /// The end of what it has printed.
    pub(crate) fn output(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("output")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(10)..].join("\n")
    }
}

/// A shell that removes the cluster's directory when this process has ended.
#[derive(Debug)]
pub(crate) struct Supervisor {
    child: Child,
    directory: PathBuf,
}

impl Supervisor {
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let child = shell(SWEEP)
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sh")?;
        Ok(Self { child, directory: directory.to_owned() })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _swept_anyway = std::fs::remove_dir_all(&self.directory);
        drop(self.child.stdin.take());
        let _gone_anyway = self.child.kill();
        let _gone_anyway = self.child.wait();
    }
}

/// Whether no thread of a process runs.
fn is_stopped(pid: i32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let is_still = |state: Option<char>| state.is_none_or(|state| matches!(state, 'T' | 'Z' | 'X'));
    threads.flatten().all(|thread| is_still(state_of(&thread.path())))
}

/// The state of the process or thread with this directory in `/proc`; `None`: it is gone.
fn state_of(directory: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(directory.join("stat")).ok()?;
    // The state follows the name, which is in parentheses.
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// A program of Kudu with the environment it needs.
pub(crate) fn command(home: &Path, program: &str) -> Command {
    let mut command = Command::new(home.join("bin").join(program));
    command.env("LD_LIBRARY_PATH", home.join("lib")).env("SASL_PATH", home.join("lib/sasl2"));
    command
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

//! `nyala shell` at a terminal: editing, completion, history. The terminal is made by `script` (util-linux).

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::support::{Server, temp_dir};

const PATIENCE: Duration = Duration::from_secs(60);

/// Shown once for each line that is asked for, when keys are taken one by one (bracketed paste is on). The prompt itself
/// is shown again whenever the line changes, also behind Enter: who took that for the next prompt would type too early.
const ASKING: &str = "\x1b[?2004h";

/// A shell at a terminal, and what it has shown so far.
struct Terminal {
    process: Child,
    shown: mpsc::Receiver<Vec<u8>>,
    text: String,
    /// What of it was waited for.
    seen: usize,
}

/// Starts a command at a terminal.
pub(crate) fn at_terminal(command: &str, home: &Path) -> Child {
    Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", command, "/dev/null"])
        .env("HOME", home)
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("`script` makes the terminal: it is part of util-linux (package bsdutils)")
}

impl Terminal {
    fn open(server: &Server, home: &Path) -> Self {
        let command = format!(
            "{} shell -host 127.0.0.1 -port {}",
            env!("CARGO_BIN_EXE_nyala"),
            server.address.port()
        );
        let mut process = at_terminal(&command, home);
        let mut output = process.stdout.take().unwrap();
        let (sender, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { process, shown, text: String::new(), seen: 0 }
    }

    /// Waits until `text` is shown behind what was waited for before.
    fn wait_for(&mut self, text: &str) {
        let start = Instant::now();
        loop {
            if let Some(at) = self.text[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let left = PATIENCE.saturating_sub(start.elapsed());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("no {text:?} in {:?} behind {}", self.text, self.seen),
            }
        }
    }

    fn keys(&mut self, keys: &str) {
        let mut input = self.process.stdin.as_ref().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Types keys and Enter once there is a prompt; then waits for `answer`.
    fn enter(&mut self, keys: &str, answer: &str) {
        self.wait_for(ASKING);
        self.wait_for("> ");
        self.keys(keys);
        self.keys("\r");
        self.wait_for(answer);
    }

    fn exit(mut self) {
        self.wait_for(ASKING);
        self.wait_for("> ");
        self.keys("exit\r");
        // To wait for a process closes its input, which would end the shell as well: first see it leave.
        while let Ok(bytes) = self.shown.recv_timeout(PATIENCE) {
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        assert!(self.process.wait().unwrap().success(), "{}", self.text);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has mostly ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const TAB: &str = "\t";
const UP: &str = "\x1b[A";

#[test]
fn lines_are_completed_and_remembered() {
    let dir = temp_dir();
    let server = Server::start(&dir.path().join("data"));
    server.create_database("weather");
    server.write("weather", "temperature,city=x v=21.5 1\n");
    let mut terminal = Terminal::open(&server, dir.path());
    terminal.enter(&format!("use wea{TAB}"), "Using database weather");
    terminal.enter(&format!("sele{TAB} v from tem{TAB}"), "21.5");
    // The line before, edited at its end.
    terminal.enter(&format!("{UP} where v > 30"), "temperature");
    terminal.enter("create user ann with password 'hidden'", "hidden");
    terminal.exit();
    let history = dir.path().join(".nyala_history");
    let kept = std::fs::read_to_string(&history).unwrap();
    assert!(kept.contains("temperature where v > 30"), "{kept}");
    assert!(!kept.contains("hidden"), "passwords are not kept: {kept}");
    // What was entered before is there the next time.
    let mut terminal = Terminal::open(&server, dir.path());
    terminal.enter("use weather", "Using database weather");
    terminal.enter(&UP.repeat(4), "21.5");
    terminal.enter("history", "where v > 30");
    terminal.exit();
    server.stop();
}

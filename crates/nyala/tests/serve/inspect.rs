//! `nyala inspect`: what it shows, and that it finds every flipped byte.

use std::path::{Path, PathBuf};

use crate::support::{Server, nyala, temp_dir};

fn inspect(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = nyala().arg("inspect").args(args).arg("--data-dir").arg(dir).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn a_directory_is_shown_and_checked() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("weather");
    let rows: String = (0..20_000_i64)
        .map(|i| format!("m,host=h{} f={i}.5,i={i}i,s=\"t{}\" {}\n", i % 50, i % 9, i * 1_000_000))
        .collect();
    assert_eq!(server.write("weather", rows).status, 204);

    let (code, text) = inspect(dir.path(), &["verify"]);
    assert!(code == Some(1) && text.contains("in use by another process"), "{text}");
    server.stop();
    // A clean stop may leave everything in the log; so does this.
    let before: Vec<_> = files(dir.path()).iter().map(|f| std::fs::read(f).unwrap()).collect();

    let (code, text) = inspect(dir.path(), &["verify"]);
    assert!(code == Some(0) && text.contains("everything is whole"), "{text}");
    let (code, text) = inspect(dir.path(), &["manifest"]);
    assert!(code == Some(0) && text.contains("edits"), "{text}");
    for args in [&["wal"][..], &["series"], &["segments"], &["segments", "--details"]] {
        let (code, text) = inspect(dir.path(), args);
        assert_eq!(code, Some(0), "{args:?}: {text}");
    }
    let after: Vec<_> = files(dir.path()).iter().map(|f| std::fs::read(f).unwrap()).collect();
    assert!(before == after, "looking changes nothing");

    let (code, text) = inspect(&dir.path().join("segments"), &["verify"]);
    assert!(code == Some(1) && text.contains("is not a data directory"), "{text}");
    let (code, _) = inspect(Path::new("/no/such/directory"), &["verify"]);
    assert_eq!(code, Some(1));
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    server.create_database("d");
    let rows: String = (0..5000_i64).map(|i| format!("m,host=h{} f={i}.5 {i}\n", i % 50)).collect();
    assert_eq!(server.write("d", rows).status, 204);
    server.stop();
    let mut tried = 0;
    for file in files(dir.path()) {
        let whole = std::fs::read(&file).unwrap();
        let name = file.strip_prefix(dir.path()).unwrap().display().to_string();
        if name == "LOCK" || whole.is_empty() {
            continue;
        }
        // A place that was written for certain: for logs the first record, behind the header.
        let places = if name.ends_with(".log") {
            vec![1040]
        } else {
            vec![3, whole.len() / 3, whole.len() / 2, whole.len() - 3]
        };
        for at in places.into_iter().filter(|at| *at < whole.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&file, &damaged).unwrap();
            let (code, text) = inspect(dir.path(), &["verify"]);
            assert!(code == Some(2) && text.contains(&name), "{name} at {at}: {text}");
            assert!(text.contains("at offset "), "{name} at {at}: {text}");
            tried += 1;
        }
        std::fs::write(&file, &whole).unwrap();
    }
    assert!(tried >= 3, "{tried}");
    assert_eq!(inspect(dir.path(), &["verify"]).0, Some(0));
}

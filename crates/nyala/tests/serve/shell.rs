//! `nyala shell`, side by side with the real `influx`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::support::{Server, nyala, temp_dir};

/// What a program printed: exit code, stdout, stderr.
type Printed = (Option<i32>, String, String);

fn printed(output: Output) -> Printed {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn influx(server: &Server, args: &[&str]) -> Printed {
    let mut command = Command::new("influx");
    command.args(["-host", "127.0.0.1", "-port", &server.address.port().to_string()]).args(args);
    printed(command.output().expect("`cargo xtask packages` installs influx"))
}

fn shell(server: &Server, args: &[&str]) -> Printed {
    let port = server.address.port().to_string();
    let mut command = nyala();
    command.args(["shell", "-host", "127.0.0.1", "-port", &port]).args(args);
    printed(command.stdin(Stdio::null()).output().unwrap())
}

fn server_with_rows(dir: &std::path::Path) -> Server {
    let server = Server::start(dir);
    server.create_database("d");
    let rows = "cpu,host=a,region=x\\ y v=1.5,n=3i,s=\"q,\\\"z\\\" <&> \\n\" 1\n\
                cpu,host=b v=2,s=\"x y\",b=true 2\n\
                mem,host=a f=1e30,big=9223372036854775807i 1500000000000000000\n\
                mem,host=b f=-0.0000001,u=\"tab\there\" 1500000000000000001\n\
                \u{fc}n\u{ef},\u{e9}=\u{fc} \u{fc}=\"\u{65e5}\u{672c}\",lines=\"a\nb\" 5\n";
    assert_eq!(server.write("d", rows).status, 204);
    let many: String = (0..12_000).map(|i| format!("many,h=h{} v={i} {i}\n", i % 3)).collect();
    assert_eq!(server.write("d", many).status, 204);
    server
}

#[test]
fn it_prints_what_influx_prints() {
    let dir = temp_dir();
    let server = server_with_rows(dir.path());
    let statements = [
        "SELECT * FROM cpu, mem; SHOW DATABASES; SHOW TAG KEYS",
        "SELECT v, n FROM cpu GROUP BY host, region; SELECT n FROM cpu GROUP BY host",
        "SELECT mean(n) FROM no; SELECT v FROM cpu; SELECT n FROM no; SELECT n FROM no; \
         SELECT v FROM cpu; SELECT mean(n) FROM no",
        "SELECT * FROM \"\u{fc}n\u{ef}\" GROUP BY *",
        "SELECT * FROM many",
        "SELECT v FROM many GROUP BY h LIMIT 3",
        "SELECT * FROM no",
        "SHOW TAG VALUES WITH KEY IN (h, host)",
        "SHOW SERIES; SHOW FIELD KEYS; SHOW RETENTION POLICIES",
        "SELECT mean(v) FROM cpu; SELECT foo(v) FROM cpu; SELECT v FROM cpu",
        "SELECT * FRM cpu",
        "SELECT count(*) FROM cpu WHERE time > now()",
        "EXPLAIN SELECT v FROM cpu",
        "CREATE DATABASE d",
        ";",
        "",
        "SHOW DATABASES;",
    ];
    let ways: [&[&str]; 6] = [
        &[],
        &["-format", "csv"],
        &["-format", "json"],
        &["-format", "json", "-pretty"],
        &["-precision", "rfc3339"],
        &["-precision", "ms", "-format=csv"],
    ];
    for way in ways {
        for statement in statements {
            // Its CSV splits texts at tabs.
            if way.iter().any(|arg| arg.contains("csv")) && statement.contains("cpu, mem") {
                continue;
            }
            let args = [&["-database", "d", "-execute", statement], way].concat();
            assert_eq!(shell(&server, &args), influx(&server, &args), "{args:?}");
        }
    }
    for args in [
        &["-execute", "SELECT * FROM cpu"][..],
        &["-database", "no", "-execute", "SELECT * FROM cpu"],
        &["-database", "d", "-execute", "INSERT cpu v=3 n 7"],
        &["-database", "d", "-execute", "INSERT INTO no cpu v=3 7"],
        &["-execute", "INSERT cpu v=3 7"],
        &["-database", "d", "-execute", "use d"],
        &["-execute", "use d.autogen"],
        &["-execute", "use \"d\".\"autogen\""],
        &["-execute", "use no"],
        &["-execute", "use"],
        &["-execute", "pretty"],
        &["-execute", "precision"],
        &["-execute", "format x"],
        &["-execute", "consistency zz"],
        &["-execute", "consistency any"],
        &["-execute", "chunk size 9"],
        &["-execute", "chunk size x"],
        &["-execute", "clear db"],
        &["-execute", "clear rp"],
        &["-execute", "exit"],
        &["-execute", "connect"],
        &["-database", "d", "-consistency", "one", "-format", "csv", "-execute", "settings"],
        &["-database", "d", "-precision", "zz", "-execute", "SELECT v FROM cpu"],
    ] {
        // It tells its own port, and connects to none without one.
        if args.contains(&"connect") {
            continue;
        }
        assert_eq!(shell(&server, args), influx(&server, args), "{args:?}");
    }
    let both = |args: &[&str]| assert_eq!(shell(&server, args), influx(&server, args), "{args:?}");
    both(&["--database", "d", "--execute", "INSERT INTO d.autogen two v=1 1", "--precision=s"]);
    both(&["--database=d", "--execute=SELECT * FROM two", "--pretty=true", "--format=json"]);
    both(&["-database", "d", "-execute", "SELECT * FROM two", "-pretty=false", "-format=json"]);
    // Each line is a command; the first that fails is the last.
    for lines in [
        "use d\nINSERT three v=1 1\n  SELECT * FROM three  \r\nformat json\nSELECT * FROM three",
        "SHOW DATABASES\nfoo bar\nSHOW DATABASES",
        "SHOW DATABASES\n\nSHOW DATABASES",
        "SHOW DATABASES\n",
        "SELECT v\nFROM cpu",
        "use no\nSHOW DATABASES",
        "INSERT m v= 1\nSHOW DATABASES",
        "exit\nSHOW DATABASES",
    ] {
        both(&["-execute", lines]);
    }
}

#[test]
fn what_influx_gets_wrong() {
    let dir = temp_dir();
    let server = server_with_rows(dir.path());
    let csv = ["-database", "d", "-format", "csv", "-execute", "SELECT f, u FROM mem"];
    let expected = "name,time,f,u\nmem,1500000000000000000,1e+30,\n\
                    mem,1500000000000000001,-1e-7,tab\there\n";
    assert_eq!(shell(&server, &csv), (Some(0), expected.to_owned(), String::new()));
}

#[test]
fn statements_come_from_the_standard_input() {
    let dir = temp_dir();
    let server = server_with_rows(dir.path());
    let port = server.address.port().to_string();
    let mut command = nyala();
    command.args(["shell", "-port", &port, "-host", "127.0.0.1", "-database", "d"]);
    let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"SELECT n\nFROM cpu;\nSHOW DATABASES\n").unwrap();
    let (code, out, _) = printed(shell.wait_with_output().unwrap());
    assert_eq!(code, Some(0));
    assert_eq!(out, "name: cpu\ntime n\n---- -\n1    3\n\nname: databases\nname\n----\nd\n");
    // Nothing else comes from there.
    for text in ["use d\nSHOW DATABASES", "settings", "INSERT m v=2 2", "SHOW DATABASES; exit"] {
        let both = ["influx", env!("CARGO_BIN_EXE_nyala")].map(|program| {
            let mut command = Command::new(program);
            command.args(if program == "influx" { &[][..] } else { &["shell"] });
            command.args(["-host", "127.0.0.1", "-port", &port]).stdin(Stdio::piped());
            let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            run.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            printed(run.wait_with_output().unwrap())
        });
        assert_eq!(both[0], both[1], "{text}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let answers = [
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"results\":[{}]}\n{",
    ];
    let server = std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            // The whole request comes at once, near enough: it is short.
            let _ = stream.read(&mut [0; 4096]).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut command = nyala();
    command.args(["shell", "-host", "127.0.0.1", "-port", &port, "-execute", "SHOW DATABASES"]);
    let (code, out, _) = printed(command.output().unwrap());
    assert_eq!(code, Some(1));
    assert!(out.contains("ERR: the answer broke off"), "{out}");
    server.join().unwrap();
}

#[test]
fn it_imports_dumps() {
    let dir = temp_dir();
    let server = Server::start(dir.path());
    let file = dir.path().join("dump");
    let path = file.to_str().unwrap();
    let head = "# INFLUXDB EXPORT: x\n# DDL\nCREATE DATABASE imp WITH NAME autogen\n# DML\n\
                # CONTEXT-DATABASE:imp\n# CONTEXT-RETENTION-POLICY:autogen\n# writing tsm data\n";
    let rows = "m,host=a v=1 1\nm,host=b s=\"two\nlines\",v=2 2\n";
    std::fs::write(&file, format!("{head}{rows}")).unwrap();
    let (code, _, err) = shell(&server, &["-import", "-path", path, "-precision", "s"]);
    assert_eq!(err, "Processed 1 commands\nProcessed 2 inserts\nFailed 0 inserts\n");
    assert_eq!(code, Some(0));
    let rows = server.query("imp", "SELECT * FROM m").json();
    let rows = &rows["results"][0]["series"][0]["values"];
    assert_eq!(rows[1][2], "two\nlines");
    assert_eq!(rows[1][0], "1970-01-01T00:00:02Z");

    std::fs::write(&file, format!("{head}m v=1 3\nm v=3 3\nnonsense\n")).unwrap();
    let (code, _, err) = shell(&server, &["-import", "-path", path]);
    assert_eq!(code, Some(1));
    assert!(err.contains("unable to parse"), "{err}");
    assert!(
        err.ends_with("Processed 1 commands\nProcessed 3 inserts\nFailed 1 inserts\n"),
        "{err}"
    );

    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(format!("{head}m v=4 4\n").as_bytes()).unwrap();
    std::fs::write(&file, packed.finish().unwrap()).unwrap();
    let args = ["-import", "-path", path, "-compressed", "-pps", "1000"];
    assert_eq!(shell(&server, &args).0, Some(0));
    let count = server.query("imp", "SELECT count(v) FROM m").json();
    assert_eq!(count["results"][0]["series"][0]["values"][0][1], 4);

    let wrong = shell(&server, &["-import"]);
    assert!(wrong.0 == Some(1) && wrong.2.contains("-path"), "{wrong:?}");
    let wrong = shell(&server, &["-import", "-path", "/no/such"]);
    assert!(wrong.0 == Some(1) && wrong.2.contains("/no/such"), "{wrong:?}");
}

#[test]
fn users_and_mistakes() {
    let dir = temp_dir();
    let server = Server::start_with(dir.path(), &["--auth-enabled", "true"]);
    let create = "CREATE USER ann WITH PASSWORD 'secret' WITH ALL PRIVILEGES";
    assert_eq!(shell(&server, &["-execute", create]).0, Some(0));
    let args = ["-username", "ann", "-password", "secret", "-execute", "SHOW USERS"];
    let users = shell(&server, &args);
    assert_eq!(users, influx(&server, &args));
    assert!(users.1.contains("ann  true"), "{users:?}");
    let args = ["-username", "ann", "-password", "wrong", "-execute", "SHOW USERS"];
    assert_eq!(shell(&server, &args), influx(&server, &args));
    let nobody = nyala().args(["shell", "-port", "1", "-execute", "x"]).output().unwrap();
    let (code, _, err) = printed(nobody);
    assert!(code == Some(1) && err.contains("cannot connect to http://localhost:1"), "{err}");
}

#[test]
fn tls_and_sockets() {
    let dir = temp_dir();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let both = dir.path().join("tls.pem");
    std::fs::write(&both, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    let socket = dir.path().join("socket");
    let flags = ["--https-certificate", both.to_str().unwrap()];
    let server = Server::start_with(&dir.path().join("data"), &flags);
    let port = server.address.port().to_string();
    let ask = |args: &[&str], trusted: bool| {
        let mut command = nyala();
        command.args(["shell", "-host", "localhost", "-port", &port]).args(args);
        command.args(["-execute", "SHOW DATABASES"]);
        if trusted {
            command.env("SSL_CERT_FILE", &both);
        }
        printed(command.output().unwrap())
    };
    assert_eq!(ask(&["-ssl"], true).0, Some(0));
    assert_eq!(ask(&["-unsafeSsl"], false).0, Some(0));
    let untrusted = ask(&["-ssl"], false);
    assert!(untrusted.0 == Some(1) && untrusted.2.contains("certificate"), "{untrusted:?}");
    drop(server);
    let flags = ["--bind-socket", socket.to_str().unwrap()];
    let server = Server::start_with(&dir.path().join("more"), &flags);
    let path = socket.to_str().unwrap();
    let by_socket =
        nyala().args(["shell", "-socket", path, "-execute", "SHOW DATABASES"]).output().unwrap();
    assert_eq!(printed(by_socket), shell(&server, &["-execute", "SHOW DATABASES"]));
}

//! What the command lines of the tools have in common: options with one dash or two, as Go programs
//! have them, and switches that may be given a value.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command, value_parser};

use crate::http::{Endpoint, Place, Security};

/// A switch: `--name`, `--name=true`, `--name=false`.
pub(crate) fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .num_args(0..=1)
        .require_equals(true)
        .value_parser(value_parser!(bool))
        .default_missing_value("true")
        .hide_possible_values(true)
        .value_name("BOOL")
        .help(help)
}

/// Whether a switch is on.
pub(crate) fn is_on(matches: &ArgMatches, name: &str) -> bool {
    matches.get_one(name).copied().unwrap_or(false)
}

/// The text of an option; empty if it is not given.
pub(crate) fn text(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).cloned().unwrap_or_default()
}

/// The options that say which server, and as whom.
pub(crate) fn connection() -> Vec<Arg> {
    let value = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    vec![
        value("host", "HOST", "Host to connect to").default_value("localhost"),
        value("port", "PORT", "Port to connect to")
            .value_parser(value_parser!(u16))
            .default_value("8086"),
        value("socket", "PATH", "Unix socket to connect to, instead of host and port")
            .value_parser(value_parser!(PathBuf)),
        value("username", "NAME", "User").env("INFLUX_USERNAME"),
        value("password", "PASSWORD", "The user's password; '' asks for it")
            .env("INFLUX_PASSWORD")
            .hide_env_values(true),
        switch("ssl", "Speak TLS"),
        switch("unsafeSsl", "Speak TLS, and believe any certificate"),
    ]
}

/// The server that the options of [`connection`] say.
///
/// # Errors
/// A password cannot be asked for.
pub(crate) fn endpoint(matches: &ArgMatches) -> Result<Endpoint> {
    let security = match (is_on(matches, "unsafeSsl"), is_on(matches, "ssl")) {
        (true, _) => Security::TlsAnyCertificate,
        (false, true) => Security::Tls,
        (false, false) => Security::Plain,
    };
    let user = user(text(matches, "username"), matches.get_one("password"))?;
    let place = match matches.get_one::<PathBuf>("socket") {
        Some(path) => Place::Socket(path.clone()),
        None => {
            let host = text(matches, "host");
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Place::Tcp(host, matches.get_one("port").copied().unwrap_or(8086))
        }
    };
    Ok(Endpoint { place, security, user })
}

/// A user and its password, which is asked for if it is given as nothing.
///
/// # Errors
/// It cannot be asked for.
pub(crate) fn user(name: String, password: Option<&String>) -> Result<Option<(String, String)>> {
    if name.is_empty() {
        return Ok(None);
    }
    let password = match password {
        Some(password) if password.is_empty() => rpassword::prompt_password("password: ")?,
        password => password.cloned().unwrap_or_default(),
    };
    Ok(Some((name, password)))
}

/// Gives options with one dash the second one, and joins each with its value so that a value may
/// start with a dash. Only what `command` knows is touched.
#[must_use]
pub fn with_two_dashes(command: &Command, args: Vec<OsString>) -> Vec<OsString> {
    let mut out = Vec::with_capacity(args.len());
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let Some(option) = known(command, &arg) else {
            out.push(arg);
            continue;
        };
        let (option, has_value) = option;
        let mut joined = OsString::from("--");
        joined.push(arg.to_string_lossy().trim_start_matches('-'));
        let takes_value = option.get_action().takes_values() && !option.is_require_equals_set();
        if takes_value
            && !has_value
            && let Some(value) = args.next()
        {
            joined.push("=");
            joined.push(value);
        }
        out.push(joined);
    }
    out
}

/// The option that `arg` is, and whether it has its value with it.
fn known<'c>(command: &'c Command, arg: &OsStr) -> Option<(&'c Arg, bool)> {
    let text = arg.to_str()?;
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
    let (name, has_value) = match name.split_once('=') {
        Some((name, _)) => (name, true),
        None => (name, false),
    };
    if name.len() < 2 {
        return None;
    }
    let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
    Some((option, has_value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_or_two() {
        let command = Command::new("x")
            .arg(Arg::new("host").long("host"))
            .arg(switch("pretty", "p"))
            .arg(Arg::new("file"));
        let convert = |args: &[&str]| -> Vec<String> {
            let args = args.iter().map(OsString::from).collect();
            let args = with_two_dashes(&command, args);
            args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
        };
        assert_eq!(convert(&["-host", "a", "-pretty"]), ["--host=a", "--pretty"]);
        assert_eq!(convert(&["--host", "-a"]), ["--host=-a"]);
        assert_eq!(convert(&["-host=a=b", "-pretty=false"]), ["--host=a=b", "--pretty=false"]);
        assert_eq!(convert(&["-host"]), ["--host"]);
        assert_eq!(convert(&["-h", "-nosuch", "x", "-"]), ["-h", "-nosuch", "x", "-"]);
        let args = ["x".to_owned()].into_iter().chain(convert(&["-host", "-a", "-pretty", "f"]));
        let matches = command.clone().try_get_matches_from(args).unwrap();
        assert_eq!(text(&matches, "host"), "-a");
        assert!(is_on(&matches, "pretty"));
        assert_eq!(text(&matches, "file"), "f");
    }
}

//! The command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};

use crate::settings::{Layers, Resolved, SETTINGS, Settings, environment_name};
use crate::{inspect, serve};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const SETTINGS_HELP: &str = "\
Every setting can be given as a flag, as an environment variable or in a TOML file (by its name \
without the dashes in front: data-dir = \"/var/lib/nyala\"). Flags count more than the environment, \
the environment more than the file. `nyala config` shows what holds and why.

The file may also have sections for more listeners, [[graphite]], [[opentsdb]] and [[collectd]], and \
[monitor]; their keys are InfluxDB's, see README.";

/// Does what the command line says.
///
/// # Errors
/// Whatever the command says went wrong.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let args = tools::normalised(std::env::args_os().collect());
    let matches = match command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version come this way as well; exit codes are clap's.
            error.print()?;
            return Ok(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1)));
        }
    };
    match matches.subcommand() {
        Some(("serve", flags)) => serve::serve(&Settings::read(&layers(flags)?)?)?,
        Some(("config", flags)) => {
            let layers = layers(flags)?;
            Settings::read(&layers)?;
            let text = as_toml(&layers.resolve()?) + &layers.sections_text()?;
            io::stdout().write_all(text.as_bytes())?;
        }
        Some(("cluster", cluster)) => return cluster_command(cluster),
        Some(("inspect", flags)) => return inspect::run(flags),
        Some(("version", _)) => writeln!(io::stdout(), "nyala {VERSION}")?,
        Some((name, flags)) if let Some(done) = tools::run(name, flags) => return done,
        _ => command().print_help()?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `nyala cluster`; `status` fails if something is not well.
fn cluster_command(matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let Some((what, flags)) = matches.subcommand() else {
        let mut all = command();
        if let Some(cluster) = all.find_subcommand_mut("cluster") {
            cluster.print_help()?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let settings = Settings::read(&layers(flags)?)?;
    let options = settings.store.context("give the cluster: --store kudu://host:port/")?;
    let (text, is_well) = match what {
        "authority" => (store_kudu::cluster_authority(&options)?, true),
        _ => store_kudu::cluster_status(&options)?,
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn command() -> Command {
    Command::new("nyala")
        .version(VERSION)
        .about("A time-series database that speaks InfluxDB's 1.x API")
        .after_help("Start with: nyala serve")
        .subcommand(
            with_settings(Command::new("serve").about("Run the database"))
                .after_help(SETTINGS_HELP),
        )
        .subcommand(
            with_settings(
                Command::new("config").about("Show all settings and where they come from"),
            )
            .after_help(SETTINGS_HELP),
        )
        .subcommand(
            Command::new("cluster")
                .about("Look at a Kudu cluster")
                .subcommand(
                    with_settings(Command::new("status").about(
                        "Show masters, tablet servers and tables of the cluster given by --store; \
                         fails if one of them is lost or a tablet lacks a copy or its leader",
                    ))
                    .after_help(SETTINGS_HELP),
                )
                .subcommand(
                    with_settings(Command::new("authority").about(
                        "Print the certificate that the servers of the cluster given by --store are \
                         signed by, for ca-file; to be fetched over a network that is trusted",
                    ))
                    .after_help(SETTINGS_HELP),
                ),
        )
        .subcommands(tools::commands())
        .subcommand(inspect::command())
        .subcommand(Command::new("version").about("Show the version"))
}

fn with_settings(command: Command) -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(value_parser!(PathBuf))
        .help("TOML file with settings [env: NYALA_CONFIG]");
    SETTINGS.iter().fold(command.arg(config), |command, setting| {
        let variable = environment_name(setting);
        let help = format!("{} [default: {}] [env: {variable}]", setting.help, setting.default);
        let flag = Arg::new(setting.name).long(setting.name).value_name(setting.value_name);
        command.arg(flag.help(help))
    })
}

fn layers(matches: &ArgMatches) -> anyhow::Result<Layers> {
    let given = |name: &str| matches.get_one::<String>(name).cloned();
    let flags = SETTINGS.iter().filter_map(|s| Some((s.name.to_owned(), given(s.name)?)));
    let config = matches.get_one::<PathBuf>("config");
    Layers::collect(flags.collect(), config.map(PathBuf::as_path))
}

/// The settings as a file that says the same.
fn as_toml(resolved: &[Resolved]) -> String {
    let mut out = String::new();
    for Resolved { name, text, origin } in resolved {
        let secret = SETTINGS.iter().any(|setting| setting.secret && setting.name == *name);
        if secret && !text.is_empty() {
            out.push_str(&format!("# {name} is not shown: {origin}\n"));
            continue;
        }
        let value = toml::Value::String(text.clone());
        out.push_str(&format!("{name} = {value} # {origin}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn secrets_are_not_shown() {
        let flags = vec![("shared-secret".to_owned(), "abc123".to_owned())];
        let shown = as_toml(&Layers { flags, ..Layers::default() }.resolve().unwrap());
        assert!(!shown.contains("abc123"), "{shown}");
        assert!(shown.contains("# shared-secret is not shown: flag --shared-secret\n"), "{shown}");
    }

    #[test]
    fn what_is_shown_can_be_read_back() {
        let flags = vec![("data-dir".to_owned(), "a \"quoted\" dir".to_owned())];
        let layers = Layers { flags, ..Layers::default() };
        let shown = as_toml(&layers.resolve().unwrap());
        assert!(shown.contains("# flag --data-dir\n") && shown.contains("# default\n"), "{shown}");
        let again = Layers { file: Some(("f".into(), shown)), ..Layers::default() };
        let texts = |layers: &Layers| -> Vec<String> {
            layers.resolve().unwrap().into_iter().map(|r| r.text).collect()
        };
        assert_eq!(texts(&again), texts(&layers));
    }
}

//! The log: levels, to stderr, for people or for machines.

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, Settings};

/// Starts logging.
///
/// # Errors
/// The level is none, or something else logs already.
pub(crate) fn start(settings: &Settings) -> anyhow::Result<()> {
    let filter = EnvFilter::builder()
        .parse(&settings.log_level)
        .with_context(|| format!("log-level {}", settings.log_level))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match settings.log_format {
        LogFormat::Text => {
            let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(terminal).try_init()
        }
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start the log: {error}"))
}

//! The log of a running process: lines on standard error, for people or as JSON.

use clap::{Args, ValueEnum};
use std::io::IsTerminal;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::set_global_default;

/// Level and format of the log.
#[derive(Args, Clone, Copy)]
pub struct LogArguments {
    /// Least level of the log's lines on standard error
    #[arg(long = "log", value_name = "LEVEL", value_enum, default_value_t = Level::Info)]
    level: Level,
    /// Format of the log's lines
    #[arg(long = "log-format", value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// No line at all
    Off,
    /// Events that need an operator: packets are lost or ports are down
    Error,
    /// Events that may need an operator: fewer replicas, messages refused
    Warn,
    /// Every change of state
    Info,
    /// Each refused message
    Debug,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Time, level, place, text and values, for people
    Text,
    /// One JSON object a line
    Json,
}

impl LogArguments {
    /// Sends what the process says from here on to standard error.
    pub fn start(self) {
        let level = match self.level {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        };
        let lines = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        // A second call in one process changes nothing; there is none. `try_init` would also take what
        // other crates say by `log`, where another package has tracing-subscriber built for that.
        let _ = match self.format {
            Format::Text => set_global_default(lines.finish()),
            Format::Json => set_global_default(lines.json().flatten_event(true).finish()),
        };
    }
}

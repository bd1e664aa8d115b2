//! Commands for people on the calls that controllers use: `stateplane tables`,
//! `stateplane registers`, `stateplane ctl`.

pub mod ask;
mod coordination;
pub mod ctl;
mod heads;
pub mod registers;
mod store;
pub mod tables;
mod waiting;

use crate::exit::{CommandError, Failure};
use clap::Args;
use serde_json::Value;
use stateplane_rpc::client::data::Shown;
use stateplane_rpc::client::{ClientError, ClientTls, Connection, Target};
use stateplane_rpc::proto::config::P4Info;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Selection of a switch, and output format.
#[derive(Args)]
pub struct SwitchArguments {
    /// Address of the switch's P4Runtime server, as given to `stateplane run --p4runtime`
    #[arg(
        long,
        global = true,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:9559"
    )]
    connect: String,
    /// Device id of the switch
    #[arg(long, global = true, value_name = "NUMBER", default_value_t = 1)]
    device_id: u64,
    /// Use TLS; accept a switch whose certificate is signed by these roots (PEM)
    #[arg(long, global = true, value_name = "FILE")]
    tls_roots: Option<PathBuf>,
    /// Certificate of this client (PEM), for mutual TLS
    #[arg(long, global = true, value_name = "FILE", requires_all = ["tls_roots", "tls_key"])]
    tls_certificate: Option<PathBuf>,
    /// Private key of this client (PEM)
    #[arg(long, global = true, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

impl From<ClientError> for CommandError {
    fn from(error: ClientError) -> CommandError {
        let failure = match error {
            ClientError::Unreachable(..) => Failure::System,
            ClientError::Refused(_) => Failure::Input,
        };
        CommandError::new(failure, error)
    }
}

/// Cells of a row of a table.
pub(crate) fn row(cells: &[&dyn ToString]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

/// Error for wrong input of a person.
fn wrong(text: String) -> CommandError {
    CommandError::new(Failure::Input, text)
}

fn read(path: &Path) -> Result<Vec<u8>, CommandError> {
    std::fs::read(path)
        .map_err(|error| wrong(format!("{} cannot be read: {error}", path.display())))
}

impl SwitchArguments {
    fn open(&self) -> Result<Connection, CommandError> {
        let tls = match &self.tls_roots {
            Some(roots) => Some(ClientTls {
                roots: read(roots)?,
                identity: match (&self.tls_certificate, &self.tls_key) {
                    (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
                    _ => None,
                },
            }),
            None => None,
        };
        Ok(Connection::open(Target {
            address: self.connect.clone(),
            device_id: self.device_id,
            tls,
        })?)
    }

    /// A connection, and the P4Info of what runs there.
    fn open_with_info(&self) -> Result<(Connection, P4Info), CommandError> {
        let mut connection = self.open()?;
        let info = connection.pipeline()?.p4info.unwrap_or_default();
        Ok((connection, info))
    }

    /// Prints `value` if JSON is wanted, else `lines`.
    fn print(&self, value: &Value, lines: &[String]) {
        let mut output = std::io::stdout().lock();
        // A reader that has seen enough closes the pipe.
        let _ = if self.json {
            writeln!(output, "{value:#}")
        } else {
            lines.iter().try_for_each(|line| writeln!(output, "{line}"))
        };
    }
}

/// Rows in columns of equal width; the first row is the head.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths);
            let padded: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            padded.join("  ").trim_end().to_owned()
        })
        .collect()
}

/// A value with its parts as JSON.
fn json(shown: &Shown) -> Value {
    match shown {
        Shown::Text(text) => Value::from(text.as_str()),
        Shown::Parts(parts) => parts
            .iter()
            .map(|(name, part)| (name.clone(), json(part)))
            .collect(),
    }
}

/// Names with their values as a JSON object.
fn object(pairs: &[(String, String)]) -> Value {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect()
}

/// `A=1 B=2`.
fn joined(pairs: &[(String, String)]) -> String {
    let words: Vec<String> = pairs
        .iter()
        .map(|(name, value)| {
            if value.is_empty() {
                name.clone()
            } else {
                format!("{name}={value}")
            }
        })
        .collect();
    words.join(" ")
}

/// Indices of an array: one, `FROM..TO` without the last, or all.
fn indices(text: Option<&str>, size: u64) -> Result<std::ops::Range<u64>, CommandError> {
    let number = |text: &str| {
        let value = stateplane_rpc::client::value::read(text).map_err(wrong)?;
        u64::try_from(value).map_err(|_| wrong(format!("{text} is no index")))
    };
    let range = match text {
        None | Some("all") => 0..size,
        Some(text) => match text.split_once("..") {
            Some((from, to)) => {
                let to = if to.is_empty() { size } else { number(to)? };
                (if from.is_empty() { 0 } else { number(from)? })..to
            }
            None => {
                let index = number(text)?;
                index..index.saturating_add(1)
            }
        },
    };
    if range.start < range.end && range.end <= size {
        Ok(range)
    } else {
        Err(wrong(format!(
            "{} is not among the {size} elements: use an index of 0 to {}, FROM..TO or all",
            text.unwrap_or("all"),
            size.saturating_sub(1)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::{columns, indices};

    #[test]
    fn indices_are_one_some_or_all() {
        let read = |text| indices(text, 8).ok();
        assert_eq!(read(None), Some(0..8));
        assert_eq!(read(Some("all")), Some(0..8));
        assert_eq!(read(Some("3")), Some(3..4));
        assert_eq!(read(Some("0x2..4")), Some(2..4));
        assert_eq!(read(Some("6..")), Some(6..8));
        assert_eq!(read(Some("..2")), Some(0..2));
        for wrong in ["8", "4..2", "2..9", "x", "-1", "", "18446744073709551615"] {
            assert_eq!(read(Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let lines = columns(&[row(["a", "b"]), row(["long", "c"])]);
        assert_eq!(lines, ["a     b", "long  c"]);
    }
}

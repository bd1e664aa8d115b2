//! `stateplane view`: reads and changes the views of an engine of sync.

mod engine;
mod flows;
mod print;

pub use engine::EngineArguments;
use engine::take_all;

use crate::exit::{CommandError, Failure};
use clap::{Args, Subcommand};
use flows::FlowsCommand;
use print::Printer;
use stateplane_view::proto::v1::{self, view_client::ViewClient};
use stateplane_view::{code_of, unpack};
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Read, write, cut and watch the views of an engine (`stateplane engine`).
///
/// Each answer says how far it may be off: no location is farther than `bound` from its register at
/// a moment at most `age` ago. Of registers that a store has, `flows` and the commands with that word,
/// the states are exact as of such a moment. Exit code 5: a write's condition does not hold; 7: it is unknown
/// whether a change was made.
#[derive(Args)]
pub struct ViewArguments {
    #[command(flatten)]
    engine: EngineArguments,
    #[command(subcommand)]
    command: ViewCommand,
}

#[derive(Args)]
struct LimitArguments {
    /// The greatest bound that will do
    #[arg(long, value_name = "E")]
    bound: Option<u64>,
    /// The greatest age that will do, in µs
    #[arg(long, value_name = "MICROSECONDS")]
    max_age: Option<u64>,
}

#[derive(Subcommand)]
enum ViewCommand {
    /// List the groups that the engine follows
    Groups,
    /// Print values of a group: all that are not 0, or those of locations
    Read {
        /// Name of the group
        group: String,
        /// Locations; all that are not 0 without any
        locations: Vec<u32>,
        /// Of a moment after the request
        #[arg(long)]
        fresh: bool,
        #[command(flatten)]
        limits: LimitArguments,
    },
    /// Print what counters have counted, over widths and resets: all that is not 0, or of locations
    ///
    /// Behind each total stands a number that changes when it is broken off, 0 before the first time. Between
    /// two readings with the same number it went on by what was counted between them.
    Totals {
        /// Name of the group, whose section in the engine's file has `counter_bits`
        group: String,
        /// Locations; all that are not 0 without any
        locations: Vec<u32>,
        /// Of a moment after the request
        #[arg(long)]
        fresh: bool,
        #[command(flatten)]
        limits: LimitArguments,
    },
    /// Change values, all at once; with --add those of one message to the switch
    Write {
        /// Name of the group
        group: String,
        /// Locations and values
        #[arg(value_name = "LOCATION=VALUE", required = true, value_parser = assignment)]
        values: Vec<(u32, u64)>,
        /// Add the values, modulo the registers' width
        #[arg(long, conflicts_with = "if_value")]
        add: bool,
        /// Only if the location has this value
        #[arg(long = "if", value_name = "VALUE")]
        if_value: Option<u64>,
        /// 32 hexadecimal digits by which the change is known: it is applied once, however often it
        /// is asked for
        #[arg(long, value_name = "DIGITS", value_parser = id)]
        id: Option<[u8; 16]>,
    },
    /// Give all locations one value, at once
    Fill {
        /// Name of the group
        group: String,
        /// The value
        value: u64,
    },
    /// Print what all locations hold at one moment
    Cut {
        /// Name of the group
        group: String,
        /// Give all locations this value at that moment
        #[arg(long, value_name = "VALUE")]
        fill: Option<u64>,
        /// Keep the window, so that `windows` prints it again
        #[arg(long)]
        keep: bool,
    },
    /// Print windows that are kept, and those that come, in order, each once
    Windows {
        /// Name of the group
        group: String,
        /// Number of the last window that is known already
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: u64,
        /// Stop after so many
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
    /// Print changes of a view, and word when it is not within limits
    Watch {
        /// Name of the group
        group: String,
        /// Locations; all without any
        locations: Vec<u32>,
        #[command(flatten)]
        limits: LimitArguments,
        /// Least time between two notifications, in ms
        #[arg(long, value_name = "MILLISECONDS", default_value_t = 100)]
        interval: u64,
        /// A notification comes after this time also if nothing changed, in ms; 0: never
        #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
        heartbeat: u64,
        /// Stop after so many notifications
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
    #[command(flatten)]
    Flows(FlowsCommand),
}

fn assignment(text: &str) -> Result<(u32, u64), String> {
    let parts = text.split_once('=');
    let (location, value) = parts.ok_or("write a change as LOCATION=VALUE")?;
    let location = location
        .parse()
        .map_err(|_| format!("no location: {location}"))?;
    let value = value.parse().map_err(|_| format!("no value: {value}"))?;
    Ok((location, value))
}

fn id(text: &str) -> Result<[u8; 16], String> {
    let number = u128::from_str_radix(text, 16)
        .ok()
        .filter(|_| text.len() == 32);
    let number = number.ok_or("an id has 32 hexadecimal digits")?;
    Ok(number.to_be_bytes())
}

/// Runs the command.
pub fn run(arguments: &ViewArguments) -> Result<(), CommandError> {
    arguments.engine.run(carry_out(arguments))
}

struct Session<'a> {
    engine: &'a EngineArguments,
    client: ViewClient<Channel>,
    patience_us: u64,
    printer: Printer,
}

/// The command's failure that a refusal means.
pub fn refused(status: Status) -> CommandError {
    let failure = match status.code() {
        Code::Unknown => Failure::Unknown,
        Code::NotFound | Code::OutOfRange | Code::InvalidArgument => Failure::Input,
        _ => Failure::System,
    };
    match code_of(&status) {
        Some(code) => CommandError::coded(failure, code, status.message()),
        None => CommandError::new(Failure::System, status.message()),
    }
}

impl LimitArguments {
    fn limits(&self, fresh: bool) -> Option<v1::Limits> {
        Some(v1::Limits {
            fresh,
            bound: self.bound,
            max_age_us: self.max_age,
        })
    }
}

async fn carry_out(arguments: &ViewArguments) -> Result<(), CommandError> {
    let engine = &arguments.engine;
    if let ViewCommand::Flows(command) = &arguments.command {
        return flows::carry_out(engine, command).await;
    }
    let mut session = Session {
        engine,
        client: engine.client().await?,
        patience_us: engine.patience_us(),
        printer: Printer { json: engine.json },
    };
    match &arguments.command {
        ViewCommand::Groups => session.groups().await,
        ViewCommand::Read {
            group,
            locations,
            fresh,
            limits,
        } => session.read(group, locations, limits.limits(*fresh)).await,
        ViewCommand::Totals {
            group,
            locations,
            fresh,
            limits,
        } => {
            let limits = limits.limits(*fresh);
            session.totals(group, locations, limits).await
        }
        ViewCommand::Write {
            group,
            values,
            add,
            if_value,
            id,
        } => {
            let id = id.map_or(Vec::new(), |id| id.to_vec());
            match if_value {
                Some(expected) => session.write_if(group, values, *expected, id).await,
                None => session.write(group, values, *add, id).await,
            }
        }
        ViewCommand::Fill { group, value } => session.fill(group, *value).await,
        ViewCommand::Cut { group, fill, keep } => session.cut(group, *fill, *keep).await,
        ViewCommand::Windows {
            group,
            after,
            count,
        } => session.windows(group, *after, *count).await,
        ViewCommand::Watch {
            group,
            locations,
            limits,
            interval,
            heartbeat,
            count,
        } => {
            let request = v1::SubscribeRequest {
                group: group.clone(),
                limits: limits.limits(false),
                locations: packed(locations.iter().copied()).into(),
                interval_us: interval.saturating_mul(1000),
                heartbeat_us: heartbeat.saturating_mul(1000),
            };
            session.watch(request, *count).await
        }
        ViewCommand::Flows(_) => Ok(()),
    }
}

/// Packed locations.
fn packed(locations: impl Iterator<Item = u32>) -> Vec<u8> {
    locations.flat_map(u32::to_le_bytes).collect()
}

/// Refuses locations that the group does not have.
fn check_locations(group: &str, locations: &[u32], count: usize) -> Result<(), CommandError> {
    match locations.iter().find(|at| **at as usize >= count) {
        Some(location) => {
            let last = count.saturating_sub(1);
            let message =
                format!("group `{group}` has no location {location}: they are 0 to {last}");
            Err(CommandError::coded(Failure::Input, "SYNC012", message))
        }
        None => Ok(()),
    }
}

impl Session<'_> {
    async fn groups(&mut self) -> Result<(), CommandError> {
        let said = self.client.groups(v1::GroupsRequest {}).await;
        self.printer.groups(&said.map_err(refused)?.into_inner());
        Ok(())
    }

    fn all_of(&self, group: &str, limits: Option<v1::Limits>) -> v1::ReadAllValuesRequest {
        v1::ReadAllValuesRequest {
            group: group.to_owned(),
            limits,
            patience_us: self.patience_us,
        }
    }

    async fn read(
        &mut self,
        group: &str,
        locations: &[u32],
        limits: Option<v1::Limits>,
    ) -> Result<(), CommandError> {
        let said = self
            .client
            .read_all_values(self.all_of(group, limits))
            .await;
        let said = said.map_err(refused)?.into_inner();
        let values: Vec<u64> = unpack(&said.values).collect();
        check_locations(group, locations, values.len())?;
        self.printer
            .values(group, said.told.as_ref(), &values, locations);
        Ok(())
    }

    async fn totals(
        &mut self,
        group: &str,
        locations: &[u32],
        limits: Option<v1::Limits>,
    ) -> Result<(), CommandError> {
        let said = self.client.read_totals(self.all_of(group, limits)).await;
        let said = said.map_err(refused)?.into_inner();
        let (breaks, _) = said.discontinuities.as_chunks::<4>();
        let breaks = breaks.iter().map(|bytes| u32::from_le_bytes(*bytes));
        let totals: Vec<(u64, u32)> = unpack(&said.totals).zip(breaks).collect();
        check_locations(group, locations, totals.len())?;
        self.printer
            .totals(group, said.told.as_ref(), &totals, locations);
        Ok(())
    }

    async fn write(
        &mut self,
        group: &str,
        values: &[(u32, u64)],
        add: bool,
        id: Vec<u8>,
    ) -> Result<(), CommandError> {
        let operation = if add {
            v1::Operation::Add
        } else {
            v1::Operation::Set
        };
        let bytes = values.iter().flat_map(|(_, value)| value.to_le_bytes());
        let request = v1::WriteValuesRequest {
            group: group.to_owned(),
            locations: packed(values.iter().map(|(location, _)| *location)).into(),
            values: bytes.collect::<Vec<u8>>().into(),
            operation: operation.into(),
            id: id.into(),
            patience_us: self.patience_us,
        };
        let said = self.client.write_values(request).await;
        self.written(said.map_err(refused)?.get_ref())
    }

    async fn write_if(
        &mut self,
        group: &str,
        values: &[(u32, u64)],
        expected: u64,
        id: Vec<u8>,
    ) -> Result<(), CommandError> {
        let &[(location, value)] = values else {
            let message = "--if is for one location";
            return Err(CommandError::new(Failure::Input, message));
        };
        let request = v1::WriteValueRequest {
            group: group.to_owned(),
            location,
            value,
            operation: v1::Operation::SetIfEqual.into(),
            expected,
            id: id.into(),
            patience_us: self.patience_us,
        };
        let said = self.client.write_value(request).await;
        self.written(said.map_err(refused)?.get_ref())
    }

    fn written(&self, said: &v1::WriteResponse) -> Result<(), CommandError> {
        self.printer.written(said);
        if said.done {
            return Ok(());
        }
        let message = "the location has another value; nothing was changed";
        Err(CommandError::new(Failure::Mismatch, message))
    }

    async fn fill(&mut self, group: &str, value: u64) -> Result<(), CommandError> {
        let request = v1::WriteAllValuesRequest {
            group: group.to_owned(),
            what: Some(v1::write_all_values_request::What::Fill(value)),
            patience_us: self.patience_us,
            ..v1::WriteAllValuesRequest::default()
        };
        let said = self.client.write_all_values(request).await;
        said.map_err(refused)?;
        Ok(())
    }

    async fn cut(
        &mut self,
        group: &str,
        fill: Option<u64>,
        keep: bool,
    ) -> Result<(), CommandError> {
        let request = v1::CutRequest {
            group: group.to_owned(),
            fill,
            keep,
            patience_us: self.patience_us,
        };
        let said = self.client.cut(request).await;
        self.printer.window(group, said.map_err(refused)?.get_ref());
        Ok(())
    }

    async fn windows(
        &mut self,
        group: &str,
        after: u64,
        count: Option<u64>,
    ) -> Result<(), CommandError> {
        let (mut after, mut left) = (after, count.unwrap_or(u64::MAX));
        loop {
            let request = v1::WindowsRequest {
                group: group.to_owned(),
                after,
            };
            let opened = self.client.windows(request).await;
            let ended = take_all(opened, &mut left, |window| {
                self.printer.window(group, &window);
                after = window.number;
            });
            match ended.await {
                None => return Ok(()),
                Some(ended) => self.follow(ended).await?,
            }
        }
    }

    async fn watch(
        &mut self,
        request: v1::SubscribeRequest,
        count: Option<u64>,
    ) -> Result<(), CommandError> {
        let mut left = count.unwrap_or(u64::MAX);
        loop {
            let opened = self.client.subscribe(request.clone()).await;
            let ended = take_all(opened, &mut left, |next| {
                self.printer.notification(&request.group, &next);
            });
            match ended.await {
                None => return Ok(()),
                Some(ended) => self.follow(ended).await?,
            }
        }
    }

    /// Goes to the engine that leads when that of a stream has ended or stands by.
    async fn follow(&mut self, ended: Status) -> Result<(), CommandError> {
        if !self.engine.goes_on(&ended) {
            return Err(refused(ended));
        }
        self.client = self.engine.client().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_ids_are_read() {
        assert_eq!(assignment("3=18446744073709551615"), Ok((3, u64::MAX)));
        for wrong in ["3", "=1", "3=", "-1=3", "4294967296=1"] {
            assert!(assignment(wrong).is_err(), "{wrong}");
        }
        assert_eq!(id(&"0f".repeat(16)), Ok([15; 16]));
        for wrong in ["", "0f", &"0g".repeat(16)] {
            assert!(id(wrong).is_err(), "{wrong}");
        }
    }
}

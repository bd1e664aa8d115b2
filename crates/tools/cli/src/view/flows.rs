//! `stateplane view`: flows that a store has.

mod hex;
mod print;
mod snapshots;

use super::engine::take_all;
use super::{EngineArguments, refused};
use crate::exit::{CommandError, Failure};
use clap::{Args, Subcommand};
use print::FlowsPrinter;
use snapshots::SnapshotsCommand;
use stateplane_view::proto::v1::write_flow_request::Change;
use stateplane_view::proto::v1::{self, flows_client::FlowsClient};
use tonic::Status;
use tonic::transport::Channel;

/// Limits of a view of flows.
#[derive(Args)]
pub struct AgeArguments {
    /// The greatest age that will do, in µs
    #[arg(long, value_name = "MICROSECONDS")]
    max_age: Option<u64>,
}

/// The flow that is changed.
#[derive(Args)]
pub struct FlowArguments {
    /// Name of the flows
    name: String,
    /// Key of the flow, 32 hexadecimal digits
    #[arg(value_parser = hex::key)]
    key: hex::Bytes,
    /// Shard of the flow, needed only if several have one with this key
    #[arg(long, value_name = "NUMBER")]
    shard: Option<u16>,
}

/// Commands about flows.
#[derive(Subcommand)]
pub enum FlowsCommand {
    /// List the flows that the engine follows in stores, or print those of a name
    Flows {
        /// Name of the flows; the list of names without it
        name: Option<String>,
        /// Only flows of this class, the first byte of their keys
        #[arg(long, value_name = "N", requires = "name")]
        class: Option<u8>,
        /// With all that was acknowledged before the request
        #[arg(long, requires = "name")]
        fresh: bool,
        #[command(flatten)]
        limits: AgeArguments,
    },
    /// Print one flow that a store has
    Flow {
        /// Name of the flows
        name: String,
        /// Key of the flow, 32 hexadecimal digits
        #[arg(value_parser = hex::key)]
        key: hex::Bytes,
        /// With all that was acknowledged before the request
        #[arg(long)]
        fresh: bool,
        #[command(flatten)]
        limits: AgeArguments,
    },
    /// Give a flow that a store has another state
    ///
    /// The engine takes the flow's lease as a switch does, so that a switch which holds it gives it
    /// up, writes, and gives the lease up. The state is then as if it came from a packet.
    SetFlow {
        #[command(flatten)]
        flow: FlowArguments,
        /// The state, hexadecimal, as long as it is
        #[arg(value_parser = hex::state)]
        state: hex::Bytes,
        /// Only if the flow has this state
        #[arg(long = "if", value_name = "STATE", value_parser = hex::state)]
        if_state: Option<hex::Bytes>,
    },
    /// Add to a number within the state of a flow that a store has, and print the state
    AddFlow {
        #[command(flatten)]
        flow: FlowArguments,
        /// By how much the number grows, modulo its width; with a minus sign it shrinks
        #[arg(allow_negative_numbers = true, value_parser = amount)]
        amount: u64,
        /// First byte of the number, which is big-endian
        #[arg(long, value_name = "BYTE", default_value_t = 0)]
        at: u16,
        /// Bytes of the number, 1 to 8; to the end of the state unless given
        #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u8).range(1..=8))]
        length: Option<u8>,
    },
    /// Print changes of flows that a store has, and word when the view is not within limits
    WatchFlows {
        /// Name of the flows
        name: String,
        /// Only flows of this class, the first byte of their keys
        #[arg(long, value_name = "N")]
        class: Option<u8>,
        #[command(flatten)]
        limits: AgeArguments,
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
    Snapshots(SnapshotsCommand),
}

fn amount(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix('-') {
        Some(shrinks) => shrinks.parse().map(u64::wrapping_neg),
        None => text.parse(),
    };
    number.map_err(|_| "an amount is a decimal number, at most 18446744073709551615".to_owned())
}

struct Session<'a> {
    engine: &'a EngineArguments,
    client: FlowsClient<Channel>,
    printer: FlowsPrinter,
}

/// Runs a command.
pub async fn carry_out(
    engine: &EngineArguments,
    command: &FlowsCommand,
) -> Result<(), CommandError> {
    let mut session = Session {
        engine,
        client: engine.flows_client().await?,
        printer: FlowsPrinter { json: engine.json },
    };
    match command {
        FlowsCommand::Snapshots(command) => session.carry_out(command).await,
        FlowsCommand::Flows { name: None, .. } => session.list().await,
        FlowsCommand::Flows {
            name: Some(name),
            class,
            fresh,
            limits,
        } => {
            let read = v1::ReadFlowsRequest {
                class: class.map(u32::from),
                ..session.reads(name, limits.limits(*fresh))
            };
            session.read(read).await
        }
        FlowsCommand::Flow {
            name,
            key,
            fresh,
            limits,
        } => {
            let read = v1::ReadFlowsRequest {
                key: key.0.clone().into(),
                ..session.reads(name, limits.limits(*fresh))
            };
            session.read_one(read).await
        }
        FlowsCommand::SetFlow {
            flow,
            state,
            if_state,
        } => {
            let state = state.0.clone().into();
            let change = match if_state {
                None => Change::Set(state),
                Some(expected) => Change::SetIfEqual(v1::SetIfEqual {
                    expected: expected.0.clone().into(),
                    state,
                }),
            };
            session.write(flow, change).await
        }
        FlowsCommand::AddFlow {
            flow,
            amount,
            at,
            length,
        } => {
            let change = Change::Add(v1::AddToState {
                at: (*at).into(),
                length: length.unwrap_or(0).into(),
                amount: *amount,
            });
            session.write(flow, change).await
        }
        FlowsCommand::WatchFlows {
            name,
            class,
            limits,
            interval,
            heartbeat,
            count,
        } => {
            let request = v1::SubscribeFlowsRequest {
                name: name.clone(),
                class: class.map(u32::from),
                limits: limits.limits(false),
                interval_us: interval.saturating_mul(1000),
                heartbeat_us: heartbeat.saturating_mul(1000),
            };
            session.watch(request, *count).await
        }
    }
}

impl AgeArguments {
    fn limits(&self, fresh: bool) -> Option<v1::FlowsLimits> {
        Some(v1::FlowsLimits {
            fresh,
            max_age_us: self.max_age,
        })
    }
}

impl Session<'_> {
    async fn list(&mut self) -> Result<(), CommandError> {
        let said = self.client.list(v1::ListFlowsRequest {}).await;
        self.printer.list(&said.map_err(refused)?.into_inner());
        Ok(())
    }

    fn reads(&self, name: &str, limits: Option<v1::FlowsLimits>) -> v1::ReadFlowsRequest {
        v1::ReadFlowsRequest {
            name: name.to_owned(),
            limits,
            patience_us: self.engine.patience_us(),
            ..v1::ReadFlowsRequest::default()
        }
    }

    async fn read(&mut self, request: v1::ReadFlowsRequest) -> Result<(), CommandError> {
        let name = request.name.clone();
        let said = self.client.read(request).await.map_err(refused)?;
        self.printer.flows(&name, said.get_ref());
        Ok(())
    }

    async fn read_one(&mut self, request: v1::ReadFlowsRequest) -> Result<(), CommandError> {
        let name = request.name.clone();
        let said = self.client.read(request).await.map_err(refused)?;
        if said.get_ref().flows.is_empty() {
            let message = format!("flows `{name}` have none with this key");
            return Err(CommandError::coded(Failure::Input, "SYNC031", message));
        }
        self.printer.flows(&name, said.get_ref());
        Ok(())
    }

    async fn write(&mut self, flow: &FlowArguments, change: Change) -> Result<(), CommandError> {
        let request = v1::WriteFlowRequest {
            name: flow.name.clone(),
            key: flow.key.0.clone().into(),
            shard: flow.shard.map(u32::from),
            change: Some(change),
            patience_us: self.engine.patience_us(),
        };
        let said = self.client.write(request).await.map_err(refused)?;
        self.printer.written(said.get_ref());
        if said.get_ref().done {
            return Ok(());
        }
        let state = hex::text(&said.get_ref().state);
        let message = format!("the flow has another state, {state}; nothing was changed");
        Err(CommandError::new(Failure::Mismatch, message))
    }

    async fn watch(
        &mut self,
        request: v1::SubscribeFlowsRequest,
        count: Option<u64>,
    ) -> Result<(), CommandError> {
        let mut left = count.unwrap_or(u64::MAX);
        loop {
            let opened = self.client.subscribe(request.clone()).await;
            let ended = take_all(opened, &mut left, |next| {
                self.printer.notification(&request.name, &next);
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
        self.client = self.engine.flows_client().await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_grow_and_shrink() {
        assert_eq!(amount("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(amount("-1"), Ok(u64::MAX));
        assert_eq!(amount("-2"), Ok(u64::MAX - 1));
        for wrong in ["", "-", "0x1", "1.5", "18446744073709551616", "--1"] {
            assert!(amount(wrong).is_err(), "{wrong}");
        }
    }
}

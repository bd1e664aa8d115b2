//! The engine that is asked, of one or several.

use super::refused;
use crate::exit::{CommandError, Failure};
use clap::Args;
use stateplane_view::proto::v1::{self, flows_client::FlowsClient, view_client::ViewClient};
use stateplane_view::{code_of, flows_client, is_standby, open, view_client};
use std::time::Duration;
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};

/// Longest time for one of several engines to say that it leads.
const LOOK: Duration = Duration::from_secs(1);

/// Time before engines of which none leads are asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Hands the messages of a stream to `take`, until `left` of them came. Gives the status with which an engine
/// refused or ended the stream; `None` if enough came, or it ended in order.
pub async fn take_all<T>(
    opened: Result<Response<Streaming<T>>, Status>,
    left: &mut u64,
    mut take: impl FnMut(T),
) -> Option<Status> {
    let mut messages = match opened {
        Ok(said) => said.into_inner(),
        Err(status) => return Some(status),
    };
    while *left > 0 {
        match messages.message().await {
            Ok(Some(next)) => {
                take(next);
                *left -= 1;
            }
            Ok(None) => return None,
            Err(status) => return Some(status),
        }
    }
    None
}

/// Address of an engine, and the form in which its answers are printed.
#[derive(Args)]
pub struct EngineArguments {
    /// Address of the engine, `rpc` in its file; of engines that stand by for each other all, and
    /// the one that leads is asked
    #[arg(
        long = "engine",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9560",
        value_delimiter = ',',
        global = true
    )]
    pub addresses: Vec<String>,
    /// Seconds until a request is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, global = true)]
    pub timeout: f64,
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    pub json: bool,
}

impl EngineArguments {
    /// Runs what asks an engine.
    pub fn run(
        &self,
        asks: impl Future<Output = Result<(), CommandError>>,
    ) -> Result<(), CommandError> {
        if !(0.001..=600.0).contains(&self.timeout) {
            let message = "--timeout is between 0.001 and 600 seconds";
            return Err(CommandError::new(Failure::Input, message));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CommandError::new(Failure::System, error))?;
        runtime.block_on(asks)
    }

    /// A client of the views of the engine, or of the one of several that leads.
    pub async fn client(&self) -> Result<ViewClient<Channel>, CommandError> {
        Ok(view_client(self.channel().await?))
    }

    /// A client of the flows of the engine, or of the one of several that leads.
    pub async fn flows_client(&self) -> Result<FlowsClient<Channel>, CommandError> {
        Ok(flows_client(self.channel().await?))
    }

    async fn channel(&self) -> Result<Channel, CommandError> {
        match self.addresses.as_slice() {
            [only] => self.reach(only).await,
            all => self.find(all).await,
        }
    }

    async fn reach(&self, address: &str) -> Result<Channel, CommandError> {
        let opened = open(format!("http://{address}")).await;
        opened.map_err(|error| {
            let message = format!("no engine answers at {address}: {error}");
            CommandError::new(Failure::System, message)
        })
    }

    /// Asks each engine in turn, until one leads or the time is over.
    async fn find(&self, addresses: &[String]) -> Result<Channel, CommandError> {
        let patience = Duration::from_secs_f64(self.timeout);
        let mut last = None;
        let search = async {
            loop {
                for address in addresses {
                    match tokio::time::timeout(LOOK, self.leader(address)).await {
                        Ok(Ok(channel)) => return channel,
                        Ok(Err(error)) => last = Some(error),
                        Err(_) => {
                            let message = format!("no engine answers at {address} in time");
                            last = Some(CommandError::new(Failure::System, message));
                        }
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let found = tokio::time::timeout(patience, search).await;
        found.map_err(|_| {
            last.unwrap_or_else(|| CommandError::new(Failure::System, "no engine answers in time"))
        })
    }

    /// A connection to the engine at `address`, if that leads.
    async fn leader(&self, address: &str) -> Result<Channel, CommandError> {
        let channel = self.reach(address).await?;
        let mut views = view_client(channel.clone());
        let said = views.groups(v1::GroupsRequest {}).await;
        said.map_err(refused)?;
        Ok(channel)
    }

    /// True if a stream that ended so goes on at another engine.
    pub(super) fn goes_on(&self, status: &Status) -> bool {
        let is_lost = status.code() == Code::Unavailable && code_of(status).is_none();
        self.addresses.len() > 1 && (is_lost || is_standby(status) || is_cut(status))
    }

    /// Time that the engine has for an answer, in µs.
    pub fn patience_us(&self) -> u64 {
        Duration::from_secs_f64(self.timeout).as_micros() as u64
    }
}

/// True if the connection of a stream broke.
fn is_cut(status: &Status) -> bool {
    status.code() == Code::Unknown && code_of(status).is_none()
}

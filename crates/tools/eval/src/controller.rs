//! An external controller of `apps/nat/controlled.p4`, as the paper has one: it makes the
//! mappings of a NAT that keeps none itself, over P4Runtime. What it decides is kept by a chain
//! of replicas before the switch hears of it. Processes of their own, in the switch's node.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "controllers talk over sockets"
)]

mod mappings;
mod replica;
mod session;

pub use mappings::{Decision, Mappings};

use crate::error::EvalError;
use clap::Args;
use replica::Next;
use session::Session;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Arguments of a controller.
#[derive(Clone, Debug, Args)]
pub struct ControllerArguments {
    /// Address at which the switch serves P4Runtime.
    #[arg(long)]
    switch: SocketAddr,
    /// The public address of the mappings.
    #[arg(long)]
    public: Ipv4Addr,
    /// The replica behind this controller; none without.
    #[arg(long)]
    next: Option<SocketAddr>,
}

/// Arguments of a replica.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArguments {
    /// Address for the predecessor in the chain.
    #[arg(long)]
    listen: SocketAddr,
    /// The one behind; none without.
    #[arg(long)]
    next: Option<SocketAddr>,
}

/// Controls the switch until it goes away.
///
/// # Errors
/// `EV006` if the switch or a replica refuses or goes away.
pub fn control(arguments: &ControllerArguments) -> Result<(), EvalError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| EvalError::controller("the system", error))?;
    let mut next = arguments.next.map(Next::connect).transpose()?;
    let mut mappings = Mappings::new(arguments.public);
    runtime.block_on(async {
        let mut session = Session::open(arguments.switch).await?;
        say_ready()?;
        while let Some(packet) = session.packet_in().await? {
            let Some(mapping) = session.wanted(&packet) else {
                continue;
            };
            match mappings.decide(mapping) {
                Decision::Known => {}
                Decision::Exhausted => continue,
                Decision::New(port) => {
                    if let Some(next) = &mut next {
                        next.keep(mapping, port)?;
                    }
                    session.write(&mappings.entries(mapping, port)).await?;
                }
            }
            session.packet_out(packet.payload).await?;
        }
        Ok(())
    })
}

/// Keeps what the controllers before it in the chain decide, until they go away.
///
/// # Errors
/// `EV006` if the one before or the one behind cannot be spoken to.
pub fn replicate(arguments: &ReplicaArguments) -> Result<(), EvalError> {
    let who = || format!("a replica at {}", arguments.listen);
    let listener =
        TcpListener::bind(arguments.listen).map_err(|error| EvalError::controller(who(), error))?;
    let mut next = arguments.next.map(Next::connect).transpose()?;
    say_ready()?;
    let (stream, _) = listener
        .accept()
        .map_err(|error| EvalError::controller(who(), error))?;
    replica::serve(stream, next.as_mut()).map(drop)
}

fn say_ready() -> Result<(), EvalError> {
    let mut output = std::io::stdout();
    writeln!(output, "ready")
        .and_then(|()| output.flush())
        .map_err(|error| EvalError::controller("standard output", error))
}

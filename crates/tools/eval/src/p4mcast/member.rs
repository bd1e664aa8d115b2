//! `stateplane eval multicast-member`: a member of the protocol like PrimCast in its node, on a socket
//! of the kernel. Each message of the protocol is a datagram of its own; a system call takes or sends
//! several of them.

use super::primcast::{Member, To};
use super::system::{self, PORT, Shape};
use crate::error::EvalError;
use clap::Args;
use stateplane_host::clock::boot_time_us;
use stateplane_host::datagram::Endpoint;
use std::io::{self, Write};
use std::net::SocketAddrV4;

/// Longest wait for a datagram in µs.
const WAIT_US: u64 = 1_000_000;

/// Arguments of a member.
#[derive(Clone, Debug, Args)]
pub struct MemberArguments {
    /// Its place.
    #[arg(long)]
    place: u8,
    /// Groups.
    #[arg(long)]
    groups: u8,
    /// Members of each.
    #[arg(long)]
    members: u8,
}

/// Says `ready`, and takes part until it is killed.
///
/// # Errors
/// `EV002` if the system refuses.
pub fn run(arguments: &MemberArguments) -> Result<(), EvalError> {
    serve(arguments).map_err(|reason| EvalError::file("multicast-member", reason))
}

fn serve(arguments: &MemberArguments) -> io::Result<()> {
    let shape = Shape {
        groups: arguments.groups.clamp(1, 2),
        members: arguments.members.max(1),
    };
    let place = arguments.place;
    let address = |place| SocketAddrV4::new(system::place(place), PORT);
    let receiver = shape.receiver_of(place).map(system::receiver);
    let mut member = Member::new(shape, place);
    let mut endpoint = Endpoint::open(address(place))?;
    let mut leaves = Vec::new();
    {
        let mut out = io::stdout().lock();
        writeln!(out, "ready")?;
        out.flush()?;
    }
    loop {
        endpoint.wait_until(boot_time_us() + WAIT_US)?;
        loop {
            let more = endpoint.take()?;
            for (_, datagram) in endpoint.taken() {
                member.handle(datagram, &mut |to, datagram| leaves.push((to, datagram)));
            }
            for (to, datagram) in leaves.drain(..) {
                let to = match to {
                    To::Place(place) => Some(address(place)),
                    To::Receiver => receiver,
                };
                if let Some(to) = to {
                    endpoint.push(to, datagram);
                }
            }
            endpoint.flush();
            if !more {
                break;
            }
        }
    }
}

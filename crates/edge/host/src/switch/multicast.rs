//! Keeps a switch's tables of multicast as the controller says, and tells it that the switch lives.

mod line;
mod rows;
mod standing;

use super::Remote;
use crate::clock::boot_time_us;
use crate::poll::Readable;
use stateplane_multicast_groups::Follower;
use stateplane_multicast_setup::SetupError;
use stateplane_runtime::{Engine, StateError};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;

use line::{Gone, Line};
use rows::View;
use standing::look;

/// Shortest time between two BEATs.
const LEAST_BEAT_US: u64 = 1_000;

/// How a switch follows the controllers of multicast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Following {
    /// Addresses and UDP ports of the controllers; they are reached by the machine's own network,
    /// not by the switch's ports.
    pub controllers: Vec<SocketAddrV4>,
    /// Number of the switch, which no other has.
    pub switch: u32,
    /// Bytes of the longest payload.
    pub longest: u16,
    /// µs between two BEATs.
    pub beat_us: u64,
    /// True if messages are sealed, with the keys of the switch's ports.
    pub sealed: bool,
}

/// Why a switch cannot follow.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The socket towards the controllers cannot be used.
    #[error("multicast: no socket to the controllers: {0}")]
    Socket(io::Error),
    /// The program lacks a register of the library.
    #[error("multicast: {0}")]
    State(#[from] StateError),
    /// The program or the switch does not take a row.
    #[error("multicast: {0}")]
    Rows(#[from] SetupError),
    /// A host or switch that the program's tables do not lead to.
    #[error(
        "multicast: the tables of the router lead nowhere for {0}: add a route and the neighbour"
    )]
    NoRoute(Ipv4Addr),
}

impl FollowError {
    /// A short stable code, for messages and tests; that of the inner error if there is one.
    pub fn code(&self) -> &'static str {
        match self {
            FollowError::Socket(_) => "H248",
            FollowError::State(error) => error.code(),
            FollowError::Rows(error) => error.code(),
            FollowError::NoRoute(_) => "H249",
        }
    }
}

/// Follows the controllers for the switch behind `remote`, until that has stopped. `told` gets
/// errors; the rest takes effect all the same.
///
/// # Errors
///
/// [`FollowError::Socket`].
pub fn follow_multicast<E: Engine + 'static>(
    following: &Following,
    remote: &Arc<Remote<E>>,
    told: &mut dyn FnMut(&FollowError),
) -> Result<(), FollowError> {
    let mut line = Line::open(following.sealed).map_err(FollowError::Socket)?;
    let mut readable = Readable::new([line.descriptor()]).map_err(FollowError::Socket)?;
    let mut last = String::new();
    // A fault that stays is told once, not with each BEAT.
    let mut tell = |error: &FollowError| {
        let text = error.to_string();
        if text != last {
            told(error);
            last = text;
        }
    };
    let mut follower: Option<Follower> = None;
    let mut view = View::new(following.switch, following.longest);
    let mut next = 0;
    loop {
        let now = boot_time_us();
        if now >= next {
            next = now + following.beat_us.max(LEAST_BEAT_US);
            let ended = follower
                .as_ref()
                .map_or(Vec::new(), |it| it.ended().to_vec());
            // Workers share the registers: what the first one sees, all see.
            let looked = remote.call(move |server| {
                server.on_first(move |switch| look(switch.engine().state(), &ended))
            });
            match looked.flatten() {
                None => return Ok(()),
                Some(Err(error)) => tell(&error.into()),
                Some(Ok(seen)) => {
                    let same = follower.as_ref().map(Follower::incarnation);
                    if same != Some(seen.incarnation) {
                        // Another program runs, whose logs are empty (rule 5).
                        follower = Some(Follower::new(following.switch, seen.incarnation));
                        view = View::new(following.switch, following.longest);
                    }
                    if let Some(follower) = &mut follower {
                        let beat = follower.beat(seen.standings, seen.held);
                        if line.send(remote, &following.controllers, beat) == Err(Gone) {
                            return Ok(());
                        }
                    }
                }
            }
        }
        readable.wait_until(next).map_err(FollowError::Socket)?;
        let received = line.receive(remote, &following.controllers);
        let message = match received.map_err(FollowError::Socket)? {
            Ok(message) => message,
            Err(Gone) => return Ok(()),
        };
        let (Some(message), Some(follower)) = (message, &mut follower) else {
            continue;
        };
        let news = follower.handle_message(message);
        if news.is_empty() {
            continue;
        }
        // The state in effect is told at once, and the rest is asked for.
        next = 0;
        view.take(news);
        let rows = view.rows(follower.incarnation());
        // It is told as in effect once all workers have it.
        let applied = remote.call(move |server| server.change(|switch| rows.apply(switch)));
        match applied.flatten() {
            None => return Ok(()),
            Some(Err(error)) => {
                tell(&error.into());
                follower.doubt();
                next = boot_time_us() + following.beat_us.max(LEAST_BEAT_US);
            }
            Some(Ok(unreached)) => {
                for address in unreached {
                    tell(&FollowError::NoRoute(address));
                }
            }
        }
    }
}

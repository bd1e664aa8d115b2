//! Sealed messages in UDP datagrams.

use std::io::{self, IoSlice};
use std::net::{SocketAddrV4, UdpSocket};

use serde::Serialize;
use socket2::SockRef;
use stateplane_seal::{Counters, Opened};

use super::Guard;

/// Counts of sealed messages in datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SealReport {
    /// Counters of messages, by result.
    #[serde(flatten)]
    pub messages: Counters,
    /// Dropped: from an address that is not its sender's.
    pub wrong_address: u64,
    /// Dropped: they name another sender than the one that sealed them.
    pub impersonated: u64,
}

impl SealReport {
    pub(crate) fn of(guard: &Guard, impersonated: u64) -> SealReport {
        SealReport {
            messages: *guard.counters(),
            wrong_address: guard.wrong_address(),
            impersonated,
        }
    }
}

/// A message that came.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The peer that sealed it, if messages are sealed.
    pub peer: Option<u32>,
    /// The message.
    pub message: &'a [u8],
}

/// The message in `bytes`, which came from `from` to `socket` at `now`; `None` if there is
/// none. What is to be answered is answered. Without a guard all bytes are the message.
pub fn open_datagram<'a>(
    guard: Option<&mut Guard>,
    now: u64,
    socket: &UdpSocket,
    from: SocketAddrV4,
    bytes: &'a [u8],
) -> Option<Received<'a>> {
    let Some(guard) = guard else {
        return Some(Received {
            peer: None,
            message: bytes,
        });
    };
    let answer = match guard.open(now, *from.ip(), bytes) {
        Opened::Message { from, length } => {
            return Some(Received {
                peer: Some(from),
                message: &bytes[..length],
            });
        }
        Opened::Heard { answer } => answer?,
        Opened::Refused { refusal, answer } => {
            guard.tell_refused(now, *from.ip(), refusal);
            answer?
        }
    };
    // Lost as on a wire if the system does not take it: who asked asks again.
    let _ = socket.send_to(&answer.0, from);
    None
}

/// Sends `message`, sealed if there is a guard. The guard counts a message to an unknown peer,
/// which is not sent.
///
/// # Errors
///
/// The system does not take it.
pub fn send_datagram(
    guard: Option<&mut Guard>,
    socket: &UdpSocket,
    to: SocketAddrV4,
    message: &[u8],
) -> io::Result<()> {
    let Some(guard) = guard else {
        return socket.send_to(message, to).map(|_| ());
    };
    match guard.seal(*to.ip(), message) {
        Some(trailer) => {
            let parts = [IoSlice::new(message), IoSlice::new(&trailer)];
            let sent = SockRef::from(socket).send_to_vectored(&parts, &to.into());
            sent.map(|_| ())
        }
        None => Ok(()),
    }
}

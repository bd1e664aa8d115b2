//! Message authentication at sockets and ports: the keys of a process, and the frames of
//! the protocols that are sealed (`docs/message-authentication.md`).

mod datagram;
mod error;
mod file;
mod frame;
mod guard;
mod stream;

pub use datagram::{Received, SealReport, open_datagram, send_datagram};
pub use error::KeysError;
pub use file::{KeyFile, KeysFile, PeerFile};
#[cfg(test)]
pub(crate) use frame::tests as frames;
pub use frame::{Arrived, FrameCounters, Own, is_impostor, open_frame, seal_frame};
pub(crate) use frame::{arrives_sealed, leaves_sealed};
pub use guard::Guard;
pub use stream::{fetch_sealed, give_sealed};

use stateplane_seal::TRAILER_LENGTH;

/// Bytes of the longest payload of multicast on paths of 1,500 bytes: those less 100 (rule 27 of
/// `docs/multicast-protocol.md`), and less a seal if messages are sealed.
pub(crate) fn longest_payload(sealed: bool) -> u16 {
    const PATH: usize = 1500;
    const HEADERS: usize = 100;
    let seal = if sealed { TRAILER_LENGTH } else { 0 };
    (PATH - HEADERS - seal) as u16
}

//! Senders and receivers of multicast for C: `include/stateplane_multicast.h` has the interface
//! and what it promises; `docs/multicast.md` has an example.
//!
//! The functions drive [`stateplane_host::multicast_sender::MulticastSender`] and
//! [`stateplane_host::multicast_receiver::MulticastReceiver`]. A caller has opaque handles; each is
//! used by one thread at a time, and a second one is told so. No panic crosses the boundary: the
//! call gives [`Code::Internal`], and so does every later one with that handle.

// A C interface is made of raw pointers and exported names. Each block says why it is sound, and
// the header says what the caller owes for that.
#![allow(unsafe_code)]
#![deny(clippy::undocumented_unsafe_blocks, unsafe_op_in_unsafe_fn)]

mod code;
mod error;
mod handle;
mod options;
mod pointer;
pub mod receiver;
pub mod sender;
mod types;

pub use code::{Code, stateplane_multicast_refusal, stateplane_multicast_text};
pub use error::stateplane_multicast_error;
pub use options::StateplaneMulticastOptions;
pub use types::{EventKind, Id, Message, Place, SenderEvent};

/// Version of the interface: it grows when a caller of the former one has to be changed.
pub const ABI: u32 = 1;

/// [`ABI`] of the library that is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn stateplane_multicast_abi() -> u32 {
    ABI
}

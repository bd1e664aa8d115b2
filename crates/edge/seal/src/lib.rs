//! Message authentication between peers, without IO.
//!
//! An [`Endpoint`] seals messages that leave and opens messages that arrive. A seal is a trailer of
//! [`TRAILER_LENGTH`] bytes behind the message: number and life of the sender, number of the
//! message, proof that the sender has heard of the receiver's present life, and a tag over all of
//! it. `docs/message-authentication.md` is the contract, with the proof that no message is accepted
//! twice, even after restarts.
//!
//! No input makes it panic, and nothing is allocated for a message.

mod endpoint;
mod key;
mod mac;
mod peer;
mod trailer;
mod window;

pub use endpoint::{Answer, Config, ConfigError, Counters, Endpoint, Opened, PeerConfig, Refusal};
pub use key::{Key, KeyError, KeyId};
pub use trailer::{
    ANSWER_LENGTH, Kind, Repr, TAG_LENGTH, TRAILER_LENGTH, Trailer, VERSION, answer_field, field,
    is_answer,
};
pub use window::{ReplayWindow, Seen};

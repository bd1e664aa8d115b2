//! Message authentication between peers, without IO.
//!
//! An [`Endpoint`] seals what leaves and opens what arrives. A seal is a trailer of
//! [`TRAILER_LENGTH`] bytes behind the message: who sent it, in which life, the how
//! many-th message it is, proof that the sender has heard of the receiver's present
//! life, and a tag over all of it. `docs/message-authentication.md` is the contract,
//! with the proof that nothing is taken twice, whoever restarts.
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
};
pub use window::{ReplayWindow, Seen};

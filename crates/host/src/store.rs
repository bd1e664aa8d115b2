//! The state store as a process: one replica behind two UDP sockets.

mod error;
mod file;
mod server;

pub use error::StoreError;
pub use file::{ClassFile, FirstLeaseFile, IdleFile, LimitsFile, NatFile, StoreFile};
pub use server::{HostCounters, PUBLISH_EVERY, StoreReport, StoreServer, run_store};

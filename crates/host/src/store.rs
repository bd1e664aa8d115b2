//! The state store as a process: one replica behind two UDP sockets.

mod error;
mod file;
mod managed;
mod server;
pub mod view;

pub use error::StoreError;
pub use file::{ClassFile, FirstLeaseFile, IdleFile, LimitsFile, NatFile, StoreFile};
pub use managed::{ManagedReport, ManagedStore};
pub(crate) use server::receive;
pub use server::{HostCounters, PUBLISH_EVERY, StoreReport, StoreServer, run_store};

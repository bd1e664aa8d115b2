//! The state store as a process: one replica behind two UDP sockets.

mod disk;
mod error;
mod fair;
mod file;
mod managed;
mod server;
mod sockets;
pub mod view;

pub use disk::{Disk, DiskError, DiskReport, SNAPSHOT_AFTER};
pub use error::StoreError;
pub use file::{
    ClassFile, FirstLeaseFile, IdleFile, IdleInStateFile, LimitsFile, NatFile, ProtocolFile,
    QuotaFile, ServiceAtFile, ServiceFile, ServiceServerFile, StoreFile,
};
pub use managed::{ManagedReport, ManagedStore};
pub use server::{PUBLISH_EVERY, StoreReport, StoreServer};
pub(crate) use sockets::receive;
pub use sockets::{HostCounters, SealReport};

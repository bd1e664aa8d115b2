//! The state store as a process: a server behind two UDP sockets.

mod disk;
mod error;
mod fair;
mod file;
mod greeter;
mod health;
mod server;
mod sockets;
mod told;
pub mod view;

pub use disk::Disk;
pub use error::StoreError;
pub use file::{
    ClassFile, DeploymentServerFile, DeploymentSwitchFile, FirstLeaseFile, HealthFile, IdleFile,
    IdleInStateFile, InitError, LimitsFile, NatFile, ProtocolFile, QuotaFile, ServiceAtFile,
    ServiceFile, ServiceServerFile, StoreFile,
};
pub use server::{StoreReport, StoreServer};
pub use sockets::HostCounters;
pub use stateplane_disk::{DiskError, DiskReport, SNAPSHOT_AFTER};

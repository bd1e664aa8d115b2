//! The switch as a process: a [`Switch`](stateplane_switch::Switch) between network
//! interfaces.

mod control;
mod error;
mod file;
mod report;
mod server;

pub use control::{Attachment, ControlPlane, Made};
pub use error::SwitchServerError;
pub use file::{
    Arguments, DefaultFile, EntryFile, GeneratorFile, MirrorSessionFile, MulticastGroupFile,
    NeighbourFile, NeighboursFile, RegisterFile, ReplicaFile, Setting, SwitchFile, SwitchFileCause,
    SwitchFileError, WatchFile,
};
pub use report::{PacketReport, PortReport, SwitchReport};
pub use server::{Notify, RunOptions, Status, SwitchServer, run_controlled, run_switch};

//! The switch as a process: a [`Switch`](stateplane_switch::Switch) between network
//! interfaces.

mod chains;
mod control;
mod error;
mod file;
mod forwarding;
mod remote;
mod report;
mod sealing;
mod server;
mod workers;

pub use crate::remote::remote;
pub use chains::{ChainsError, follow_chains};
pub use control::{Attachment, ControlPlane, Made};
pub use error::SwitchServerError;
pub use file::{
    Arguments, ChainServerFile, ChainsFile, DefaultFile, EntryFile, GeneratorFile,
    MirrorSessionFile, MulticastGroupFile, NeighbourFile, NeighboursFile, PortsFile, RegisterFile,
    ReplicaFile, ReplicationFile, Setting, SwitchFile, SwitchFileCause, SwitchFileError, SyncFile,
    SyncGroupFile, WatchFile,
};
pub use remote::{Remote, RemoteCalls};
pub use report::{
    ControlReport, CounterReport, EventReport, PacketReport, PortReport, ProgramReport, SealReport,
    SwitchReport, TableReport,
};
pub use sealing::Sealing;
pub use server::{
    Beside, Notify, RunOptions, Status, SwitchServer, run_controlled, run_switch, run_workers,
};
pub use workers::flow_hash;

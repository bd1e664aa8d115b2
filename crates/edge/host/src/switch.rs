//! The switch as a process: a [`Switch`](stateplane_switch::Switch) between network
//! interfaces.

mod chains;
mod control;
mod error;
mod file;
mod forwarding;
mod greeter;
mod heartbeats;
mod multicast;
mod neighbours;
mod placing;
mod remote;
mod report;
mod run;
mod sealing;
mod server;
mod told;
mod workers;

pub use crate::remote::remote;
pub use chains::{ChainsError, follow_chains};
pub use control::{Attachment, ControlPlane, Made};
pub use error::SwitchServerError;
pub use file::{
    Arguments, ChainServerFile, ChainsFile, DefaultFile, EntryFile, GeneratorFile,
    MirrorSessionFile, MulticastFile, MulticastGroupFile, NeighbourFile, NeighboursFile,
    PortAddressFile, PortsFile, RegisterFile, ReplicaFile, ReplicationClassFile, ReplicationFile,
    Setting, SwitchFile, SwitchFileCause, SwitchFileError, SyncFile, SyncGroupFile, WatchFile,
};
pub use greeter::{GreetingReport, HeadReport};
pub use heartbeats::{TermHeadReport, TermReport};
pub use multicast::{FollowError, Following, follow_multicast};
pub use placing::Placing;
pub use remote::{Remote, RemoteCalls};
pub use report::{
    ControlReport, CounterReport, EventReport, PacketReport, PortReport, ProgramReport, SealReport,
    SwitchReport, TableReport, WorkerReport,
};
pub use run::{Beside, RunOptions, run_controlled, run_switch, run_workers};
pub use sealing::Sealing;
pub use server::{Notify, Status, SwitchServer};
pub use workers::{Spread, flow_hash};

//! The engine of sync as a process: views of the register groups of switches, and of the flows of
//! stores, behind one UDP socket, and a log, or a store that engines share, of what has to outlive it.

mod candidate;
mod error;
mod file;
mod flows;
mod group;
mod kept;
mod lent;
mod report;
mod request;
mod rest;
mod server;
mod shared;
mod told;
mod views;
mod work;

pub use error::{SyncError, ViewError};
pub use file::{
    ArraysInView, FlowsFile, GroupFile, MergeName, RedisFile, SnapshotsFile, SyncEngineFile,
    SyncEtcdFile,
};
pub use flows::{
    ArraysView, FlowRecord, FlowsChange, FlowsDone, FlowsReading, FlowsRequest, SnapshotsReading,
};
pub use kept::{Kept, MOST_WRITE_IDS, Progress, Window, WriteId};
pub use report::{FlowsReport, GroupReport, RedisReport, SyncReport};
pub use request::{
    Change, ChangeDone, CutMade, CutRequest, ReadRequest, Reading, Reply, TotalsReading,
    VALUE_BYTES,
};
pub use server::SyncServer;
pub use shared::{Ask, Fact, Outcomes, SharedStore, Told, tell};
pub use stateplane_observe::{
    Complete as Snapshot, Life, MOST_LIVES, Operation as FlowOperation, Told as FlowsTold,
};
pub use views::LocalViews;

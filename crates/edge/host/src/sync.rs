//! The engine of sync as a process: views of the register groups of switches behind one UDP
//! socket, and a log, or a store that engines share, of what has to outlive it.

mod candidate;
mod error;
mod file;
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
pub use file::{GroupFile, RedisFile, SyncEngineFile, SyncEtcdFile};
pub use kept::{Kept, MOST_WRITE_IDS, Progress, Window, WriteId};
pub use report::{GroupReport, RedisReport, SyncReport};
pub use request::{
    Change, ChangeDone, CutMade, CutRequest, ReadRequest, Reading, Reply, VALUE_BYTES,
};
pub use server::SyncServer;
pub use shared::{Ask, Fact, Outcomes, SharedStore, Told, tell};
pub use views::LocalViews;

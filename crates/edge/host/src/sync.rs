//! The engine of sync as a process: views of the register groups of switches behind one UDP
//! socket, and a log of what has to outlive it.

mod error;
mod file;
mod group;
mod kept;
mod report;
mod request;
mod server;
mod told;

pub use error::{SyncError, ViewError};
pub use file::{GroupFile, RedisFile, SyncEngineFile};
pub use kept::{Kept, MOST_WRITE_IDS, Progress, Window, WriteId};
pub use report::{GroupReport, RedisReport, SyncReport};
pub use request::{
    Change, ChangeDone, CutMade, CutRequest, ReadRequest, Reading, Reply, VALUE_BYTES,
};
pub use server::SyncServer;

//! State of a process on a disk, over any layer of files.
//!
//! [`RecordLog`] is a file of records that outlive the process, [`Disk`] the folder that
//! keeps the state of a store server. Both work on [`Files`]: `host` gives them those of the
//! system, the simulator [`FaultyFiles`], which lose what was not written through, tear
//! sectors and fail. What is simulated is what ships.

mod faulty;
mod files;
mod folder;
mod log;

pub use faulty::{Failure, FaultyFile, FaultyFiles, FaultyLock};
pub use files::{Files, OpenFile, Way};
pub use folder::{Disk, DiskError, DiskReport, SNAPSHOT_AFTER, Snapshot};
pub use log::{LONGEST_RECORD, LogError, RecordLog};

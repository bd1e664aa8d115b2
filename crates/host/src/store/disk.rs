//! The folder that keeps the state of a server: a snapshot, and what was applied since.
//!
//! `snapshot-N` holds a whole state; `log-N` what was applied after it, until `log-M`
//! began with the next snapshot, M = N + 1. A snapshot is written beside the packets, and
//! takes its name when it is whole; then what came before it is removed. So there is always
//! one whole snapshot, and each log from its number on.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use stateplane_store::{ConfigError, Recovery, RecoveryError, SavedState, Server, Setup};

use crate::log::{LONGEST_RECORD, LogError, RecordLog};

/// Bytes in the logs after which a snapshot takes their place, unless the snapshot is
/// itself longer.
pub const SNAPSHOT_AFTER: u64 = 256 << 20;

/// Bytes before each record in a group: its length.
const PREFIX: usize = 4;

/// Bytes after which a group is written before it grows further.
const GROUP: usize = LONGEST_RECORD / 4;

/// Why a folder keeps no state.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The folder cannot be made or read.
    #[error("{}: {cause}: name a folder that this user may write to", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// There are logs, and no snapshot that they follow.
    #[error(
        "{}: no whole snapshot, but logs: restore the folder from a copy, or empty it if what it keeps may be lost",
        path.display()
    )]
    NoSnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// What a file says is no state of this server.
    #[error("{}: {cause}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: RecoveryError,
    },
    /// A file cannot be used.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The parts of the configuration contradict each other.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl DiskError {
    /// A short stable code, for messages and tests; that of the inner error if
    /// there is one.
    pub fn code(&self) -> &'static str {
        match self {
            DiskError::Folder { .. } => "H120",
            DiskError::NoSnapshot { .. } => "H121",
            DiskError::State { cause, .. } => cause.code(),
            DiskError::Log(cause) => cause.code(),
            DiskError::Config(cause) => cause.code(),
        }
    }
}

/// What was found in the folder at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct DiskReport {
    /// Entries applied since the snapshot that were found at the start.
    pub recovered_entries: u64,
    /// Bytes cut off at the start: they were being written when the power failed, and
    /// nothing that was sent followed from them.
    pub torn_bytes: u64,
    /// Times that records were written through to the disk.
    pub syncs: u64,
    /// Records written.
    pub records: u64,
    /// Snapshots written since the start.
    pub snapshots: u64,
}

/// The folder of one server, open for this process alone.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    /// Number of the newest log.
    number: u64,
    log: RecordLog,
    /// What is to be written with the next [`Disk::sync`].
    group: Vec<u8>,
    /// Bytes in the logs since the last whole snapshot.
    since: u64,
    /// Bytes of that snapshot.
    snapshot: u64,
    snapshot_after: u64,
    /// A snapshot that is being written.
    writing: Option<JoinHandle<Result<u64, LogError>>>,
    report: DiskReport,
}

impl Disk {
    /// Opens `folder`, or makes it, and gives the server that it keeps at `now`; the empty
    /// one of `setup`, whose configuration says `durable`, if it keeps none.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn open(folder: &Path, setup: &Setup, now: u64) -> Result<(Disk, Server), DiskError> {
        let failed = |cause| DiskError::Folder {
            path: folder.into(),
            cause,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let (mut snapshots, mut logs) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.to_string_lossy().into_owned();
            let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
            snapshots.extend(number("snapshot-"));
            logs.extend(number("log-"));
        }
        snapshots.sort_unstable();
        logs.sort_unstable();
        let mut report = DiskReport::default();
        let mut whole = None;
        while let Some(number) = snapshots.pop() {
            let path = folder.join(format!("snapshot-{number}"));
            let mut recovery = Recovery::new(setup.clone());
            read(&path, &mut recovery, now)?;
            if !recovery.is_empty() {
                whole = Some((number, recovery));
                break;
            }
            // It was begun, and never whole.
            fs::remove_file(&path).map_err(failed)?;
        }
        let (first, mut recovery) = match whole {
            Some(found) => found,
            None if logs.is_empty() => {
                let state = setup.server(now)?.saved_state();
                write(&folder.join("snapshot-0"), state.into_iter().flatten())?;
                let mut recovery = Recovery::new(setup.clone());
                read(&folder.join("snapshot-0"), &mut recovery, now)?;
                (0, recovery)
            }
            None => {
                return Err(DiskError::NoSnapshot {
                    path: folder.into(),
                });
            }
        };
        let (mut number, mut since) = (first, 0);
        let mut log = loop {
            let path = folder.join(format!("log-{number}"));
            let log = read(&path, &mut recovery, now)?;
            report.torn_bytes += log.torn();
            since += fs::metadata(&path).map_err(failed)?.len();
            if !logs.contains(&(number + 1)) {
                break log;
            }
            number += 1;
        };
        log.sync()?;
        report.recovered_entries = recovery.entries();
        let path = folder.join(format!("snapshot-{first}"));
        let server = recovery.finish().map_err(|cause| DiskError::State {
            path: path.clone(),
            cause,
        })?;
        let disk = Disk {
            folder: folder.into(),
            number,
            log,
            group: Vec::new(),
            since,
            snapshot: fs::metadata(&path).map_err(failed)?.len(),
            snapshot_after: SNAPSHOT_AFTER,
            writing: None,
            report,
        };
        disk.remove_before(first);
        Ok((disk, server))
    }

    /// Lets a snapshot take the place of logs of so many bytes, rather than of
    /// [`SNAPSHOT_AFTER`].
    pub fn set_snapshot_after(&mut self, bytes: u64) {
        self.snapshot_after = bytes;
    }

    /// What was found and done.
    pub fn report(&self) -> DiskReport {
        self.report
    }

    /// Writes what `server` has to save through to the disk. Then it may send.
    ///
    /// # Errors
    ///
    /// [`DiskError`]. Nothing is certain then, and nothing may be sent any more.
    pub fn save(&mut self, server: &mut Server) -> Result<(), DiskError> {
        while let Some(record) = server.poll_record() {
            self.report.records += 1;
            put(&record, &mut self.group);
            if self.group.len() >= GROUP {
                self.sync()?;
            }
        }
        if !self.group.is_empty() {
            self.sync()?;
        }
        server.handle_saved();
        self.look_after_snapshots(server)
    }

    /// One record of the log for each write: what the system wrote of it in another order
    /// before the power failed is torn, and not taken for damage.
    fn sync(&mut self) -> Result<(), DiskError> {
        self.log.append(&self.group);
        self.since += self.group.len() as u64;
        self.group.clear();
        self.report.syncs += 1;
        Ok(self.log.sync()?)
    }

    fn look_after_snapshots(&mut self, server: &Server) -> Result<(), DiskError> {
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finish_snapshot()?;
        }
        let due = self.since >= self.snapshot_after.max(self.snapshot);
        if self.writing.is_none()
            && due
            && let Some(state) = server.saved_state()
        {
            self.begin_snapshot(state)?;
        }
        Ok(())
    }

    fn begin_snapshot(&mut self, state: SavedState) -> Result<(), DiskError> {
        let next = self.number + 1;
        self.log = RecordLog::open(&self.path("log", next), |_| false)?;
        self.number = next;
        self.since = 0;
        let path = self.path("snapshot", next);
        let thread = std::thread::Builder::new().name("snapshot".into());
        let writing = thread.spawn(move || write(&path, state));
        self.writing = Some(writing.map_err(|cause| DiskError::Folder {
            path: self.folder.clone(),
            cause,
        })?);
        Ok(())
    }

    fn finish_snapshot(&mut self) -> Result<(), DiskError> {
        let Some(Ok(written)) = self.writing.take().map(JoinHandle::join) else {
            return Ok(());
        };
        self.snapshot = written?;
        self.report.snapshots += 1;
        self.remove_before(self.number);
        Ok(())
    }

    /// Removes what the snapshot of `number` stands for. What cannot be removed takes room
    /// and does no harm.
    fn remove_before(&self, number: u64) {
        for before in (0..number).rev() {
            let snapshot = fs::remove_file(self.path("snapshot", before));
            let log = fs::remove_file(self.path("log", before));
            if snapshot.is_err() && log.is_err() {
                break;
            }
        }
    }

    fn path(&self, what: &str, number: u64) -> PathBuf {
        self.folder.join(format!("{what}-{number}"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A snapshot that is being written is not given up half-way.
        let _ = self.finish_snapshot();
    }
}

/// Writes a whole state to `path`; gives its bytes.
fn write(path: &Path, state: impl Iterator<Item = Vec<u8>>) -> Result<u64, LogError> {
    let mut log = RecordLog::open(path, |_| true)?;
    let mut bytes = 0;
    let records = state.map(|record| {
        let mut group = Vec::with_capacity(PREFIX + record.len());
        put(&record, &mut group);
        bytes += group.len() as u64;
        group
    });
    log.replace(records)?;
    Ok(bytes)
}

/// Gives what the file at `path` has to `recovery`.
fn read(path: &Path, recovery: &mut Recovery, now: u64) -> Result<RecordLog, DiskError> {
    let mut wrong = None;
    let log = RecordLog::open(path, |group| {
        let taken = split(group).try_for_each(|record| {
            let record = record.ok_or(RecoveryError::Malformed)?;
            recovery.take(now, record)
        });
        wrong = taken.err();
        wrong.is_none()
    });
    match wrong {
        Some(cause) => Err(DiskError::State {
            path: path.into(),
            cause,
        }),
        None => Ok(log?),
    }
}

/// Adds a record to a group.
fn put(record: &[u8], group: &mut Vec<u8>) {
    group.extend((record.len() as u32).to_be_bytes());
    group.extend(record);
}

/// The records of a group; `None` in the place of one that is not whole.
fn split(mut group: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if group.is_empty() {
            return None;
        }
        let (prefix, rest) = group.split_first_chunk::<PREFIX>().unzip();
        let length = prefix.map_or(usize::MAX, |prefix| u32::from_be_bytes(*prefix) as usize);
        let record = rest.and_then(|rest| rest.split_at_checked(length));
        group = record.map_or(&[], |(_, rest)| rest);
        Some(record.map(|(record, _)| record))
    })
}

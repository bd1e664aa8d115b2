//! The folder that keeps the state of a server: a snapshot, and what was applied since.
//!
//! `snapshot-N` holds a whole state; `log-N` what was applied after it, until `log-M`
//! began with the next snapshot, M = N + 1. A snapshot is written beside the packets, and
//! takes its name when it is whole; then what came before it is removed. So there is always
//! one whole snapshot, and each log from its number on; and each log says with which record
//! the one before it ended.

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use stateplane_invariant::{Broken, BrokenCounts, Invariants, invariant};
use stateplane_store::{
    ConfigError, Recovery, RecoveryError, SavedState, Server, Setup, StateCopy,
};

use crate::files::Files;
use crate::log::{LONGEST_RECORD, LogError, RecordLog, beside};

/// Bytes in the logs after which a snapshot takes their place, unless the snapshot is
/// itself longer.
pub const SNAPSHOT_AFTER: u64 = 256 << 20;

/// Bytes before each record in a group: its length.
const PREFIX: usize = 4;

/// Bytes after which a group is written before it grows further.
const GROUP: usize = LONGEST_RECORD / 4;

/// µs after which the number of what was written through is written through itself.
const MARKS_AFTER: u64 = 1_000_000;

/// Why a folder keeps no state.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The folder cannot be made or read.
    #[error("{}: {cause}: name a folder that this user may write to", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Error of the operating system.
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
    /// A log is gone that follows the snapshot, or another log.
    #[error(
        "{}: the log is missing: restore the folder from a copy, or empty it if what it keeps may be lost",
        path.display()
    )]
    NoLog {
        /// The log.
        path: PathBuf,
    },
    /// The records of a file are not a state of this server.
    #[error("{}: {cause}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// Description of the error.
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
            DiskError::NoLog { .. } => "H122",
            DiskError::State { cause, .. } => cause.code(),
            DiskError::Log(cause) => cause.code(),
            DiskError::Config(cause) => cause.code(),
        }
    }
}

/// Files found in the folder at the start.
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
    /// Broken invariants.
    pub broken: BrokenCounts,
}

/// The folder of one server, open for this process alone.
#[derive(Debug)]
pub struct Disk<F: Files> {
    files: F,
    folder: PathBuf,
    /// Number of the newest log.
    number: u64,
    log: RecordLog<F>,
    /// Records to be written with the next [`Disk::write`].
    group: Vec<u8>,
    /// Something was written that was not written through.
    written: bool,
    /// Bytes in the logs since the last whole snapshot, without the newest.
    since: u64,
    /// Bytes of that snapshot.
    snapshot: u64,
    snapshot_after: u64,
    /// A snapshot is being written.
    writing: bool,
    /// When the marks of the log are written through next.
    marks_at: u64,
    report: DiskReport,
    invariants: Invariants,
    _lock: F::Lock,
}

/// The numbers of the files in a folder.
#[derive(Default)]
struct Found {
    snapshots: Vec<u64>,
    logs: Vec<u64>,
    /// Unfinished files of a process that was killed.
    unfinished: Vec<PathBuf>,
}

impl Found {
    fn look(files: &impl Files, folder: &Path) -> io::Result<Found> {
        let mut found = Found::default();
        for name in files.names(folder)? {
            let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
            found.snapshots.extend(number("snapshot-"));
            found.logs.extend(number("log-"));
            if name.starts_with("snapshot-") && name.ends_with(".new") {
                found.unfinished.push(folder.join(name));
            }
        }
        found.snapshots.sort_unstable();
        found.logs.sort_unstable();
        Ok(found)
    }
}

impl<F: Files> Disk<F> {
    /// Opens `folder`, or makes it, and gives the server that it keeps at `now`; the empty
    /// one of `setup`, whose configuration says `durable`, if it keeps none.
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn open(
        files: F,
        folder: &Path,
        setup: &Setup,
        now: u64,
    ) -> Result<(Disk<F>, Server), DiskError> {
        let failed = |cause| DiskError::Folder {
            path: folder.into(),
            cause,
        };
        files.make_folder(folder).map_err(failed)?;
        let lock = files.lock(folder).map_err(failed)?;
        let lock = lock.ok_or_else(|| LogError::InUse {
            path: folder.into(),
        })?;
        let mut found = Found::look(&files, folder).map_err(failed)?;
        let path = |what: &str, number: u64| folder.join(format!("{what}-{number}"));
        if found.snapshots.is_empty() {
            if !was_never_used(&files, folder, &found.logs)? {
                return Err(DiskError::NoSnapshot {
                    path: folder.into(),
                });
            }
            // The log comes first: a snapshot without one has lost it.
            RecordLog::open(&files, &path("log", 0), 0, None, |_| false)?;
            let state = setup.server(now)?.saved_state();
            write(&files, &path("snapshot", 0), state.into_iter().flatten())?;
            found = Found {
                snapshots: vec![0],
                logs: vec![0],
                unfinished: Vec::new(),
            };
        }
        let first = found.snapshots[found.snapshots.len() - 1];
        let snapshot = path("snapshot", first);
        let mut recovery = Recovery::new(setup.clone());
        let mut reading = Reading::new(&mut recovery, now);
        let length = RecordLog::read_whole(&files, &snapshot, |group| reading.take(group));
        let length = reading.judge(&snapshot, length)?;
        let mut number = first;
        let last = found.logs.last().copied().unwrap_or(0).max(first);
        let (mut since, mut before, mut torn) = (0, 0, 0);
        let log = loop {
            let own = path("log", number);
            if !found.logs.contains(&number) {
                return Err(DiskError::NoLog { path: own });
            }
            let mut upto = None;
            if number < last && found.logs.contains(&(number + 1)) {
                upto = RecordLog::begins_behind(&files, &path("log", number + 1))?;
            }
            let mut reading = Reading::new(&mut recovery, now);
            let take = |group: &[u8]| reading.take(group);
            let log = RecordLog::open(&files, &own, before, upto, take);
            let mut log = reading.judge(&own, log)?;
            torn += log.torn();
            before = log.last();
            if number == last {
                // What is there is answered from here on.
                log.sync()?;
                break log;
            }
            since += log.length();
            number += 1;
        };
        let entries = recovery.entries();
        let server = recovery.finish().map_err(|cause| DiskError::State {
            path: snapshot,
            cause,
        })?;
        for unfinished in found.unfinished {
            files.remove(&unfinished).map_err(failed)?;
        }
        let disk = Disk {
            files,
            folder: folder.into(),
            number,
            log,
            group: Vec::new(),
            written: false,
            since,
            snapshot: length,
            snapshot_after: SNAPSHOT_AFTER,
            writing: false,
            marks_at: now,
            report: DiskReport {
                recovered_entries: entries,
                torn_bytes: torn,
                ..DiskReport::default()
            },
            invariants: Invariants::new(false),
            _lock: lock,
        };
        disk.remove_before(first);
        Ok((disk, server))
    }

    /// Sets the size in bytes of the logs that a snapshot replaces, in place of [`SNAPSHOT_AFTER`].
    pub fn set_snapshot_after(&mut self, bytes: u64) {
        self.snapshot_after = bytes;
    }

    /// Report of the start.
    pub fn report(&self) -> DiskReport {
        DiskReport {
            broken: self.invariants.counts(),
            ..self.report
        }
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.invariants.poll()
    }

    /// Writes what `server` has to save through to the disk, at `now`. Then it may send.
    ///
    /// # Errors
    ///
    /// [`DiskError`]. Nothing is certain then, and nothing may be sent any more.
    pub fn save(&mut self, server: &mut Server, now: u64) -> Result<(), DiskError> {
        self.write(server)?;
        self.sync(server, now)
    }

    /// Hands what `server` has to save to the system; `true` if there is something that
    /// [`Disk::sync`] is to write through.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn write(&mut self, server: &mut Server) -> Result<bool, DiskError> {
        while let Some(record) = server.poll_record() {
            self.report.records += 1;
            put(&record, &mut self.group);
            if self.group.len() >= GROUP {
                self.write_group()?;
            }
        }
        if !self.group.is_empty() {
            self.write_group()?;
        }
        Ok(self.written)
    }

    fn write_group(&mut self) -> Result<(), DiskError> {
        self.log.append(&self.group);
        self.group.clear();
        self.written = true;
        Ok(self.log.write()?)
    }

    /// Writes through what was written, at `now`, and tells `server`.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn sync(&mut self, server: &mut Server, now: u64) -> Result<(), DiskError> {
        self.write_through(now)?;
        server.handle_saved();
        Ok(())
    }

    /// True if [`Disk::write_through`] has something to do at `now`.
    pub fn is_behind(&self, now: u64) -> bool {
        self.written || now >= self.marks_at
    }

    /// Writes through what was written, at `now`; [`Server::handle_saved`] is to follow.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn write_through(&mut self, now: u64) -> Result<(), DiskError> {
        if self.written {
            self.log.sync()?;
            self.written = false;
            self.report.syncs += 1;
        }
        if now >= self.marks_at {
            self.log.sync_marks()?;
            self.marks_at = now.saturating_add(MARKS_AFTER);
        }
        Ok(())
    }

    /// Begins a snapshot of `server` at `now`, if one is due and none is being written. [`Snapshot::write`]
    /// writes it, and [`Disk::end_snapshot`] then takes its result.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn begin_snapshot(
        &mut self,
        server: &Server,
        now: u64,
    ) -> Result<Option<Snapshot<F>>, DiskError> {
        match self.due_snapshot(server, now) {
            None => Ok(None),
            Some(state) => self.switch_logs(state.whole(server)).map(Some),
        }
    }

    /// The state of `server` to copy for a snapshot, if one is due at `now` and none is being written.
    /// None is while leases of the version before may count, which a snapshot would not tell.
    /// Nothing may be written before [`Disk::switch_logs`] has the whole of it.
    pub fn due_snapshot(&self, server: &Server, now: u64) -> Option<StateCopy> {
        let since = self.since + self.log.length();
        let is_small = since < self.snapshot_after.max(self.snapshot);
        if self.writing || self.written || is_small || server.counts_older(now) {
            return None;
        }
        server.copy_state()
    }

    /// Begins the log behind the snapshot of `state`, which is that of [`Disk::due_snapshot`], and
    /// writes both logs through to the disk.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn switch_logs(&mut self, state: SavedState) -> Result<Snapshot<F>, DiskError> {
        let next = self.number + 1;
        let before = self.log.last();
        self.log.sync_marks()?;
        self.log = RecordLog::open(&self.files, &self.path("log", next), before, None, |_| {
            false
        })?;
        self.number = next;
        self.since = 0;
        self.writing = true;
        Ok(Snapshot {
            files: self.files.clone(),
            path: self.path("snapshot", next),
            state,
        })
    }

    /// Takes what [`Snapshot::write`] gave.
    ///
    /// # Errors
    ///
    /// [`DiskError`], as of [`Disk::save`].
    pub fn end_snapshot(&mut self, written: Result<u64, LogError>) -> Result<(), DiskError> {
        // Without a snapshot the logs are all that there is.
        if !invariant!(
            self.invariants,
            DiskSnapshot,
            self.writing,
            "a snapshot ends in {} that did not begin",
            self.folder.display()
        ) {
            return Ok(());
        }
        self.snapshot = written?;
        self.writing = false;
        self.report.snapshots += 1;
        self.remove_before(self.number);
        Ok(())
    }

    /// Removes what the snapshot of `number` stands for. What cannot be removed takes room
    /// and does no harm.
    fn remove_before(&self, number: u64) {
        let found = Found::look(&self.files, &self.folder).unwrap_or_default();
        for before in found.snapshots.iter().filter(|it| **it < number) {
            let _ = self.files.remove(&self.path("snapshot", *before));
        }
        for before in found.logs.iter().filter(|it| **it < number) {
            let log = self.path("log", *before);
            let _ = self.files.remove(&log);
            let _ = self.files.remove(&beside(&log, ".synced"));
        }
    }

    fn path(&self, what: &str, number: u64) -> PathBuf {
        self.folder.join(format!("{what}-{number}"))
    }
}

/// True if `logs`, without any snapshot, are those of a folder that was just being made.
fn was_never_used<F: Files>(files: &F, folder: &Path, logs: &[u64]) -> Result<bool, DiskError> {
    Ok(match logs {
        [] => true,
        [0] => {
            let path = folder.join("log-0");
            let mut empty = true;
            RecordLog::open(files, &path, 0, None, |_| {
                empty = false;
                true
            })?;
            empty
        }
        _ => false,
    })
}

/// A snapshot that is to be written.
#[derive(Debug)]
pub struct Snapshot<F> {
    files: F,
    path: PathBuf,
    state: SavedState,
}

impl<F: Files> Snapshot<F> {
    /// Writes it through to the disk, which may take long; gives its bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn write(self) -> Result<u64, LogError> {
        write(&self.files, &self.path, self.state)
    }
}

/// Writes a whole state to `path`; gives its bytes.
fn write<F: Files>(
    files: &F,
    path: &Path,
    state: impl Iterator<Item = Vec<u8>>,
) -> Result<u64, LogError> {
    let records = state.map(|record| {
        let mut group = Vec::with_capacity(PREFIX + record.len());
        put(&record, &mut group);
        group
    });
    RecordLog::write_whole(files, path, records)
}

/// Gives groups of records to a server that comes back.
struct Reading<'a> {
    recovery: &'a mut Recovery,
    now: u64,
    wrong: Option<RecoveryError>,
}

impl<'a> Reading<'a> {
    fn new(recovery: &'a mut Recovery, now: u64) -> Reading<'a> {
        Reading {
            recovery,
            now,
            wrong: None,
        }
    }

    /// Takes a group; `false` if it makes no sense.
    fn take(&mut self, group: &[u8]) -> bool {
        let taken = split(group).try_for_each(|record| {
            let record = record.ok_or(RecoveryError::Malformed)?;
            self.recovery.take(self.now, record)
        });
        self.wrong = taken.err();
        self.wrong.is_none()
    }

    /// Judges the result of reading the file at `path`.
    fn judge<T>(self, path: &Path, read: Result<T, LogError>) -> Result<T, DiskError> {
        match self.wrong {
            Some(cause) => Err(DiskError::State {
                path: path.into(),
                cause,
            }),
            None => Ok(read?),
        }
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

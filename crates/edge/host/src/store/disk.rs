//! The folder that keeps the state of a server, whose snapshots are written beside the
//! packets.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use stateplane_disk::{DiskError, DiskReport, LogError};
use stateplane_invariant::Broken;
use stateplane_store::{Server, Setup};

use crate::files::SystemFiles;

/// The folder of one server, open for this process alone.
#[derive(Debug)]
pub struct Disk {
    disk: stateplane_disk::Disk<SystemFiles>,
    folder: PathBuf,
    /// A snapshot that is being written.
    writing: Option<JoinHandle<Result<u64, LogError>>>,
}

impl Disk {
    /// Opens a disk, see [`stateplane_disk::Disk::open`].
    ///
    /// # Errors
    ///
    /// [`DiskError`].
    pub fn open(folder: &Path, setup: &Setup, now: u64) -> Result<(Disk, Server), DiskError> {
        let (disk, server) = stateplane_disk::Disk::open(SystemFiles, folder, setup, now)?;
        let disk = Disk {
            disk,
            folder: folder.into(),
            writing: None,
        };
        Ok((disk, server))
    }

    /// Sets the size of logs from which a snapshot is written, see
    /// [`stateplane_disk::Disk::set_snapshot_after`].
    pub fn set_snapshot_after(&mut self, bytes: u64) {
        self.disk.set_snapshot_after(bytes);
    }

    /// The folder of the state.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Report of the last restoration.
    pub fn report(&self) -> DiskReport {
        self.disk.report()
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.disk.poll_broken()
    }

    /// Writes what `server` has to save through to the disk, at `now`. Then it may send.
    ///
    /// # Errors
    ///
    /// [`DiskError`]. Nothing is certain then, and nothing may be sent any more.
    pub fn save(&mut self, server: &mut Server, now: u64) -> Result<(), DiskError> {
        self.disk.save(server, now)?;
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end_snapshot()?;
        }
        if let Some(snapshot) = self.disk.begin_snapshot(server)? {
            let thread = std::thread::Builder::new().name("snapshot".into());
            let writing = thread.spawn(move || snapshot.write());
            self.writing = Some(writing.map_err(|cause| DiskError::Folder {
                path: self.folder.clone(),
                cause,
            })?);
        }
        Ok(())
    }

    fn end_snapshot(&mut self) -> Result<(), DiskError> {
        match self.writing.take().map(JoinHandle::join) {
            Some(Ok(written)) => self.disk.end_snapshot(written),
            _ => Ok(()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A snapshot that is being written is not given up half-way.
        let _ = self.end_snapshot();
    }
}

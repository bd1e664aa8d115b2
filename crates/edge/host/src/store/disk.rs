//! The folder that keeps the state of a server, whose snapshots are written beside the
//! packets.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;

use stateplane_disk::{DiskError, DiskReport, LogError, Snapshot};
use stateplane_invariant::Broken;
use stateplane_store::{SavedState, Server, Setup, StateCopy};

use crate::files::SystemFiles;

type Folder = Box<stateplane_disk::Disk<SystemFiles>>;

/// A task of the thread that waits for the disk.
#[derive(Debug)]
enum Task {
    /// To write through what was written, at this time.
    Save(u64),
    /// To begin the log behind a snapshot of that state, or `None` once it has begun.
    Switch(Option<SavedState>),
    /// The snapshot whose log has begun.
    Switched(Snapshot<SystemFiles>),
}

/// A folder, and what is to be done with it.
type Work = (Folder, Task);

fn do_task((disk, task): &mut Work) -> Result<(), DiskError> {
    match task {
        Task::Save(now) => disk.write_through(*now),
        Task::Switch(state) => {
            if let Some(state) = state.take() {
                *task = Task::Switched(disk.switch_logs(state)?);
            }
            Ok(())
        }
        Task::Switched(_) => Ok(()),
    }
}

/// A thread that writes a folder through to the disk, so that the server's own goes on to answer
/// heartbeats.
#[derive(Debug)]
struct Through<T> {
    to: Sender<T>,
    from: Receiver<(T, Result<(), DiskError>)>,
    done: UnixStream,
}

impl<T: Send + 'static> Through<T> {
    fn start(
        mut write: impl FnMut(&mut T) -> Result<(), DiskError> + Send + 'static,
    ) -> io::Result<Through<T>> {
        let (to, folders) = mpsc::channel::<T>();
        let (back, from) = mpsc::channel();
        let (done, mut bell) = UnixStream::pair()?;
        done.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        let thread = std::thread::Builder::new().name("disk".into());
        thread.spawn(move || {
            while let Ok(mut folder) = folders.recv() {
                let written = write(&mut folder);
                if back.send((folder, written)).is_err() {
                    return;
                }
                // A full buffer wakes as well.
                let _ = bell.write(&[0]);
            }
        })?;
        Ok(Through { to, from, done })
    }

    fn begin(&self, folder: T) -> io::Result<()> {
        self.to.send(folder).map_err(|_| thread_has_ended())
    }

    /// The folder, once it is written through. A thread that ended closes its end of the
    /// descriptor, which wakes as well.
    fn ended(&mut self) -> io::Result<Option<(T, Result<(), DiskError>)>> {
        let mut rung = [0; 8];
        let _ = self.done.read(&mut rung);
        match self.from.try_recv() {
            Ok(ended) => Ok(Some(ended)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(thread_has_ended()),
        }
    }
}

fn thread_has_ended() -> io::Error {
    io::Error::other("the thread that writes through to the disk has ended")
}

/// The folder of one server, open for this process alone.
#[derive(Debug)]
pub struct Disk {
    /// `None` while it is waited for.
    disk: Option<Folder>,
    through: Through<Work>,
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
        let through = Through::start(do_task).map_err(|cause| DiskError::Folder {
            path: folder.into(),
            cause,
        })?;
        let disk = Disk {
            disk: Some(Box::new(disk)),
            through,
            folder: folder.into(),
            writing: None,
        };
        Ok((disk, server))
    }

    /// Sets the size of logs from which a snapshot is written, see
    /// [`stateplane_disk::Disk::set_snapshot_after`].
    pub fn set_snapshot_after(&mut self, bytes: u64) {
        if let Some(disk) = &mut self.disk {
            disk.set_snapshot_after(bytes);
        }
    }

    /// The folder of the state.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Report of the last restoration.
    pub fn report(&self) -> DiskReport {
        let disk = self.disk.as_ref();
        disk.map_or_else(DiskReport::default, |disk| disk.report())
    }

    /// The next broken invariant to report; each is given once.
    pub fn poll_broken(&mut self) -> Option<Broken> {
        self.disk.as_mut()?.poll_broken()
    }

    /// Writes what `server` has to save, and begins to write it through to the disk, at `now`.
    /// `false` if there is nothing to wait for; else the server may send what follows from it once
    /// [`Disk::has_ended`].
    ///
    /// # Errors
    ///
    /// [`DiskError`]. Nothing is certain then, and nothing may be sent any more.
    pub fn begin_save(&mut self, server: &mut Server, now: u64) -> Result<bool, DiskError> {
        let Some(mut disk) = self.disk.take() else {
            return Ok(true);
        };
        let written = disk.write(server);
        if written.is_ok() && disk.is_behind(now) {
            let begun = self.through.begin((disk, Task::Save(now)));
            begun.map_err(|cause| self.failed(cause))?;
            return Ok(true);
        }
        self.disk = Some(disk);
        written?;
        server.handle_saved();
        Ok(false)
    }

    /// True once all is on the disk that [`Disk::begin_save`] wrote, and `server` may send; or the
    /// log has begun of [`Disk::begin_snapshot`].
    ///
    /// # Errors
    ///
    /// As [`Disk::begin_save`].
    pub fn has_ended(&mut self, server: &mut Server) -> Result<bool, DiskError> {
        let ended = self.through.ended().map_err(|cause| self.failed(cause))?;
        let Some(((disk, task), written)) = ended else {
            return Ok(false);
        };
        self.disk = Some(disk);
        written?;
        match task {
            Task::Save(_) => server.handle_saved(),
            Task::Switch(_) => {}
            Task::Switched(snapshot) => self.write_snapshot(snapshot)?,
        }
        Ok(true)
    }

    fn failed(&self, cause: io::Error) -> DiskError {
        let path = self.folder.clone();
        DiskError::Log(LogError::System { path, cause })
    }

    /// The descriptor that can be read when [`Disk::has_ended`] may be true.
    pub fn descriptor(&self) -> RawFd {
        self.through.done.as_raw_fd()
    }

    /// Ends a snapshot that is written; gives the state of `server` to copy for the next, if one is
    /// due at `now`.
    ///
    /// # Errors
    ///
    /// As [`Disk::begin_save`].
    pub fn due_snapshot(
        &mut self,
        server: &Server,
        now: u64,
    ) -> Result<Option<StateCopy>, DiskError> {
        if self.writing.as_ref().is_some_and(JoinHandle::is_finished) {
            self.end_snapshot()?;
        }
        let disk = self.disk.as_ref();
        Ok(disk.and_then(|disk| disk.due_snapshot(server, now)))
    }

    /// Lets a snapshot of `state` be written beside the packets, once the log behind it has begun
    /// ([`Disk::has_ended`]).
    ///
    /// # Errors
    ///
    /// As [`Disk::begin_save`].
    pub fn begin_snapshot(&mut self, state: SavedState) -> Result<(), DiskError> {
        let Some(disk) = self.disk.take() else {
            return Ok(());
        };
        let begun = self.through.begin((disk, Task::Switch(Some(state))));
        begun.map_err(|cause| self.failed(cause))
    }

    fn write_snapshot(&mut self, snapshot: Snapshot<SystemFiles>) -> Result<(), DiskError> {
        let thread = std::thread::Builder::new().name("snapshot".into());
        let writing = thread.spawn(move || snapshot.write());
        self.writing = Some(writing.map_err(|cause| DiskError::Folder {
            path: self.folder.clone(),
            cause,
        })?);
        Ok(())
    }

    fn end_snapshot(&mut self) -> Result<(), DiskError> {
        match self.writing.take().map(JoinHandle::join) {
            Some(Ok(written)) => match &mut self.disk {
                Some(disk) => disk.end_snapshot(written),
                None => Ok(()),
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::boot_time_us;
    use crate::poll::Readable;
    use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts};
    use stateplane_wire::replication::{Key, MessageType, Repr};
    use std::net::{Ipv4Addr, SocketAddrV4};
    use std::sync::mpsc::sync_channel;
    use std::time::Duration;

    const SOMEBODY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4793);

    /// When requests come, in µs: long after the start.
    const LATER: u64 = 10_000_000;

    /// The only server of its chain, which keeps its state in `folder`.
    fn opened(folder: &Path) -> (Disk, Server) {
        let config = Config::new(1, 0).with_class(ClassConfig {
            class: 1,
            state_length: 4,
            first_lease: FirstLease::Zero,
            shared_only: false,
            idle: IdleTimeouts::never(),
            quota: None,
        });
        let setup = Setup::Fixed {
            config: Config {
                durable: true,
                ..config
            },
            incarnation: 7,
            links: vec![SOMEBODY],
        };
        Disk::open(folder, &setup, 0).unwrap()
    }

    /// Waits until the only descriptor of `readable` can be read, which it must soon.
    fn be_woken(readable: &mut Readable) {
        let latest = boot_time_us() + 60_000_000;
        loop {
            readable.wait_until(latest).unwrap();
            if readable.is_ready(0) {
                return;
            }
            assert!(boot_time_us() < latest, "nothing wakes who waits");
        }
    }

    fn wait(disk: &mut Disk, server: &mut Server) {
        let mut readable = Readable::new([disk.descriptor()]).unwrap();
        while !disk.has_ended(server).unwrap() {
            be_woken(&mut readable);
        }
    }

    #[test]
    fn a_snapshot_takes_the_place_of_what_was_written_before() {
        let folder = tempfile::tempdir().unwrap();
        let (mut disk, mut server) = opened(folder.path());
        disk.set_snapshot_after(1);
        for flow in 0..200 {
            let mut key = [flow; 16];
            key[0] = 1;
            let request = Repr {
                chain_epoch: 1,
                switch_id: 1,
                incarnation: 1,
                claim: 1,
                request: 1,
                ..Repr::new(MessageType::LeaseRequest, Key(key))
            };
            server.handle_request(LATER, SOMEBODY, &request.to_vec().unwrap());
        }
        assert!(disk.begin_save(&mut server, LATER).unwrap());
        wait(&mut disk, &mut server);
        assert!(server.poll_transmit(LATER).is_some());
        let state = disk
            .due_snapshot(&server, LATER)
            .unwrap()
            .expect("one is due");
        disk.begin_snapshot(state.whole(&server)).unwrap();
        wait(&mut disk, &mut server);
        let replica = server.replica(0).unwrap();
        assert_eq!(replica.record_count(), 200);
        drop(disk);
        let (disk, back) = opened(folder.path());
        assert_eq!(back.replica(0).unwrap().digest(), replica.digest());
        assert_eq!(disk.report().recovered_entries, 0);
    }

    #[test]
    fn what_is_written_through_comes_back_and_wakes_who_waits() {
        let (go, gate) = sync_channel::<()>(0);
        let mut through = Through::start(move |number: &mut u32| {
            gate.recv().unwrap();
            *number += 1;
            Ok(())
        })
        .unwrap();
        let mut readable = Readable::new([through.done.as_raw_fd()]).unwrap();
        for number in 0..3 {
            through.begin(number).unwrap();
            assert!(through.ended().unwrap().is_none());
            go.send(()).unwrap();
            be_woken(&mut readable);
            let (written, result) = through.ended().unwrap().unwrap();
            assert_eq!(written, number + 1);
            result.unwrap();
        }
    }

    #[test]
    fn a_thread_that_ends_is_an_error_and_nobody_waits_for_it() {
        let mut through = Through::start(|(): &mut ()| panic!("on purpose")).unwrap();
        let mut readable = Readable::new([through.done.as_raw_fd()]).unwrap();
        through.begin(()).unwrap();
        be_woken(&mut readable);
        let is_noticed = (0..1000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            through.ended().is_err()
        });
        assert!(is_noticed && through.begin(()).is_err());
    }
}

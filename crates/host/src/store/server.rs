//! The loop that drives a replica of a chain that never changes.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Serialize;
use stateplane_store::{Counters, Destination, Replica};

use super::disk::{Disk, DiskReport};
use super::sockets::{Port, Sockets};
use super::view::{self, RecordView};
use super::{HostCounters, SealReport, StoreError, StoreFile};
use crate::clock::boot_time_us;
use crate::remote::RemoteCalls;
use crate::sealing::{Guard, KeysError};

/// Datagrams of each socket served before what they caused is sent.
pub(super) const BURST: usize = 64;

/// The same with a disk: what is written through at once may be more, since that takes
/// about as long for many records as for one.
const SAVED_BURST: usize = 1024;

/// µs between two reports that other threads may read.
pub const PUBLISH_EVERY: u64 = 100_000;

/// All counts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StoreReport {
    /// At the sockets.
    pub host: HostCounters,
    /// In the replica.
    pub replica: Counters,
    /// Sealed messages, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seals: Option<SealReport>,
    /// On the disk, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskReport>,
}

/// One replica with its sockets.
pub struct StoreServer {
    replica: Replica,
    sockets: Sockets,
    chain: Vec<SocketAddrV4>,
    disk: Option<Disk>,
    /// Where others read the report, and when it is written next.
    published: Option<(Arc<Mutex<StoreReport>>, u64)>,
    remote: Option<RemoteCalls<StoreServer>>,
}

impl StoreServer {
    /// Opens both sockets for a replica, which is empty unless the file names a folder that
    /// keeps its state. Datagrams that arrive from now on are taken by
    /// [`StoreServer::run`].
    ///
    /// # Errors
    ///
    /// What [`StoreFile::config`] finds; [`StoreError::AddressInUse`],
    /// [`StoreError::AddressNotAvailable`] or [`StoreError::Bind`];
    /// [`StoreError::Random`]; [`StoreError::Disk`].
    pub fn bind(file: &StoreFile) -> Result<StoreServer, StoreError> {
        StoreServer::bind_sealed(file, None)
    }

    /// Like [`bind`](Self::bind); with a guard only sealed messages are taken and sent.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_sealed(file: &StoreFile, guard: Option<Guard>) -> Result<StoreServer, StoreError> {
        let mut config = file.config()?;
        let sockets = Sockets::open(file.listen, file.request_port, file.chain_port, guard)?;
        sockets.make_room(&mut config.limits);
        let chain = file.chain.iter();
        let incarnation = draw_incarnation()?;
        let (disk, replica) = match &file.data {
            None => (None, Replica::new(config, incarnation)?),
            Some(folder) => {
                let now = boot_time_us();
                let (mut disk, replica) = Disk::open(folder, &config, incarnation, now)?;
                if let Some(megabytes) = file.snapshot_after_mb {
                    disk.set_snapshot_after(u64::from(megabytes) << 20);
                }
                (Some(disk), replica)
            }
        };
        Ok(StoreServer {
            replica,
            sockets,
            chain: chain
                .map(|address| SocketAddrV4::new(*address, file.chain_port))
                .collect(),
            disk,
            published: None,
            remote: None,
        })
    }

    /// Where switches reach the server.
    pub fn request_address(&self) -> Option<SocketAddr> {
        self.sockets.request_address()
    }

    /// The replica, to look at.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// What happened so far.
    pub fn report(&self) -> StoreReport {
        StoreReport {
            host: self.sockets.counters(),
            replica: *self.replica.counters(),
            seals: self.sockets.seals(),
            disk: self.disk.as_ref().map(Disk::report),
        }
    }

    /// Serves the calls of a [`Remote`](crate::remote::Remote), within 100 ms.
    pub fn set_remote(&mut self, remote: RemoteCalls<StoreServer>) {
        self.remote = Some(remote);
    }

    /// The records of `class`, if it is the tail of the chain and they are not more than
    /// [`MOST_RECORDS`](view::MOST_RECORDS).
    pub fn records(&self, class: u8) -> Option<Vec<RecordView>> {
        view::records(std::iter::once(&self.replica), class)
    }

    /// The report for other threads to read, at most [`PUBLISH_EVERY`] µs old while the
    /// server runs; nobody else holds it any more once the server has ended.
    pub fn publish(&mut self) -> Weak<Mutex<StoreReport>> {
        let report = Arc::new(Mutex::new(self.report()));
        let shared = Arc::downgrade(&report);
        self.published = Some((report, 0));
        shared
    }

    fn publish_at(&mut self, now: u64) {
        if self.published.as_ref().is_none_or(|(_, due)| now < *due) {
            return;
        }
        let report = self.report();
        if let Some((shared, due)) = &mut self.published {
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = report;
            *due = now + PUBLISH_EVERY;
        }
    }

    /// Serves until `stop` is set, which is seen within 100 ms. `refused` is told why a
    /// changed file of keys is not taken; the keys so far stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Receive`] if the system refuses to wait or to receive;
    /// [`StoreError::Disk`] if what was applied cannot be saved.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&KeysError),
    ) -> Result<StoreReport, StoreError> {
        let burst = match self.disk {
            Some(_) => SAVED_BURST,
            None => BURST,
        };
        while !stop.load(Ordering::Relaxed) {
            self.sockets.look_at_keys(boot_time_us(), refused);
            self.sockets.wait(self.replica.poll_timeout())?;
            while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
                call(&mut self);
            }
            let (replica, chain) = (&mut self.replica, &self.chain);
            self.sockets.receive_links(burst, |now, from, bytes| {
                let position = chain.iter().position(|address| *address == from);
                if let Some(position) = position {
                    replica.handle_chain(now, position as u8, bytes);
                }
                position.is_some()
            })?;
            self.sockets.receive_requests(burst, |now, from, bytes| {
                replica.handle_request(now, from, bytes);
            })?;
            self.replica.handle_timeout(boot_time_us());
            if let Some(disk) = &mut self.disk {
                disk.save(&mut self.replica)?;
            }
            self.send_all();
            self.publish_at(boot_time_us());
        }
        Ok(self.report())
    }

    fn send_all(&mut self) {
        while let Some(transmit) = self.replica.poll_transmit(boot_time_us()) {
            let (port, address) = match transmit.to {
                Destination::Switch(address) => (Port::Requests, address),
                Destination::Replica(position) => match self.chain.get(usize::from(position)) {
                    Some(address) => (Port::Links, *address),
                    None => continue,
                },
            };
            self.sockets.send(port, address, &transmit.bytes);
        }
    }
}

/// A number that this machine's earlier starts most likely did not have.
#[allow(unsafe_code)]
pub(super) fn draw_incarnation() -> Result<u32, StoreError> {
    let mut bytes = [0u8; 4];
    // SAFETY: `bytes` is as long as stated. Up to 256 bytes come whole.
    let outcome = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if outcome < 0 {
        return Err(StoreError::Random(io::Error::last_os_error()));
    }
    Ok(u32::from_ne_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    fn file(listen: Ipv4Addr, port: u16) -> StoreFile {
        let text = format!("listen = \"{listen}\"\nchain = [\"{listen}\"]\nrequest_port = {port}");
        StoreFile::parse("store.toml".as_ref(), &text).unwrap()
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = UdpSocket::bind("127.0.0.31:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = StoreServer::bind(&file(Ipv4Addr::new(127, 0, 0, 31), port))
            .err()
            .unwrap();
        assert_eq!(error.code(), "H109");
        assert!(error.to_string().contains("127.0.0.31"), "{error}");
    }

    #[test]
    fn an_address_of_another_machine_is_named() {
        let error = StoreServer::bind(&file(Ipv4Addr::new(192, 0, 2, 1), 0))
            .err()
            .unwrap();
        assert_eq!(error.code(), "H110");
    }

    #[test]
    fn it_stops_when_asked() {
        let mut file = file(Ipv4Addr::new(127, 0, 0, 32), 0);
        file.chain_port = 0;
        let server = StoreServer::bind(&file).unwrap();
        let report = server.run(&AtomicBool::new(true), &mut |_| {}).unwrap();
        assert_eq!(report, StoreReport::default());
    }
}

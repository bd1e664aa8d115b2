//! The loop that drives a store server, whose chains a controller makes, or whose only
//! chain never changes.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use stateplane_disk::DiskReport;
use stateplane_invariant::BrokenCounts;
use stateplane_store::{Counters, Recipient, Server, ServerCounters, Setup};
use stateplane_wire::control::Member;
use stateplane_wire::greeting::is_greeting;
use stateplane_wire::replication::Key;

use super::disk::Disk;
use super::greeter::Greeter;
use super::health::HealthChecks;
use super::sockets::{Port, Sockets};
use super::told::Told;
use super::view::{self, DigestView, FlowView, RecordView, StoreView, hexadecimal};
use super::{HostCounters, StoreError};
use crate::broken::say_broken;
use crate::clock::boot_time_us;
use crate::controller::server_number;
use crate::datagram::BURST;
use crate::deployment::Deployment;
use crate::poll::Readable;
use crate::random::random_bits;
use crate::remote::RemoteCalls;
use crate::sealing::{Guard, KeysError, SealReport};

/// Datagrams of each socket served before what they caused is written through to a disk:
/// that takes about as long for many records as for one.
const SAVED_BURST: usize = 16 * BURST;

/// Descriptors that the loop waits for: the sockets of neighbours and of switches, and, of a server
/// that has one, the disk.
const LINKS: usize = 0;
const REQUESTS: usize = 1;
const DISK: usize = 2;

/// Longest wait in µs, so that a request to stop is seen.
const LONGEST_WAIT: u64 = 100_000;

/// All counts of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct StoreReport {
    /// At the sockets.
    pub host: HostCounters,
    /// In all its replicas together.
    pub replica: Counters,
    /// Beside the chains.
    pub server: ServerCounters,
    /// Switches whose settings differ from the server's.
    pub unfit_switches: u64,
    /// Broken invariants; the disk has its own.
    pub broken: BrokenCounts,
    /// Sealed messages, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seals: Option<SealReport>,
    /// On the disk, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskReport>,
}

/// One store server with its sockets.
pub struct StoreServer {
    server: Server,
    sockets: Sockets,
    /// Addresses of the controllers; none if the chain never changes.
    controllers: Vec<SocketAddrV4>,
    disk: Option<Disk>,
    health: HealthChecks,
    greeter: Greeter,
    told: Told,
    address: Ipv4Addr,
    remote: Option<RemoteCalls<StoreServer>>,
}

impl StoreServer {
    /// Opens both sockets of the server of a deployment, with its own address in `listen`. It is empty, unless the file names a folder that keeps its state; with a
    /// section `[controller]` it has no place in any chain yet. With a guard only sealed
    /// messages are taken and sent. Datagrams that arrive from then on are taken by
    /// [`StoreServer::run`].
    ///
    /// # Errors
    ///
    /// Returns the error of [`Deployment::replica_config`]; [`StoreError::NoAddress`] if a server under a
    /// controller is not given its own; [`StoreError::AddressInUse`],
    /// [`StoreError::AddressNotAvailable`] or [`StoreError::Bind`]; [`StoreError::Random`];
    /// [`StoreError::Disk`].
    pub fn bind(deployment: &Deployment, guard: Option<Guard>) -> Result<StoreServer, StoreError> {
        let file = deployment.replication()?;
        let mut config = deployment.replica_config()?;
        let address = deployment.store_address();
        if deployment.controller.is_some() && address == Ipv4Addr::UNSPECIFIED {
            return Err(StoreError::NoAddress);
        }
        let sockets = Sockets::open(deployment.listen, file.request_port, file.chain_port, guard)?;
        sockets.make_room(&mut config.limits);
        config.durable = file.data.is_some();
        config.authentic = sockets.is_sealed();
        config.stream = draw_number()?;
        let incarnation = draw_number()?;
        let links = |address: &Ipv4Addr| SocketAddrV4::new(*address, file.chain_port);
        let setup = match &deployment.controller {
            Some(controller) => Setup::Managed {
                template: config,
                identity: Member {
                    server: server_number(address),
                    incarnation,
                    requests: SocketAddrV4::new(address, file.request_port),
                    links: links(&address),
                },
                period: controller.heartbeat(),
            },
            None => Setup::Fixed {
                config,
                incarnation,
                links: file.chain.iter().map(links).collect(),
            },
        };
        let (disk, server) = match &file.data {
            None => (None, setup.server(boot_time_us())?),
            Some(folder) => {
                let (mut disk, server) = Disk::open(folder, &setup, boot_time_us())?;
                if let Some(megabytes) = file.snapshot_after_mb {
                    disk.set_snapshot_after(u64::from(megabytes) << 20);
                }
                (Some(disk), server)
            }
        };
        let controllers = deployment.controller.iter();
        Ok(StoreServer {
            server,
            sockets,
            controllers: controllers.flat_map(|it| it.sockets()).collect(),
            disk,
            health: HealthChecks::start(file),
            greeter: Greeter::new(deployment, file, address),
            told: Told::default(),
            address,
            remote: None,
        })
    }

    /// Address at which switches reach the server.
    pub fn request_address(&self) -> Option<SocketAddr> {
        self.sockets.request_address()
    }

    /// The server, to look at.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Report of the events since the start.
    pub fn report(&self) -> StoreReport {
        let mut broken = self.server.broken();
        broken += self.sockets.broken();
        StoreReport {
            broken,
            host: self.sockets.counters(),
            replica: self.server.counters(),
            server: *self.server.server_counters(),
            unfit_switches: self.greeter.differing() as u64,
            seals: self.sockets.seals(),
            disk: self.disk.as_ref().map(Disk::report),
        }
    }

    /// Serves the calls of a [`Remote`](crate::remote::Remote).
    pub fn set_remote(&mut self, remote: RemoteCalls<StoreServer>) {
        self.remote = Some(remote);
    }

    /// Its replicas.
    pub fn view(&self) -> StoreView {
        StoreView {
            address: self.address,
            incarnation: self.server.incarnation(),
            replicas: view::replicas(&self.server),
        }
    }

    /// The server's view of the flow with `key`.
    pub fn flows(&self, key: &Key) -> Vec<FlowView> {
        view::flows(&self.server, key, boot_time_us())
    }

    /// The records of `class` in the chains whose tail it is; `None` if they are more than
    /// [`MOST_RECORDS`](view::MOST_RECORDS).
    pub fn records(&self, class: u8) -> Option<Vec<RecordView>> {
        view::records(self.server.replicas().map(|(_, replica)| replica), class)
    }

    /// Lets the replica of `chain` note its digest when entry `at` is the last one that
    /// it has; `false` if there is none.
    pub fn mark(&mut self, chain: u16, at: u64) -> bool {
        self.server.mark(chain, at)
    }

    /// The digest that the replica of `chain` noted, or with `present` that of now.
    pub fn digest(&self, chain: u16, present: bool) -> Option<DigestView> {
        let replica = self.server.replica(chain)?;
        let noted = if present {
            Some((replica.applied(), replica.digest()))
        } else {
            replica.marked()
        };
        let (applied, digest) = noted?;
        Some(DigestView {
            applied,
            digest: hexadecimal(&digest.to_be_bytes()),
        })
    }

    /// Serves until `stop` is set, which is seen within 100 ms. `refused` gets the reason why a
    /// changed key file is refused; the old keys stay.
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
        let most = match self.disk {
            Some(_) => SAVED_BURST,
            None => BURST,
        };
        let calls = self.remote.as_ref().map(RemoteCalls::descriptor);
        let disk = self.disk.as_ref().map(Disk::descriptor);
        let sockets = self.sockets.descriptors();
        let descriptors = sockets.into_iter().chain(disk).chain(calls);
        let mut readable = Readable::new(descriptors).map_err(StoreError::Receive)?;
        let calls = DISK + usize::from(disk.is_some());
        while !stop.load(Ordering::Relaxed) {
            self.sockets.look_at_keys(boot_time_us(), refused);
            readable
                .wait_until(self.due())
                .map_err(StoreError::Receive)?;
            if self.remote.is_some() && readable.is_ready(calls) {
                while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
                    call(&mut self);
                }
            }
            if readable.is_ready(LINKS) || self.sockets.has_held() {
                self.receive_links(most)?;
            }
            if readable.is_ready(REQUESTS) {
                self.sockets.receive_requests(most)?;
            }
            self.serve_beats();
            self.serve_requests(most);
            for (server, healthy) in self.health.changes() {
                self.told.health(server, healthy);
                self.server.set_healthy(server, healthy);
            }
            self.server.handle_timeout(boot_time_us());
            if let Some(disk) = &self.disk {
                if let Some(lost) = self.server.lost_entries() {
                    let folder = disk.folder().into();
                    return Err(StoreError::LostEntries { folder, lost });
                }
                self.save(&mut readable, most)?;
            }
            while let Some((switch, version)) = self.server.poll_older() {
                Told::older(switch, version);
            }
            while let Some(longer) = self.server.poll_longer_backing() {
                Told::longer_backing(&longer);
            }
            if self.told.look(boot_time_us(), &self.server) {
                self.greeter.look(boot_time_us());
            }
            self.say_broken();
            self.send_all();
        }
        Ok(self.report())
    }

    /// Writes what the server has to save through to the disk, and begins a snapshot if one is due.
    /// Meanwhile it does nothing but serve terms.
    fn save(&mut self, readable: &mut Readable, most: usize) -> Result<(), StoreError> {
        let Some(disk) = &mut self.disk else {
            return Ok(());
        };
        if disk.begin_save(&mut self.server, boot_time_us())? {
            self.wait_for_disk(readable, most)?;
        }
        let Some(disk) = &mut self.disk else {
            return Ok(());
        };
        let Some(mut state) = disk.due_snapshot(&self.server, boot_time_us())? else {
            return Ok(());
        };
        while state.copy(&self.server) {
            self.serve_terms(readable, most, 0)?;
        }
        let state = state.whole(&self.server);
        if let Some(disk) = &mut self.disk {
            disk.begin_snapshot(state)?;
            self.wait_for_disk(readable, most)?;
        }
        Ok(())
    }

    /// Waits until the disk has done what was begun. What is sent meanwhile rests on nothing that
    /// is not on the disk.
    fn wait_for_disk(&mut self, readable: &mut Readable, most: usize) -> Result<(), StoreError> {
        loop {
            self.serve_terms(readable, most, boot_time_us() + LONGEST_WAIT)?;
            if readable.is_ready(DISK)
                && let Some(disk) = &mut self.disk
                && disk.has_ended(&mut self.server)?
            {
                return Ok(());
            }
        }
    }

    /// Sends what terms need, waits until `latest` at most, and serves what came of heartbeats, and of
    /// other servers' questions for backing and their answers; the rest waits.
    fn serve_terms(
        &mut self,
        readable: &mut Readable,
        most: usize,
        latest: u64,
    ) -> Result<(), StoreError> {
        let due = self.server.ask_again(boot_time_us());
        self.send_all();
        let latest = if self.sockets.has_beats() { 0 } else { latest };
        let due = due.map_or(latest, |due| due.min(latest));
        readable.wait_until(due).map_err(StoreError::Receive)?;
        if readable.is_ready(LINKS) {
            let server = &mut self.server;
            self.sockets
                .receive_terms(|now, from, bytes| server.handle_link(now, from, bytes))?;
        }
        if readable.is_ready(REQUESTS) {
            self.sockets.receive_requests(most)?;
        }
        self.serve_beats();
        Ok(())
    }

    /// Answers the heartbeats that came.
    fn serve_beats(&mut self) {
        let server = &mut self.server;
        self.sockets.serve_beats(|beats| {
            for (from, bytes) in beats {
                server.handle_request(boot_time_us(), *from, bytes);
            }
        });
    }

    /// Reports each broken invariant once.
    fn say_broken(&mut self) {
        while let Some(broken) = (self.server.poll_broken())
            .or_else(|| self.sockets.poll_broken())
            .or_else(|| self.disk.as_mut().and_then(Disk::poll_broken))
        {
            say_broken(&broken);
        }
    }

    /// Until when nothing is to be done unless something comes, in µs of the clock.
    fn due(&self) -> u64 {
        if self.sockets.has_waiting() {
            return 0;
        }
        let longest = boot_time_us() + LONGEST_WAIT;
        self.server
            .poll_timeout()
            .map_or(longest, |due| due.min(longest))
    }

    fn receive_links(&mut self, most: usize) -> Result<(), StoreError> {
        let (server, controllers) = (&mut self.server, &self.controllers);
        self.sockets.receive_links(most, |now, from, bytes| {
            if controllers.contains(&from) {
                server.handle_control(now, bytes)
            } else {
                server.handle_link(now, from, bytes)
            }
        })
    }

    fn serve_requests(&mut self, most: usize) {
        let (server, greeter) = (&mut self.server, &mut self.greeter);
        self.sockets.serve_requests(most, |requests| {
            server.look_ahead(requests.iter().map(|(_, bytes)| bytes.as_slice()));
            for (from, bytes) in requests {
                if is_greeting(bytes) {
                    greeter.handle(boot_time_us(), *from, bytes, server);
                } else {
                    server.handle_request(boot_time_us(), *from, bytes);
                }
            }
        });
    }

    fn send_all(&mut self) {
        while let Some(datagram) = self.server.poll_transmit(boot_time_us()) {
            let bytes = datagram.bytes;
            match datagram.to {
                Recipient::Switch(address) => self.sockets.send(Port::Requests, address, bytes),
                Recipient::Neighbour(address) => self.sockets.send(Port::Links, address, bytes),
                // Whichever of them leads listens.
                Recipient::Controller => {
                    for address in &self.controllers {
                        self.sockets.send(Port::Links, *address, bytes.clone());
                    }
                }
            }
        }
        while let Some((to, answer)) = self.greeter.poll_answer() {
            self.sockets.send(Port::Requests, to, Arc::new(answer));
        }
        self.sockets.flush();
    }
}

/// A number that this machine's earlier starts most likely did not have.
fn draw_number() -> Result<u32, StoreError> {
    let bits = random_bits().map_err(StoreError::Random)?;
    Ok((bits as u32).max(1))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    fn deployment(listen: Ipv4Addr, port: u16) -> Deployment {
        let text = format!(
            "listen = \"{listen}\"\n[replication]\nchain = [\"{listen}\"]\n\
             request_port = {port}"
        );
        Deployment::parse("store.toml".as_ref(), &text).unwrap()
    }

    #[test]
    fn an_address_in_use_is_named() {
        let taken = UdpSocket::bind("127.0.0.31:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = StoreServer::bind(&deployment(Ipv4Addr::new(127, 0, 0, 31), port), None)
            .err()
            .unwrap();
        assert_eq!(error.code(), "H109");
        assert!(error.to_string().contains("127.0.0.31"), "{error}");
    }

    #[test]
    fn an_address_of_another_machine_is_named() {
        let error = StoreServer::bind(&deployment(Ipv4Addr::new(192, 0, 2, 1), 0), None)
            .err()
            .unwrap();
        assert_eq!(error.code(), "H110");
    }

    #[test]
    fn it_stops_when_asked() {
        let mut deployment = deployment(Ipv4Addr::new(127, 0, 0, 32), 0);
        deployment.replication_mut().unwrap().chain_port = 0;
        let server = StoreServer::bind(&deployment, None).unwrap();
        let report = server.run(&AtomicBool::new(true), &mut |_| {}).unwrap();
        assert_eq!(report, StoreReport::default());
    }
}

//! The loop that drives a server whose chains a controller makes.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use stateplane_store::{Recipient, Server, ServerCounters};
use stateplane_wire::control::Member;
use stateplane_wire::replication::Key;

use super::server::{BURST, draw_incarnation};
use super::sockets::{LONGEST_WAIT, open, receive};
use super::view::{self, DigestView, FlowView, RecordView, StoreView, hexadecimal};
use super::{HostCounters, StoreError, StoreFile, StoreReport};
use crate::clock::boot_time_us;
use crate::controller::{ControllerFile, server_number};
use crate::poll::Readable;
use crate::remote::RemoteCalls;

/// All counts of a server under a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ManagedReport {
    /// At the sockets, and in all its replicas together.
    #[serde(flatten)]
    pub store: StoreReport,
    /// Beside the chains.
    pub server: ServerCounters,
}

/// One store server with its sockets, under a controller.
pub struct ManagedStore {
    server: Server,
    requests: UdpSocket,
    links: UdpSocket,
    controllers: Vec<SocketAddrV4>,
    counters: HostCounters,
    identity: Member,
    remote: Option<RemoteCalls<ManagedStore>>,
}

impl ManagedStore {
    /// Opens both sockets of a server without any place yet. `file` is the deployment,
    /// with the server's own address in `listen`; `controller` its section.
    ///
    /// # Errors
    ///
    /// What [`StoreFile::config`] finds; [`StoreError::NoAddress`] if the server's
    /// address is not told; [`StoreError::DataUnderController`]; whatever keeps the sockets from opening.
    pub fn bind(file: &StoreFile, controller: &ControllerFile) -> Result<ManagedStore, StoreError> {
        if file.listen == Ipv4Addr::UNSPECIFIED {
            return Err(StoreError::NoAddress);
        }
        if file.data.is_some() {
            return Err(StoreError::DataUnderController);
        }
        let identity = Member {
            server: server_number(file.listen),
            incarnation: draw_incarnation()?,
            requests: SocketAddrV4::new(file.listen, file.request_port),
            links: SocketAddrV4::new(file.listen, file.chain_port),
        };
        let (template, period) = (file.config()?, controller.heartbeat());
        Ok(ManagedStore {
            server: Server::managed(template, identity, period, boot_time_us())?,
            requests: open(identity.requests)?,
            links: open(identity.links)?,
            controllers: controller.sockets().collect(),
            counters: HostCounters::default(),
            identity,
            remote: None,
        })
    }

    /// The server, to look at.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// What happened so far.
    pub fn report(&self) -> ManagedReport {
        ManagedReport {
            store: self.store_report(),
            server: *self.server.server_counters(),
        }
    }

    fn store_report(&self) -> StoreReport {
        StoreReport {
            host: self.counters,
            replica: self.server.counters(),
            seals: None,
            disk: None,
        }
    }

    /// Serves the calls of a [`Remote`](crate::remote::Remote).
    pub fn set_remote(&mut self, remote: RemoteCalls<ManagedStore>) {
        self.remote = Some(remote);
    }

    /// Its replicas.
    pub fn view(&self) -> StoreView {
        StoreView {
            address: *self.identity.requests.ip(),
            incarnation: self.identity.incarnation,
            replicas: view::replicas(&self.server),
        }
    }

    /// What it has of the flow with `key`.
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
        let noted = match present {
            true => Some((replica.applied(), replica.digest())),
            false => replica.marked(),
        };
        let (applied, digest) = noted?;
        Some(DigestView {
            applied,
            digest: hexadecimal(&digest.to_be_bytes()),
        })
    }

    /// Serves until `stop` is set, which is seen within 100 ms.
    ///
    /// # Errors
    ///
    /// [`StoreError::Receive`] if the system refuses to wait or to receive.
    pub fn run(mut self, stop: &AtomicBool) -> Result<ManagedReport, StoreError> {
        let mut buffer = vec![0; 65_536];
        let sockets = [self.links.as_raw_fd(), self.requests.as_raw_fd()];
        let calls = self.remote.as_ref().map(RemoteCalls::descriptor);
        let mut readable = Readable::new(sockets.into_iter().chain(calls));
        while !stop.load(Ordering::Relaxed) {
            let now = boot_time_us();
            let due = self.server.poll_timeout();
            let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(now));
            readable
                .wait(wait.min(LONGEST_WAIT))
                .map_err(StoreError::Receive)?;
            while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
                call(&mut self);
            }
            self.receive_links(&mut buffer)?;
            self.receive_requests(&mut buffer)?;
            self.server.handle_timeout(boot_time_us());
            self.send_all();
        }
        Ok(self.report())
    }

    fn receive_links(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        for _ in 0..BURST {
            let Some((length, from)) = receive(&self.links, buffer)? else {
                break;
            };
            let (now, bytes) = (boot_time_us(), &buffer[..length]);
            if self.controllers.contains(&from) {
                self.server.handle_control(now, bytes);
            } else {
                self.server.handle_link(now, from, bytes);
            }
        }
        Ok(())
    }

    fn receive_requests(&mut self, buffer: &mut [u8]) -> Result<(), StoreError> {
        for _ in 0..BURST {
            let Some((length, from)) = receive(&self.requests, buffer)? else {
                break;
            };
            self.server
                .handle_request(boot_time_us(), from, &buffer[..length]);
        }
        Ok(())
    }

    /// Sends what the server has to send. A datagram that the system does not take is
    /// lost as on a wire: links resend, and switches ask again.
    fn send_all(&mut self) {
        while let Some(datagram) = self.server.poll_transmit(boot_time_us()) {
            let (socket, one);
            let to: &[SocketAddrV4] = match datagram.to {
                Recipient::Switch(address) => {
                    (socket, one) = (&self.requests, [address]);
                    &one
                }
                Recipient::Neighbour(address) => {
                    (socket, one) = (&self.links, [address]);
                    &one
                }
                // Whichever of them leads listens.
                Recipient::Controller => {
                    socket = &self.links;
                    &self.controllers
                }
            };
            for address in to {
                if socket.send_to(&datagram.bytes, address).is_err() {
                    self.counters.send_failed += 1;
                }
            }
        }
    }
}

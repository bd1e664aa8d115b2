//! The loop that drives a controller.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use stateplane_chains::{Controller, ControllerCounters, Settings};
use stateplane_invariant::BrokenCounts;
use stateplane_wire::control::Message;

use super::{
    ChainBackend, ControllerError, ControllerView, Kept, MOST_RECORDS, Record, Stored,
    server_number,
};
use crate::broken::say_broken;
use crate::clock::boot_time_us;
use crate::datagram::receive;
use crate::poll::Readable;
use crate::random::random_bits;
use crate::remote::RemoteCalls;
use crate::sealing::{Guard, KeysError, SealReport, open_datagram, send_datagram};

/// Datagrams taken before what they caused is sent.
const BURST: usize = 64;

/// Longest wait in µs, so that a request to stop is seen.
const LONGEST_WAIT: u64 = 50_000;

/// All counts of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ControllerReport {
    /// In the core, since it leads.
    pub controller: ControllerCounters,
    /// Broken invariants, since it leads.
    pub broken: BrokenCounts,
    /// Datagrams that the system did not take.
    pub send_failed: u64,
    /// Number of times that this controller became the leader.
    pub led: u64,
    /// Sealed messages, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seals: Option<SealReport>,
}

/// A controller with its socket and what keeps its decisions.
pub struct ControllerServer<B> {
    settings: Settings,
    backend: B,
    socket: UdpSocket,
    guard: Option<Guard>,
    impersonated: u64,
    /// While it leads.
    controller: Option<Controller>,
    leads: Arc<AtomicBool>,
    remote: Option<RemoteCalls<ControllerServer<B>>>,
    report: ControllerReport,
}

impl<B: ChainBackend> ControllerServer<B> {
    /// Opens the socket at `address` of a controller of the chains. With a guard only sealed
    /// messages are taken and sent.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Bind`].
    pub fn bind(
        settings: Settings,
        address: SocketAddrV4,
        backend: B,
        guard: Option<Guard>,
    ) -> Result<ControllerServer<B>, ControllerError> {
        let bind = || -> std::io::Result<UdpSocket> {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = bind().map_err(|cause| ControllerError::Bind { address, cause })?;
        Ok(ControllerServer {
            settings,
            backend,
            socket,
            guard,
            impersonated: 0,
            controller: None,
            leads: Arc::default(),
            remote: None,
            report: ControllerReport::default(),
        })
    }

    /// Serves the calls of a [`Remote`](crate::remote::Remote) while it leads.
    pub fn set_remote(&mut self, remote: RemoteCalls<ControllerServer<B>>) {
        self.remote = Some(remote);
    }

    /// Set while it leads, and so serves calls.
    pub fn leading(&self) -> Arc<AtomicBool> {
        self.leads.clone()
    }

    /// The controller's view of servers and chains.
    pub fn view(&self) -> ControllerView {
        let view = self.controller.as_ref().map(ControllerView::of);
        view.unwrap_or_default()
    }

    /// Report of the events since the start.
    pub fn report(&self) -> ControllerReport {
        let counters = self.controller.as_ref().map(Controller::counters);
        ControllerReport {
            controller: counters.copied().unwrap_or_default(),
            broken: (self.controller.as_ref()).map_or(BrokenCounts::default(), Controller::broken),
            seals: (self.guard.as_ref()).map(|guard| SealReport::of(guard, self.impersonated)),
            ..self.report
        }
    }

    /// Lets the server at `address` lose its shards, or take part again; also when this
    /// controller is gone.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoLeader`] if it does not lead; what
    /// [`store`](stateplane_membership::Backend::store) says.
    pub fn drain(&mut self, address: Ipv4Addr, drained: bool) -> Result<(), ControllerError> {
        let server = server_number(address);
        let Some(controller) = &mut self.controller else {
            return Err(ControllerError::NoLeader);
        };
        let stored = self.backend.store(&[Record::Drained { server, drained }])?;
        if stored == Stored::LeadAnew {
            self.controller = None;
            return Err(ControllerError::NoLeader);
        }
        controller.drain(boot_time_us(), server, drained);
        Ok(())
    }

    /// Waits until it leads, and serves as long as it does, again and again until `stop` is set,
    /// which is seen within 50 ms. `refused` gets the reason why a changed key file is refused; the
    /// old keys stay.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Receive`]; what [`lead`](stateplane_membership::Backend::lead) and
    /// [`store`](stateplane_membership::Backend::store) say, since what is not kept must not take
    /// effect.
    pub fn run(
        mut self,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&KeysError),
    ) -> Result<ControllerReport, ControllerError> {
        let mut buffer = vec![0; 65_536];
        while let Some(kept) = self.backend.lead(stop)? {
            self.report.led += 1;
            // Earlier messages are old: their senders send again.
            while receive(&self.socket, &mut buffer)
                .map_err(ControllerError::Receive)?
                .is_some()
            {}
            self.begin(kept)?;
            self.leads.store(true, Ordering::Relaxed);
            let outcome = self.serve(stop, refused, &mut buffer);
            self.leads.store(false, Ordering::Relaxed);
            outcome?;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(self.report())
    }

    /// Serves until it leads no more, or `stop` is set.
    fn serve(
        &mut self,
        stop: &AtomicBool,
        refused: &mut dyn FnMut(&KeysError),
        buffer: &mut [u8],
    ) -> Result<(), ControllerError> {
        let socket = self.socket.as_raw_fd();
        let calls = self.remote.as_ref().map(RemoteCalls::descriptor);
        let mut readable =
            Readable::new([socket].into_iter().chain(calls)).map_err(ControllerError::Receive)?;
        while !stop.load(Ordering::Relaxed) && self.backend.leads() {
            while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
                call(self);
            }
            let looked = self.guard.as_mut().map(|guard| guard.look(boot_time_us()));
            if let Some(Err(error)) = looked {
                refused(&error);
            }
            if self.act()? == Stored::LeadAnew {
                break;
            }
            let Some(controller) = &self.controller else {
                break;
            };
            let due = controller.poll_timeout().min(boot_time_us() + LONGEST_WAIT);
            readable.wait_until(due).map_err(ControllerError::Receive)?;
            self.receive(buffer)?;
            if let Some(controller) = &mut self.controller {
                controller.handle_timeout(boot_time_us());
                while let Some(broken) = controller.poll_broken() {
                    say_broken(&broken);
                }
                if controller.is_behind() && self.backend.is_shared() {
                    // Another one decided what this one has not read.
                    break;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, kept: Kept) -> Result<(), ControllerError> {
        let incarnation = random_bits().map_err(ControllerError::Random)? as u32;
        let (settings, now) = (self.settings.clone(), boot_time_us());
        let configs = kept.configs.into_values();
        let mut controller = Controller::new(settings, incarnation.max(1), configs, now)?;
        for server in kept.drained {
            controller.drain(now, server, true);
        }
        self.controller = Some(controller);
        Ok(())
    }

    /// Takes what came, at most [`BURST`] datagrams.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), ControllerError> {
        for _ in 0..BURST {
            let received = receive(&self.socket, buffer).map_err(ControllerError::Receive)?;
            let Some((length, from)) = received else {
                break;
            };
            let (now, bytes) = (boot_time_us(), &buffer[..length]);
            let guard = self.guard.as_mut();
            let Some(received) = open_datagram(guard, now, &self.socket, from, bytes) else {
                continue;
            };
            if let Some(peer) = received.peer
                && !is_own(peer, from, received.message)
            {
                self.impersonated += 1;
            } else if let Some(controller) = &mut self.controller {
                controller.handle_message(now, from, received.message);
            }
        }
        Ok(())
    }

    /// Keeps what was decided, then sends. A datagram that the system does not take is
    /// lost as on a wire: the controller sends again.
    fn act(&mut self) -> Result<Stored, ControllerError> {
        let Some(controller) = &mut self.controller else {
            return Ok(Stored::LeadAnew);
        };
        loop {
            let decided = std::iter::from_fn(|| controller.poll_record());
            let records: Vec<Record> = decided.take(MOST_RECORDS).map(Record::Config).collect();
            if records.is_empty() {
                break;
            }
            if self.backend.store(&records)? == Stored::LeadAnew {
                return Ok(Stored::LeadAnew);
            }
            for record in &records {
                if let Record::Config(config) = record {
                    controller.handle_stored(boot_time_us(), config);
                }
            }
        }
        while let Some(transmit) = controller.poll_transmit() {
            let guard = self.guard.as_mut();
            if send_datagram(guard, &self.socket, transmit.to, &transmit.bytes).is_err() {
                self.report.send_failed += 1;
            }
        }
        Ok(Stored::Kept)
    }
}

/// True if `message`, which the peer of number `peer` at `from` sealed, speaks for that peer: a
/// server is known by its address, a switch by its number.
fn is_own(peer: u32, from: SocketAddrV4, message: &[u8]) -> bool {
    match Message::parse(message) {
        Ok(Message::Heartbeat(heartbeat)) => {
            let member = heartbeat.from;
            member.server == server_number(*from.ip()) && member.links == from
        }
        Ok(Message::Subscribe { switch, .. }) => switch == peer,
        // The controller counts what is not for it.
        _ => true,
    }
}

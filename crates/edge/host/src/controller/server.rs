//! The loop that drives a controller.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use stateplane_chains::{Controller, ControllerCounters};
use stateplane_groups as groups;
use stateplane_invariant::BrokenCounts;
use stateplane_multicast_groups as multicast;

use super::backend::Drainable;
use super::cores::{Cores, Systems, is_own};
use super::told::Told;
use super::{
    ControllerError, ControllerView, CoordinationView, DecisionBackend, Kept, MOST_RECORDS,
    MulticastView, Record, Stored, server_number,
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
    /// In the core of chains, since it leads.
    pub controller: ControllerCounters,
    /// In the core of groups, since it leads, if the deployment has coordination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordination: Option<groups::ControllerCounters>,
    /// In the core of multicast, since it leads, if the deployment has multicast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multicast: Option<multicast::ControllerCounters>,
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
    systems: Systems,
    backend: B,
    socket: UdpSocket,
    guard: Option<Guard>,
    impersonated: u64,
    /// While it leads.
    cores: Option<Cores>,
    leads: Arc<AtomicBool>,
    remote: Option<RemoteCalls<ControllerServer<B>>>,
    report: ControllerReport,
    told: Told,
}

impl<B: DecisionBackend> ControllerServer<B> {
    /// Opens the socket at `address` of a controller of `systems`. With a guard only sealed
    /// messages are taken and sent.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Bind`].
    pub fn bind(
        systems: Systems,
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
            systems,
            backend,
            socket,
            guard,
            impersonated: 0,
            cores: None,
            leads: Arc::default(),
            remote: None,
            report: ControllerReport::default(),
            told: Told::default(),
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

    fn chains(&self) -> Option<&Controller> {
        self.cores.as_ref()?.chains.as_ref()
    }

    fn groups(&self) -> Option<&groups::Controller> {
        self.cores.as_ref()?.groups.as_ref()
    }

    fn multicast(&self) -> Option<&multicast::Controller> {
        self.cores.as_ref()?.multicast.as_ref()
    }

    /// The controller's view of servers and chains.
    pub fn view(&self) -> ControllerView {
        ControllerView {
            leads: self.cores.is_some(),
            ..self
                .chains()
                .map(|chains| ControllerView::of(chains, boot_time_us()))
                .unwrap_or_default()
        }
    }

    /// The controller's view of switches and groups of coordination.
    pub fn coordination_view(&self) -> CoordinationView {
        CoordinationView {
            leads: self.cores.is_some(),
            ..self
                .groups()
                .map(|groups| CoordinationView::of(groups, boot_time_us()))
                .unwrap_or_default()
        }
    }

    /// The controller's view of switches and groups of multicast.
    pub fn multicast_view(&self) -> MulticastView {
        MulticastView {
            leads: self.cores.is_some(),
            ..self.multicast().map(MulticastView::of).unwrap_or_default()
        }
    }

    /// Report of the events since the start.
    pub fn report(&self) -> ControllerReport {
        let (chains, groups) = (self.chains(), self.groups());
        let mut broken = chains.map_or(BrokenCounts::default(), Controller::broken);
        if let Some(groups) = groups {
            broken += groups.broken();
        }
        if let Some(multicast) = self.multicast() {
            broken += multicast.broken();
        }
        ControllerReport {
            controller: chains
                .map(Controller::counters)
                .copied()
                .unwrap_or_default(),
            coordination: groups.map(|it| *it.counters()),
            multicast: self.multicast().map(|it| *it.counters()),
            broken,
            seals: (self.guard.as_ref()).map(|guard| SealReport::of(guard, self.impersonated)),
            ..self.report
        }
    }

    /// Lets the server at `address` lose its shards, or take part again; also when this
    /// controller is gone.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoLeader`] if it does not lead; [`ControllerError::NotThere`] without
    /// chains; [`ControllerError::NoServer`]; what
    /// [`store`](stateplane_membership::Backend::store) says.
    pub fn drain(&mut self, address: Ipv4Addr, drained: bool) -> Result<(), ControllerError> {
        let server = server_number(address);
        if self.cores.is_some() {
            let chains = self.chains();
            let chains = chains.ok_or(ControllerError::NotThere("replication"))?;
            if !chains.servers().any(|known| known.member.server == server) {
                return Err(ControllerError::NoServer(address));
            }
        }
        self.keep_drained(Drainable::Server(server), drained)?;
        if let Some(chains) = self.cores.as_mut().and_then(|it| it.chains.as_mut()) {
            chains.drain(boot_time_us(), server, drained);
        }
        Ok(())
    }

    /// Lets a switch of coordination lose its groups, or take part again; also when this
    /// controller is gone.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoLeader`] if it does not lead; [`ControllerError::NotThere`] without
    /// coordination; [`ControllerError::NoSwitch`]; what
    /// [`store`](stateplane_membership::Backend::store) says.
    pub fn drain_switch(&mut self, number: u32, drained: bool) -> Result<(), ControllerError> {
        if self.cores.is_some() {
            let groups = self.groups();
            let groups = groups.ok_or(ControllerError::NotThere("coordination"))?;
            if !groups.switches().any(|switch| switch.number == number) {
                return Err(ControllerError::NoSwitch {
                    number,
                    section: "coordination",
                });
            }
        }
        self.keep_drained(Drainable::Coordination(number), drained)?;
        if let Some(groups) = self.cores.as_mut().and_then(|it| it.groups.as_mut()) {
            groups.drain(boot_time_us(), number, drained);
        }
        Ok(())
    }

    /// Lets a switch of multicast lose its groups, or take part again; also when this controller is
    /// gone.
    ///
    /// # Errors
    ///
    /// As [`ControllerServer::drain_switch`], of multicast.
    pub fn drain_multicast(&mut self, number: u32, drained: bool) -> Result<(), ControllerError> {
        if self.cores.is_some() {
            let multicast = self.multicast();
            let multicast = multicast.ok_or(ControllerError::NotThere("multicast"))?;
            if !multicast.switches().any(|switch| switch.number == number) {
                return Err(ControllerError::NoSwitch {
                    number,
                    section: "multicast",
                });
            }
        }
        self.keep_drained(Drainable::Multicast(number), drained)?;
        if let Some(core) = self.cores.as_mut().and_then(|it| it.multicast.as_mut()) {
            core.drain(boot_time_us(), number, drained);
        }
        Ok(())
    }

    /// Founds a group of coordination anew, empty, whose members are all lost.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoLeader`] if it does not lead; [`ControllerError::NotThere`] without
    /// coordination; [`ControllerError::Refound`].
    pub fn refound(&mut self, group: u16) -> Result<(), ControllerError> {
        let Some(cores) = &mut self.cores else {
            return Err(ControllerError::NoLeader);
        };
        let groups = cores.groups.as_mut();
        let groups = groups.ok_or(ControllerError::NotThere("coordination"))?;
        Ok(groups.refound(boot_time_us(), group)?)
    }

    /// Founds a group of multicast anew, with empty logs, whose members are all lost.
    ///
    /// # Errors
    ///
    /// [`ControllerError::NoLeader`] if it does not lead; [`ControllerError::NotThere`] without
    /// multicast; [`ControllerError::RefoundMulticast`].
    pub fn refound_multicast(&mut self, group: u8) -> Result<(), ControllerError> {
        let Some(cores) = &mut self.cores else {
            return Err(ControllerError::NoLeader);
        };
        let multicast = cores.multicast.as_mut();
        let multicast = multicast.ok_or(ControllerError::NotThere("multicast"))?;
        Ok(multicast.refound(boot_time_us(), group)?)
    }

    fn keep_drained(&mut self, what: Drainable, drained: bool) -> Result<(), ControllerError> {
        if self.cores.is_none() {
            return Err(ControllerError::NoLeader);
        }
        let server = what.number();
        let stored = self.backend.store(&[Record::Drained { server, drained }])?;
        if stored == Stored::LeadAnew {
            self.cores = None;
            return Err(ControllerError::NoLeader);
        }
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
            tracing::info!("this controller leads");
            self.told = Told::default();
            let outcome = self.serve(stop, refused, &mut buffer);
            self.leads.store(false, Ordering::Relaxed);
            tracing::info!("this controller leads no more");
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
            let Some(cores) = &self.cores else {
                break;
            };
            let due = cores.poll_timeout().min(boot_time_us() + LONGEST_WAIT);
            readable.wait_until(due).map_err(ControllerError::Receive)?;
            self.receive(buffer)?;
            self.tell_changes();
            if let Some(cores) = &mut self.cores {
                cores.handle_timeout(boot_time_us());
                while let Some(broken) = cores.poll_broken() {
                    say_broken(&broken);
                }
                if cores.is_behind() && self.backend.is_shared() {
                    // Another one decided what this one has not read.
                    break;
                }
            }
        }
        Ok(())
    }

    /// Says what changed since the last look, if it is time for one.
    fn tell_changes(&mut self) {
        if !self.told.is_due(boot_time_us()) {
            return;
        }
        if self.systems.chains.is_some() {
            let view = self.view();
            self.told.store(&view);
        }
        if self.systems.groups.is_some() {
            let view = self.coordination_view();
            self.told.coordination(&view);
        }
        if self.systems.multicast.is_some() {
            let view = self.multicast_view();
            self.told.multicast(&view);
        }
    }

    fn begin(&mut self, kept: Kept) -> Result<(), ControllerError> {
        let incarnation = random_bits().map_err(ControllerError::Random)? as u32;
        let (incarnation, now) = (incarnation.max(1), boot_time_us());
        let mut seed = groups::Seed::default();
        for word in seed.chunks_exact_mut(8) {
            let bits = random_bits().map_err(ControllerError::Random)?;
            word.copy_from_slice(&bits.to_be_bytes());
        }
        let cores = Cores::new(&self.systems, incarnation, seed, kept, now)?;
        self.cores = Some(cores);
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
                && !is_own(&self.systems, peer, from, received.message)
            {
                self.impersonated += 1;
            } else if let Some(cores) = &mut self.cores {
                cores.handle_message(now, from, received.message);
            }
        }
        Ok(())
    }

    /// Keeps what was decided, then sends. A datagram that the system does not take is
    /// lost as on a wire: the controller sends again.
    fn act(&mut self) -> Result<Stored, ControllerError> {
        let Some(cores) = &mut self.cores else {
            return Ok(Stored::LeadAnew);
        };
        loop {
            let decided = std::iter::from_fn(|| cores.poll_record());
            let records: Vec<Record> = decided.take(MOST_RECORDS).map(Record::Config).collect();
            if records.is_empty() {
                break;
            }
            if self.backend.store(&records)? == Stored::LeadAnew {
                return Ok(Stored::LeadAnew);
            }
            for record in &records {
                if let Record::Config(decided) = record {
                    cores.handle_stored(boot_time_us(), decided);
                }
            }
        }
        while let Some((to, bytes)) = cores.poll_transmit() {
            let guard = self.guard.as_mut();
            if send_datagram(guard, &self.socket, to, &bytes).is_err() {
                self.report.send_failed += 1;
            }
        }
        Ok(Stored::Kept)
    }
}

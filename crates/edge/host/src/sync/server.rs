//! The loop that drives the engines of all groups, and the observers of flows.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stateplane_seal::TRAILER_LENGTH;
use stateplane_sync::election::{Election, ElectionSettings};
use stateplane_wire::sync::{FROZEN_LENGTH, HEADER_LENGTH, Packet};
use stateplane_wire::{ipv4, udp};

use super::candidate::{Candidate, Step};
use super::flows::Flows;
use super::rest::Rest;
use super::views::Busy;
use super::work::Work;
use super::{
    Kept, LocalViews, Outcomes, SharedStore, SyncEngineFile, SyncError, SyncReport, ViewError,
};
use crate::clock::boot_time_us;
use crate::datagram::{self, BURST, Burst, Outgoing};
use crate::poll::Readable;
use crate::random::random_bits;
use crate::remote::RemoteCalls;
use crate::sealing::{Guard, SealReport, open_datagram};

use sending::Sending;

/// Longest wait in µs, so that a request to stop is seen.
const LONGEST_WAIT: u64 = 50_000;

/// Bursts of datagrams that are taken before anything is sent.
const BURSTS: usize = 4;

/// Frozen values of a sealed message that an IP packet of 1,500 bytes takes.
const SEALED_FROZEN: u32 = {
    const HEADERS: usize = ipv4::HEADER_LENGTH + udp::HEADER_LENGTH + HEADER_LENGTH;
    ((1_500 - HEADERS - TRAILER_LENGTH) / FROZEN_LENGTH) as u32
};

/// Engines of groups and observers of flows behind one socket, and what keeps their state.
pub struct SyncServer {
    file: SyncEngineFile,
    /// There while this engine leads.
    work: Option<Work>,
    /// Its part in an election, if it has a shared store.
    candidate: Option<Candidate>,
    socket: UdpSocket,
    burst: Burst,
    outgoing: Outgoing,
    remote: Option<RemoteCalls<SyncServer>>,
    guard: Option<Guard>,
    report: SyncReport,
    views: LocalViews,
}

impl SyncServer {
    /// Opens log and socket of the engine that `file` describes. Its term is greater than that of
    /// each earlier start whose log it has, and without a log than those of engines that started
    /// earlier by the system's clock.
    ///
    /// # Errors
    ///
    /// [`SyncError::Log`], [`SyncError::Bind`], [`SyncError::Random`], [`SyncError::Setting`].
    pub fn bind(file: &SyncEngineFile) -> Result<SyncServer, SyncError> {
        let Some(folder) = &file.data else {
            return Err(SyncError::Setting {
                group: String::new(),
                field: "`data`",
                must: "the folder of the log of an engine without [etcd]".to_owned(),
            });
        };
        let mut kept = Kept::open(folder, &file.groups)?;
        let started_us = since_epoch_us();
        let term = kept.next_term(least_term(started_us)?)?;
        let mut server = SyncServer::open(file, started_us)?;
        server.begin(term, kept)?;
        Ok(server)
    }

    /// Opens the socket of an engine that stands by until `store`, which others of the same groups
    /// share, lets it lead. `outcomes` are those of the store.
    ///
    /// # Errors
    ///
    /// [`SyncError::Bind`], [`SyncError::Random`], [`SyncError::Setting`].
    pub fn bind_shared(
        file: &SyncEngineFile,
        store: Box<dyn SharedStore>,
        outcomes: RemoteCalls<Outcomes>,
    ) -> Result<SyncServer, SyncError> {
        let started_us = since_epoch_us();
        let mut server = SyncServer::open(file, started_us)?;
        let nonce = random_bits().map_err(SyncError::Random)?;
        let settings = ElectionSettings {
            nonce,
            address: file.announced(),
            detection_us: file.detection_us(),
            least_term: least_term(started_us)?,
        };
        let election = Election::new(boot_time_us(), settings);
        server.candidate = Some(Candidate::new(election, store, outcomes));
        Ok(server)
    }

    fn open(file: &SyncEngineFile, started_us: u64) -> Result<SyncServer, SyncError> {
        let address = SocketAddrV4::new(file.listen, file.port);
        let socket = datagram::open(address).map_err(|cause| SyncError::Bind { address, cause })?;
        Ok(SyncServer {
            file: file.clone(),
            work: None,
            candidate: None,
            socket,
            burst: Burst::new(),
            outgoing: Outgoing::default(),
            remote: None,
            guard: None,
            report: SyncReport {
                started_us,
                ..SyncReport::default()
            },
            views: LocalViews::new(),
        })
    }

    /// Begins to lead.
    fn begin(&mut self, term: u64, kept: Kept) -> Result<(), SyncError> {
        self.work = Some(Work::begin(&self.file, term, kept)?);
        self.set_room();
        self.report.term = term;
        self.report.leads = true;
        self.report.led += 1;
        Ok(())
    }

    /// Ends what it did as leader; clients are told so.
    fn stand_by(&mut self) {
        self.report.leads = false;
        if let Some(work) = self.work.take() {
            let refusal = self.refusal();
            for group in work.groups {
                group.give_up(&refusal);
            }
            for flows in work.flows {
                flows.give_up(&refusal);
            }
        }
    }

    /// The refusal of an engine that stands by.
    fn refusal(&self) -> ViewError {
        let leader = self.candidate.as_ref().and_then(Candidate::leader);
        ViewError::Standby { leader }
    }

    /// Work, while its lease is in force.
    fn work(&self) -> Result<&Work, ViewError> {
        let leads = |work: &&Work| {
            let candidate = self.candidate.as_ref();
            candidate.is_none_or(|it| it.leads(boot_time_us()) == Some(work.term))
        };
        let work = self.work.as_ref().filter(leads);
        work.ok_or_else(|| self.refusal())
    }

    /// Address of the socket.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The engine's term.
    pub fn term(&self) -> u64 {
        self.report.term
    }

    /// Serves the calls of a [`Remote`](crate::remote::Remote).
    pub fn set_remote(&mut self, remote: RemoteCalls<SyncServer>) {
        self.remote = Some(remote);
    }

    /// Only sealed messages are sent and taken, with the keys of `guard`, on paths that take packets
    /// of 1,500 bytes.
    pub fn set_guard(&mut self, guard: Guard) {
        self.guard = Some(guard);
        self.set_room();
    }

    /// Sealed answers of the switches have room for fewer frozen values.
    fn set_room(&mut self) {
        if self.guard.is_some() {
            for group in self.work.iter_mut().flat_map(|work| &mut work.groups) {
                group.engine.set_room(SEALED_FROZEN);
            }
        }
    }

    /// Checks that this engine leads, and so answers.
    ///
    /// # Errors
    ///
    /// [`ViewError::Standby`].
    pub fn check_leads(&self) -> Result<(), ViewError> {
        self.work().map(|_| ())
    }

    /// A handle by which threads of this process look at the views while the engine runs.
    pub fn views(&self) -> LocalViews {
        self.views.clone()
    }

    /// Counts and views. An engine that stands by has none.
    pub fn report(&self) -> SyncReport {
        SyncReport {
            groups: self.work.as_ref().map(Work::report).unwrap_or_default(),
            flows: self
                .work
                .as_ref()
                .map(Work::flows_report)
                .unwrap_or_default(),
            seals: self.guard.as_ref().map(|guard| SealReport::of(guard, 0)),
            ..self.report.clone()
        }
    }

    /// Follows the switches while it leads, until `stop` is set, which is seen within 50 ms.
    ///
    /// # Errors
    ///
    /// [`SyncError::Receive`]; [`SyncError::Log`], since what is not kept must not take effect;
    /// [`SyncError::Random`] as it begins to lead.
    pub fn run(self, stop: &AtomicBool) -> Result<SyncReport, SyncError> {
        let _busy = Busy::begin();
        let calls = self.remote.as_ref().map(RemoteCalls::descriptor);
        let outcomes = self.candidate.as_ref().map(Candidate::descriptor);
        let descriptors = [self.socket.as_raw_fd()];
        let others = calls.into_iter().chain(outcomes);
        let all = descriptors.into_iter().chain(others.clone());
        let mut readable = Readable::new(all).map_err(SyncError::Receive)?;
        let mut resting = Readable::new(others).map_err(SyncError::Receive)?;
        let mut rest = Rest::default();
        let views = self.views();
        let mut server = Box::new(self);
        while !stop.load(Ordering::Relaxed) {
            server.elect()?;
            server.look_at_keys(boot_time_us());
            while let Some(call) = server.remote.as_mut().and_then(RemoteCalls::poll) {
                call(&mut server);
            }
            server.turn()?;
            let due = server.due();
            let rests_until = rest.until(server.is_awaited());
            let waits_for = if rests_until <= boot_time_us() {
                (&mut readable, due)
            } else {
                (&mut resting, due.min(rests_until))
            };
            let waited;
            (server, waited) = views.lend(server, || waits_for.0.wait_until(waits_for.1));
            waited.map_err(SyncError::Receive)?;
            let before = server.report.received;
            let mut more = true;
            for _ in 0..BURSTS {
                more = server.receive().map_err(SyncError::Receive)?;
                if !more {
                    break;
                }
            }
            rest.took(boot_time_us(), server.report.received - before, more);
        }
        views.end();
        let report = server.report();
        if let Some(work) = &mut server.work {
            work.close()?;
        }
        if let Some(mut candidate) = server.candidate.take() {
            let left = candidate.leave(&mut readable, server.work.take());
            left.map_err(SyncError::Receive)?;
        }
        Ok(report)
    }

    /// When there is something to do, if nothing comes before.
    fn due(&self) -> u64 {
        let now = boot_time_us();
        let groups = self.work.iter().flat_map(|work| &work.groups);
        let due = groups.filter_map(|it| it.engine.poll_timeout());
        let flows = self.work.iter().flat_map(|work| &work.flows);
        let due = due.chain(flows.filter_map(Flows::due));
        let elections = self.candidate.as_ref().and_then(Candidate::poll_timeout);
        let due = due.chain(elections).min().unwrap_or(u64::MAX);
        due.min(now + LONGEST_WAIT)
    }

    /// True while a view is incomplete, or a request waits for what switches send.
    fn is_awaited(&self) -> bool {
        let now = boot_time_us();
        let mut groups = self.work.iter().flat_map(|work| &work.groups);
        let mut flows = self.work.iter().flat_map(|work| &work.flows);
        groups.any(|group| group.waiting() > 0 || group.engine.told(now).is_none())
            || flows.any(|flows| flows.waiting() > 0 || flows.observer.told(now).is_none())
    }

    /// Does its part in the election: begins to lead, or stops to.
    fn elect(&mut self) -> Result<(), SyncError> {
        let Some(candidate) = &mut self.candidate else {
            return Ok(());
        };
        let step = candidate.turn(boot_time_us(), self.work.as_mut());
        match step {
            Step::None => {}
            Step::Begin { term, facts } => {
                let kept = Kept::shared(&self.file.groups, term, facts);
                self.begin(term, kept)?;
            }
            Step::StandBy => self.stand_by(),
        }
        Ok(())
    }

    /// Does what is due, has written through what has to be, and sends.
    fn turn(&mut self) -> Result<(), SyncError> {
        let Some(work) = &mut self.work else {
            return Ok(());
        };
        let now = boot_time_us();
        for group in &mut work.groups {
            group.turn(now, &mut work.kept);
            group.log.tell(now, &group.file.name, &group.engine);
        }
        work.merge_last_views();
        let Work {
            groups,
            flows,
            kept,
            term,
            ..
        } = work;
        for section in &mut *flows {
            section.turn(now);
        }
        kept.sync()?;
        if let Some(candidate) = &mut self.candidate {
            candidate.store(*term, kept);
            if candidate.leads(boot_time_us()) != Some(*term) {
                // The next step of the election sees to it.
                return Ok(());
            }
        }
        let mut sending = Sending {
            socket: &self.socket,
            guard: self.guard.as_mut(),
            outgoing: &mut self.outgoing,
            report: &mut self.report,
        };
        for group in groups {
            let answers = group.synced(kept);
            while let Some(message) = group.engine.poll_transmit() {
                sending.push(group.file.socket(), message);
            }
            sending.finish();
            for answer in answers {
                answer.give();
            }
        }
        for section in flows {
            let answers = section.take_answers();
            while let Some((to, message)) = section.poll_transmit() {
                sending.push(to, message);
            }
            sending.finish();
            for answer in answers {
                answer();
            }
        }
        Ok(())
    }

    /// Reads the file of keys again if it changed.
    fn look_at_keys(&mut self, now: u64) {
        let Some(guard) = &mut self.guard else {
            return;
        };
        if let Err(error) = guard.look(now) {
            tracing::error!(code = error.code(), "{error}; the keys so far stay");
        }
    }

    /// Takes a burst of datagrams; true if more may be there.
    fn receive(&mut self) -> std::io::Result<bool> {
        self.burst.take(&self.socket)?;
        let now = boot_time_us();
        if self.work.is_none() {
            // Answers to what it asked as it led.
            return Ok(self.burst.len() == BURST);
        }
        for (from, bytes) in self.burst.iter() {
            self.report.received += 1;
            let opened = open_datagram(self.guard.as_mut(), now, &self.socket, from, bytes);
            let Some(received) = opened else {
                continue;
            };
            let bytes = received.message;
            if let Some(work) = self.work.as_mut().filter(|it| it.stores.contains(&from)) {
                let flows = work.flows.iter_mut();
                for flows in flows.filter(|it| it.file.stores.contains(&from)) {
                    flows.handle_datagram(now, from, bytes);
                }
                continue;
            }
            let Ok(packet) = Packet::new_checked(bytes) else {
                self.report.malformed += 1;
                continue;
            };
            let number = packet.group();
            let mut is_known = false;
            let mut groups = self.work.iter_mut().flat_map(|work| &mut work.groups);
            let addressed = groups.find(|group| {
                let is_source = group.file.socket() == from;
                is_known |= is_source;
                is_source && group.file.group == number
            });
            match addressed {
                Some(group) => group.handle_datagram(now, bytes),
                None if is_known => self.report.unknown_group += 1,
                None => self.report.unknown_source += 1,
            }
        }
        Ok(self.burst.len() == BURST)
    }
}

impl Drop for SyncServer {
    fn drop(&mut self) {
        self.views.end();
    }
}

fn since_epoch_us() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.map_or(0, |since| since.as_micros() as u64)
}

/// The least term of an engine that started then: greater than those of engines that started earlier
/// by their clocks.
fn least_term(started_us: u64) -> Result<u64, SyncError> {
    let random = random_bits().map_err(SyncError::Random)?;
    Ok((started_us / 1_000) << 16 | (random & 0xffff))
}

mod flows;
mod groups;
mod sending;

#[cfg(test)]
mod tests;

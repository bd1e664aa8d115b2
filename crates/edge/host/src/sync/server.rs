//! The loop that drives the engines of all groups.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use stateplane_seal::TRAILER_LENGTH;
use stateplane_sync::{Engine, Settings, Told};
use stateplane_wire::sync::{FROZEN_LENGTH, HEADER_LENGTH, Packet};
use stateplane_wire::{ipv4, udp};

use super::group::Group;
use super::{
    Change, ChangeDone, CutMade, CutRequest, GroupReport, Kept, ReadRequest, Reading, Reply,
    SyncEngineFile, SyncError, SyncReport, ViewError, Window,
};
use crate::clock::boot_time_us;
use crate::datagram::{self, BURST, Burst, Outgoing};
use crate::poll::Readable;
use crate::random::random_bits;
use crate::remote::RemoteCalls;
use crate::sealing::{Guard, SealReport, open_datagram};

/// Longest wait in µs, so that a request to stop is seen.
const LONGEST_WAIT: u64 = 50_000;

/// Bursts of datagrams that are taken before anything is sent.
const BURSTS: usize = 4;

/// Frozen values of a sealed message that an IP packet of 1,500 bytes takes.
const SEALED_FROZEN: u32 = {
    const HEADERS: usize = ipv4::HEADER_LENGTH + udp::HEADER_LENGTH + HEADER_LENGTH;
    ((1_500 - HEADERS - TRAILER_LENGTH) / FROZEN_LENGTH) as u32
};

/// Engines of groups behind one socket, and what keeps their state.
pub struct SyncServer {
    groups: Vec<Group>,
    kept: Kept,
    socket: UdpSocket,
    burst: Burst,
    outgoing: Outgoing,
    remote: Option<RemoteCalls<SyncServer>>,
    guard: Option<Guard>,
    report: SyncReport,
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
        let mut kept = Kept::open(&file.data, &file.groups)?;
        let random = || random_bits().map_err(SyncError::Random);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let started_us = since_epoch.map_or(0, |since| since.as_micros() as u64);
        let least = (started_us / 1_000) << 16 | (random()? & 0xffff);
        let term = kept.next_term(least)?;
        let address = SocketAddrV4::new(file.listen, file.port);
        let socket = datagram::open(address).map_err(|cause| SyncError::Bind { address, cause })?;
        let now = boot_time_us();
        let mut groups = Vec::new();
        for group in &file.groups {
            let settings = Settings {
                group: group.group,
                locations: group.locations,
                batch: group.batch,
                poll_us: group.poll_us,
                retry_us: group.retry_us,
                term,
                nonce: random()? as u32,
            };
            let engine = Engine::new(settings, now, kept.epochs(&group.name));
            let engine = engine.map_err(|error| SyncError::setting(&group.name, error))?;
            groups.push(Group::new(now, group.clone(), engine));
        }
        Ok(SyncServer {
            groups,
            kept,
            socket,
            burst: Burst::new(),
            outgoing: Outgoing::default(),
            remote: None,
            guard: None,
            report: SyncReport {
                term,
                started_us,
                ..SyncReport::default()
            },
        })
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
        for group in &mut self.groups {
            group.engine.set_room(SEALED_FROZEN);
        }
        self.guard = Some(guard);
    }

    fn group(&self, name: &str) -> Result<usize, ViewError> {
        let found = self.groups.iter().position(|group| group.file.name == name);
        found.ok_or_else(|| {
            let known = self.groups.iter().map(|group| group.file.name.as_str());
            ViewError::UnknownGroup {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Reads the view of a group; `reply` is called when it is as near and young as asked, or the
    /// request's time is over.
    pub fn read(&mut self, request: ReadRequest, reply: Reply<Reading>) {
        match self.group(&request.group) {
            Ok(at) => self.groups[at].begin_read(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// The view of a group as it is; `None` while it is incomplete.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`].
    pub fn present(&mut self, group: &str) -> Result<Option<Reading>, ViewError> {
        let at = self.group(group)?;
        Ok(self.groups[at].reading(boot_time_us()))
    }

    /// Changes values; `reply` is called when the view has them (rule 23), or the request's time is
    /// over.
    pub fn change(&mut self, change: Change, reply: Reply<ChangeDone>) {
        match self.group(&change.group) {
            Ok(at) => self.groups[at].begin_change(boot_time_us(), change, &mut self.kept, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// As [`change`](Self::change), of a value for each location.
    pub fn change_all(&mut self, change: Change, reply: Reply<ChangeDone>) {
        match self.group(&change.group) {
            Ok(at) if change.values.len() != self.groups[at].file.locations as usize => {
                let locations = self.groups[at].file.locations;
                let message = format!("there are {locations} locations, each of which has a value");
                reply(Err(ViewError::Malformed(message)));
            }
            _ => self.change(change, reply),
        }
    }

    /// Checks that a group has all these locations.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`], [`ViewError::Location`].
    pub fn check_locations(&self, group: &str, locations: &[u32]) -> Result<(), ViewError> {
        let group = &self.groups[self.group(group)?];
        let mut locations = locations.iter();
        match locations.find(|location| **location >= group.file.locations) {
            Some(location) => Err(group.no_location(u64::from(*location))),
            None => Ok(()),
        }
    }

    /// The promise of each group's view, in the order of the file; `None` while it is
    /// incomplete.
    pub fn told(&self) -> Vec<Option<Told>> {
        let now = boot_time_us();
        let groups = self.groups.iter();
        groups.map(|group| group.engine.told(now)).collect()
    }

    /// Cuts a group; `reply` is called with the window that the cut ended.
    pub fn cut(&mut self, request: CutRequest, reply: Reply<CutMade>) {
        match self.group(&request.group) {
            Ok(at) => self.groups[at].begin_cut(boot_time_us(), request, reply),
            Err(error) => reply(Err(error)),
        }
    }

    /// The first kept window of a group behind number `after`; `None` if none has come yet.
    ///
    /// # Errors
    ///
    /// [`ViewError::UnknownGroup`]; [`ViewError::Gone`] if the one that follows `after` is not kept
    /// any more.
    pub fn window_after(&self, group: &str, after: u64) -> Result<Option<Window>, ViewError> {
        self.group(group)?;
        let (oldest, last) = self.kept.window_range(group);
        if after < last && after + 1 < oldest {
            return Err(ViewError::Gone { after, oldest });
        }
        Ok(self.kept.window_after(group, after).cloned())
    }

    /// Counts and views.
    pub fn report(&self) -> SyncReport {
        let now = boot_time_us();
        let group = |group: &Group| {
            let (told, counters) = (group.engine.told(now), group.engine.counters());
            let ring = group.engine.ring();
            let shown = group.file.metrics.iter();
            GroupReport {
                name: group.file.name.clone(),
                locations: group.file.locations,
                complete: told.is_some(),
                fenced: group.engine.is_fenced(),
                bound: told.and_then(|told| told.bound),
                all_but: told.map_or(0, |told| told.all_but),
                within: told.map_or(0, |told| told.within),
                age_us: told.map(|told| told.age_us),
                sweep_us: told.map_or(0, |told| told.sweep_us),
                unsent: ring.and_then(|ring| ring.unsent),
                queued: ring.map_or(0, |ring| ring.queued),
                sent: ring.map_or(0, |ring| ring.sent),
                missing: ring.map_or(0, |ring| ring.missing),
                named: ring.map_or(0, |ring| ring.named),
                lost: ring.map_or(0, |ring| ring.lost),
                generation: told.map_or(0, |told| told.generation),
                epoch: told.map_or(0, |told| told.epoch),
                last_window: self.kept.window_range(&group.file.name).1,
                waiting: group.waiting(),
                values: match told {
                    Some(_) => shown.map(|at| (*at, group.value(*at))).collect(),
                    None => Vec::new(),
                },
                updates: counters.updates,
                applied: counters.applied,
                repairs: counters.repairs,
                repaired: counters.repaired,
                refused: counters.refused,
                foreign: counters.foreign,
                beyond: counters.beyond,
                other_incarnation: counters.other_incarnation,
                reads: group.read,
                unmet: group.unmet,
                windows: group.windows,
            }
        };
        SyncReport {
            groups: self.groups.iter().map(group).collect(),
            seals: self.guard.as_ref().map(|guard| SealReport::of(guard, 0)),
            ..self.report.clone()
        }
    }

    /// Follows the switches until `stop` is set, which is seen within 50 ms.
    ///
    /// # Errors
    ///
    /// [`SyncError::Receive`]; [`SyncError::Log`], since what is not kept must not take effect.
    pub fn run(mut self, stop: &AtomicBool) -> Result<SyncReport, SyncError> {
        let calls = self.remote.as_ref().map(RemoteCalls::descriptor);
        let descriptors = [self.socket.as_raw_fd()].into_iter().chain(calls);
        let mut readable = Readable::new(descriptors).map_err(SyncError::Receive)?;
        while !stop.load(Ordering::Relaxed) {
            while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
                call(&mut self);
            }
            self.turn()?;
            let now = boot_time_us();
            let due = self.groups.iter().filter_map(|it| it.engine.poll_timeout());
            let due = due.min().unwrap_or(u64::MAX).min(now + LONGEST_WAIT);
            readable.wait_until(due).map_err(SyncError::Receive)?;
            for _ in 0..BURSTS {
                if !self.receive().map_err(SyncError::Receive)? {
                    break;
                }
            }
        }
        self.kept.close()?;
        Ok(self.report())
    }

    /// Does what is due, writes through what has to be, and sends.
    fn turn(&mut self) -> Result<(), SyncError> {
        let now = boot_time_us();
        self.look_at_keys(now);
        for group in &mut self.groups {
            group.turn(now, &mut self.kept);
            group.log.tell(now, &group.file.name, &group.engine);
        }
        self.kept.sync()?;
        for group in &mut self.groups {
            let answers = group.synced();
            while let Some(message) = group.engine.poll_transmit() {
                let to = group.file.socket();
                let trailer = match &mut self.guard {
                    None => None,
                    // The guard counts a message to an unknown peer, which is not sent.
                    Some(guard) => match guard.seal(*to.ip(), &message) {
                        None => continue,
                        trailer => trailer,
                    },
                };
                self.report.sent += 1;
                self.outgoing.push(to, Arc::new(message), trailer);
                if self.outgoing.is_full() {
                    self.report.send_failed += self.outgoing.send(&self.socket);
                }
            }
            self.report.send_failed += self.outgoing.send(&self.socket);
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
        for (from, bytes) in self.burst.iter() {
            self.report.received += 1;
            let opened = open_datagram(self.guard.as_mut(), now, &self.socket, from, bytes);
            let Some(received) = opened else {
                continue;
            };
            let bytes = received.message;
            let Ok(packet) = Packet::new_checked(bytes) else {
                self.report.malformed += 1;
                continue;
            };
            let number = packet.group();
            let mut is_known = false;
            let mut groups = self.groups.iter_mut();
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

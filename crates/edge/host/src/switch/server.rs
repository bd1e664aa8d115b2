//! Drives a switch with frames and time.

mod controlled;
mod frames;
mod links;
mod open;

use super::forwarding::Forwarding;
use super::greeter::{Greeter, GreetingFilter, HeadFile};
use super::heartbeats::{self, Beats};
use super::neighbours::Neighbours;
use super::report::{PacketReport, PortReport, ProgramReport, SwitchReport};
use super::run::RunOptions;
use super::sealing::{SharedSealing, sealed_payload};
use super::told::Told;
use super::{
    ChainsError, ControlPlane, EntryFile, RemoteCalls, Sealing, SwitchFile, SwitchServerError, file,
};

use crate::clock::boot_time_us;
use crate::poll::Readable;
use crate::ports::{MacAddress, Port as HostPort, PortNotice};
use stateplane_runtime::{Adopted, Engine};
use stateplane_switch::{Port, Switch};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time in µs without a look at the stop flag and at the links.
const LONGEST_WAIT: u64 = 100_000;

/// Time in µs after which frames are sent although more of the same burst wait.
const SEND_AFTER: u64 = 100;

/// Asks for a report from time to time.
pub struct Status<'a> {
    /// Time between two reports.
    pub period: Duration,
    /// Function that gets the report.
    pub show: &'a mut dyn FnMut(&SwitchReport),
}

/// Function that gets notices about a port: its number, its name, the notice.
pub type Notify<'a> = dyn FnMut(Port, &str, &PortNotice) + 'a;

struct ServedPort {
    number: Port,
    port: HostPort,
    /// MAC address of its interface.
    hardware: Option<MacAddress>,
    outgoing: Vec<Vec<u8>>,
}

/// A switch between network interfaces.
pub struct SwitchServer<E: Engine> {
    switch: Forwarding<E>,
    ports: Vec<ServedPort>,
    readable: Readable,
    /// Of each descriptor waited for: the port, and which of its descriptors it is.
    readers: Vec<(usize, usize)>,
    /// When the oldest outgoing frame was put there, in µs.
    outgoing_since: Option<u64>,
    /// Wishes of watches that could not be fulfilled yet.
    pending: BTreeMap<Port, bool>,
    port_state_failed: u64,
    /// Maximum time until the first sign of life of a watch.
    patience: Option<Duration>,
    control: Option<Box<dyn ControlPlane<E>>>,
    /// The port whose frames go to the control plane.
    cpu_port: Option<Port>,
    /// Requests of other threads.
    remote: Option<RemoteCalls<E>>,
    sealing: Option<Sealing>,
    /// The seals, if workers use them: then they are here.
    shared_sealing: Option<SharedSealing>,
    greeter: Option<Greeter>,
    beats: Beats,
    /// Tells which frames are the greeter's, or answer heartbeats.
    filter: Option<GreetingFilter>,
    told: Told,
    neighbours: Neighbours,
    /// µs for which it looks for frames before it sleeps.
    busy_poll: u64,
    /// When frames came last, in µs.
    received_at: u64,
}

impl<E: Engine> SwitchServer<E> {
    /// Lets [`run`](Self::run) give up if a watched register shows no sign of life
    /// within `patience` of its start. Without it, it waits for ever.
    pub fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Lets the thread look for frames for so long before it sleeps; workers have a time of their
    /// own.
    pub(super) fn set_busy_poll(&mut self, micros: u64) {
        self.busy_poll = micros;
    }

    /// Lets each of `ports` take only frames to its MAC addresses and to that of its interface, to
    /// groups and to all. Numbers that no interface has are passed over.
    pub fn route_ports(&mut self, ports: &BTreeMap<Port, Vec<MacAddress>>) {
        if let Some(workers) = self.switch.workers_mut() {
            workers.route(ports);
        }
        for served in &mut self.ports {
            if let Some(macs) = ports.get(&served.number) {
                served.port.route(macs);
            }
        }
    }

    /// Serves the calls of a [`Remote`](super::Remote) between bursts of packets.
    pub fn set_remote(&mut self, remote: Option<RemoteCalls<E>>) {
        self.remote = remote;
        self.listen();
    }

    /// Lets the frames from here on run the program of `engine`, which goes on with the
    /// state of the one before where names and types agree; returns the engine before. The engine
    /// for workers has to be guarded. `None` if a worker has ended.
    pub fn replace_program(&mut self, engine: E) -> Option<(E, Adopted)> {
        let replaced = self.switch.change(|switch, fellows| {
            let now = boot_time_us();
            switch.handle_timeout(now);
            fellows.each(&mut |fellow| {
                fellow.handle_timeout(now);
                // Packets of the program before write nothing behind the takeover.
                fellow.finish_egress();
            });
            switch.finish_egress();
            let state = switch.engine_mut().state_mut();
            fellows.each(&mut |fellow| state.gather(fellow.engine_mut().state_mut()));
            let replaced = switch.replace_engine_keeping_state(engine);
            heartbeats::end(switch);
            replaced
        });
        self.beats.program_changed();
        replaced
    }

    /// Sets an entry of a table, in the place of the one with its keys if there is one.
    ///
    /// # Errors
    ///
    /// [`ChainsError::Entry`] if the program does not take it.
    pub fn set_entry(&mut self, entry: &EntryFile) -> Result<(), ChainsError> {
        let set = self
            .switch
            .change(|switch, _| file::set_entry(switch.engine_mut().state_mut(), entry));
        self.beats.note_change();
        // A worker that has ended ends the run, which says why.
        Ok(set.unwrap_or(Ok(()))?)
    }

    /// Sets the entry of a shard's chain, whose head is greeted from here on.
    ///
    /// # Errors
    ///
    /// As [`set_entry`](Self::set_entry).
    pub(super) fn set_chain(
        &mut self,
        shard: u16,
        head: HeadFile,
        entry: &EntryFile,
    ) -> Result<(), ChainsError> {
        if let Some(greeter) = &mut self.greeter {
            greeter.set_head(shard, head);
        }
        self.set_entry(entry)
    }

    /// Lets `work` look at the switch, or at the first worker's between two of its bursts. `None` if that
    /// worker has ended.
    pub(super) fn on_first<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Switch<E>) -> T + Send + 'static,
    ) -> Option<T> {
        self.switch.on_first(work)
    }

    /// Lets `work` change the switch, or that of all workers at one point. `None` if a worker has ended.
    pub(super) fn change<T>(&mut self, work: impl FnOnce(&mut Switch<E>) -> T) -> Option<T> {
        self.switch.change(|switch, _| work(switch))
    }

    /// Lets `work` use the keys of the ports, if messages are sealed.
    pub(super) fn with_sealing<T>(&mut self, work: impl FnOnce(&mut Sealing) -> T) -> Option<T> {
        match (&mut self.sealing, &self.shared_sealing) {
            (Some(sealing), _) => Some(work(sealing)),
            (None, Some(shared)) => Some(work(&mut shared.lock())),
            (None, None) => None,
        }
    }

    /// Contents of the program's tables and counters.
    pub fn program_report(&mut self) -> ProgramReport {
        self.switch.counted().program
    }

    /// Report of the events since the start.
    pub fn report(&mut self) -> SwitchReport {
        let counted = self.switch.counted();
        let seals = self.with_sealing(|sealing| sealing.report());
        let ports = self.ports.iter_mut().enumerate().map(|(at, served)| {
            let of_port = counted.ports.get(&served.number).copied();
            let (counters, up) = of_port.unwrap_or_default();
            let of_workers = counted.host.get(at).copied();
            let mut host = served.port.counters();
            host += of_workers.unwrap_or_default();
            PortReport {
                port: served.number,
                interface: served.port.name().to_owned(),
                mode: served.port.mode(),
                up,
                rx_packets: counters.rx_packets,
                rx_bytes: counters.rx_bytes,
                tx_packets: counters.tx_packets,
                tx_bytes: counters.tx_bytes,
                host,
            }
        });
        let ports = ports.collect();
        let counters = &counted.counters;
        SwitchReport {
            ports,
            packets: PacketReport::new(counters, counted.occupancy),
            drops: counters
                .drops()
                .filter(|(_, count)| *count > 0)
                .map(|(reason, count)| (reason.name(), count))
                .collect(),
            port_state_failed: self.port_state_failed,
            seals,
            greeting: self.greeter.as_ref().map(|it| it.report(boot_time_us())),
            terms: self.beats.report(boot_time_us()),
            control: self.control.as_ref().map(|control| {
                let mut report = control.report();
                report.messages_dropped += counted.packets_in_lost;
                report
            }),
            workers: counted.workers,
        }
    }

    /// Forwards frames until `stop` is set, which is seen within 100 ms, or until all ports are
    /// captures and have ended. `notify` gets notices of ports that fail, return or change their
    /// mode. Interfaces that were down before [`open`](Self::open) are down afterwards; one that a
    /// watch has set down stays down, since no switch serves it.
    ///
    /// # Errors
    ///
    /// [`SwitchServerError::Wait`] if the system refuses to wait,
    /// [`SwitchServerError::NoSignOfLife`] after [`set_patience`](Self::set_patience).
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        status: Option<Status<'_>>,
        notify: &mut Notify<'_>,
    ) -> Result<SwitchReport, SwitchServerError> {
        let served = self.serve(stop, status, notify, &mut |_| {});
        self.close(notify);
        served.map(|()| self.report())
    }

    /// Like [`run`](Self::run), with the greetings, addresses and routed ports of `file`, and all
    /// that `options` say.
    pub(super) fn run_with(
        &mut self,
        file: &SwitchFile,
        greeter: Option<Greeter>,
        remote: Option<RemoteCalls<E>>,
        options: RunOptions<'_>,
    ) -> Result<SwitchReport, SwitchServerError> {
        self.check_payloads(file)?;
        self.route_ports(&file.routed_ports()?);
        self.neighbours = Neighbours::new(file.own_addresses()?);
        self.greeter = greeter;
        self.set_patience(options.patience);
        self.set_remote(remote);
        tracing::info!("the ports are open");
        let served = self.serve(options.stop, options.status, options.notify, options.ready);
        self.close(options.notify);
        served.map(|()| self.report())
    }

    /// Refuses payloads of multicast with which a sealed port has no room for the seal.
    fn check_payloads(&self, file: &SwitchFile) -> Result<(), SwitchServerError> {
        let multicast = file.multicast.as_ref();
        let following = multicast.and_then(|file| file.get_ref().following(true));
        // A program of multicast has no workers.
        let (Some(following), Some(sealing)) = (following, &self.sealing) else {
            return Ok(());
        };
        let longest = usize::from(following.longest);
        for served in self.ports.iter().filter(|it| sealing.covers(it.number)) {
            let room = served.port.mtu().map(sealed_payload);
            if let Some(room) = room.filter(|room| *room < longest) {
                return Err(SwitchServerError::LongPayloads {
                    port: served.number,
                    interface: served.port.name().to_owned(),
                    longest,
                    room,
                });
            }
        }
        Ok(())
    }

    fn serve(
        &mut self,
        stop: &AtomicBool,
        mut status: Option<Status<'_>>,
        notify: &mut Notify<'_>,
        ready: &mut dyn FnMut(&SwitchReport),
    ) -> Result<(), SwitchServerError> {
        self.look_at_chains();
        self.begin();
        let mut is_ready = false;
        let mut next_look = 0;
        let mut give_up_at = self
            .patience
            .map(|patience| boot_time_us() + micros(patience));
        let mut next_status = status
            .as_ref()
            .map(|status| boot_time_us() + micros(status.period));
        while !stop.load(Ordering::Relaxed) {
            let now = boot_time_us();
            if now >= next_look {
                self.look_at_links(notify);
                self.tell_notices(notify);
                self.look_at_keys(now, notify);
                if self.control.is_some() {
                    self.beats.note_change();
                }
                if self.greeter.is_some() && self.told.is_due(now) {
                    let program = self.program_report();
                    self.told.look(&program);
                }
                next_look = now + LONGEST_WAIT;
                give_up_at = self.await_life(give_up_at, now)?;
            }
            if let (Some(status), Some(time)) = (&mut status, &mut next_status)
                && now >= *time
            {
                (status.show)(&self.report());
                *time = now + micros(status.period);
            }
            if !is_ready && !self.waits_for_the_store() {
                is_ready = true;
                self.look_at_links(notify);
                ready(&self.report());
            }
            let control = self.serve_control();
            self.serve_remote();
            let greetings = self.greet();
            let beats = self.beat();
            let due = self.switch.poll_timeout();
            if due.is_none() && self.has_ended() {
                break;
            }
            let captured = self.ports.iter_mut().filter_map(|port| port.port.due(now));
            let due = captured.chain(due).chain(control).chain(greetings);
            let due = due.chain(beats);
            let mut due = due.fold(next_look, u64::min);
            if now < self.received_at.saturating_add(self.busy_poll) {
                due = 0;
            }
            self.readable
                .wait_until(due)
                .map_err(SwitchServerError::Wait)?;
            for next in 0..self.readers.len() {
                if self.readable.is_ready(next) {
                    let (at, descriptor) = self.readers[next];
                    self.forward_burst(at, descriptor);
                }
            }
            self.forward_captures();
            self.switch.handle_timeout(boot_time_us());
            self.collect();
            self.send();
            self.hear_workers(notify)?;
            self.follow_watches(notify);
        }
        Ok(())
    }

    /// `None` once no watch is stale; an error if one is at `give_up_at`.
    fn await_life(
        &mut self,
        give_up_at: Option<u64>,
        now: u64,
    ) -> Result<Option<u64>, SwitchServerError> {
        let waits = self.waits_for_the_store();
        let differences = self.greeter.as_ref().map(Greeter::differences);
        let differences = differences.filter(|_| waits).unwrap_or_default();
        match (give_up_at, self.switch.stale_watch()) {
            (Some(time), _) if now >= time && !differences.is_empty() => {
                Err(SwitchServerError::Unfit {
                    waited_s: self.patience.unwrap_or_default().as_secs(),
                    differences,
                })
            }
            (Some(time), Some(watch)) if now >= time => Err(SwitchServerError::NoSignOfLife {
                waited_s: self.patience.unwrap_or_default().as_secs(),
                register: watch.register.clone(),
                index: watch.index,
                ports: watch.ports.clone(),
            }),
            (time, Some(_)) => Ok(time),
            (time, None) => Ok(time.filter(|_| waits)),
        }
    }

    /// True if no frame will come any more.
    fn has_ended(&self) -> bool {
        self.control.is_none() && !self.ports.iter().any(|served| served.port.is_open_ended())
    }

    /// True until a store fits the switch; of a switch without greetings never.
    fn waits_for_the_store(&self) -> bool {
        let greeter = self.greeter.as_ref();
        greeter.is_some_and(|it| !it.is_admitted() && !it.goes_without())
    }

    /// Greets the heads that are due, and returns when the next one is.
    fn greet(&mut self) -> Option<u64> {
        let now = boot_time_us();
        let greeter = self.greeter.as_ref()?;
        if greeter.due().is_some_and(|due| due <= now) {
            self.greet_due(now);
        }
        let due = self.greeter.as_ref().and_then(Greeter::due);
        self.send();
        due
    }

    /// Greets the heads that are due at `now`.
    fn greet_due(&mut self, now: u64) {
        let Some(port) = self.greeter.as_ref().map(Greeter::port) else {
            return;
        };
        let complaint = self.with_sealing(|sealing| {
            let covers = sealing.covers(port);
            covers.then(|| sealing.complaint()).flatten()
        });
        let Some(greeter) = &mut self.greeter else {
            return;
        };
        greeter.handle_timeout(now, &|| complaint.flatten());
        let Ok(at) = self.ports.binary_search_by_key(&port, |it| it.number) else {
            return;
        };
        while let Some(frame) = greeter.poll_frame() {
            if let Some(workers) = self.switch.workers_mut() {
                workers.send(at, frame);
            } else {
                self.ports[at].outgoing.push(frame);
                self.outgoing_since.get_or_insert(now);
            }
        }
    }

    /// Looks at the chains if they may have changed.
    fn look_at_chains(&mut self) {
        let begins = self.beats.look(&mut self.switch);
        let greeter = self.greeter.as_ref().map(Greeter::filter);
        let filter = greeter.or_else(|| self.beats.filter());
        if begins || filter != self.filter {
            self.filter = filter;
            self.begin();
        }
    }

    /// Sends the heartbeats that are due, and returns when the next one is.
    fn beat(&mut self) -> Option<u64> {
        self.look_at_chains();
        let due = self.beats.serve(&mut self.switch);
        self.collect();
        self.send();
        due
    }

    fn serve_remote(&mut self) {
        while let Some(call) = self.remote.as_mut().and_then(RemoteCalls::poll) {
            self.beats.note_change();
            call(self);
            self.collect();
            self.send();
        }
    }
}

fn micros(period: Duration) -> u64 {
    u64::try_from(period.as_micros())
        .unwrap_or(u64::MAX >> 1)
        .min(u64::MAX >> 1)
}

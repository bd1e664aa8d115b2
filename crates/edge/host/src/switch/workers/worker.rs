//! A worker: takes frames from its queues through its switch, and sends what comes of them.

mod frames;

use super::super::placing::stay_on;
use super::counted::WorkerCounts;
use super::duties::Duties;
use super::lane::{Call, Control, Loan, Output};
use super::signals::{Handed, Inbox, Peer, Signs};
use super::spread::Steering;
use crate::clock::boot_time_us;
use crate::poll::Readable;
use crate::ports::{HostPortCounters, MacAddress, PortNotice, PortQueue};
use crate::switch::report::WorkerReport;
use stateplane_runtime::Engine;
use stateplane_switch::{Port, Switch};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

/// Longest sleep of a worker in µs, and time between looks at its queues.
const LONGEST_SLEEP: u64 = 100_000;

/// µs until a worker tries again to hand over what another one had no room for.
const HAND_OVER_AGAIN: u64 = 50;

/// A port, as one worker sees it.
pub(super) struct WorkerPort {
    number: Port,
    /// Its frames that come to this worker.
    queue: Option<PortQueue>,
    /// True if each worker has a queue. Else the owner's frames go to all workers.
    divided: bool,
    /// The worker that has a queue in any case.
    owner: usize,
    /// MAC address of its interface.
    hardware: Option<MacAddress>,
    /// The addresses of a routed port.
    routed: Option<Vec<MacAddress>>,
    outgoing: Vec<Vec<u8>>,
    /// True if the seals have something to send back.
    answered: bool,
    /// Beside those of the queue.
    counters: HostPortCounters,
}

/// Frames for other workers that had no room for them.
#[derive(Default)]
struct Backlog {
    /// Of captures: no other frames wait here.
    arrivals: VecDeque<(usize, Handed)>,
    departures: VecDeque<(usize, Handed)>,
}

impl Backlog {
    fn is_empty(&self) -> bool {
        self.arrivals.is_empty() && self.departures.is_empty()
    }
}

/// Buffers for frames that are handed over.
#[derive(Default)]
struct Spare {
    frames: Vec<Vec<u8>>,
    /// Buffers kept, none unless frames are handed over.
    kept: usize,
}

impl Spare {
    fn take(&mut self) -> Vec<u8> {
        self.frames.pop().unwrap_or_default()
    }

    fn put<E: Engine>(&mut self, switch: &mut Switch<E>, frame: Vec<u8>) {
        if self.frames.len() < self.kept {
            self.frames.push(frame);
        } else {
            switch.recycle(frame);
        }
    }
}

/// The parts of which a worker is made.
pub(super) struct Parts<E: Engine> {
    pub(super) switch: Switch<E>,
    pub(super) processor: Option<usize>,
    pub(super) busy_poll: u64,
    pub(super) steering: Steering,
    pub(super) calls: Receiver<Call<E>>,
    pub(super) inbox: Inbox,
    /// All workers, this one too.
    pub(super) peers: Vec<Peer>,
    pub(super) control: Control,
    pub(super) readable: Readable,
    pub(super) controlled: Controlled,
}

/// The part of a control plane in the workers' frames.
#[derive(Clone, Copy, Default)]
pub(in crate::switch) struct Controlled {
    /// True if there is a control plane.
    pub(in crate::switch) is: bool,
    /// The port without interface whose frames it gets.
    pub(in crate::switch) cpu_port: Option<Port>,
}

/// A worker. It shares no line of the cache with another one.
#[repr(align(64))]
pub(super) struct Worker<E: Engine> {
    pub(super) switch: Switch<E>,
    ports: Vec<WorkerPort>,
    number: usize,
    processor: Option<usize>,
    busy_poll: u64,
    steering: Steering,
    calls: Receiver<Call<E>>,
    inbox: Inbox,
    peers: Vec<Peer>,
    control: Control,
    signs: Arc<Signs>,
    readable: Readable,
    /// Of each descriptor waited for: the port, and which of its descriptors it is.
    readers: Vec<(usize, usize)>,
    pub(super) duties: Duties,
    /// True while frames neither come nor go: before the start, and after the end.
    held: bool,
    /// When the oldest outgoing frame was put there, in µs.
    outgoing_since: Option<u64>,
    /// Of each frame of a burst: the worker that it falls to.
    falls: Vec<usize>,
    /// Arrivals taken from others and not yet handled.
    batch: VecDeque<Handed>,
    backlog: Backlog,
    spare: Spare,
    /// Frames that it gave to other workers.
    handed_over: u64,
    /// Workers that were given something and not woken: a bit for each.
    to_wake: u64,
    controlled: Controlled,
    /// Frames for the control plane for which there was no room.
    packets_in_lost: u64,
    /// The thread with control asks for the worker.
    loan: Option<Loan<E>>,
    /// Calls that it did, and has not said that it is done with.
    undone: u64,
}

impl<E: Engine> Worker<E> {
    pub(super) fn new(parts: Parts<E>) -> Worker<E> {
        let Parts {
            switch,
            processor,
            busy_poll,
            steering,
            calls,
            inbox,
            peers,
            control,
            readable,
            controlled,
        } = parts;
        let port = |(at, port): (usize, &Port)| WorkerPort {
            number: *port,
            queue: None,
            divided: false,
            owner: owner(at, peers.len()),
            hardware: None,
            routed: None,
            outgoing: Vec::new(),
            answered: false,
            counters: HostPortCounters::default(),
        };
        let interfaces = switch.ports().iter();
        let interfaces = interfaces.filter(|number| controlled.cpu_port != Some(**number));
        let ports = interfaces.enumerate().map(port).collect();
        let number = steering.own;
        Worker {
            switch,
            ports,
            number,
            processor,
            busy_poll,
            steering,
            calls,
            inbox,
            signs: peers[number].signs.clone(),
            peers,
            control,
            readable,
            readers: Vec::new(),
            duties: Duties::default(),
            held: true,
            outgoing_since: None,
            falls: Vec::new(),
            batch: VecDeque::new(),
            backlog: Backlog::default(),
            spare: Spare::default(),
            handed_over: 0,
            to_wake: 0,
            controlled,
            packets_in_lost: 0,
            loan: None,
            undone: 0,
        }
    }

    /// Runs the worker of a thread until it is to stop, or cannot go on.
    pub(super) fn run(mut worker: Box<Worker<E>>) {
        if let Some(processor) = worker.processor
            && let Err(error) = stay_on(processor)
        {
            let number = worker.number;
            tracing::warn!(worker = number, processor, "cannot be pinned: {error}");
            worker.processor = None;
        }
        worker.listen();
        while let Some(loan) = worker.run_until_lent() {
            match loan.lend(worker) {
                Some(back) => worker = back,
                None => return,
            }
            // The thread with control may have left frames in its switch.
            worker.collect();
            worker.send();
        }
    }

    /// Runs until the thread with control asks for the worker; `None` at the end.
    fn run_until_lent(&mut self) -> Option<Loan<E>> {
        let (mut next_look, mut spins_until, mut was_quiet) = (0, 0, false);
        // Frames come between two loans, however many are asked for.
        let mut is_back = true;
        while !self.signs.is_to_stop() {
            let now = boot_time_us();
            if now >= next_look {
                self.look();
                next_look = now + LONGEST_SLEEP;
            }
            let called = if is_back { 0 } else { self.call() };
            is_back = false;
            if let Some(loan) = self.loan.take() {
                self.undone += called;
                return Some(loan);
            }
            let undone = std::mem::take(&mut self.undone);
            let done = undone + called + self.hand_over_again() + self.take_handed();
            let quiet = self.is_quiet();
            if quiet != was_quiet {
                self.signs.quiet.store(quiet, Ordering::SeqCst);
            }
            if done > 0 {
                self.signs.done(done);
            }
            if quiet && (done > 0 || !was_quiet) {
                // The run may be over.
                self.control.doorbell.ring();
            }
            was_quiet = quiet;
            if !self.wait(now, next_look, now < spins_until) {
                return None;
            }
            let received = self.forward();
            if done + received > 0 {
                spins_until = now + self.busy_poll;
            }
        }
        None
    }

    /// Waits until there is something to do, or not at all if it `spins`; false if it cannot.
    fn wait(&mut self, now: u64, next_look: u64, spins: bool) -> bool {
        let mut due = self.due(now).min(next_look);
        let is_behind = !self.backlog.is_empty();
        // One that is behind leaves things that it was given, and tries again soon.
        if spins || due > now && !self.signs.may_sleep() && !is_behind {
            due = 0;
        }
        let waited = self.readable.wait_until(due);
        self.signs.awake();
        if self.readable.is_ready(self.readers.len()) {
            self.signs.answer();
        }
        if let Err(error) = waited {
            self.control.tell(Output::Failed(error), &self.signs);
            return false;
        }
        true
    }

    /// When something is due, in µs.
    fn due(&mut self, now: u64) -> u64 {
        if self.held {
            return u64::MAX;
        }
        let switch = self.switch.poll_timeout().unwrap_or(u64::MAX);
        if !self.backlog.is_empty() {
            return switch.min(now + HAND_OVER_AGAIN);
        }
        let queues = self.ports.iter_mut().filter_map(|port| port.queue.as_mut());
        queues
            .filter_map(|queue| queue.due(now))
            .fold(switch, u64::min)
    }

    /// True if nothing of its own waits.
    fn is_quiet(&self) -> bool {
        let mut queues = self.ports.iter().filter_map(|port| port.queue.as_ref());
        !queues.any(PortQueue::is_open_ended)
            && !self.held
            && self.backlog.is_empty()
            && self.outgoing_since.is_none()
            && self.switch.poll_timeout().is_none()
    }

    /// Does what it is called for; how often.
    fn call(&mut self) -> u64 {
        let mut count = 0;
        while self.loan.is_none()
            && let Ok(call) = self.calls.try_recv()
        {
            match call {
                Call::Work(work) => work(self),
                Call::Lend(loan) => self.loan = Some(loan),
            }
            count += 1;
        }
        count
    }

    /// Looks at losses of its queues, and tells of what there is to tell.
    fn look(&mut self) {
        self.keep_spare();
        for (at, port) in self.ports.iter_mut().enumerate() {
            let Some(queue) = &mut port.queue else {
                continue;
            };
            queue.counters();
            for notice in queue.take_notices() {
                self.control.tell(Output::Notice(at, notice), &self.signs);
            }
        }
    }

    /// Waits for the descriptors that its queues have.
    fn listen(&mut self) {
        let mut descriptors = Vec::new();
        self.readers.clear();
        for (at, port) in self.ports.iter().enumerate() {
            let queue = port.queue.iter().flat_map(PortQueue::descriptors);
            for (number, descriptor) in queue.enumerate() {
                descriptors.push(descriptor);
                self.readers.push((at, number));
            }
        }
        descriptors.push(self.signs.descriptor());
        self.readable.replace(descriptors);
    }

    /// Lets frames come and go.
    pub(super) fn begin(&mut self, duties: Duties) {
        self.duties = duties;
        self.held = false;
        self.send();
    }

    /// Ends the coming and going of frames; captures are written to their end.
    pub(super) fn close(&mut self) -> Vec<(usize, PortNotice)> {
        self.send();
        self.held = true;
        let mut notices = Vec::new();
        for (at, port) in self.ports.iter_mut().enumerate() {
            if let Some(queue) = &mut port.queue {
                queue.close();
                queue.counters();
                notices.extend(queue.take_notices().into_iter().map(|it| (at, it)));
            }
        }
        notices
    }

    /// Takes a queue of the port at `at`, or the place of one that is gone. `divided` is true if
    /// each worker has one.
    pub(super) fn take_queue(
        &mut self,
        at: usize,
        hardware: Option<MacAddress>,
        queue: Option<PortQueue>,
        divided: bool,
    ) {
        let port = &mut self.ports[at];
        port.hardware = hardware;
        port.divided = divided;
        match (&mut port.queue, queue) {
            (Some(old), Some(new)) => old.replace(new),
            (Some(old), None) => {
                port.counters += old.counters();
                port.queue = None;
            }
            (None, new) => port.queue = new,
        }
        if let (Some(queue), Some(macs)) = (&mut port.queue, &port.routed) {
            queue.route(macs);
        }
        self.keep_spare();
        self.listen();
    }

    /// Keeps buffers if frames are handed over.
    fn keep_spare(&mut self) {
        let undivided = self.ports.iter().any(|port| !port.divided);
        let hands_over = undivided || self.steering.hands_over_divided();
        self.spare.kept = if hands_over { frames::SPARE } else { 0 };
    }

    /// Lets ports take only frames to these addresses and to those of their interfaces.
    pub(super) fn route(&mut self, macs: &BTreeMap<Port, Vec<MacAddress>>) {
        for port in &mut self.ports {
            port.routed = macs.get(&port.number).cloned();
            if let (Some(queue), Some(macs)) = (&mut port.queue, &port.routed) {
                queue.route(macs);
            }
        }
    }

    pub(super) fn counts(&mut self) -> WorkerCounts {
        let host = self.ports.iter_mut().map(|port| {
            let mut counters = port.counters;
            counters += port
                .queue
                .as_mut()
                .map(PortQueue::counters)
                .unwrap_or_default();
            counters
        });
        WorkerCounts {
            host: host.collect(),
            report: WorkerReport {
                received: self.switch.counters().received,
                lock_waits: self.switch.lock_waits(),
                handed_over: self.handed_over,
                processor: self.processor,
            },
            packets_in_lost: self.packets_in_lost,
        }
    }
}

impl<E: Engine> Drop for Worker<E> {
    fn drop(&mut self) {
        self.signs.ended.store(true, Ordering::SeqCst);
        self.control.doorbell.ring();
    }
}

/// The worker that has the queue of the port at `at` if that has only one.
pub(super) fn owner(at: usize, workers: usize) -> usize {
    at % workers
}

//! Workers: threads that each take frames from the ports through a switch of their own, and send
//! what comes of them.
//!
//! The frames of a port are divided among the workers by their flows, by the kernel or the interface
//! itself: each worker has a queue of the port for itself. A port that cannot be divided has its
//! queue at one worker, its owner, which gives each frame to the worker that it falls to, and sends for
//! all. A frame falls to a worker by the hash of its flow ([`flow_hash`]) or by the key of the state that
//! it will lock ([`Spread`]); frames of divided ports are handed over by key too. All that comes of a
//! frame stays with its worker: its egress, copies that are held, and what is resubmitted or
//! recirculated. Registers and meters are shared ([`Fellow`](stateplane_runtime::Fellow)).
//!
//! The thread with control looks after links, watches, greetings, control planes and reports, and has
//! no frames. For a change of tables or of the program it stops all workers ([`gathered`]).

mod counted;
mod duties;
mod flow;
mod gathered;
mod lane;
mod made;
mod signals;
mod spread;
mod worker;

pub(super) use counted::Counted;
pub(super) use duties::Duties;
pub use flow::flow_hash;
pub use spread::Spread;
pub(super) use worker::Controlled;

use super::placing::Placing;
use crate::clock::boot_time_us;
use crate::poll::Readable;
use crate::ports::{HostPortCounters, MacAddress, PortNotice, PortQueue};
use crate::random::random_bits;
use gathered::{Follow, Sweeps};
use lane::{Call, Control, Lane, Output};
use signals::{Doorbell, Peer};
use spread::{Learned, Steering};
use stateplane_runtime::{Digest, Engine, Fellow};
use stateplane_switch::{Port, Switch, Watch};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::mem::{Discriminant, discriminant};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use worker::{Parts, Worker, owner};

/// Outputs of workers that the thread with control has not yet taken, at most.
const OUTPUTS: usize = 2048;

/// Calls of the thread with control that wait for a worker, at most.
const CALLS: usize = 16;

/// The workers of a switch.
pub(super) struct Workers<E: Engine> {
    lanes: Vec<Lane<E>>,
    outputs: Receiver<Output>,
    doorbell: Arc<Doorbell>,
    numbers: Vec<Port>,
    port_states: VecDeque<(Port, bool)>,
    heard: VecDeque<Vec<u8>>,
    notices: VecDeque<(usize, PortNotice)>,
    packets_in: VecDeque<Vec<u8>>,
    digests: VecDeque<Digest>,
    /// Packets and digests for a control plane for which there was no room.
    refused: u64,
    failure: Option<io::Error>,
    /// Notices that several workers may have and that are told once.
    told: Vec<(usize, Discriminant<PortNotice>)>,
    /// Link state of each port that the workers know.
    links: Vec<Option<bool>>,
    /// Bytes of the longest frame of each port, as the workers know it.
    longest: Vec<Option<usize>>,
    /// True if a port went up or down since the control plane last looked.
    ports_changed: bool,
    follow: Follow<E>,
    sweeps: Sweeps,
    learned: Arc<Learned>,
    /// Of each port: frames that the thread with control could not hand over.
    lost: Vec<u64>,
}

impl<E: Fellow + Send + 'static> Workers<E>
where
    E::InFlight: Send,
{
    /// Starts a thread for `first` and for each of its `fellows`. The first one's watches decide about
    /// ports. Frames come and go from [`begin`](Self::begin) on.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no threads or sockets left.
    pub(super) fn start(
        mut first: Switch<E>,
        fellows: Vec<Switch<E>>,
        placing: Placing,
        controlled: Controlled,
    ) -> io::Result<Workers<E>> {
        let (told, outputs) = sync_channel(OUTPUTS);
        let doorbell = Arc::new(Doorbell::new()?);
        let control = Control {
            outputs: told,
            doorbell: doorbell.clone(),
        };
        let ports = first.ports().iter();
        let interfaces = ports.filter(|port| controlled.cpu_port != Some(**port));
        let numbers: Vec<Port> = interfaces.copied().collect();
        first.leave_sweeps();
        let learned = Arc::new(Learned::default());
        let key = random_bits()?;
        let switches: Vec<Switch<E>> = std::iter::once(first).chain(fellows).collect();
        let ends = switches
            .iter()
            .map(|_| Peer::new())
            .collect::<io::Result<Vec<_>>>()?;
        let (peers, inboxes): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        let mut lanes = Vec::new();
        for ((number, switch), inbox) in switches.into_iter().enumerate().zip(inboxes) {
            let (calls, called) = sync_channel(CALLS);
            let worker = Box::new(Worker::new(Parts {
                switch,
                processor: placing.processor(number)?,
                busy_poll: placing.busy_poll_us(),
                steering: Steering {
                    own: number,
                    workers: peers.len(),
                    key,
                    spread: placing.spread,
                    learned: learned.clone(),
                    buffer: Vec::new(),
                },
                calls: called,
                inbox,
                peers: peers.clone(),
                control: control.clone(),
                readable: Readable::new([])?,
                controlled,
            }));
            let thread = std::thread::Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || Worker::run(worker))?;
            lanes.push(Lane::new(calls, peers[number].clone(), thread));
        }
        Ok(Workers {
            lanes,
            outputs,
            doorbell,
            links: vec![None; numbers.len()],
            longest: vec![None; numbers.len()],
            ports_changed: false,
            follow: |switch, first| switch.follow(first),
            sweeps: Sweeps::default(),
            learned,
            lost: vec![0; numbers.len()],
            numbers,
            port_states: VecDeque::new(),
            heard: VecDeque::new(),
            notices: VecDeque::new(),
            packets_in: VecDeque::new(),
            digests: VecDeque::new(),
            refused: 0,
            failure: None,
            told: Vec::new(),
        })
    }
}

impl<E: Engine> Workers<E> {
    /// Number of workers.
    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Numbers of the ports with interfaces, ascending.
    pub(super) fn ports(&self) -> &[Port] {
        &self.numbers
    }

    /// Readable when workers have something to tell.
    pub(super) fn descriptor(&self) -> RawFd {
        self.doorbell.descriptor()
    }

    /// Gives the workers the queues of the port at `at`, whose interface has the address `hardware`:
    /// one each, or one for all.
    pub(super) fn set_queues(
        &mut self,
        at: usize,
        hardware: Option<MacAddress>,
        queues: Vec<PortQueue>,
    ) {
        let divided = queues.len() == self.lanes.len();
        let mut queues = queues.into_iter();
        let owner = owner(at, self.lanes.len());
        let mut answers = Vec::new();
        for number in 0..self.lanes.len() {
            let queue = if divided || number == owner {
                queues.next()
            } else {
                None
            };
            answers.push(self.call(number, move |worker| {
                worker.take_queue(at, hardware, queue, divided);
            }));
        }
        self.results(answers);
    }

    /// Lets ports take only frames to these addresses and to those of their interfaces.
    pub(super) fn route(&mut self, macs: &BTreeMap<Port, Vec<MacAddress>>) {
        let macs = macs.clone();
        self.on_all(move |worker| worker.route(&macs));
    }

    /// Lets frames come and go, each treated as `duties` say.
    pub(super) fn begin(&mut self, duties: &Duties) {
        let duties = duties.clone();
        self.on_all(move |worker| worker.begin(duties.clone()));
    }

    /// Ends the coming and going of frames.
    pub(super) fn close(&mut self) {
        let notices = self.on_all(|worker| worker.close());
        self.take();
        self.notices.extend(notices.into_iter().flatten());
    }

    /// Sends `frame` by the port at `at`.
    pub(super) fn send(&mut self, at: usize, frame: Vec<u8>) {
        let peer = &self.lanes[owner(at, self.lanes.len())].peer;
        self.lost[at] += u64::from(peer.depart((at, frame)).is_err());
        peer.signs.wake();
    }

    /// Takes what workers have told, and waits to be told more.
    pub(super) fn hear(&mut self) {
        self.doorbell.answer();
        self.take();
    }

    /// Takes what workers have told.
    fn take(&mut self) {
        while let Ok(output) = self.outputs.try_recv() {
            match output {
                Output::PortState(port, up) => {
                    self.ports_changed = true;
                    self.port_states.push_back((port, up));
                }
                Output::PacketIn(frame) if self.packets_in.len() < OUTPUTS => {
                    self.packets_in.push_back(frame);
                }
                Output::Digest(digest) if self.digests.len() < OUTPUTS => {
                    self.digests.push_back(digest);
                }
                Output::PacketIn(_) | Output::Digest(_) => self.refused += 1,
                Output::Heard(frame) => self.heard.push_back(frame),
                Output::Notice(at, notice) => self.notices.push_back((at, notice)),
                Output::Failed(error) => self.failure = Some(error),
            }
        }
    }

    /// The next port that a watch wants up or down.
    pub(super) fn poll_port_state(&mut self) -> Option<(Port, bool)> {
        self.port_states.pop_front()
    }

    /// The next frame for the greeter.
    pub(super) fn poll_heard(&mut self) -> Option<Vec<u8>> {
        self.heard.pop_front()
    }

    /// The next frame for the control plane.
    pub(super) fn poll_packet_in(&mut self) -> Option<Vec<u8>> {
        self.packets_in.pop_front()
    }

    /// The next digest for the control plane.
    pub(super) fn poll_digest(&mut self) -> Option<Digest> {
        self.digests.pop_front()
    }

    /// True if a port went up or down since the last call.
    pub(super) fn take_ports_changed(&mut self) -> bool {
        std::mem::take(&mut self.ports_changed)
    }

    /// The next notice about the port at a place among the ports.
    pub(super) fn poll_notice(&mut self) -> Option<(usize, PortNotice)> {
        while let Some((at, notice)) = self.notices.pop_front() {
            let kind = (at, discriminant(&notice));
            let once = matches!(
                notice,
                PortNotice::FrameTooLong { .. }
                    | PortNotice::RingFull
                    | PortNotice::ReceiveRingFull
            );
            if once && self.told.contains(&kind) {
                continue;
            }
            if once {
                self.told.push(kind);
            }
            return Some((at, notice));
        }
        None
    }

    /// Why a worker has ended, if the system refused it something.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// True if no frame is in flight, none will come, and nothing waits for time.
    ///
    /// Things done are counted before things given: if both are as many, nothing was given in between,
    /// so that each worker's word that nothing waits still held at the end.
    pub(super) fn is_quiet(&self) -> bool {
        let running = || {
            let signs = self.lanes.iter().map(|lane| &lane.peer.signs);
            signs.filter(|signs| !signs.ended.load(Ordering::SeqCst))
        };
        let taken: Vec<u64> = running().map(|signs| signs.taken()).collect();
        let quiet = running().all(|signs| signs.quiet.load(Ordering::SeqCst));
        quiet && running().map(|signs| signs.given()).eq(taken)
    }

    /// Tells all workers that the link of `port` came up or went down.
    pub(super) fn set_link_up(&mut self, port: Port, up: bool) {
        let Ok(at) = self.numbers.binary_search(&port) else {
            return;
        };
        if self.links[at].replace(up) != Some(up) {
            self.ports_changed = true;
            self.on_all(move |worker| {
                // The port is one of the switch's.
                let _ = worker.switch.set_link_up(port, up);
            });
        }
    }

    /// Tells all workers how long frames of `port` may be.
    pub(super) fn set_longest_frame(&mut self, port: Port, bytes: usize) {
        let Ok(at) = self.numbers.binary_search(&port) else {
            return;
        };
        if self.longest[at].replace(bytes) != Some(bytes) {
            self.on_all(move |worker| {
                // The port is one of the switch's.
                let _ = worker.switch.set_longest_frame(port, bytes);
            });
        }
    }

    /// A watch that keeps its ports down.
    pub(super) fn stale_watch(&mut self) -> Option<Watch> {
        let watches = self.on_all(|worker| worker.switch.stale_watch().cloned());
        watches.into_iter().flatten().next()
    }

    /// Lets all workers do what is due, and waits for it.
    pub(super) fn handle_timeout(&mut self) {
        self.on_all(|worker| {
            worker.switch.handle_timeout(boot_time_us());
            worker.collect();
        });
        self.take();
    }

    /// Lets `work` have the first worker's switch between two bursts, and waits for the result. `None` if
    /// the worker has ended.
    pub(super) fn on_first<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Switch<E>) -> T + Send + 'static,
    ) -> Option<T> {
        let answer = self.call(0, move |worker| work(&mut worker.switch));
        self.result(&answer)
    }

    /// Sum of all workers' counters.
    pub(super) fn counted(&mut self) -> Counted {
        let each = self.on_all(|worker| (Counted::of(&worker.switch), worker.counts()));
        let mut host = vec![HostPortCounters::default(); self.numbers.len()];
        for (counters, lost) in host.iter_mut().zip(&self.lost) {
            counters.tx_handover_full = *lost;
        }
        let mut workers = Vec::new();
        let mut packets_in_lost = self.refused;
        let mut sum: Option<Counted> = None;
        for (counted, counts) in each {
            for (sum, counters) in host.iter_mut().zip(counts.host) {
                *sum += counters;
            }
            workers.push(counts.report);
            packets_in_lost += counts.packets_in_lost;
            match &mut sum {
                Some(sum) => sum.add(counted),
                None => sum = Some(counted),
            }
        }
        Counted {
            host,
            workers,
            packets_in_lost,
            ..sum.unwrap_or_default()
        }
    }

    /// Lets a worker do `work` between two bursts; where its result comes.
    fn call<T: Send + 'static>(
        &mut self,
        number: usize,
        work: impl FnOnce(&mut Worker<E>) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (sender, answer) = sync_channel(1);
        let work = Box::new(move |worker: &mut Worker<E>| {
            let _ = sender.send(work(worker));
        });
        self.post(number, Call::Work(work));
        answer
    }

    /// Puts a call before a worker.
    fn post(&mut self, number: usize, mut call: Call<E>) {
        while let Err(refused) = self.lanes[number].call(call) {
            call = refused;
            self.take();
            std::thread::yield_now();
        }
    }

    /// The result of a call; a worker that has ended gives none.
    fn result<T>(&mut self, answer: &Receiver<T>) -> Option<T> {
        loop {
            match answer.try_recv() {
                Ok(result) => return Some(result),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {
                    // It may wait for room to tell something.
                    self.take();
                    std::thread::yield_now();
                }
            }
        }
    }

    /// The results of calls; a worker that has ended gives none.
    fn results<T>(&mut self, answers: Vec<Receiver<T>>) -> Vec<T> {
        let results = answers.iter().map(|answer| self.result(answer));
        results.collect::<Vec<_>>().into_iter().flatten().collect()
    }

    /// Lets each worker do `work` between two bursts, and waits for the results.
    fn on_all<T: Send + 'static>(
        &mut self,
        work: impl Fn(&mut Worker<E>) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        let answers = (0..self.lanes.len())
            .map(|number| {
                let work = work.clone();
                self.call(number, move |worker| work(worker))
            })
            .collect();
        self.results(answers)
    }
}

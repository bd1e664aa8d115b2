//! Workers: threads that each run a switch of their own on the flows that fall to them.
//!
//! The thread with the ports gives each frame to the worker that its flow's hash
//! ([`flow_hash`]) chooses, through a ring without locks, and takes back what leaves by
//! another. All that comes of a frame stays with its worker: its egress, copies that are
//! held, and what is resubmitted or recirculated. Registers and meters are shared
//! ([`Fellow`](stateplane_runtime::Fellow)).

mod flow;
mod lane;

pub use flow::flow_hash;

use super::report::ProgramReport;
use crate::clock::boot_time_us;
use crate::random::random_bits;
use lane::{Doorbell, Inputs, Lane, Output};
use stateplane_runtime::Engine;
use stateplane_switch::{Counters, Occupancy, Port, PortCounters, Switch, Transmit, Watch};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Frames kept for reuse.
const SPARE_FRAMES: usize = 4096;

/// Counters of one worker.
pub(super) struct Counted {
    pub(super) counters: Counters,
    pub(super) occupancy: Occupancy,
    pub(super) program: ProgramReport,
    /// Of each port, in the order of the switch's ports, and whether frames pass it.
    pub(super) ports: Vec<(PortCounters, bool)>,
}

impl Counted {
    /// Of one switch.
    pub(super) fn of<E: Engine>(switch: &Switch<E>) -> Counted {
        let ports = switch.ports().iter().map(|port| {
            let counters = switch.port_counters(*port).unwrap_or_default();
            (counters, switch.port_is_up(*port))
        });
        Counted {
            counters: switch.counters().clone(),
            occupancy: switch.occupancy(),
            program: ProgramReport::new(switch.engine().state()),
            ports: ports.collect(),
        }
    }
}

/// The workers of a switch.
pub(super) struct Workers<E: Engine> {
    lanes: Vec<Lane<E>>,
    doorbell: Arc<Doorbell>,
    numbers: Vec<Port>,
    transmit: VecDeque<Transmit>,
    port_states: VecDeque<(Port, bool)>,
    spare: Vec<Vec<u8>>,
    /// Key of [`flow_hash`], so that a sender cannot choose flows that all go to one worker.
    key: u64,
    /// Link state of each port that the workers know.
    links: Vec<Option<bool>>,
}

impl<E: Engine + Send + 'static> Workers<E>
where
    E::InFlight: Send,
{
    /// Starts a thread for each of `switches`, which have the same ports. The first one's
    /// watches decide about ports.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no threads or sockets left.
    pub(super) fn start(switches: Vec<Switch<E>>) -> io::Result<Workers<E>> {
        let doorbell = Arc::new(Doorbell::new()?);
        let numbers: Vec<Port> = match switches.first() {
            Some(switch) => switch.ports().to_vec(),
            None => Vec::new(),
        };
        let lanes = switches
            .into_iter()
            .enumerate()
            .map(|(number, switch)| Lane::start(number, switch, doorbell.clone()))
            .collect::<io::Result<_>>()?;
        Ok(Workers {
            lanes,
            key: random_bits()?,
            doorbell,
            links: vec![None; numbers.len()],
            numbers,
            transmit: VecDeque::new(),
            port_states: VecDeque::new(),
            spare: Vec::new(),
        })
    }
}

impl<E: Engine> Workers<E> {
    /// Numbers of the ports, ascending.
    pub(super) fn ports(&self) -> &[Port] {
        &self.numbers
    }

    /// Readable when workers have something to tell.
    pub(super) fn descriptor(&self) -> RawFd {
        self.doorbell.descriptor()
    }

    /// Gives a frame to its worker; waits while that has no room.
    pub(super) fn handle_frame(&mut self, port: Port, frame: &[u8]) {
        let at = (flow_hash(frame, self.key) % self.lanes.len() as u64) as usize;
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        let mut input = Inputs::Frame(port, copy);
        while let Err(refused) = self.lanes[at].push(input) {
            input = refused;
            // The worker itself may wait for room on its way back.
            self.take();
            std::thread::yield_now();
        }
    }

    /// Lets workers that sleep begin with what they were given.
    pub(super) fn wake(&mut self) {
        for lane in &mut self.lanes {
            lane.wake();
        }
    }

    /// Takes what workers have done.
    fn take(&mut self) {
        for lane in &mut self.lanes {
            while let Some(output) = lane.pop() {
                match output {
                    Output::Transmit(transmit) => self.transmit.push_back(transmit),
                    Output::PortState(port, up) => self.port_states.push_back((port, up)),
                }
            }
        }
    }

    /// The next frame to send.
    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        if self.transmit.is_empty() {
            self.doorbell.answer();
            self.take();
        }
        self.transmit.pop_front()
    }

    /// Takes back the buffer of a frame that was sent.
    pub(super) fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < SPARE_FRAMES {
            self.spare.push(frame);
        }
    }

    /// The next port that a watch wants up or down.
    pub(super) fn poll_port_state(&mut self) -> Option<(Port, bool)> {
        self.port_states.pop_front()
    }

    /// True if no frame is in flight and nothing waits for time.
    pub(super) fn is_quiet(&self) -> bool {
        self.transmit.is_empty() && self.lanes.iter().all(Lane::is_quiet)
    }

    /// Tells all workers that the link of `port` came up or went down.
    pub(super) fn set_link_up(&mut self, port: Port, up: bool) {
        let Ok(at) = self.numbers.binary_search(&port) else {
            return;
        };
        if self.links[at].replace(up) != Some(up) {
            self.on_all(move |switch| {
                // The port is one of the switch's.
                let _ = switch.set_link_up(port, up);
            });
        }
    }

    /// A watch that keeps its ports down.
    pub(super) fn stale_watch(&mut self) -> Option<Watch> {
        let watches = self.on_all(|switch| switch.stale_watch().cloned());
        watches.into_iter().flatten().next()
    }

    /// Lets all workers do what is due, and waits for it.
    pub(super) fn handle_timeout(&mut self) {
        self.on_all(|switch| switch.handle_timeout(boot_time_us()));
        // Its results are handed over before the next call begins.
        self.on_all(|_| ());
        self.take();
    }

    /// Sum of all workers' counters.
    pub(super) fn counted(&mut self) -> Counted {
        let mut each = self.on_all(|switch| Counted::of(switch)).into_iter();
        let mut sum = each.next().unwrap_or(Counted {
            counters: Counters::default(),
            occupancy: Occupancy::default(),
            program: ProgramReport::default(),
            ports: Vec::new(),
        });
        for counted in each {
            sum.counters += &counted.counters;
            sum.occupancy += counted.occupancy;
            sum.program.add(counted.program);
            for ((sum, _), (port, _)) in sum.ports.iter_mut().zip(counted.ports) {
                *sum += port;
            }
        }
        sum
    }

    /// Lets each worker do `work` between two of its packets, and waits for the results;
    /// a worker that has ended gives none.
    fn on_all<T: Send + 'static>(
        &mut self,
        work: impl Fn(&mut Switch<E>) -> T + Clone + Send + 'static,
    ) -> Vec<T> {
        let mut answers = Vec::new();
        for at in 0..self.lanes.len() {
            let (sender, answer) = std::sync::mpsc::sync_channel(1);
            let work = work.clone();
            let mut input = Inputs::Call(Box::new(move |switch: &mut Switch<E>| {
                let _ = sender.send(work(switch));
            }));
            while let Err(refused) = self.lanes[at].push(input) {
                input = refused;
                self.take();
                std::thread::yield_now();
            }
            self.lanes[at].wake();
            answers.push(answer);
        }
        let mut results = Vec::new();
        for answer in answers {
            loop {
                match answer.try_recv() {
                    Ok(result) => results.push(result),
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => {}
                    Err(std::sync::mpsc::TryRecvError::Empty) => {
                        // It may wait for room on its way back.
                        self.take();
                        std::thread::yield_now();
                        continue;
                    }
                }
                break;
            }
        }
        results
    }
}

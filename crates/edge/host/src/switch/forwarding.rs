//! Forwarding part of a server: one switch on the server's thread, or workers.

use super::workers::{Counted, Workers};
use crate::broken::say_broken;
use crate::clock::boot_time_us;
use crate::ports::{MacAddress, PortQueue};
use stateplane_runtime::Engine;
use stateplane_setup::Write;
use stateplane_switch::{Alone, Fellows, Port, Switch, Transmit, Watch};
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Deadline later than any other: work is in flight, and its end wakes the thread.
const LATER: u64 = u64::MAX >> 1;

/// Workers that have yet to pass a point between two bursts.
#[derive(Default)]
pub(super) struct Passing(Vec<Receiver<()>>);

impl Passing {
    pub(super) fn of(workers: Vec<Receiver<()>>) -> Passing {
        Passing(workers)
    }

    /// True once all have passed it; one that has ended has.
    pub(super) fn is_over(&mut self) -> bool {
        self.0
            .retain(|worker| matches!(worker.try_recv(), Err(TryRecvError::Empty)));
        self.0.is_empty()
    }
}

/// One switch or several.
pub(super) enum Forwarding<E: Engine> {
    /// On the thread with the ports, which gives it the frames and takes what leaves.
    Alone(Box<Switch<E>>),
    /// Each on a thread of its own, with frames of its own.
    Workers(Box<Workers<E>>),
}

impl<E: Engine> Forwarding<E> {
    /// Numbers of the ports, ascending; those of workers without the control plane's.
    pub(super) fn ports(&self) -> &[Port] {
        match self {
            Forwarding::Alone(switch) => switch.ports(),
            Forwarding::Workers(workers) => workers.ports(),
        }
    }

    /// Readable when workers have something to tell.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.workers().map(Workers::descriptor)
    }

    /// The switch, if it is one.
    pub(super) fn alone(&mut self) -> Option<&mut Switch<E>> {
        match self {
            Forwarding::Alone(switch) => Some(switch),
            Forwarding::Workers(_) => None,
        }
    }

    /// Does `work` with the switch, or with the first of the workers' while all of them are stopped
    /// between two bursts; the others then follow it. `None` if a worker has ended.
    pub(super) fn change<T>(
        &mut self,
        work: impl FnOnce(&mut Switch<E>, &mut dyn Fellows<E>) -> T,
    ) -> Option<T> {
        match self {
            Forwarding::Alone(switch) => Some(work(switch, &mut Alone)),
            Forwarding::Workers(workers) => {
                let mut gathered = workers.gather()?;
                workers.serve(&mut gathered, boot_time_us(), work)
            }
        }
    }

    /// Lets `work` look at the switch, or at the first worker's between two of its bursts. `None` if that
    /// worker has ended.
    pub(super) fn on_first<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Switch<E>) -> T + Send + 'static,
    ) -> Option<T> {
        match self {
            Forwarding::Alone(switch) => Some(work(switch)),
            Forwarding::Workers(workers) => workers.on_first(work),
        }
    }

    /// The workers, if there are any.
    pub(super) fn workers(&self) -> Option<&Workers<E>> {
        match self {
            Forwarding::Alone(_) => None,
            Forwarding::Workers(workers) => Some(workers.as_ref()),
        }
    }

    /// As [`workers`](Self::workers).
    pub(super) fn workers_mut(&mut self) -> Option<&mut Workers<E>> {
        match self {
            Forwarding::Alone(_) => None,
            Forwarding::Workers(workers) => Some(workers.as_mut()),
        }
    }

    /// Gives workers the queues of the port at `at`; a switch alone gets its frames from its server.
    pub(super) fn set_queues(
        &mut self,
        at: usize,
        hardware: Option<MacAddress>,
        queues: Vec<PortQueue>,
    ) {
        if let Forwarding::Workers(workers) = self {
            workers.set_queues(at, hardware, queues);
        }
    }

    /// Tells of a frame of a burst before the first of them is handled.
    pub(super) fn announce(&mut self, port: Port, frame: &[u8]) {
        if let Forwarding::Alone(switch) = self {
            switch.announce(port, frame);
        }
    }

    pub(super) fn handle_frame(&mut self, now: u64, port: Port, frame: &[u8]) {
        if let Forwarding::Alone(switch) = self {
            switch.handle_frame(now, port, frame);
        }
    }

    /// Takes a frame that the host made, as if it came by `port`, which no link faces.
    pub(super) fn handle_made(&mut self, port: Port, frame: Vec<u8>) {
        match self {
            Forwarding::Alone(switch) => switch.handle_made(boot_time_us(), port, &frame),
            Forwarding::Workers(workers) => workers.handle_made(port, frame),
        }
    }

    /// Writes words of registers, which workers share: the workers that have yet to see them.
    pub(super) fn write(&mut self, writes: Vec<Write>) -> Passing {
        match self {
            Forwarding::Alone(switch) => {
                let state = switch.engine_mut().state_mut();
                writes.iter().for_each(|write| write.apply(state));
                Passing::default()
            }
            Forwarding::Workers(workers) => workers.write(writes),
        }
    }

    /// Does what is due at `now` in µs; workers do so by themselves, and what they tell is taken.
    pub(super) fn handle_timeout(&mut self, now: u64) {
        match self {
            Forwarding::Alone(switch) => {
                switch.handle_timeout(now);
                while let Some(broken) = switch.poll_broken() {
                    say_broken(&broken);
                }
            }
            Forwarding::Workers(workers) => workers.hear(),
        }
    }

    /// Like [`handle_timeout`](Self::handle_timeout), and waits for workers as well.
    pub(super) fn settle(&mut self, now: u64) {
        match self {
            Forwarding::Alone(switch) => switch.handle_timeout(now),
            Forwarding::Workers(workers) => workers.handle_timeout(),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        match self {
            Forwarding::Alone(switch) => switch.poll_timeout(),
            Forwarding::Workers(workers) => (!workers.is_quiet()).then_some(LATER),
        }
    }

    /// The next frame to send; workers send by themselves.
    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.alone()?.poll_transmit()
    }

    pub(super) fn recycle(&mut self, frame: Vec<u8>) {
        if let Forwarding::Alone(switch) = self {
            switch.recycle(frame);
        }
    }

    pub(super) fn poll_port_state(&mut self) -> Option<(Port, bool)> {
        match self {
            Forwarding::Alone(switch) => switch.poll_port_state(),
            Forwarding::Workers(workers) => workers.poll_port_state(),
        }
    }

    pub(super) fn set_link_up(&mut self, port: Port, up: bool) {
        match self {
            // The port is one of the switch's, by construction.
            Forwarding::Alone(switch) => drop(switch.set_link_up(port, up)),
            Forwarding::Workers(workers) => workers.set_link_up(port, up),
        }
    }

    /// Tells how long frames of `port` may be.
    pub(super) fn set_longest_frame(&mut self, port: Port, bytes: usize) {
        match self {
            // The port is one of the switch's, by construction.
            Forwarding::Alone(switch) => drop(switch.set_longest_frame(port, bytes)),
            Forwarding::Workers(workers) => workers.set_longest_frame(port, bytes),
        }
    }

    /// A watch that keeps its ports down.
    pub(super) fn stale_watch(&mut self) -> Option<Watch> {
        match self {
            Forwarding::Alone(switch) => switch.stale_watch().cloned(),
            Forwarding::Workers(workers) => workers.stale_watch(),
        }
    }

    /// Counters since the start.
    pub(super) fn counted(&mut self) -> Counted {
        match self {
            Forwarding::Alone(switch) => Counted::of(switch),
            Forwarding::Workers(workers) => workers.counted(),
        }
    }
}

//! A worker's thread, as the thread with control sees it.

use super::signals::{Doorbell, Peer, Signs};
use super::worker::Worker;
use crate::ports::PortNotice;
use stateplane_runtime::{Digest, Engine};
use stateplane_switch::Port;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

/// Work of a moment.
pub(super) type Work<E> = Box<dyn FnOnce(&mut Worker<E>) + Send>;

/// Something that a worker does between two bursts.
pub(super) enum Call<E: Engine> {
    /// It does this.
    Work(Work<E>),
    /// It gives itself away, and waits until it is given back.
    Lend(Loan<E>),
}

/// The ways of a worker to the thread with control and back.
pub(super) struct Loan<E: Engine> {
    give: SyncSender<Box<Worker<E>>>,
    back: Receiver<Box<Worker<E>>>,
}

/// The other ends of a [`Loan`].
pub(super) type Lender<E> = (Receiver<Box<Worker<E>>>, SyncSender<Box<Worker<E>>>);

impl<E: Engine> Loan<E> {
    pub(super) fn new() -> (Loan<E>, Lender<E>) {
        let (give, given) = sync_channel(1);
        let (returned, back) = sync_channel(1);
        (Loan { give, back }, (given, returned))
    }

    /// Gives the worker away until it comes back; `None` if nobody takes it or gives it back.
    pub(super) fn lend(self, worker: Box<Worker<E>>) -> Option<Box<Worker<E>>> {
        self.give.send(worker).ok()?;
        self.back.recv().ok()
    }
}

/// Something that a worker tells the thread with control.
pub(super) enum Output {
    /// A port that a watch wants up or down.
    PortState(Port, bool),
    /// A frame from the port towards the store.
    Heard(Vec<u8>),
    /// A notice about the port at this place among the ports.
    Notice(usize, PortNotice),
    /// A frame that left by the control plane's port.
    PacketIn(Vec<u8>),
    /// A digest of the program.
    Digest(Digest),
    /// The system refuses to wait for frames; the worker has ended.
    Failed(io::Error),
}

/// The thread with control, as a worker sees it.
#[derive(Clone)]
pub(super) struct Control {
    pub(super) outputs: SyncSender<Output>,
    pub(super) doorbell: Arc<Doorbell>,
}

impl Control {
    /// Tells it something, and waits while there is no room, unless the worker of `signs` is to stop.
    pub(super) fn tell(&self, mut output: Output, signs: &Signs) {
        while let Err(TrySendError::Full(refused)) = self.outputs.try_send(output) {
            if signs.is_to_stop() {
                return;
            }
            output = refused;
            self.doorbell.ring();
            std::thread::yield_now();
        }
        self.doorbell.ring();
    }

    /// Tells it something if there is room; whether there was.
    pub(super) fn offer(&self, output: Output) -> bool {
        self.try_offer(output).is_ok()
    }

    /// Tells it something, or gives it back if there is no room.
    pub(super) fn try_offer(&self, output: Output) -> Result<(), Output> {
        let told = self.outputs.try_send(output);
        self.doorbell.ring();
        told.map_err(|refused| match refused {
            TrySendError::Full(output) | TrySendError::Disconnected(output) => output,
        })
    }
}

/// A worker's thread, and the ways to it.
pub(super) struct Lane<E: Engine> {
    calls: SyncSender<Call<E>>,
    pub(super) peer: Peer,
    thread: Option<JoinHandle<()>>,
}

impl<E: Engine> Lane<E> {
    pub(super) fn new(calls: SyncSender<Call<E>>, peer: Peer, thread: JoinHandle<()>) -> Lane<E> {
        Lane {
            calls,
            peer,
            thread: Some(thread),
        }
    }

    /// Lets the worker do something, or gives it back if there is no room. A worker that has ended
    /// takes everything and does nothing.
    pub(super) fn call(&self, call: Call<E>) -> Result<(), Call<E>> {
        let given = self.peer.signs.give(&self.calls, call);
        self.peer.signs.wake();
        match given {
            Err(TrySendError::Full(call)) => Err(call),
            Ok(()) | Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }
}

impl<E: Engine> Drop for Lane<E> {
    fn drop(&mut self) {
        self.peer.signs.stop();
        if let Some(thread) = self.thread.take() {
            // A worker that has panicked has said so.
            let _ = thread.join();
        }
    }
}

//! The talk of a replica with other replicas and with clients, in threads of its own.

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use stateplane_multicast_store::{Executed, Replica, Snapshot, StoreConfig, To, Transmit};

use super::{padded, unpadded};
use crate::clock::boot_time_us;
use crate::multicast_state::{self, States};
use crate::sealing::{Guard, KeysError, SealReport, open_datagram, send_datagram};

/// Time between two looks at what is missing.
const LOOK: Duration = Duration::from_millis(5);

/// Function that is told what a replica executes, and when, before anybody is answered.
pub(super) type Tell = Box<dyn FnMut(u64, &Executed) + Send>;

/// A replica and who is told what it executes.
pub(super) struct State {
    /// None until it has a peer's state.
    pub(super) replica: Option<Replica>,
    pub(super) tell: Tell,
}

/// An exchange and its threads, which end with it.
pub(super) struct Running {
    pub(super) exchange: Arc<Exchange>,
    states: States,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.exchange.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has ended.
            let _ = thread.join();
        }
    }
}

/// Parts of a replica that its threads share.
pub(super) struct Exchange {
    state: Mutex<State>,
    socket: UdpSocket,
    guard: Option<Arc<Mutex<Guard>>>,
    peers: Vec<(u8, SocketAddrV4)>,
    stop: AtomicBool,
}

/// The content of a lock. A thread that panicked ends the process by its absence; its state is not
/// looked at.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Running {
    /// Opens the sockets at `own`, and starts the threads.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub(super) fn open(
        own: SocketAddrV4,
        guard: Option<Guard>,
        peers: Vec<(u8, SocketAddrV4)>,
        tell: Tell,
    ) -> io::Result<Running> {
        let socket = UdpSocket::bind(own)?;
        socket.set_read_timeout(Some(LOOK))?;
        let guard = guard.map(|guard| Arc::new(Mutex::new(guard)));
        let exchange = Arc::new(Exchange {
            state: Mutex::new(State {
                replica: None,
                tell,
            }),
            socket,
            guard: guard.clone(),
            peers,
            stop: AtomicBool::new(false),
        });
        let given = Arc::clone(&exchange);
        let states = States::with(own, guard, move || given.given())?;
        let taking = Arc::clone(&exchange);
        let thread = thread::Builder::new().spawn(move || taking.take())?;
        Ok(Running {
            exchange,
            states,
            thread: Some(thread),
        })
    }

    /// Asks peers of the shard for their states, one after another, until the replica ends or one
    /// covers the timestamp `after`.
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub(super) fn join(
        &mut self,
        config: StoreConfig,
        after: u64,
    ) -> io::Result<Receiver<Snapshot>> {
        let peers = self.exchange.peers.iter();
        let own = peers.filter(|(of, _)| *of == config.shard);
        let own = own.map(|(_, address)| *address).collect();
        self.states.join(own, after, move |state| {
            let state = Snapshot::parse(config, &state.bytes).ok()?;
            state.covers(after).then_some(state)
        })
    }
}

impl Exchange {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The state for a peer that joins, if there is one.
    fn given(&self) -> Option<multicast_state::State> {
        let snapshot = self.state().replica.as_ref()?.snapshot();
        let mut place = snapshot.at();
        if snapshot.covers(place.time) {
            // Nothing of this time waits.
            place.group = u8::MAX;
        }
        Some(multicast_state::State {
            place,
            bytes: snapshot.to_vec(),
        })
    }

    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads the file of keys again if it changed.
    pub(super) fn look(&self) -> Result<(), KeysError> {
        match &self.guard {
            Some(guard) => lock(guard).look(boot_time_us()),
            None => Ok(()),
        }
    }

    /// Counts of sealed messages, if messages are sealed.
    pub(super) fn seals(&self) -> Option<SealReport> {
        let guard = self.guard.as_ref()?;
        Some(SealReport::of(&lock(guard), 0))
    }

    /// Tells what was executed, then sends what waits. A datagram that the system does not take is
    /// lost, as on the way.
    pub(super) fn send(&self, state: &mut State) {
        let State { replica, tell } = state;
        let Some(replica) = replica else {
            return;
        };
        while let Some(executed) = replica.poll_executed() {
            tell(boot_time_us(), &executed);
        }
        while let Some(Transmit { to, bytes }) = replica.poll_transmit() {
            match to {
                To::Address(address) => self.send_to(address, &bytes),
                To::Shard(shard) => {
                    for (_, address) in self.peers.iter().filter(|(of, _)| *of == shard) {
                        self.send_to(*address, &bytes);
                    }
                }
            }
        }
    }

    fn send_to(&self, to: SocketAddrV4, message: &[u8]) {
        let _ = match &self.guard {
            None => send_datagram(None, &self.socket, to, message),
            Some(guard) => match padded(message) {
                Some(message) => send_datagram(Some(&mut lock(guard)), &self.socket, to, &message),
                None => return,
            },
        };
    }

    /// The message in a datagram, if it has one.
    fn open_from<'a>(&self, from: SocketAddrV4, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let Some(guard) = &self.guard else {
            return Some(bytes);
        };
        let guard = &mut lock(guard);
        let received = open_datagram(Some(guard), boot_time_us(), &self.socket, from, bytes)?;
        unpadded(received.message)
    }

    /// Takes datagrams, and asks for parts that are missing, until the replica ends.
    fn take(&self) {
        let mut buffer = vec![0; 1 << 16];
        while !self.stops() {
            let received = match self.socket.recv_from(&mut buffer) {
                Ok((length, SocketAddr::V4(from))) => {
                    let message = self.open_from(from, &buffer[..length]);
                    message.map(|message| (from, message))
                }
                _ => None,
            };
            let mut state = self.state();
            let Some(replica) = &mut state.replica else {
                continue;
            };
            let now = boot_time_us();
            if let Some((from, message)) = received {
                replica.handle_datagram(now, from, message);
            }
            replica.handle_timeout(now);
            self.send(&mut state);
        }
    }
}

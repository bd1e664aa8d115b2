//! States of programs over multicast: one that joins a group begins with the state of a peer, which has
//! received all up to a place, and goes on behind that place (rule 26 of `docs/multicast-protocol.md`).
//!
//! [`States`] gives a program's state to peers over TCP, and asks peers for theirs, in threads of its
//! own. With keys each state passes in sealed pieces. The key-value store over multicast
//! ([`multicast_store`](crate::multicast_store)) begins so.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use stateplane_multicast::FinalTime;

use crate::clock::boot_time_us;
use crate::sealing::{Guard, KeysError, fetch_sealed, give_sealed};

/// Time between two looks whether a peer connects.
const LOOK: Duration = Duration::from_millis(5);

/// Time between two rounds of questions, and that each step of one may take.
const RETRY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Version of the encoding, its first byte.
const VERSION: u8 = 1;

/// Bytes before those of the program: version, place, length.
const HEAD: usize = 1 + 8 + 1 + 8;

/// Most bytes of a state with its head.
const MOST_BYTES: u64 = 1 << 32;

/// The state of a program at a place of its group's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// The state has all messages at places up to this one, and none behind it. Once a receiver has
    /// [passed](crate::multicast_receiver::MulticastReceiver::passed) a timestamp and its program has
    /// taken all that it fetched, the place of that time with group 255 is right.
    pub place: FinalTime,
    /// The program's bytes.
    pub bytes: Vec<u8>,
}

impl State {
    /// True if a receiver can begin with the state that gets all messages whose places have a greater
    /// time than `after`.
    pub fn covers(&self, after: u64) -> bool {
        let group = u8::MAX;
        self.place >= FinalTime { time: after, group }
    }

    fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.bytes.len());
        bytes.push(VERSION);
        bytes.extend(self.place.time.to_be_bytes());
        bytes.push(self.place.group);
        bytes.extend((self.bytes.len() as u64).to_be_bytes());
        bytes.extend(&self.bytes);
        bytes
    }

    /// The state that is all of `bytes`; `None` of other bytes.
    fn parse(mut bytes: Vec<u8>) -> Option<State> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let number = |at: usize| {
            let eight = head[at..at + 8].try_into();
            eight.map_or(0, u64::from_be_bytes)
        };
        let place = FinalTime {
            time: number(1),
            group: head[9],
        };
        let whole = head[0] == VERSION && number(10) == rest.len() as u64;
        whole.then(|| State {
            place,
            bytes: bytes.split_off(HEAD),
        })
    }
}

/// Parts that the threads share.
struct Shared {
    own: Ipv4Addr,
    guard: Option<Arc<Mutex<Guard>>>,
    stop: AtomicBool,
}

/// Gives a program's state to peers, and takes theirs. Its threads end with it.
pub struct States {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for States {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has ended.
            let _ = thread.join();
        }
    }
}

impl States {
    /// Gives peers that connect to `own` what `state` says at that moment, one peer after another;
    /// `None` while there is no state. With a file of `keys` states pass sealed. The file may be that
    /// of the program's receiver: switches and controllers are the receiver's peers, and no others.
    ///
    /// # Errors
    ///
    /// The file of keys is refused, or the system refuses the port or a thread.
    pub fn open(
        own: SocketAddrV4,
        keys: Option<&Path>,
        state: impl FnMut() -> Option<State> + Send + 'static,
    ) -> Result<States, StatesError> {
        let guard = keys.map(Guard::read).transpose()?;
        let guard = guard.map(|guard| Arc::new(Mutex::new(guard)));
        Ok(States::with(own, guard, state)?)
    }

    /// Like [`States::open`], with an end of message authentication that others use too.
    pub(crate) fn with(
        own: SocketAddrV4,
        guard: Option<Arc<Mutex<Guard>>>,
        state: impl FnMut() -> Option<State> + Send + 'static,
    ) -> io::Result<States> {
        let listener = TcpListener::bind(own)?;
        listener.set_nonblocking(true)?;
        let shared = Shared {
            own: *own.ip(),
            guard,
            stop: AtomicBool::new(false),
        };
        let mut states = States {
            shared: Arc::new(shared),
            threads: Vec::new(),
        };
        states.spawn(move |shared| shared.give(&listener, state))?;
        Ok(states)
    }

    /// Asks `peers`, one after another, again and again, until one has a state that covers the time
    /// `after` and of which `take` makes something, which the channel then brings.
    /// [`MulticastReceiver::after`] is that time; the program fetches nothing from its receiver before
    /// it has the state, and then lets it [begin behind] the state's place.
    ///
    /// [`MulticastReceiver::after`]: crate::multicast_receiver::MulticastReceiver::after
    /// [begin behind]: crate::multicast_receiver::MulticastReceiver::begin_behind
    ///
    /// # Errors
    ///
    /// The system has no thread left.
    pub fn join<T: Send + 'static>(
        &mut self,
        peers: Vec<SocketAddrV4>,
        after: u64,
        take: impl FnMut(State) -> Option<T> + Send + 'static,
    ) -> io::Result<Receiver<T>> {
        let (sender, joined) = mpsc::channel();
        self.spawn(move |shared| {
            if let Some(state) = shared.find(&peers, after, take) {
                // A program that has ended takes none.
                let _ = sender.send(state);
            }
        })?;
        Ok(joined)
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&self) -> Result<(), KeysError> {
        match &self.shared.guard {
            // Keys that another thread used as it ended are whole.
            Some(guard) => {
                let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
                guard.look(boot_time_us())
            }
            None => Ok(()),
        }
    }

    fn spawn(&mut self, work: impl FnOnce(&Shared) + Send + 'static) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().spawn(move || work(&shared))?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Shared {
    fn stops(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn give(&self, listener: &TcpListener, mut state: impl FnMut() -> Option<State>) {
        while !self.stops() {
            let Ok((mut stream, _)) = listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            let mut bytes = || state().map(|state| state.to_vec()).unwrap_or_default();
            // A peer that gets less sees that it is no state.
            let _ = patient(&stream).and_then(|()| match &self.guard {
                Some(guard) => give_sealed(guard, &mut stream, bytes),
                None => stream.write_all(&bytes()),
            });
        }
    }

    fn find<T>(
        &self,
        peers: &[SocketAddrV4],
        after: u64,
        mut take: impl FnMut(State) -> Option<T>,
    ) -> Option<T> {
        while !self.stops() {
            for address in peers {
                let state = self.fetch(*address).ok().and_then(State::parse);
                let state = state.filter(|state| state.covers(after));
                if let Some(taken) = state.and_then(&mut take) {
                    return Some(taken);
                }
            }
            thread::sleep(RETRY);
        }
        None
    }

    /// Bytes of the state of the peer at an address.
    fn fetch(&self, address: SocketAddrV4) -> io::Result<Vec<u8>> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        // The peer knows this end's keys by its address.
        socket.bind(&SocketAddr::V4(SocketAddrV4::new(self.own, 0)).into())?;
        socket.connect_timeout(&SocketAddr::V4(address).into(), PATIENCE)?;
        let mut stream = TcpStream::from(socket);
        patient(&stream)?;
        match &self.guard {
            Some(guard) => fetch_sealed(guard, &mut stream, MOST_BYTES),
            None => {
                let mut bytes = Vec::new();
                stream.take(MOST_BYTES).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

/// Lets each step of a stream wait, and not longer than [`PATIENCE`].
fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// Reason why states cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum StatesError {
    /// The file of keys is refused.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[cfg(test)]
mod tests;

//! The talk of a replica with other replicas and with clients, in threads of its own.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use stateplane_multicast_store::{Executed, Replica, Snapshot, StoreConfig, To, Transmit};

use super::{padded, unpadded};
use crate::clock::boot_time_us;
use crate::sealing::{
    Guard, KeysError, SealReport, fetch_sealed, give_sealed, open_datagram, send_datagram,
};

/// Time between two looks at what is missing.
const LOOK: Duration = Duration::from_millis(5);

/// Time between two tries to get a peer's state, and that each step of one may take.
const RETRY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of a state.
const MOST_BYTES: u64 = 1 << 32;

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
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.exchange.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // One that panicked has ended.
            let _ = thread.join();
        }
    }
}

/// Parts of a replica that its threads share.
pub(super) struct Exchange {
    state: Mutex<State>,
    socket: UdpSocket,
    own: Ipv4Addr,
    guard: Option<Mutex<Guard>>,
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
        let listener = TcpListener::bind(own)?;
        listener.set_nonblocking(true)?;
        let exchange = Arc::new(Exchange {
            state: Mutex::new(State {
                replica: None,
                tell,
            }),
            socket,
            own: *own.ip(),
            guard: guard.map(Mutex::new),
            peers,
            stop: AtomicBool::new(false),
        });
        let mut running = Running {
            exchange,
            threads: Vec::new(),
        };
        running.spawn(|exchange| exchange.take())?;
        running.spawn(move |exchange| exchange.give(&listener))?;
        Ok(running)
    }

    fn spawn(&mut self, work: impl FnOnce(&Exchange) + Send + 'static) -> io::Result<()> {
        let exchange = Arc::clone(&self.exchange);
        let thread = thread::Builder::new().spawn(move || work(&exchange))?;
        self.threads.push(thread);
        Ok(())
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
        let (sender, joined) = mpsc::channel();
        self.spawn(move |exchange| {
            if let Some(state) = exchange.find(config, after) {
                // A replica that has ended takes none.
                let _ = sender.send(state);
            }
        })?;
        Ok(joined)
    }
}

impl Exchange {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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

    /// Gives the state to each peer that connects, one after another, until the replica ends.
    fn give(&self, listener: &TcpListener) {
        while !self.stops() {
            let Ok((mut stream, _)) = listener.accept() else {
                thread::sleep(LOOK);
                continue;
            };
            let state = || {
                let state = self.state();
                let replica = state.replica.as_ref();
                replica.map(|it| it.snapshot().to_vec()).unwrap_or_default()
            };
            // A peer that gets less sees that it is no state.
            let _ = patient(&stream).and_then(|()| match &self.guard {
                Some(guard) => give_sealed(guard, &mut stream, state),
                None => stream.write_all(&state()),
            });
        }
    }

    /// The first state of a peer of the shard that covers the timestamp `after`; none if the replica
    /// ends before.
    fn find(&self, config: StoreConfig, after: u64) -> Option<Snapshot> {
        let own = self.peers.iter().filter(|(of, _)| *of == config.shard);
        let own: Vec<SocketAddrV4> = own.map(|(_, address)| *address).collect();
        while !self.stops() {
            for address in &own {
                let state = self.fetch(*address).ok();
                let state = state.and_then(|bytes| Snapshot::parse(config, &bytes).ok());
                if let Some(state) = state.filter(|state| state.covers(after)) {
                    return Some(state);
                }
            }
            thread::sleep(RETRY);
        }
        None
    }

    /// The state of the replica at an address.
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

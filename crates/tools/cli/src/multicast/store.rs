//! `stateplane multicast store`: a replica of a shard of the key-value store.

use super::ServiceArguments;
use crate::exit::{CommandError, Failure};
use crate::kv::system;
use crate::signal::stop_flag;
use clap::Args;
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_receiver::{
    MulticastReceiver, MulticastReceiverConfig, Received, ReceiverError,
};
use stateplane_multicast_store::{
    MAX_SHARDS, Replica, ReplicaConfig, Snapshot, StoreConfig, To, Transmit,
};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Port of replicas, of UDP for messages and of TCP for snapshots, unless another is given.
const PORT: u16 = 4801;

/// µs for which a wait for messages lasts, so that a request to stop is seen.
const WAIT_US: u64 = 20_000;

/// µs between two looks at a replica that takes no more messages.
const FULL_US: u64 = 500;

/// Time between two looks at what is missing.
const LOOK: Duration = Duration::from_millis(5);

/// Time between two tries to get a peer's state, and that each step of one may take.
const RETRY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of a snapshot.
const MOST_BYTES: u64 = 1 << 32;

/// Run a replica of a shard of the key-value store.
///
/// It is a receiver of the group of the shard's number. Prints `ready` when it executes commands: at
/// once with --empty, else when it has the state of a peer of its shard. One replica runs at an
/// address. Clients are `stateplane multicast kv`.
#[derive(Args)]
pub struct StoreArguments {
    /// The shard
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..i64::from(MAX_SHARDS)))]
    shard: u8,
    /// Shards of the store; their groups are those of the lowest numbers
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_SHARDS)))]
    shards: u8,
    /// Another replica, by its shard and its address, with a port unless it is 4801; all have to be
    /// named, in any number of options
    #[arg(long = "peer", value_name = "SHARD=ADDRESS", value_parser = peer)]
    peers: Vec<(u8, SocketAddrV4)>,
    /// UDP and TCP port for other replicas
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// Begin with an empty shard: no replica of it was there before
    #[arg(long)]
    empty: bool,
    /// Most records of the shard; the same for all replicas
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    records: usize,
}

fn peer(text: &str) -> Result<(u8, SocketAddrV4), String> {
    let parsed = text.split_once('=').and_then(|(shard, address)| {
        let shard = shard.parse().ok().filter(|shard| *shard < MAX_SHARDS)?;
        let alone = address
            .parse()
            .map(|address| SocketAddrV4::new(address, PORT));
        Some((shard, alone.or_else(|_| address.parse()).ok()?))
    });
    parsed.ok_or_else(|| format!("{text} is not of the form SHARD=ADDRESS"))
}

/// State that the threads of a replica share.
struct Shared {
    /// None until it has a peer's state.
    replica: Mutex<Option<Replica>>,
    socket: UdpSocket,
    peers: Vec<(u8, SocketAddrV4)>,
    stop: Arc<AtomicBool>,
}

impl Shared {
    fn replica(&self) -> MutexGuard<'_, Option<Replica>> {
        // A thread that panicked ends the process by its absence; its state is not looked at.
        self.replica.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what waits. What the system does not take is lost, as on the way.
    fn send(&self, replica: &mut Replica) {
        while let Some(Transmit { to, bytes }) = replica.poll_transmit() {
            match to {
                To::Address(address) => _ = self.socket.send_to(&bytes, address),
                To::Shard(shard) => {
                    for (_, address) in self.peers.iter().filter(|(of, _)| *of == shard) {
                        let _ = self.socket.send_to(&bytes, address);
                    }
                }
            }
        }
    }

    /// Takes datagrams, and asks for parts that are missing, until the command ends.
    fn exchange(&self) {
        let mut buffer = vec![0; 1 << 16];
        while !self.stop.load(Ordering::Relaxed) {
            let received = self.socket.recv_from(&mut buffer);
            let mut guard = self.replica();
            let Some(replica) = guard.as_mut() else {
                continue;
            };
            let now = boot_time_us();
            if let Ok((length, SocketAddr::V4(from))) = received {
                replica.handle_datagram(now, from, &buffer[..length]);
            }
            replica.handle_timeout(now);
            self.send(replica);
        }
    }

    /// Gives the state to each peer that connects, one after another, until the command ends.
    fn give(&self, listener: &TcpListener) {
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((mut stream, _)) = listener.accept() else {
                std::thread::sleep(LOOK);
                continue;
            };
            let state = self.replica().as_ref().map(|it| it.snapshot().to_vec());
            let _ = stream.set_nonblocking(false);
            let _ = stream.set_write_timeout(Some(PATIENCE));
            // A peer that gets less sees that it is no snapshot.
            let _ = stream.write_all(&state.unwrap_or_default());
        }
    }

    /// Asks peers of the shard for their states, one after another, until the command ends or one
    /// covers the timestamp `after`.
    fn join(self: &Arc<Shared>, config: StoreConfig, after: u64) -> Receiver<Snapshot> {
        let (sender, joined) = mpsc::channel();
        let shared = Arc::clone(self);
        std::thread::spawn(move || {
            let own = shared.peers.iter().filter(|(of, _)| *of == config.shard);
            let own: Vec<SocketAddrV4> = own.map(|(_, address)| *address).collect();
            while !shared.stop.load(Ordering::Relaxed) {
                for address in &own {
                    let state = fetch(*address, config);
                    if let Some(state) = state.filter(|state| state.covers(after)) {
                        let _ = sender.send(state);
                        return;
                    }
                }
                std::thread::sleep(RETRY);
            }
        });
        joined
    }
}

/// The state of the replica at an address, if it gives one.
fn fetch(address: SocketAddrV4, config: StoreConfig) -> Option<Snapshot> {
    let stream = TcpStream::connect_timeout(&address.into(), PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut bytes = Vec::new();
    stream.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Snapshot::parse(config, &bytes).ok()
}

fn taken_off() -> CommandError {
    let message = "the replica was taken off the group's list: it was silent or too slow; start it \
                   again without --empty";
    CommandError::coded(Failure::Expectation, "taken-off", message)
}

/// Hands the messages that the receiver has to the replica, as many as it takes; gives true if it
/// takes more.
fn execute(
    shared: &Shared,
    replica: &mut Replica,
    receiver: &mut MulticastReceiver,
) -> Result<bool, CommandError> {
    let now = boot_time_us();
    while replica.has_room() {
        match receiver.poll() {
            Some(Received::Message {
                at,
                destinations,
                payload,
                ..
            }) => replica.handle_delivery(now, at, destinations, payload),
            Some(Received::TakenOff) => return Err(taken_off()),
            None => break,
        }
    }
    if let Some(time) = receiver.passed() {
        replica.handle_passed(time);
    }
    shared.send(replica);
    // Nobody looks at what was executed.
    while replica.poll_executed().is_some() {}
    if let Some((_, shard)) = replica.stuck() {
        let message = format!(
            "the replica is too far behind: replicas of shard {shard} do not keep what it lacks; \
             start it again without --empty"
        );
        return Err(CommandError::coded(Failure::Expectation, "stuck", message));
    }
    Ok(replica.has_room())
}

fn open(
    service: &ServiceArguments,
    arguments: &StoreArguments,
    stop: Arc<AtomicBool>,
) -> Result<(Arc<Shared>, TcpListener, MulticastReceiver), CommandError> {
    if service.keys.is_some() {
        let message = "replicas exchange no sealed messages: the store takes no --keys";
        return Err(CommandError::new(Failure::Input, message));
    }
    if arguments.shard >= arguments.shards {
        let message = format!(
            "a store of {} shards has no shard {}",
            arguments.shards, arguments.shard
        );
        return Err(CommandError::new(Failure::Input, message));
    }
    let own = service.address.unwrap_or(Ipv4Addr::UNSPECIFIED);
    let socket = UdpSocket::bind((own, arguments.port)).map_err(system)?;
    socket.set_read_timeout(Some(LOOK)).map_err(system)?;
    let listener = TcpListener::bind((own, arguments.port)).map_err(system)?;
    listener.set_nonblocking(true).map_err(system)?;
    let config = MulticastReceiverConfig {
        controllers: service.controller.clone(),
        address: service.address,
        group: arguments.shard,
        queue: 1024,
    };
    let end = boot_time_us() + service.timeout_us()?;
    let receiver = MulticastReceiver::connect(config, None, end).map_err(|error| {
        let failure = match error {
            ReceiverError::NoGroup(_) => Failure::Input,
            _ => Failure::System,
        };
        CommandError::new(failure, error)
    })?;
    let shared = Arc::new(Shared {
        replica: Mutex::new(None),
        socket,
        peers: arguments.peers.clone(),
        stop,
    });
    Ok((shared, listener, receiver))
}

/// Runs the command.
pub fn run(service: &ServiceArguments, arguments: &StoreArguments) -> Result<(), CommandError> {
    let stop = stop_flag()?;
    let (shared, listener, mut receiver) = open(service, arguments, Arc::clone(&stop))?;
    let config = ReplicaConfig::new(StoreConfig {
        most_records: arguments.records,
        ..StoreConfig::new(arguments.shard, arguments.shards)
    });
    let after = receiver.after();
    let joined = if arguments.empty {
        *shared.replica() = Some(Replica::behind(config, after));
        None
    } else {
        Some(shared.join(config.store, after))
    };
    let threads = [
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.exchange()
        }),
        std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.give(&listener)
        }),
    ];
    let mut ready = false;
    let mut outcome = Ok(());
    while outcome.is_ok() && !stop.load(Ordering::Relaxed) {
        if let Some(state) = joined.as_ref().and_then(|joined| joined.try_recv().ok()) {
            *shared.replica() = Some(Replica::joining(config, state));
        }
        let mut guard = shared.replica();
        let takes = match guard.as_mut() {
            Some(replica) => {
                if !ready {
                    ready = true;
                    println!("ready");
                    outcome = io::stdout().flush().map_err(system);
                }
                execute(&shared, replica, &mut receiver)
            }
            None => Ok(true),
        };
        drop(guard);
        let wait = match takes {
            Ok(true) => WAIT_US,
            Ok(false) => FULL_US,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        };
        outcome = outcome.and(receiver.step(boot_time_us() + wait).map_err(system));
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    receiver.leave(boot_time_us() + 1_000_000);
    outcome
}

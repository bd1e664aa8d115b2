//! Replicas and clients of the key-value store: agents that print the events of a history
//! (`stateplane_history::multicast`), one a line, as senders and receivers do.

use super::hosts::{DRAIN_US, LISTED, LOOK_US, Lines, PATIENCE_US, controllers, failed};
use crate::agent::stop_at_end_of_input;
use crate::error::LabError;
use clap::Args;
use stateplane_apps::Random;
use stateplane_apps::multicast_store::{
    answered, called, executed, keys, operation, operation_number, request, response,
};
use stateplane_history::multicast::{EventKind, MulticastEvent};
use stateplane_host::clock::boot_time_us;
use stateplane_host::multicast_store::{
    STORE_PORT, StoreClient, StoreClientConfig, StoreReplica, StoreReplicaConfig, StoreReplicaError,
};
use stateplane_multicast_store::{Busy, Executed, Key};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Line of a replica that executes commands: a comment among events.
const READY: &str = "# ready";
/// Line of a replica that is listed: a comment among events, before [`READY`].
const BEGINS: &str = LISTED;
/// Keys of each shard: few, so that operations meet.
const KEYS: u8 = 4;
/// Time in µs for which a replica waits until it is off its list.
const LEAVES_US: u64 = 100_000;

/// Arguments of a replica.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Number of the host in histories; it has the next one when it begins again.
    #[arg(long)]
    pub node: u32,
    /// The shard, and its group.
    #[arg(long)]
    pub shard: u8,
    /// Shards of the store.
    #[arg(long)]
    pub shards: u8,
    /// True if it begins with an empty shard; else it begins with a peer's state.
    #[arg(long)]
    pub empty: bool,
    /// The other replicas: shard and address.
    #[arg(long = "peer", value_parser = peer)]
    pub peers: Vec<(u8, Ipv4Addr)>,
}

/// Arguments of clients.
#[derive(Clone, Debug, Args)]
pub struct ClientArguments {
    /// Address of the controller.
    #[arg(long)]
    pub controller: Ipv4Addr,
    /// Number of the host in histories, and of its first client.
    #[arg(long)]
    pub node: u32,
    /// Shards of the store.
    #[arg(long)]
    pub groups: u8,
    /// Clients, each with one operation at a time.
    #[arg(long)]
    pub lanes: u8,
    /// Microseconds from an operation of a client to its next.
    #[arg(long)]
    pub interval_us: u64,
    /// Chance that an operation names several keys, in thousandths.
    #[arg(long)]
    pub several: u32,
    /// Seed of its choices.
    #[arg(long)]
    pub seed: u64,
}

fn peer(text: &str) -> Result<(u8, Ipv4Addr), String> {
    let parsed = text
        .split_once('=')
        .and_then(|(shard, address)| Some((shard.parse().ok()?, address.parse().ok()?)));
    parsed.ok_or_else(|| format!("{text} is not of the form SHARD=ADDRESS"))
}

/// True if the last replica that a text of events begins executes commands.
pub(super) fn is_ready(text: &str) -> bool {
    let begins = text.rfind(BEGINS);
    text.rfind(READY)
        .is_some_and(|ready| begins.is_some_and(|begins| begins < ready))
}

/// True if the file of a replica's output says so.
pub(super) fn says_ready(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| is_ready(&text))
}

/// Lines that the threads of a replica share.
type Shared = Arc<Mutex<Lines>>;

fn lock(lines: &Shared) -> MutexGuard<'_, Lines> {
    // Lines are whole between two calls.
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a replica until its standard input ends.
///
/// # Errors
/// `LAB003` if the controller does not answer, or the system refuses.
pub fn replica(arguments: &ReplicaArguments) -> Result<(), LabError> {
    let served = stop_at_end_of_input().and_then(|stop| {
        let lines = Arc::new(Mutex::new(Lines::open()));
        let (mut node, mut empty) = (arguments.node, arguments.empty);
        while !stop.load(Ordering::Relaxed) {
            serve(arguments, node, empty, &lines, &stop)?;
            (node, empty) = (node + 1, false);
        }
        Ok(())
    });
    served.map_err(|reason| LabError::file("replica", reason))
}

/// Serves until the replica has to begin anew or is to stop.
fn serve(
    arguments: &ReplicaArguments,
    node: u32,
    empty: bool,
    lines: &Shared,
    stop: &Arc<AtomicBool>,
) -> io::Result<()> {
    let shard = arguments.shard;
    let at = |(shard, address): &(u8, Ipv4Addr)| (*shard, SocketAddrV4::new(*address, STORE_PORT));
    let config = StoreReplicaConfig {
        peers: arguments.peers.iter().map(at).collect(),
        empty,
        ..StoreReplicaConfig::new(controllers(arguments.controller), shard, arguments.shards)
    };
    let told = Arc::clone(lines);
    let tell = move |at: u64, of: &Executed| {
        if let Some(event) = executed(node, shard, of) {
            let mut lines = lock(&told);
            // A host whose lines nobody takes is at its end.
            let _ = lines.tell(at, event).and_then(|()| lines.out.flush());
        }
    };
    let end = boot_time_us() + PATIENCE_US;
    let mut replica = StoreReplica::open(config, None, end, tell).map_err(failed)?;
    let joined = MulticastEvent::Joined {
        node,
        group: shard,
        peer: None,
        after: Some(replica.after()),
    };
    let say = |line: &str| {
        let mut lines = lock(lines);
        writeln!(lines.out, "{line}")?;
        lines.out.flush()
    };
    lock(lines).tell(boot_time_us(), joined)?;
    say(BEGINS)?;
    let mut ready = false;
    while !stop.load(Ordering::Relaxed) {
        match replica.step(boot_time_us() + LOOK_US) {
            Ok(()) => {}
            Err(StoreReplicaError::TakenOff | StoreReplicaError::Stuck(_)) => {
                let left = MulticastEvent::Left { node, group: shard };
                lock(lines).tell(boot_time_us(), left)?;
                break;
            }
            Err(error) => return Err(failed(error)),
        }
        if !ready && replica.is_ready() {
            ready = true;
            say(READY)?;
        }
    }
    replica.close(boot_time_us() + LEAVES_US);
    lock(lines).out.flush()
}

/// Runs clients until their standard input ends and their operations are answered.
///
/// # Errors
/// `LAB003` if controller or replicas do not answer, or the system refuses.
pub fn client(arguments: &ClientArguments) -> Result<(), LabError> {
    let asked = stop_at_end_of_input().and_then(|stop| Asking::open(arguments)?.run(&stop));
    asked.map_err(|reason| LabError::file("client", reason))
}

struct Asking<'a> {
    arguments: &'a ClientArguments,
    clients: StoreClient,
    keys: Vec<Key>,
    lines: Lines,
    random: Random,
    /// Time at which each client is due.
    due: Vec<u64>,
    /// Number of the operation that each client has under way.
    under_way: Vec<Option<u64>>,
}

impl<'a> Asking<'a> {
    fn open(arguments: &'a ClientArguments) -> io::Result<Self> {
        let count = arguments.lanes;
        let numbers = (0..count).map(|client| u64::from(arguments.node) + u64::from(client));
        let config = StoreClientConfig {
            repeat_us: 50_000,
            longest_repeat_us: 200_000,
            ..StoreClientConfig::new(
                controllers(arguments.controller),
                arguments.groups,
                numbers.collect(),
            )
        };
        let end = boot_time_us() + PATIENCE_US;
        let clients = StoreClient::connect(config, None, end).map_err(failed)?;
        let now = boot_time_us();
        let mut random = Random::new(arguments.seed);
        // Clients do not ask in step.
        let interval = arguments.interval_us;
        let due = (0..count).map(|_| now + random.between(0, interval));
        let due = due.collect();
        Ok(Self {
            arguments,
            clients,
            keys: keys(arguments.groups, KEYS),
            lines: Lines::open(),
            random,
            due,
            under_way: vec![None; count.into()],
        })
    }

    fn run(mut self, stop: &Arc<AtomicBool>) -> io::Result<()> {
        let mut end = None;
        loop {
            let now = boot_time_us();
            if stop.load(Ordering::Relaxed) {
                let end = *end.get_or_insert(now + DRAIN_US);
                if self.under_way.iter().all(Option::is_none) || now >= end {
                    break;
                }
            } else {
                self.call(now)?;
            }
            self.lines.out.flush()?;
            self.clients.step(now + LOOK_US).map_err(failed)?;
            self.listen()?;
        }
        self.lines.out.flush()?;
        self.clients.close(boot_time_us() + LOOK_US);
        Ok(())
    }

    /// Number of a client's operation in histories.
    fn number(&self, client: usize, number: u64) -> u64 {
        operation_number(u64::from(self.arguments.node) + client as u64, number)
    }

    fn call(&mut self, now: u64) -> io::Result<()> {
        for client in 0..self.due.len() {
            if self.due[client] > now || !self.clients.is_idle(client) {
                continue;
            }
            self.due[client] = now + self.arguments.interval_us;
            let draw = self.random.between(0, u64::MAX - 1);
            let Some(operation) = operation(&self.keys, self.arguments.several, draw) else {
                continue;
            };
            let Some(request) = request(&operation) else {
                continue;
            };
            let number = match self.clients.call(client, operation) {
                Ok(number) => self.number(client, number),
                Err(Busy::UnderWay) => continue,
                Err(error) => return Err(failed(error)),
            };
            self.under_way[client] = Some(number);
            let event = called(self.arguments.node, number, request);
            self.lines.write(now, event)?;
        }
        Ok(())
    }

    fn listen(&mut self) -> io::Result<()> {
        for client in 0..self.under_way.len() {
            let Some(reply) = self.clients.poll_reply(client) else {
                continue;
            };
            if let Some(number) = self.under_way[client].take()
                && let Some(response) = response(&reply.outcome)
            {
                let event: EventKind = answered(self.arguments.node, number, response);
                self.lines.write(boot_time_us(), event)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_ready_once_the_last_that_began_says_so() {
        assert!(!is_ready(""));
        let begun = format!("5 joined node=2000 group=0 after=0\n{BEGINS}\n");
        assert!(!is_ready(&begun));
        let ready = format!("{begun}{READY}\n");
        assert!(is_ready(&ready));
        let again = format!("{ready}9 left node=2000 group=0\n{begun}");
        assert!(!is_ready(&again));
        assert!(is_ready(&format!("{again}{READY}\n")));
    }

    #[test]
    fn a_peer_is_a_shard_and_an_address() {
        assert_eq!(peer("1=10.30.0.14"), Ok((1, Ipv4Addr::new(10, 30, 0, 14))));
        for wrong in ["10.30.0.14", "x=10.30.0.14", "1=nowhere"] {
            assert!(peer(wrong).is_err(), "{wrong}");
        }
    }
}

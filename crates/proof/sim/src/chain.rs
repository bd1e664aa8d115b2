//! The store servers as nodes of the world.

use crate::frame::{PUBLIC_ADDRESS, store_address};
use crate::key::{endpoint_in, endpoint_of, remote_of};
use crate::options::{Options, ProgramKind};
use crate::places::{CONTROL, Message, REQUESTS};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::Room;
use stateplane_disk::{Disk, DiskError, FaultyFiles, Files as _};
use stateplane_history::replication::{Endpoint, PoolRange, Protocol, StateEvent};
use stateplane_store::{
    ClassConfig, Config, Datagram, FirstLease, IdleTimeouts, Limits, NatPool, Replica, Server,
    ServiceAt, Setup,
};
use stateplane_wire::control::Member;
use stateplane_wire::ipv4::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::{Key, PORT};
use stateplane_wire::term::is_term;
use stateplane_world::{Node, NodePort};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Shards of the key space, as the programs are compiled.
pub(crate) const SHARDS: u16 = 4;

/// The public ports. They reach into all four shards, but only by a few into the
/// first and the last, whose ports therefore run out and are used again.
const FIRST_PORT: u16 = (1 << 14) - 5;
const LAST_PORT: u16 = (3 << 14) + 4;

/// Idle timeout of open TCP connections whose mappings name the remote endpoint too, in µs: longer
/// than a run.
const OPEN: u64 = 60_000_000;
/// Times the idle timeout of other mappings after which such a connection is forgotten that is not
/// open.
const TRANSITORY: u64 = 50;

/// µs between a server's heartbeats.
pub(crate) const HEARTBEAT: u64 = 5_000;

/// Chain port of a store server.
pub(crate) const fn link_address(store: usize) -> SocketAddrV4 {
    let address = Ipv4Addr::new(10, 255, 2, store as u8 + 1);
    SocketAddrV4::new(address, stateplane_wire::chain::PORT)
}

/// The folder of its disk.
pub(crate) const FOLDER: &str = "data";

/// A message that waits until the disk has what was written.
pub(crate) struct HeldMessage {
    pub(crate) port: u16,
    pub(crate) sender: NodePort,
    pub(crate) message: Message,
}

/// One store server. Times are of its clock.
pub(crate) struct StoreNode {
    /// `None` while it is dead.
    pub(crate) server: Option<Server>,
    pub(crate) identity: Member,
    /// True time of its last death.
    pub(crate) died_at: Option<u64>,
    /// Files on its disk.
    pub(crate) files: FaultyFiles,
    /// The disk, while it is alive.
    pub(crate) disk: Option<Disk<FaultyFiles>>,
    /// Last entry of each chain that it had when it died, until it has that again, or a copy: its
    /// disk may have lost what was written through.
    pub(crate) doubtful: BTreeMap<u16, u64>,
    /// Chains that it left since it was started, for what its disk lost.
    pub(crate) chains_lost: u64,
    /// Chains of which its disk ever had a configuration written through.
    pub(crate) chains_kept: BTreeSet<u16>,
    /// Its disk failed, and it goes on as if that kept what it is given.
    pub(crate) unheeding: bool,
    /// It waits for its disk.
    pub(crate) syncing: bool,
    /// Messages that came meanwhile and concern no terms.
    pub(crate) held: VecDeque<HeldMessage>,
    /// When it asks for backing next while it waits.
    asks_at: Option<u64>,
    /// Number of deaths.
    pub(crate) deaths: u64,
    /// Number that tells its starts, with one disk or another, from one another.
    starts: u32,
    first_start: u32,
    /// While it is dead: what its disk would make of it.
    pub(crate) remains: Option<Server>,
}

impl StoreNode {
    pub(crate) fn new(store: usize, incarnation: u32) -> Self {
        Self {
            server: None,
            identity: Member {
                server: store as u32 + 1,
                incarnation,
                requests: SocketAddrV4::new(store_address(store), PORT),
                links: link_address(store),
            },
            died_at: None,
            files: FaultyFiles::new(incarnation.into()),
            disk: None,
            chains_lost: 0,
            chains_kept: BTreeSet::new(),
            doubtful: BTreeMap::new(),
            unheeding: false,
            syncing: false,
            held: VecDeque::new(),
            asks_at: None,
            deaths: 0,
            starts: incarnation,
            first_start: incarnation,
            remains: None,
        }
    }

    /// Starts its server at `now`: with a disk as that says, else empty.
    pub(crate) fn start(
        &mut self,
        options: &Options,
        store: usize,
        first_sequence: u32,
        now: u64,
    ) -> Result<(), DiskError> {
        // At first the servers have been there for a while.
        let first = self.starts == self.first_start;
        let backing = u64::from(options.scenario.backing);
        let now = if first {
            now.saturating_sub(2 * backing)
        } else {
            now
        };
        self.starts = self.starts.wrapping_add(1);
        let setup = self.setup(options, store, first_sequence);
        let server = match options.scenario.disks {
            None => setup.server(now)?,
            Some(disks) => {
                let (mut disk, server) =
                    Disk::open(self.files.clone(), FOLDER.as_ref(), &setup, now)?;
                disk.set_snapshot_after(disks.snapshot_after);
                self.disk = Some(disk);
                self.chains_lost = 0;
                server
            }
        };
        self.server = Some(server);
        self.remains = None;
        Ok(())
    }

    fn setup(&self, options: &Options, store: usize, first_sequence: u32) -> Setup {
        let config = config(options, store, first_sequence, self.starts);
        match options.scenario.cluster {
            None => Setup::Fixed {
                config,
                incarnation: self.identity.incarnation,
                links: (0..options.scenario.replicas.into())
                    .map(link_address)
                    .collect(),
            },
            Some(_) => Setup::Managed {
                template: config,
                identity: self.identity,
                period: HEARTBEAT,
            },
        }
    }

    /// Ends its server, if it has one.
    pub(crate) fn stop(&mut self) {
        self.server = None;
        self.disk = None;
        self.syncing = false;
        self.held.clear();
        self.unheeding = false;
        self.deaths += 1;
    }

    /// While it waits for its disk it asks for backing as ever.
    pub(crate) fn ask_again(&mut self, now: u64) {
        if let Some(server) = self.server.as_mut().filter(|_| self.syncing) {
            self.asks_at = server.ask_again(now);
        }
    }

    /// Lets the newest file whose name begins with `kind` rot, in its last bytes.
    pub(crate) fn rot(&self, kind: &str, within: usize) {
        let names = self.files.names(FOLDER.as_ref()).unwrap_or_default();
        let numbers = names
            .iter()
            .filter_map(|name| name.strip_prefix(kind)?.parse().ok());
        let newest: Option<u64> = numbers.max();
        if let Some(newest) = newest {
            let path = Path::new(FOLDER).join(format!("{kind}{newest}"));
            self.files.rot(&path, within);
        }
    }

    /// The server that its disk would make at `now`.
    pub(crate) fn recovered(
        &self,
        options: &Options,
        store: usize,
        first_sequence: u32,
        now: u64,
    ) -> Result<Server, DiskError> {
        let setup = self.setup(options, store, first_sequence);
        let files = self.files.copy();
        files.mend();
        let (_, server) = Disk::open(files, FOLDER.as_ref(), &setup, now)?;
        Ok(server)
    }

    /// Its replica in the chain of `shard`; of a dead server, what its disk has.
    pub(crate) fn replica(&self, options: &Options, shard: u16) -> Option<&Replica> {
        let server = self.server.as_ref().or(self.remains.as_ref())?;
        server.replica(chain_of(options, shard))
    }

    /// True if it surely has all of the chain of `shard` that it ever had.
    pub(crate) fn is_sure(&self, options: &Options, shard: u16) -> bool {
        !self.doubtful.contains_key(&chain_of(options, shard))
    }

    /// Notes that its disk may lose what it has.
    pub(crate) fn doubt(&mut self) {
        let replicas = self.server.iter().flat_map(Server::replicas);
        let had = replicas.map(|(chain, replica)| (chain, replica.applied()));
        self.doubtful.extend(had);
    }

    /// Notes what it has again of what its disk may have lost.
    pub(crate) fn regain(&mut self) {
        let Some(server) = &self.server else {
            return;
        };
        self.doubtful.retain(|chain, had| {
            server.replica(*chain).is_none_or(|replica| {
                replica.applied() < *had && replica.counters().snapshots_installed == 0
            })
        });
    }

    /// The sequence number that it holds for `key`.
    pub(crate) fn held(&self, options: &Options, shard: u16, key: &Key) -> Option<u32> {
        Some(self.replica(options, shard)?.record(shard, key)?.sequence())
    }

    /// The mapping in a record, if the record's state is this endpoint.
    pub(crate) fn held_mapping(
        &self,
        options: &Options,
        shard: u16,
        key: &Key,
        to: Endpoint,
    ) -> Option<u32> {
        let record = self.replica(options, shard)?.record(shard, key)?;
        let state = endpoint_in(record.state(), key.0[1]);
        (state == Some(to)).then(|| record.sequence())
    }
}

impl Node for StoreNode {
    type Message = Message;
    type Transmit = Datagram;

    fn handle_message(&mut self, now: u64, port: u16, sender: NodePort, message: Message) {
        let is_held = |bytes: &[u8]| self.syncing && !is_term(bytes);
        if let Message::Datagram { bytes, .. } = &message
            && is_held(bytes)
        {
            self.held.push_back(HeldMessage {
                port,
                sender,
                message,
            });
            return;
        }
        let (Some(server), Message::Datagram { from, bytes }) = (&mut self.server, message) else {
            return;
        };
        match (port, sender.port) {
            (REQUESTS, _) => server.handle_request(now, from, &bytes),
            (_, CONTROL) => server.handle_control(now, &bytes),
            _ => server.handle_link(now, from, &bytes),
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if self.syncing {
            self.ask_again(now);
        } else if let Some(server) = &mut self.server {
            server.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: u64) -> Option<Datagram> {
        self.server.as_mut()?.poll_transmit(now)
    }

    fn poll_timeout(&self) -> Option<u64> {
        if self.syncing {
            return self.asks_at;
        }
        self.server.as_ref()?.poll_timeout()
    }
}

/// The chain that keeps `shard`.
fn chain_of(options: &Options, shard: u16) -> u16 {
    match options.scenario.cluster {
        None => 0,
        Some(_) => shard,
    }
}

/// A class whose flows begin with zero state.
fn zero(class: u8, state_length: u16) -> ClassConfig {
    ClassConfig {
        class,
        state_length,
        first_lease: FirstLease::Zero,
        shared_only: false,
        idle: IdleTimeouts::never(),
        quota: None,
    }
}

/// The public endpoints.
fn pool() -> NatPool {
    NatPool {
        addresses: vec![PUBLIC_ADDRESS],
        first_port: FIRST_PORT,
        last_port: LAST_PORT,
    }
}

/// The classes of an application; mappings are forgotten after `idle` µs.
fn with_classes(mut config: Config, room: &Room, idle: u64) -> Config {
    for class in &room.replication.class {
        let mut of = zero(class.id, class.state_length);
        match class.first_lease.as_str() {
            "server" if !config.services.is_empty() => {
                let service_at = ServiceAt {
                    address: 6,
                    port: 12,
                };
                of.first_lease = FirstLease::Server { service_at };
            }
            "nat-outbound" => {
                let inbound = room.class_made("none").map_or(0, |class| class.id);
                config = config.with_nat(pool(), class.id, inbound);
                for class in &mut config.classes {
                    class.idle = IdleTimeouts {
                        default: Some(idle),
                        by_protocol: BTreeMap::new(),
                        in_state: Vec::new(),
                    };
                }
                continue;
            }
            "nat-dependent" => {
                let inbound = room.class_made("none").map_or(0, |class| class.id);
                config = config.with_dependent_nat(pool(), class.id, inbound);
                for class in &mut config.classes {
                    class.idle = IdleTimeouts {
                        default: Some(idle),
                        by_protocol: BTreeMap::from([(PROTOCOL_TCP, OPEN)]),
                        in_state: Vec::new(),
                    };
                    if let FirstLease::NatDependent { tcp_transitory, .. } = &mut class.first_lease
                    {
                        *tcp_transitory = TRANSITORY * idle;
                    }
                }
                continue;
            }
            // It came with the class of endpoints inside.
            "none" => continue,
            _ => {}
        }
        config = config.with_class(of);
    }
    config
}

fn config(options: &Options, store: usize, first_sequence: u32, stream: u32) -> Config {
    let scenario = &options.scenario;
    let position = match scenario.cluster {
        None => store as u8,
        Some(_) => 0,
    };
    let mut config = Config::new(scenario.replicas, position).with_shards(SHARDS);
    match options.program {
        ProgramKind::Own(class) => {
            config = config.with_class(zero(class.id, class.state_length));
        }
        program => {
            if let Some(app) = program.app() {
                // In half of the runs the store gives flows to servers, in the others the program.
                if first_sequence.is_multiple_of(2) {
                    config.services = app.hosts().services();
                }
                config = with_classes(config, app.room(), scenario.idle);
            }
        }
    }
    (config.term, config.backing) = (scenario.term, scenario.backing);
    config.stream = stream;
    config.recall = scenario.recall;
    config.clock_ppm = scenario.drift_bound;
    config.first_sequence = first_sequence;
    // So do epochs soon.
    config.first_epoch = first_sequence;
    config.durable = scenario.disks.is_some();
    // No sender forges messages between servers, and checksums find damaged ones.
    config.authentic = true;
    config.limits = Limits {
        resend_first: 2_000,
        resend_bound: 64_000,
        silence: 40_000,
        withhold_after: 50_000,
        backing_interval: 20_000,
        backing_first: 3_000,
        // Small, so that snapshots have many parts and are begun again.
        batch: 200,
        join_backlog: 100,
        ..Limits::default()
    };
    if let Some(rule) = options.without {
        config.faults = rule.store_faults();
        config.authentic = false;
    }
    config
}

/// The recorder's knowledge of one replica's mappings.
#[derive(Default)]
pub(crate) struct Mappings {
    epoch: u32,
    /// Records ever made and forgotten, when `mappings` was brought up to date.
    changes: u64,
    mappings: BTreeMap<Public, Endpoint>,
}

/// A public endpoint, and the remote one for which it is taken alone.
type Public = (Endpoint, Option<Endpoint>);

impl Mappings {
    /// The replica died, and may have lost entries that no neighbour has.
    pub(crate) fn look_again(&mut self) {
        self.changes = u64::MAX;
    }

    /// Ports taken and freed since the last call, said of replica `number`. A
    /// replica that follows an older configuration than one before has no say.
    pub(crate) fn events(&mut self, replica: &Replica, number: u8, class: u8) -> Vec<StateEvent> {
        let epoch = replica.place().epoch;
        let counters = replica.counters();
        let changes = counters.records_made + counters.records_expired;
        if epoch < self.epoch || (epoch == self.epoch && changes == self.changes) {
            return Vec::new();
        }
        (self.epoch, self.changes) = (epoch, changes);
        let present = mappings(replica, class);
        let freed = self.mappings.iter();
        let freed = freed.filter(|(public, inside)| present.get(public) != Some(inside));
        let freed = freed.map(|(&(public, remote), _)| StateEvent::Freed {
            replica: number,
            public,
            remote,
        });
        let taken = present.iter();
        let taken = taken.filter(|(public, inside)| self.mappings.get(public) != Some(inside));
        let taken = taken.map(|(&(public, remote), &inside)| StateEvent::Taken {
            replica: number,
            inside,
            public,
            remote,
        });
        let events = freed.chain(taken).collect();
        self.mappings = present;
        events
    }
}

/// Mappings of a replica, by the public endpoint, which the keys of `class` name.
fn mappings(replica: &Replica, class: u8) -> BTreeMap<Public, Endpoint> {
    let records = replica.records();
    let inbound = records.filter(|(_, key, _)| key.class() == class);
    inbound
        .filter_map(|(_, key, record)| {
            let inside = endpoint_in(record.state(), key.0[1])?;
            let own = endpoint_of(key);
            // Without a remote endpoint the rest of a key is 0.
            let remote = (key.0[8..] != [0; 8]).then(|| remote_of(key));
            Some(((own, remote), inside))
        })
        .collect()
}

/// Mappings and free ports at the end of `replicas`, which together keep all shards,
/// said of replica `number`.
pub(crate) fn pool_at_the_end(replicas: &[&Replica], number: u8, class: u8) -> Vec<StateEvent> {
    let mapped = replicas.iter().flat_map(|replica| mappings(replica, class));
    let mapped = mapped.map(|((public, remote), inside)| StateEvent::Mapped {
        replica: number,
        inside,
        public,
        remote,
    });
    let free = |protocol: u8| {
        let shards = replicas
            .iter()
            .flat_map(|replica| (0..SHARDS).filter_map(|shard| replica.pools(shard)));
        shards
            .map(|pools| pools.free(protocol, PUBLIC_ADDRESS) as u64)
            .sum()
    };
    let remaining = [
        (Protocol::Tcp, free(PROTOCOL_TCP)),
        (Protocol::Udp, free(PROTOCOL_UDP)),
        (Protocol::Icmp, free(PROTOCOL_ICMP)),
    ];
    // Ports taken for one remote endpoint each are free for others: the store's audit counts them.
    let counted = replicas
        .iter()
        .any(|replica| (0..SHARDS).any(|shard| replica.pools(shard).is_some()));
    let remaining = remaining.into_iter().filter(|_| counted);
    let remaining = remaining.map(|(protocol, free)| StateEvent::Remaining {
        replica: number,
        address: PUBLIC_ADDRESS,
        protocol,
        free,
    });
    mapped.chain(remaining).collect()
}

/// The pools as the checkers know them.
pub(crate) fn pools() -> Vec<PoolRange> {
    [Protocol::Tcp, Protocol::Udp, Protocol::Icmp]
        .map(|protocol| PoolRange {
            address: PUBLIC_ADDRESS,
            protocol,
            first: FIRST_PORT,
            last: LAST_PORT,
        })
        .to_vec()
}

/// Inconsistencies between the replicas of one chain, head first, at the end, when no message is in
/// flight.
pub(crate) fn anomalies(chain: u16, replicas: &[&Replica]) -> Vec<String> {
    let mut found = Vec::new();
    let mut digests = BTreeSet::new();
    for (position, replica) in replicas.iter().enumerate() {
        let mut say = |what: String| {
            found.push(format!("chain {chain}, replica {position}: {what}"));
        };
        digests.insert(replica.digest());
        if let Err(error) = replica.audit() {
            say(error.to_string());
        }
        let counters = replica.counters();
        if counters.chain_inconsistent > 0 {
            let count = counters.chain_inconsistent;
            say(format!("{count} entries contradict its state"));
        }
        if counters.snapshot_mismatch > 0 {
            say("a snapshot came out with another digest".into());
        }
        if replica.unacknowledged() > 0 {
            let count = replica.unacknowledged();
            say(format!("{count} entries are not acknowledged"));
        }
    }
    if digests.len() > 1 {
        found.push(format!(
            "the replicas of chain {chain} do not agree at the end"
        ));
    }
    found
}

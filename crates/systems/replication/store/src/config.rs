//! Configuration that a replica gets when it starts.

use std::collections::{BTreeMap, BTreeSet};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::{ipv4, udp};

use crate::creator::creator_of;
use crate::pool::shard_ports;
use crate::quota::Quota;
use crate::service::{Service, ServiceAt, ServiceId};

/// Greatest bound of clock rates, in parts per million: a tenth.
pub const MOST_CLOCK_PPM: u32 = 100_000;

/// µs for which a TCP connection that is not open, or has ended, may be silent (RFC 5382 REQ-5).
pub const TCP_TRANSITORY: u64 = 240_000_000;

/// Bytes of state of both records of a NAT mapping: an address and a port.
pub const NAT_STATE_LENGTH: u16 = 6;

/// Bytes of state of both records of a mapping that names the remote endpoint too: an address, a
/// port, and what the record's side of a TCP connection has sent.
pub const NAT_DEPENDENT_STATE_LENGTH: u16 = NAT_STATE_LENGTH + 1;

/// The configuration of one replica. All replicas of a chain have the same one,
/// apart from `position`. Length, position and epoch are those of the start;
/// [`crate::Replica::reconfigure`] changes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Number of replicas in the chain, from 1.
    pub chain_length: u8,
    /// This replica's position, 0 is the head.
    pub position: u8,
    /// Number of the chain in messages between replicas.
    pub chain: u16,
    /// Configuration number of the chain when the replica starts (rule 21).
    pub chain_epoch: u32,
    /// Number of shards, the parts of the key space; a power of two up to 32768.
    pub shards: u16,
    /// The shards that this chain keeps.
    pub served: BTreeSet<u16>,
    /// Settings of the flow classes.
    pub classes: Vec<ClassConfig>,
    /// The public ports, for classes whose first lease makes a mapping.
    pub nat: Option<NatPool>,
    /// Servers of each service, for classes whose first lease assigns the flow to a server.
    pub services: Vec<Service>,
    /// µs for which a lease is granted, from 1.
    pub lease_period: u32,
    /// By how much the rate of any clock, a switch's or a server's, may differ from
    /// true time, in parts per million, up to [`MOST_CLOCK_PPM`] (rule 1). Switches
    /// allow for 900; what is beyond that the store waits longer.
    pub clock_ppm: u32,
    /// True if the store asks a holder to release a lease that blocks another request (rule 19);
    /// otherwise the store waits until the lease expires.
    pub recall: bool,
    /// Idle time in µs after which a record may be evicted to make room for another one. `None`: no
    /// record is evicted, and the request is refused. Only a record that has an idle timeout and no
    /// holder is evicted; the request is refused if the head finds none among those that it
    /// examines.
    pub evict_after: Option<u64>,
    /// Sequence number of a record's first state. 1, unless a test wants to see
    /// the numbers wrap.
    pub first_sequence: u32,
    /// Epoch of each shard before its first grant. 0, unless a test wants to see the
    /// numbers wrap.
    pub first_epoch: u32,
    /// True if every entry must be on the disk before any message that follows from it is sent.
    pub durable: bool,
    /// True if messages between replicas, and of the controller, come from members alone: they are
    /// sealed, or nobody else reaches the network. Then a message that contradicts the state shows
    /// a broken invariant, which silences a replica; otherwise a stranger may have sent it.
    pub authentic: bool,
    /// Bounds of everything that grows.
    pub limits: Limits,
    /// Rules turned off, for tests.
    pub faults: Faults,
}

/// Settings of one flow class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// First byte of the keys of this class.
    pub class: u8,
    /// Bytes of state of each record.
    pub state_length: u16,
    /// Source of the state that a flow's first lease request gets.
    pub first_lease: FirstLease,
    /// True if all leases of the class are shared (rule 18).
    pub shared_only: bool,
    /// Times after which idle records expire.
    pub idle: IdleTimeouts,
    /// Maximum number of records of each tenant; `None`: limited by the room of the store alone.
    pub quota: Option<Quota>,
}

/// Source of the state of a flow that has no record when its lease is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstLease {
    /// A record of zero state is made.
    Zero,
    /// A public port is taken, and this record and the inbound one are made.
    NatOutbound {
        /// Class of the inbound record's key.
        inbound_class: u8,
    },
    /// The same for one remote endpoint alone, which both keys name: a public port serves many of
    /// them at once (rules 27 to 29).
    NatDependent {
        /// Class of the inbound record's key.
        inbound_class: u8,
        /// µs without a grant, renewal or write for which a mapping of TCP lives whose connection
        /// is not open, or has ended; one that is open lives for as long as the class says of TCP.
        tcp_transitory: u64,
    },
    /// A record is made whose state begins with the address and port of a server of the
    /// service that the key names, or of zero state if that service is not configured.
    /// Without a healthy server that has room, the request is refused with
    /// POOL_EXHAUSTED.
    Server {
        /// Position of the service's endpoint in the key.
        service_at: ServiceAt,
    },
    /// The request is refused with NO_RECORD.
    None,
}

/// Time for which a record lives without a grant, renewal or write, in µs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleTimeouts {
    /// Time for protocols that `by_protocol` does not list; `None`: unlimited.
    pub default: Option<u64>,
    /// By IP protocol, byte 1 of a NAT key.
    pub by_protocol: BTreeMap<u8, u64>,
    /// By what the state says, as far as a connection has come for instance. The first
    /// that matches counts before all others.
    pub in_state: Vec<StateTimeout>,
}

/// Time for which records with certain states live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateTimeout {
    /// Only with this IP protocol; `None`: with any.
    pub protocol: Option<u8>,
    /// Index of the state's byte that is compared, from 0.
    pub byte: u16,
    /// The values that it has then.
    pub values: BTreeSet<u8>,
    /// µs without a grant, renewal or write.
    pub timeout: u64,
}

impl IdleTimeouts {
    /// TCP 2 h 4 min (RFC 5382 REQ-5), everything else 5 min (RFC 4787 REQ-5).
    pub fn nat() -> IdleTimeouts {
        IdleTimeouts {
            default: Some(300_000_000),
            by_protocol: BTreeMap::from([(6, 7_440_000_000)]),
            in_state: Vec::new(),
        }
    }

    /// Never.
    pub fn never() -> IdleTimeouts {
        IdleTimeouts {
            default: None,
            by_protocol: BTreeMap::new(),
            in_state: Vec::new(),
        }
    }

    /// The timeout of `protocol` and `state` in µs; `None`: never.
    pub fn of(&self, protocol: u8, state: &[u8]) -> Option<u64> {
        let matches = |of: &&StateTimeout| {
            of.protocol.is_none_or(|only| only == protocol)
                && state
                    .get(usize::from(of.byte))
                    .is_some_and(|value| of.values.contains(value))
        };
        let in_state = self.in_state.iter().find(matches).map(|of| of.timeout);
        let by_protocol = || self.by_protocol.get(&protocol).copied();
        in_state.or_else(by_protocol).or(self.default)
    }
}

impl ClassConfig {
    /// True if the lifetime of a record or its assigned server depends on the written state.
    pub(crate) fn follows_state(&self) -> bool {
        !self.idle.in_state.is_empty()
            || creator_of(self).is_some_and(|creator| creator.follows_state())
    }
}

/// The public endpoints from which mappings are made (rule 22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatPool {
    /// Public addresses.
    pub addresses: Vec<Ipv4Addr>,
    /// First port of each address and protocol, from 1.
    pub first_port: u16,
    /// Last port of each address and protocol.
    pub last_port: u16,
}

/// Bounds of everything that grows. None may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Records, over all shards.
    pub records: usize,
    /// Holders of one shared lease.
    pub holders: u16,
    /// Share in percent, up to 100, of free ports of an address and protocol in a shard
    /// below which taking another is counted, to warn before none is left.
    pub pool_low: u8,
    /// Requests that wait for one flow (rule 23).
    pub parked_per_flow: usize,
    /// Bytes of all requests that wait (rule 23).
    pub parked_bytes: usize,
    /// Bytes of all requests of one switch, by its address, that wait.
    pub parked_bytes_per_switch: usize,
    /// Entries decided that not every replica has, and entries kept that came
    /// before their turn.
    pub link_window: usize,
    /// Bytes of entries packed in one datagram; a larger entry travels alone.
    pub batch: usize,
    /// Entries kept for a replica that joins while it takes the snapshot; beyond
    /// them it gets a new one.
    pub join_backlog: usize,
    /// µs of silence after which a neighbour that owes an acknowledgement is
    /// suspected.
    pub silence: u64,
    /// µs until a holder that was recalled is asked again; also for how long a new
    /// holder for which others wait is left alone.
    pub recall_first: u64,
    /// µs beyond which that time does not double.
    pub recall_bound: u64,
    /// µs until unacknowledged entries are resent for the first time.
    pub resend_first: u64,
    /// µs beyond which that time does not double.
    pub resend_bound: u64,
    /// Most bytes of a datagram's payload; fewer than UDP's 65,507 if something is put
    /// behind it.
    pub datagram: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            records: 1 << 20,
            holders: 16,
            pool_low: 10,
            parked_per_flow: 16,
            parked_bytes: 16 << 20,
            parked_bytes_per_switch: 4 << 20,
            link_window: 1024,
            batch: 1400,
            join_backlog: 1 << 16,
            silence: 100_000,
            recall_first: 1_000,
            recall_bound: 32_000,
            resend_first: 10_000,
            resend_bound: 320_000,
            datagram: 65_535 - ipv4::HEADER_LENGTH - udp::HEADER_LENGTH,
        }
    }
}

impl Limits {
    /// Leaves `bytes` free in each datagram between replicas, for what is put behind it.
    pub fn make_room(&mut self, bytes: usize) {
        self.datagram = self.datagram.saturating_sub(bytes).max(1);
        self.batch = self.batch.saturating_sub(bytes).max(1);
    }
}

/// Rules turned off, so that a test can show that a checker misses them. All are
/// `false` in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Every write replaces the state, older ones too (against rule 10).
    pub ignore_sequence: bool,
    /// Writes and renewals count, with any lease holder (against rule 12).
    pub ignore_epoch: bool,
    /// The head answers before the chain has the update (against rule 11).
    pub answer_at_head: bool,
    /// An exclusive lease is granted although another one is valid.
    pub ignore_lease_expiry: bool,
    /// Messages between replicas count, with any chain epoch (against rule 21).
    pub ignore_chain_epoch: bool,
    /// Messages between replicas count, from any sender (against rule 21).
    pub ignore_neighbour: bool,
    /// A replica that joins takes leases for expired (against rule 20).
    pub forget_leases: bool,
    /// Entries are forgotten as soon as the successor has them, although replicas
    /// behind it may not.
    pub forget_entries: bool,
    /// A joining replica counts before it has every update that was answered.
    pub join_early: bool,
    /// A lease is taken back although writes made under it are still in flight (against rule 19).
    pub release_early: bool,
    /// Messages leave before what they follow from is on the disk.
    pub send_unsaved: bool,
    /// The port of a connection that has ended is given to another one although a switch may still
    /// use it (against rule 29).
    pub reclaim_held: bool,
    /// The port of any connection is given to another one, also if it has not ended (against
    /// rule 29).
    pub reclaim_live: bool,
}

impl Config {
    /// A configuration of one shard without classes, with default limits.
    pub fn new(chain_length: u8, position: u8) -> Config {
        Config {
            chain_length,
            position,
            chain: 0,
            chain_epoch: 1,
            shards: 1,
            served: BTreeSet::from([0]),
            classes: Vec::new(),
            nat: None,
            services: Vec::new(),
            lease_period: 1_000_000,
            clock_ppm: 900,
            recall: true,
            evict_after: None,
            first_sequence: 1,
            first_epoch: 0,
            durable: false,
            authentic: false,
            limits: Limits::default(),
            faults: Faults::default(),
        }
    }

    /// Divides the key space into `shards` parts and serves them all.
    #[must_use]
    pub fn with_shards(mut self, shards: u16) -> Config {
        self.shards = shards;
        self.served = (0..shards).collect();
        self
    }

    /// Adds a class.
    #[must_use]
    pub fn with_class(mut self, class: ClassConfig) -> Config {
        self.classes.push(class);
        self
    }

    /// Adds a NAT: a pool, the class of its outbound keys and that of its inbound
    /// keys, with the timeouts of [`IdleTimeouts::nat`].
    #[must_use]
    pub fn with_nat(self, pool: NatPool, outbound_class: u8, inbound_class: u8) -> Config {
        let outbound = FirstLease::NatOutbound { inbound_class };
        let classes = [
            (outbound_class, outbound),
            (inbound_class, FirstLease::None),
        ];
        self.with_mappings(pool, classes, NAT_STATE_LENGTH, true)
    }

    /// Adds a NAT whose mappings name the remote endpoint too: a pool, the class of its outbound
    /// keys and that of its inbound keys, with the timeouts of [`IdleTimeouts::nat`] and 4 min for
    /// connections that are not open (RFC 5382 REQ-5).
    #[must_use]
    pub fn with_dependent_nat(
        self,
        pool: NatPool,
        outbound_class: u8,
        inbound_class: u8,
    ) -> Config {
        let outbound = FirstLease::NatDependent {
            inbound_class,
            tcp_transitory: TCP_TRANSITORY,
        };
        let classes = [
            (outbound_class, outbound),
            (inbound_class, FirstLease::None),
        ];
        self.with_mappings(pool, classes, NAT_DEPENDENT_STATE_LENGTH, false)
    }

    fn with_mappings(
        mut self,
        pool: NatPool,
        classes: [(u8, FirstLease); 2],
        state_length: u16,
        shared_only: bool,
    ) -> Config {
        let classes = classes.map(|(class, first_lease)| ClassConfig {
            class,
            state_length,
            first_lease,
            shared_only,
            idle: IdleTimeouts::nat(),
            quota: None,
        });
        self.classes.extend(classes);
        self.nat = Some(pool);
        self
    }

    /// µs by a server's clock from the grant of a lease for `period` µs until it is
    /// certainly over at the holder, whose request had waited for `parked` µs (rule 1).
    ///
    /// The holder's deadline is 511/512 of `parked + period` after it sent the request,
    /// by a clock that may be slow; `parked` and the result are counted by clocks that
    /// may be fast. With at most 900 ppm that is `period`.
    pub(crate) fn lease_time(&self, period: u32, parked: u32) -> u64 {
        let (period, parked) = (u64::from(period), u64::from(parked));
        // Of what the holder leaves out more than 2 µs remain then.
        if self.clock_ppm <= 900 && period >= 20_000 {
            return period;
        }
        let ppm = u64::from(self.clock_ppm);
        let slow = 512 * (1_000_000 - ppm);
        let fast = 511 * (1_000_000 + ppm);
        // The holder rounds its deadline up by less than 1 µs.
        let whole = ((parked + period) * fast).div_ceil(slow) + 2;
        period.max(whole - parked.min(whole))
    }

    /// The same of a lease of which it is not known for how long its request had waited:
    /// at most until each request before it had held the lease.
    pub(crate) fn longest_lease_time(&self) -> u64 {
        let parked = u64::from(self.lease_period) * self.limits.parked_per_flow as u64;
        self.lease_time(self.lease_period, u32::try_from(parked).unwrap_or(u32::MAX))
    }

    /// Checks that a replica can run with this configuration.
    ///
    /// # Errors
    ///
    /// The first contradiction found, as a [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_chain()?;
        self.check_classes()?;
        if let Some(pool) = &self.nat {
            self.check_pool(pool)?;
        }
        if self.lease_period == 0 {
            return Err(ConfigError::Zero {
                name: "lease period",
            });
        }
        if self.clock_ppm > MOST_CLOCK_PPM {
            return Err(ConfigError::ClockBound {
                ppm: self.clock_ppm,
            });
        }
        let limits = &self.limits;
        for (name, value) in [
            ("limit of records", limits.records as u64),
            ("limit of holders", limits.holders.into()),
            ("share of ports that is low", limits.pool_low.into()),
            (
                "limit of parked requests per flow",
                limits.parked_per_flow as u64,
            ),
            ("limit of parked bytes", limits.parked_bytes as u64),
            (
                "limit of parked bytes per switch",
                limits.parked_bytes_per_switch as u64,
            ),
            ("limit of a datagram", limits.datagram as u64),
            ("link window", limits.link_window as u64),
            ("length of a batch", limits.batch as u64),
            (
                "limit of entries for a joining replica",
                limits.join_backlog as u64,
            ),
            ("time of silence", limits.silence),
            ("first time between recalls", limits.recall_first),
            ("bound of the time between recalls", limits.recall_bound),
            ("first resend time", limits.resend_first),
            ("bound of the resend time", limits.resend_bound),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero { name });
            }
        }
        Ok(())
    }

    fn check_chain(&self) -> Result<(), ConfigError> {
        if self.chain_length == 0 {
            return Err(ConfigError::EmptyChain);
        }
        if self.position >= self.chain_length {
            return Err(ConfigError::Position {
                position: self.position,
                length: self.chain_length,
            });
        }
        if !self.shards.is_power_of_two() {
            return Err(ConfigError::ShardCount {
                shards: self.shards,
            });
        }
        match self.served.last() {
            None => Err(ConfigError::NothingServed),
            Some(&shard) if shard >= self.shards => Err(ConfigError::ServedShard {
                shard,
                shards: self.shards,
            }),
            Some(_) => Ok(()),
        }
    }

    fn check_classes(&self) -> Result<(), ConfigError> {
        let mut by_number = BTreeMap::new();
        for class in &self.classes {
            if by_number.insert(class.class, class).is_some() {
                return Err(ConfigError::DuplicateClass { class: class.class });
            }
        }
        for class in &self.classes {
            if let Some(quota) = class.quota.filter(|quota| !quota.is_valid()) {
                return Err(ConfigError::Quota {
                    class: class.class,
                    quota,
                });
            }
            let states = class.idle.in_state.iter();
            if let Some(beyond) = states
                .map(|of| of.byte)
                .find(|byte| *byte >= class.state_length)
            {
                return Err(ConfigError::StateByte {
                    class: class.class,
                    byte: beyond,
                    length: class.state_length,
                });
            }
            if let Some(creator) = creator_of(class) {
                creator.check(self, class)?;
            }
        }
        let mut classes = self.classes.iter();
        let given = classes.any(|class| matches!(class.first_lease, FirstLease::Server { .. }));
        match self.services.first() {
            Some(service) if !given => Err(ConfigError::UnusedService {
                service: service.id,
            }),
            _ => Ok(()),
        }
    }

    fn check_pool(&self, pool: &NatPool) -> Result<(), ConfigError> {
        if pool.addresses.is_empty() || pool.first_port > pool.last_port || pool.last_port == 0 {
            return Err(ConfigError::EmptyPool {
                addresses: pool.addresses.len(),
                first: pool.first_port,
                last: pool.last_port,
            });
        }
        if pool.first_port == 0 {
            return Err(ConfigError::PortZero);
        }
        let mut seen = BTreeSet::new();
        for &address in &pool.addresses {
            if !seen.insert(address) {
                return Err(ConfigError::DuplicateAddress { address });
            }
        }
        for &shard in &self.served {
            if shard_ports(shard, self.shards, pool).is_none() {
                let width = 65_536 / u32::from(self.shards);
                return Err(ConfigError::EmptyShardPool {
                    shard,
                    owned_first: u32::from(shard) * width,
                    owned_last: (u32::from(shard) + 1) * width - 1,
                    first: pool.first_port,
                    last: pool.last_port,
                });
            }
        }
        Ok(())
    }
}

/// Why a configuration cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A chain without replicas.
    #[error("the chain is empty: name at least one replica")]
    EmptyChain,
    /// A position beyond the chain's end.
    #[error(
        "position {position} does not exist in a chain of {length}: positions count from 0 at the head"
    )]
    Position {
        /// The position given.
        position: u8,
        /// Length of the chain.
        length: u8,
    },
    /// A number of shards that is not a power of two.
    #[error("{shards} shards: the number must be a power of two, from 1 to 32768")]
    ShardCount {
        /// The number given.
        shards: u16,
    },
    /// No shard is served.
    #[error("no shard is served: name at least one, or leave the list out to serve all")]
    NothingServed,
    /// A shard that does not exist.
    #[error("shard {shard} cannot be served: there are {shards}, numbered from 0")]
    ServedShard {
        /// The shard named.
        shard: u16,
        /// Number of shards in the configuration.
        shards: u16,
    },
    /// Two meanings for one class.
    #[error("class {class} is declared twice: give each class its own number")]
    DuplicateClass {
        /// The class.
        class: u8,
    },
    /// A timeout that looks at a byte which the state does not have.
    #[error(
        "class {class} has {length} bytes of state: a timeout cannot look at byte {byte}, they count from 0"
    )]
    StateByte {
        /// The class.
        class: u8,
        /// The byte named.
        byte: u16,
        /// Bytes of state.
        length: u16,
    },
    /// A class of flows given to servers whose state has no room for the server.
    #[error(
        "class {class} has {length} bytes of state: a flow that is given to a server has at least 6, the server's address and port"
    )]
    ServerStateLength {
        /// The class.
        class: u8,
        /// The length given.
        length: u16,
    },
    /// A service's endpoint that is not in the key.
    #[error(
        "class {class}: address at byte {address} and port at byte {port} of the key: both must lie in bytes 2 to 15, apart from each other"
    )]
    ServiceAt {
        /// The class.
        class: u8,
        /// First byte of the address.
        address: u8,
        /// First byte of the port.
        port: u8,
    },
    /// A class of flows given to servers, but no services.
    #[error(
        "class {class} gives flows to servers, but no service is configured: add one with its servers"
    )]
    NoServices {
        /// The class.
        class: u8,
    },
    /// Two sets of servers for one service.
    #[error("service {service} is declared twice: name all its servers at once")]
    DuplicateService {
        /// The service.
        service: ServiceId,
    },
    /// A server that serves a service twice.
    #[error("service {service} names the server {server} twice: give it a greater weight")]
    DuplicateServer {
        /// The service.
        service: ServiceId,
        /// The server.
        server: SocketAddrV4,
    },
    /// A class of mappings whose state is not an endpoint.
    #[error("class {class} has {length} bytes of state: a NAT class has 6, an address and a port")]
    NatStateLength {
        /// The class.
        class: u8,
        /// The length given.
        length: u16,
    },
    /// A class of mappings that programs could write.
    #[error("class {class} belongs to a NAT and must be shared only: programs only read mappings")]
    NatWritable {
        /// The class.
        class: u8,
    },
    /// A class of mappings that name the remote endpoint too, with a state of another length.
    #[error(
        "class {class} has {length} bytes of state: with first_lease nat-dependent it has 7, an address, a port, and a byte of TCP's flags"
    )]
    NatDependentStateLength {
        /// The class.
        class: u8,
        /// The length given.
        length: u16,
    },
    /// A class of such mappings that programs could not write.
    #[error(
        "class {class} is shared only: with first_lease nat-dependent programs write how far a connection is; leave shared_only out"
    )]
    NatDependentShared {
        /// The class.
        class: u8,
    },
    /// Mappings of both kinds, which would share ports.
    #[error(
        "class {class} has first_lease nat-dependent and class {other} nat-outbound: they would give one port to two connections; keep one of them"
    )]
    MixedNat {
        /// The class of mappings that name the remote endpoint too.
        class: u8,
        /// The class of mappings that do not.
        other: u8,
    },
    /// An outbound class whose inbound class is missing or makes records itself.
    #[error(
        "class {class} maps to inbound class {inbound_class}, which must be declared with first_lease none"
    )]
    InboundClass {
        /// The outbound class.
        class: u8,
        /// The inbound class that it names.
        inbound_class: u8,
    },
    /// A class of mappings without a pool.
    #[error("class {class} takes public ports, but no pool is configured: add public addresses")]
    NoPool {
        /// The class.
        class: u8,
    },
    /// A pool of size 0.
    #[error(
        "the port pool has size 0: {addresses} public addresses with ports {first} to {last}; name an address and a first port not above the last"
    )]
    EmptyPool {
        /// Number of public addresses.
        addresses: usize,
        /// First port.
        first: u16,
        /// Last port.
        last: u16,
    },
    /// Port 0 in the pool.
    #[error("the port pool begins at port 0, which no packet may carry: begin at 1 or above")]
    PortZero,
    /// A public address named twice.
    #[error("public address {address} is named twice in the pool")]
    DuplicateAddress {
        /// The address.
        address: Ipv4Addr,
    },
    /// A shard that owns no port of the pool.
    #[error(
        "shard {shard} owns ports {owned_first} to {owned_last}, none of which lies in the pool's {first} to {last}: widen the pool, lower the number of shards, or do not serve that shard"
    )]
    EmptyShardPool {
        /// The shard.
        shard: u16,
        /// First port of its range.
        owned_first: u32,
        /// Last port of its range.
        owned_last: u32,
        /// First port of the pool.
        first: u16,
        /// Last port of the pool.
        last: u16,
    },
    /// A quota of nothing, or tenants named by bytes that keys do not have.
    #[error(
        "class {class} has a quota of {} records for tenants named by {} bytes of the key from byte {}: give at least 1 record, and bytes from 1 to 15",
        .quota.records, .quota.length, .quota.first
    )]
    Quota {
        /// The class.
        class: u8,
        /// The quota.
        quota: Quota,
    },
    /// Clock deviations beyond the bound.
    #[error(
        "clocks that are off by {ppm} ppm: give a bound of at most 100000, or mend the clocks; NTP keeps them within 500"
    )]
    ClockBound {
        /// The bound given.
        ppm: u32,
    },
    /// A 0 where nothing would ever happen.
    #[error("the {name} is 0: give it a value of at least 1")]
    Zero {
        /// Name of the setting.
        name: &'static str,
    },
    /// A service, and no class whose flows are given to servers.
    #[error(
        "service {service} gets no flow: no class gives its flows to servers; let the class of its flows have first_lease = \"server\", or leave the service out"
    )]
    UnusedService {
        /// The first service.
        service: ServiceId,
    },
}

impl ConfigError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            ConfigError::EmptyChain => "S001",
            ConfigError::Position { .. } => "S002",
            ConfigError::ShardCount { .. } => "S003",
            ConfigError::NothingServed => "S004",
            ConfigError::ServedShard { .. } => "S005",
            ConfigError::DuplicateClass { .. } => "S006",
            ConfigError::NatStateLength { .. } => "S007",
            ConfigError::NatWritable { .. } => "S008",
            ConfigError::InboundClass { .. } => "S009",
            ConfigError::NoPool { .. } => "S010",
            ConfigError::EmptyPool { .. } => "S011",
            ConfigError::PortZero => "S012",
            ConfigError::DuplicateAddress { .. } => "S013",
            ConfigError::EmptyShardPool { .. } => "S014",
            ConfigError::Zero { .. } => "S015",
            ConfigError::ClockBound { .. } => "S016",
            ConfigError::Quota { .. } => "S017",
            ConfigError::StateByte { .. } => "S021",
            ConfigError::ServerStateLength { .. } => "S022",
            ConfigError::ServiceAt { .. } => "S023",
            ConfigError::NoServices { .. } => "S024",
            ConfigError::DuplicateService { .. } => "S025",
            ConfigError::DuplicateServer { .. } => "S026",
            ConfigError::UnusedService { .. } => "S027",
            ConfigError::NatDependentStateLength { .. } => "S028",
            ConfigError::NatDependentShared { .. } => "S029",
            ConfigError::MixedNat { .. } => "S030",
        }
    }
}

#[cfg(test)]
mod tests;

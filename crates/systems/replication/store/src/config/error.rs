//! Why a configuration cannot be run.

use core::net::{Ipv4Addr, SocketAddrV4};

use crate::quota::Quota;
use crate::service::ServiceId;

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
    /// A backing that no promise fits into.
    #[error(
        "servers back a head for {backing} µs and it promises switches {term} µs: let the backing be longer, by the controller's detection time and 100 ms"
    )]
    Backing {
        /// µs of backing.
        backing: u32,
        /// µs of a promise.
        term: u32,
    },
    /// A promise that would end with any delay of a heartbeat.
    #[error(
        "a term of {term} µs would nearly always have ended: give it at least 10000 µs (term_ms = 10)"
    )]
    Term {
        /// µs of a promise.
        term: u32,
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
            ConfigError::Backing { .. } => "S031",
            ConfigError::Term { .. } => "S032",
        }
    }
}

//! The applications of `apps`, one module each: what hosts say to it and what they make of
//! the answers (`hosts`), and the machine that says what wrong means (`machine`), by which
//! `stateplane-history` judges what came out. [`APPS`] is the list of them.
//!
//! The simulator and the lab have the same hosts: the one gives their datagrams to virtual
//! links, the other to real ones.

pub mod coordination;
mod counter;
pub mod datagram;
mod firewall;
pub mod heavy_hitter;
mod key_value;
mod load_balancer;
pub mod measured;
pub mod multicast_store;
mod nat;
mod object_routing;
mod registry;
mod segment;
mod sequencer;
mod serving_gateway;
pub mod spec;
mod super_spreader;
mod syn_defence;
pub mod table;
mod walk;

pub use random::Random;
pub use registry::{APPS, AppId, app, judged};
pub use segment::{Segment, number_in, number_mark};
pub use spec::{Room, Spec, SpecError};
pub use walk::{SNAPSHOT_PORT, walk_frame};

use core::net::{Ipv4Addr, SocketAddrV4};
use measured::Traffic;
use stateplane_history::replication::{Application, Direction, Endpoint, Occupant};
use stateplane_random as random;
use stateplane_runtime::{StateError, TargetState};
use stateplane_store::Service;
use stateplane_switch::Generator;
use stateplane_wire::ipv4::PROTOCOL_UDP;
use stateplane_wire::replication::{KEY_LENGTH, Key};

/// Port of a switch that faces the hosts inside.
pub const INSIDE_PORT: u16 = 0;
/// Port of a switch that faces the hosts outside.
pub const OUTSIDE_PORT: u16 = 1;

/// A packet for an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Direction of the packet, from the inside or the outside hosts.
    pub direction: Direction,
    /// The key that the program will give it.
    pub key: Key,
    /// The request, in the terms of the application's machine.
    pub request: u64,
    /// Number of the packet among all; its mark ends the datagram.
    pub number: u64,
    /// An IEEE 802.1Q tag in front of the datagram, if there is one.
    pub tag: Vec<u8>,
    /// The whole IPv4 datagram.
    pub datagram: Vec<u8>,
}

/// The translation of a packet's endpoints by a NAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// Way of the packet.
    pub direction: Direction,
    /// The endpoint inside.
    pub inside: Endpoint,
    /// The public endpoint.
    pub public: Endpoint,
    /// The remote endpoint, if the mapping serves it alone.
    pub remote: Option<Endpoint>,
}

/// How the histories of an application are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge {
    /// By the checker `application`: each flow's outputs are those of a machine, in some order.
    Machine(Application),
    /// By the checker `counter`: outputs are the numbers of a flow's packets.
    Count,
    /// By the checker `nat`: outputs are translations between endpoints.
    Translations,
}

impl Judge {
    /// The machine, if one judges.
    pub fn machine(self) -> Option<Application> {
        match self {
            Self::Machine(application) => Some(application),
            Self::Count | Self::Translations => None,
        }
    }
}

/// An application.
pub trait App: Sync {
    /// Its room.
    fn room(&self) -> &'static Room;

    /// Its hosts, which have said nothing yet.
    fn hosts(&self) -> Box<dyn Hosts>;

    /// Its judge.
    fn judge(&self) -> Judge;

    /// Name of the flow with this key in histories.
    fn flow_name(&self, key: &Key) -> String {
        key.to_string()
    }

    /// Its measuring traffic, if experiments measure it.
    fn traffic(&self) -> Option<&'static dyn Traffic> {
        None
    }
}

/// The hosts of one application.
pub trait Hosts: Send {
    /// Macros with which the program is compiled besides those of `app.toml`: sizes for these hosts.
    fn defines(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Services to whose servers the store may give flows with their first lease; the
    /// program copes with a store that does not.
    fn services(&self) -> Vec<Service> {
        Vec::new()
    }

    /// Sets the tables and registers of its own at the switch of that number.
    fn set_up(&self, state: &mut TargetState, switch: u32) -> Result<(), StateError>;

    /// The generator that walks over the arrays of a switch, in bounded-inconsistency
    /// mode.
    fn walk(&self, _switch: u32) -> Option<Generator> {
        None
    }

    /// True if switches write with and without packets, so that at no time all is acknowledged.
    fn writes_for_ever(&self) -> bool {
        false
    }

    /// A switch let a packet out as `frame`.
    fn released(&mut self, _at: u64, _by: Occupant, _asked: &Asked, _frame: &[u8]) {}

    /// Connections that hosts opened, if they count them: those whose first packet arrived.
    fn opened(&self) -> u64 {
        0
    }

    /// Errors that hosts saw, and those in the final content of the store's tail.
    fn recovered(&self, _records: &[(Key, Vec<u8>)]) -> Vec<String> {
        Vec::new()
    }

    /// True if hosts outside hear of what reaches them, over a link, and may answer.
    fn listens(&self) -> bool {
        false
    }

    /// A host outside got `frame`, which is what became of a packet of a connection. True if it
    /// answers.
    fn arrived(
        &mut self,
        _connection: usize,
        _asked: &Asked,
        _frame: &[u8],
        _: &mut Random,
    ) -> bool {
        false
    }

    /// The answer from outside to what a connection sent last; none if its host does not know
    /// whereto.
    fn reply(&mut self, _connection: usize, _number: u64, _: &mut Random) -> Option<Asked> {
        None
    }

    /// The next packet of a connection.
    fn send(&mut self, connection: usize, number: u64, random: &mut Random) -> Asked;

    /// The application's answer to a packet, in the terms of the application's machine; or
    /// why no host would take `frame`.
    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String>;

    /// The translation by a NAT of the endpoints of a packet whose `frame` a host takes. Such an
    /// output has no value.
    fn translated(&self, _asked: &Asked, _frame: &[u8]) -> Option<Translation> {
        None
    }
}

/// A host of a connection: on the link inside, or outside.
fn host(of: Direction, connection: usize, port: u16) -> SocketAddrV4 {
    let connection = connection as u16;
    let address = match of {
        Direction::Outbound => Ipv4Addr::new(10, 0, 0, (connection % 7) as u8 + 1),
        Direction::Inbound => Ipv4Addr::new(198, 51, 100, (connection % 50) as u8 + 1),
    };
    SocketAddrV4::new(address, port)
}

/// The port by which packets of this direction come.
fn arrival_port(direction: Direction) -> u16 {
    match direction {
        Direction::Outbound => INSIDE_PORT,
        Direction::Inbound => OUTSIDE_PORT,
    }
}

/// The port by which packets of this direction leave, unless they are answered.
fn departure_port(direction: Direction) -> u16 {
    match direction {
        Direction::Outbound => OUTSIDE_PORT,
        Direction::Inbound => INSIDE_PORT,
    }
}

/// A UDP datagram with `payload` and the packet's mark.
fn udp(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8], number: u64) -> Segment {
    Segment {
        protocol: PROTOCOL_UDP,
        source,
        destination,
        control: 0,
        sequence: 0,
        acknowledgement: 0,
        payload: [payload, &number_mark(number)].concat(),
    }
}

/// Reads a frame that left by `port`, where it should leave by `way`.
fn taken(way: u16, port: u16, frame: &[u8]) -> Result<Segment, String> {
    if port != way {
        return Err("it left by the wrong port".into());
    }
    Segment::read(frame).ok_or_else(|| "no host would take it".into())
}

/// A key of the application with this room: its class, then `rest`.
fn key(room: &Room, rest: &[u8]) -> Key {
    class_key(room.class().id, rest)
}

/// A key of a class, with what follows its first byte.
fn class_key(class: u8, rest: &[u8]) -> Key {
    let mut key = [0; KEY_LENGTH];
    key[0] = class;
    key[1..=rest.len()].copy_from_slice(rest);
    Key(key)
}

/// The key of a connection from `source` to `destination` in a class.
pub fn connection_key(
    class: u8,
    protocol: u8,
    source: SocketAddrV4,
    destination: SocketAddrV4,
) -> Key {
    let rest = [
        &[protocol][..],
        &source.ip().octets(),
        &destination.ip().octets(),
        &source.port().to_be_bytes(),
        &destination.port().to_be_bytes(),
    ];
    class_key(class, &rest.concat())
}

/// The big-endian number in `bytes`, at most eight of them.
fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

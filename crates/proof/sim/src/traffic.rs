//! Hosts, their connections, and the switch by which each packet goes.

use crate::device::Device;
use crate::frame::{HostPacket, PUBLIC_ADDRESS, host_frame};
use crate::key::{CLASS_NAT_INBOUND, CLASS_NAT_OUTBOUND, counter_key, flow_name, nat_key};
use crate::options::ProgramKind;
use crate::own::{Own, Released, unmarked};
use crate::plan::SWITCHES;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::Random;
use stateplane_apps::{AppId, Asked, Hosts};
use stateplane_history::replication::{Direction, Flow, Occupant};
use stateplane_wire::ipv4::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::Key;

/// The counter's `SEQUENCER_PORT`: such packets carry their number away.
const SEQUENCER_PORT: u16 = 5000;

/// Address of an outside host to which no inside host sends.
pub(crate) const STRANGER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 200);
/// Chance in thousandths that a packet from outside is the stranger's, where these are
/// filtered.
const STRANGERS: u32 = 50;

/// By which switch packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    By(usize),
    Alternate,
}

/// One connection.
struct Connection {
    protocol: u8,
    inside: SocketAddrV4,
    outside: SocketAddrV4,
    /// Outwards and back.
    routes: [Route; 2],
    sent: usize,
    /// Source address that the outside host saw.
    public: Option<SocketAddrV4>,
}

/// A packet that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) connection: usize,
    pub(crate) direction: Direction,
    /// Its flow, as the program will see it.
    pub(crate) flow: Flow,
    pub(crate) key: Key,
    pub(crate) carried: Carried,
}

/// Content of a packet that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// To the counter, the model or the NAT.
    Plain(HostPacket),
    /// To an application.
    Asked(Asked),
    /// To a program of the user's: the port by which it comes, and the frame.
    Own(u16, Vec<u8>),
}

impl Carried {
    pub(crate) fn to_frame(&self, switch: u32) -> Vec<u8> {
        match self {
            Self::Plain(packet) => packet.to_frame(switch),
            Self::Asked(asked) => host_frame(switch, &asked.tag, &asked.datagram),
            Self::Own(_, frame) => frame.clone(),
        }
    }

    /// Value that the packet requests, in the terms of the application.
    pub(crate) fn request(&self) -> Option<u64> {
        match self {
            Self::Plain(_) | Self::Own(..) => None,
            Self::Asked(asked) => Some(asked.request),
        }
    }
}

/// All connections, and every packet sent, by number.
pub(crate) struct Traffic<'a> {
    program: ProgramKind,
    app: Option<Box<dyn Hosts>>,
    own: Option<&'a Own>,
    released: Released,
    connections: Vec<Connection>,
    sent: Vec<Sent>,
    random: Random,
    alternate: u32,
    dead: [bool; SWITCHES],
}

impl<'a> Traffic<'a> {
    pub(crate) fn new(
        program: ProgramKind,
        count: u64,
        alternate: u32,
        own: Option<&'a Own>,
        mut random: Random,
    ) -> Self {
        let connections = (0..count).map(|number| {
            let number = number as u16;
            // Some inside endpoints have several connections.
            let inside = if program.counts() || number % 5 != 4 {
                number
            } else {
                number - 1
            };
            let (protocol, outside_port) = match inside % 6 {
                _ if program.counts() => (PROTOCOL_UDP, SEQUENCER_PORT),
                0 => (PROTOCOL_UDP, 80),
                // An echo has no port of its destination.
                3 => (PROTOCOL_ICMP, 0),
                _ => (PROTOCOL_TCP, 80),
            };
            Connection {
                protocol,
                inside: SocketAddrV4::new(
                    Ipv4Addr::new(10, 0, 0, (inside % 7) as u8 + 1),
                    4000 + inside,
                ),
                outside: SocketAddrV4::new(
                    Ipv4Addr::new(198, 51, 100, (number % 50) as u8 + 1),
                    outside_port,
                ),
                routes: [Route::By(0); 2],
                sent: 0,
                public: None,
            }
        });
        let mut traffic = Self {
            program,
            app: program.app().map(AppId::hosts),
            own,
            released: Released::default(),
            connections: connections.collect(),
            sent: Vec::new(),
            random: random.split(),
            alternate,
            dead: [false; SWITCHES],
        };
        traffic.reroute(1000);
        traffic
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The packet of that number, if it was sent.
    pub(crate) fn sent(&self, number: u64) -> Option<&Sent> {
        self.sent.get(usize::try_from(number).ok()?)
    }

    /// Lets flows choose their path again, each direction with this chance.
    pub(crate) fn reroute(&mut self, chance: u32) {
        for connection in &mut self.connections {
            for route in &mut connection.routes {
                if self.random.permille(chance) {
                    *route = if self.random.permille(self.alternate) {
                        Route::Alternate
                    } else {
                        Route::By(self.random.place(SWITCHES))
                    };
                }
            }
        }
    }

    /// Routing knows whether a switch is dead, and goes around it.
    pub(crate) fn know(&mut self, switch: usize, dead: bool) {
        self.dead[switch] = dead;
    }

    /// The next packet of a connection, and the switch by which it goes; `None` if
    /// its host does not know whereto.
    pub(crate) fn send(
        &mut self,
        connection: usize,
        direction: Direction,
    ) -> Option<(usize, Sent)> {
        let number = self.sent.len() as u64;
        let asked = self.app.as_mut().map(|app| {
            let random = &mut self.random;
            app.send(connection, number, random)
        });
        let direction = asked.as_ref().map_or(direction, |asked| asked.direction);
        let of = &mut self.connections[connection];
        let (source, destination) = match direction {
            Direction::Outbound => (of.inside, of.outside),
            Direction::Inbound => (of.outside, of.public.or(asked.as_ref().map(|_| of.inside))?),
        };
        let strange = self.program == ProgramKind::FilteringNat
            && direction == Direction::Inbound
            && self.random.permille(STRANGERS);
        let source = if strange {
            SocketAddrV4::new(STRANGER, source.port())
        } else {
            source
        };
        of.sent += 1;
        let route = of.routes[direction as usize];
        let by = match route {
            Route::By(switch) => switch,
            Route::Alternate => of.sent % SWITCHES,
        };
        let by = if self.dead[by] {
            (by + 1) % SWITCHES
        } else {
            by
        };
        let packet = HostPacket {
            protocol: of.protocol,
            source,
            destination,
            value: 0,
            number,
        };
        let key = match (self.program.counts(), direction) {
            (true, _) => counter_key(of.protocol, source, destination),
            (false, Direction::Outbound) => nat_key(CLASS_NAT_OUTBOUND, of.protocol, source),
            (false, Direction::Inbound) => nat_key(CLASS_NAT_INBOUND, of.protocol, destination),
        };
        let of_own = self.own.map(|own| {
            let random = &mut self.random;
            own.send(connection, number, random, &mut self.released)
        });
        let (key, carried) = match asked {
            None => of_own.map_or((key, Carried::Plain(packet)), |(key, port, frame)| {
                (key, Carried::Own(port, frame))
            }),
            Some(asked) => (asked.key, Carried::Asked(asked)),
        };
        let sent = Sent {
            connection,
            direction,
            flow: flow_name(&key),
            key,
            carried,
        };
        self.sent.push(sent.clone());
        Some((by, sent))
    }

    /// Reads a packet that left as an application event, or gives the reason why no host would take
    /// it.
    pub(crate) fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        match &self.app {
            Some(app) => app.observe(asked, port, frame),
            None => Err("no application runs".into()),
        }
    }

    /// A switch let packet `number` of a program of the user's out by `port`.
    pub(crate) fn released_own(&mut self, number: u64, port: u16, frame: &[u8]) {
        let output = (port, unmarked(frame).to_vec());
        self.released.outputs.entry(number).or_insert(output);
    }

    /// Packets that a user's program released.
    pub(crate) fn into_released(self) -> Released {
        self.released
    }

    /// A switch let a packet of an application out.
    pub(crate) fn released(&mut self, at: u64, by: Occupant, asked: &Asked) {
        if let Some(app) = &mut self.app {
            app.released(at, by, asked);
        }
    }

    /// Errors that an application finds in the final content of the store's tail.
    pub(crate) fn recovered(&self, records: &[(Key, Vec<u8>)]) -> Vec<String> {
        match (&self.app, self.own) {
            (Some(app), _) => app.recovered(records),
            (None, Some(own)) => own.recovered(records, &self.released),
            (None, None) => Vec::new(),
        }
    }

    /// True if switches write although no host sends.
    pub(crate) fn writes_for_ever(&self) -> bool {
        let of_app = self.app.as_ref().is_some_and(|app| app.writes_for_ever());
        of_app || self.own.is_some_and(Own::is_bounded)
    }

    /// A switch took packet `number` of a program of the user's; `alarm`: while the newest
    /// snapshot that is kept was older than ε.
    pub(crate) fn handled_own(
        &mut self,
        at: (u64, Occupant),
        number: u64,
        alarm: bool,
        device: &dyn Device,
    ) {
        if let Some(own) = self.own {
            own.handled(at, number, alarm, device, &mut self.released);
        }
    }

    /// A host outside got a packet of a connection: it answers to where it came
    /// from. Whether it answers this one.
    pub(crate) fn arrived_outside(&mut self, packet: &HostPacket) -> Option<usize> {
        if self.program.counts() || *packet.source.ip() != PUBLIC_ADDRESS {
            return None;
        }
        let connection = self.sent(packet.number)?.connection;
        self.connections[connection].public = Some(packet.source);
        self.random.permille(600).then_some(connection)
    }
}

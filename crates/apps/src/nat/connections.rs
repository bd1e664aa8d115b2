//! Hosts inside that open and close TCP connections to few hosts outside, where mappings name the
//! remote endpoint and ports are short. Besides the mappings, which the checkers `nat` and `pool`
//! judge, they see whether a connection that both sides use keeps its public endpoint.

use super::hosts::{PORT, PUBLIC, endpoint, set_up, taken_kept};
use super::{DEPENDENT_ROOM, flow_key};
use crate::random::Random;
use crate::segment::{Segment, number_mark};
use crate::{Asked, Hosts, Translation, host};
use core::net::SocketAddrV4;
use stateplane_history::replication::Direction::{self, Inbound, Outbound};
use stateplane_history::replication::Occupant;
use stateplane_runtime::{StateError, TargetState};
use stateplane_wire::ipv4::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};
use stateplane_wire::replication::Key;
use stateplane_wire::tcp::control::{ACK, FIN, PSH, RST, SYN};
use std::collections::BTreeMap;

/// Endpoints outside to which all connections go, so that many want ports for the same one.
const REMOTES: usize = 8;
/// Chances in thousandths: that a host outside answers, that its answer is a forged reset, that an
/// open connection is closed, and that it is reset, with the next packet.
const ANSWER: u32 = 800;
const FORGED: u32 = 20;
const CLOSE: u32 = 300;
const RESET: u32 = 30;
/// Packets without an answer after which a host inside gives up.
const PATIENCE: u32 = 12;
/// Packets that may be sent while one is under way from a host outside to the NAT.
const UNDER_WAY: u64 = 200;
/// Ports inside that one place uses in turn, so that a connection's is another one than those of
/// the connections before it.
const GENERATIONS: u16 = 100;

/// How far a connection is, as its host inside sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Closed,
    Begun,
    Open,
    Closing,
}

/// One place inside, which opens one connection after another.
#[derive(Clone, Debug, Default)]
struct Place {
    generation: u16,
    phase: Phase,
    tries: u32,
    /// The outside has ended.
    ended: bool,
    /// Both sides have sent a FIN.
    over: bool,
    /// Whom the outside answers, and the control bits of what it got last.
    public: Option<(SocketAddrV4, u8)>,
    /// The public endpoint by which the outside got an ACK of this connection.
    acknowledged: Option<SocketAddrV4>,
    /// The same, once the inside got an answer to it: both sides have sent an ACK, and nothing may
    /// take the mapping from the connection.
    open: Option<SocketAddrV4>,
    /// Number of its first packet that left.
    first: u64,
}

/// A FIN or a reset that a host outside sent.
#[derive(Clone, Copy, Debug)]
struct Ending {
    number: u64,
    place: usize,
    generation: u16,
}

/// The connection that a packet was part of, and what it said.
#[derive(Clone, Copy, Debug)]
struct Part {
    place: usize,
    generation: u16,
    control: u8,
    forged: bool,
}

#[derive(Default)]
pub(super) struct Connections {
    places: BTreeMap<usize, Place>,
    sent: BTreeMap<u64, Part>,
    opened: u64,
    /// Those for each public endpoint, in their order.
    endings: BTreeMap<SocketAddrV4, Vec<Ending>>,
    broken: Vec<String>,
}

/// Protocol and ends of the connection of a place.
fn ends(place: usize, generation: u16) -> (u8, SocketAddrV4, SocketAddrV4) {
    let (protocol, port) = match place % 10 {
        0 => (PROTOCOL_UDP, PORT),
        3 => (PROTOCOL_ICMP, 0),
        _ => (PROTOCOL_TCP, PORT),
    };
    let first = 2000 + (place as u16 % 600) * GENERATIONS;
    let inside = host(Outbound, place, first + generation % GENERATIONS);
    (protocol, inside, host(Inbound, place % REMOTES, port))
}

impl Connections {
    fn asked(
        &mut self,
        direction: Direction,
        part: Part,
        [source, destination]: [SocketAddrV4; 2],
        number: u64,
    ) -> Asked {
        let (protocol, ..) = ends(part.place, part.generation);
        self.sent.insert(number, part);
        let segment = Segment {
            protocol,
            source,
            destination,
            control: part.control,
            sequence: number as u32,
            acknowledgement: 0,
            payload: [&[0; 8][..], &number_mark(number)].concat(),
        };
        let class = match direction {
            Outbound => DEPENDENT_ROOM.class().id,
            Inbound => {
                let class = DEPENDENT_ROOM.class_made("none");
                class.map_or(0, |class| class.id)
            }
        };
        let (own, remote) = match direction {
            Outbound => (source, destination),
            Inbound => (destination, source),
        };
        Asked {
            direction,
            key: flow_key(class, protocol, own, remote),
            request: 0,
            number,
            tag: Vec::new(),
            datagram: segment.to_datagram(),
        }
    }

    /// True if a FIN or a reset of a connection that had `public` before may have reached the NAT when
    /// this one had it: nothing tells whose it is (`apps/nat/README.md`).
    fn is_ended_by_another(&self, part: Part, public: SocketAddrV4) -> bool {
        let Some(place) = self.places.get(&part.place) else {
            return false;
        };
        let mut endings = self.endings.get(&public).into_iter().flatten();
        endings.any(|ending| {
            ending.place % REMOTES == part.place % REMOTES
                && (ending.place, ending.generation) != (part.place, part.generation)
                && ending.number + UNDER_WAY >= place.first
        })
    }

    /// The part of the present connection of its place that packet `number` was.
    fn present(&self, number: u64) -> Option<Part> {
        let part = *self.sent.get(&number)?;
        let place = self.places.get(&part.place)?;
        (place.generation == part.generation).then_some(part)
    }
}

/// The control bits of the next packet of a place.
fn next(place: &mut Place, random: &mut Random) -> u8 {
    if place.phase == Phase::Closed {
        *place = Place {
            generation: place.generation.wrapping_add(1),
            phase: Phase::Begun,
            ..Place::default()
        };
        return SYN;
    }
    place.tries += 1;
    if place.tries > PATIENCE || (place.phase == Phase::Open && random.permille(RESET)) {
        place.phase = Phase::Closed;
        place.open = None;
        return RST | ACK;
    }
    match place.phase {
        Phase::Begun => SYN,
        Phase::Closing if place.ended => {
            place.phase = Phase::Closed;
            ACK
        }
        Phase::Closing => FIN | ACK,
        _ if random.permille(CLOSE) => {
            place.phase = Phase::Closing;
            FIN | ACK
        }
        _ => ACK | PSH,
    }
}

impl Hosts for Connections {
    fn set_up(&self, state: &mut TargetState, _: u32) -> Result<(), StateError> {
        set_up(state)
    }

    fn listens(&self) -> bool {
        true
    }

    fn opened(&self) -> u64 {
        self.opened
    }

    fn arrived(&mut self, _: usize, asked: &Asked, frame: &[u8], random: &mut Random) -> bool {
        let source = Segment::read(frame).map(|read| read.source);
        let Some(public) = source.filter(|public| *public.ip() == PUBLIC) else {
            return false;
        };
        let Some(part) = self.present(asked.number) else {
            return false;
        };
        let open = self.places.get(&part.place).and_then(|place| place.open);
        let is_ended = open.is_some_and(|open| self.is_ended_by_another(part, open));
        let Some(place) = self.places.get_mut(&part.place) else {
            return false;
        };
        if place.public.is_none() {
            place.first = asked.number;
        }
        // Of other protocols a mapping may be forgotten between two packets.
        let (protocol, ..) = ends(part.place, part.generation);
        let counts = protocol == PROTOCOL_TCP;
        if counts && part.control & (SYN | ACK) == SYN && place.public.is_none() {
            self.opened += 1;
        }
        if counts && part.control & ACK != 0 {
            let moved = place.open.filter(|open| *open != public && !is_ended);
            if let Some(open) = moved {
                self.broken.push(format!(
                    "packet {} of an open connection left as {public}, not as {open}",
                    asked.number
                ));
            }
            place.acknowledged = Some(public);
        }
        place.public = Some((public, part.control));
        part.control & RST == 0 && random.permille(ANSWER)
    }

    fn released(&mut self, _: u64, _: Occupant, asked: &Asked, frame: &[u8]) {
        let Some(part) = self.present(asked.number) else {
            return;
        };
        if asked.direction == Outbound || part.forged {
            return;
        }
        let (_, inside, _) = ends(part.place, part.generation);
        let (Some(sent), Some(read), Some(place)) = (
            Segment::read_datagram(&asked.datagram),
            Segment::read(frame),
            self.places.get_mut(&part.place),
        ) else {
            return;
        };
        // Another host inside may have got it: its connection has the port by now.
        if read.destination != inside || place.phase == Phase::Closed {
            return;
        }
        place.tries = 0;
        if place.phase == Phase::Begun && part.control & SYN != 0 {
            place.phase = Phase::Open;
        }
        if part.control & FIN != 0 {
            place.ended = true;
        }
        if place.acknowledged == Some(sent.destination) && !place.over {
            place.open = Some(sent.destination);
        }
    }

    fn reply(&mut self, at: usize, number: u64, random: &mut Random) -> Option<Asked> {
        let place = self.places.get_mut(&at)?;
        let (public, got) = place.public?;
        let generation = place.generation;
        let (_, _, outside) = ends(at, generation);
        let forged = random.permille(FORGED);
        if forged {
            // Until another packet comes from outside, the connection counts as reset.
            place.open = None;
        } else if got & FIN != 0 {
            // Both sides have sent a FIN, though the inside has not seen it: the port may be
            // given to another connection (rule 29).
            place.open = None;
            place.over = true;
        }
        let control = match got {
            _ if forged => RST,
            _ if got & SYN != 0 => SYN | ACK,
            _ if got & FIN != 0 => FIN | ACK,
            _ => ACK | PSH,
        };
        if control & (FIN | RST) != 0 {
            let ending = Ending {
                number,
                place: at,
                generation,
            };
            self.endings.entry(public).or_default().push(ending);
        }
        let part = Part {
            place: at,
            generation,
            control,
            forged,
        };
        Some(self.asked(Inbound, part, [outside, public], number))
    }

    fn send(&mut self, at: usize, number: u64, random: &mut Random) -> Asked {
        let place = self.places.entry(at).or_default();
        let control = next(place, random);
        let generation = place.generation;
        let (_, inside, outside) = ends(at, generation);
        let part = Part {
            place: at,
            generation,
            control,
            forged: false,
        };
        self.asked(Outbound, part, [inside, outside], number)
    }

    fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        taken_kept(asked, port, frame).map(|_| 0)
    }

    fn recovered(&self, _: &[(Key, Vec<u8>)]) -> Vec<String> {
        self.broken.clone()
    }

    fn translated(&self, asked: &Asked, frame: &[u8]) -> Option<Translation> {
        let sent = Segment::read_datagram(&asked.datagram)?;
        let read = Segment::read(frame)?;
        let (inside, public, remote) = match asked.direction {
            Outbound => (sent.source, read.source, sent.destination),
            Inbound => (read.destination, sent.destination, sent.source),
        };
        Some(Translation {
            direction: asked.direction,
            inside: endpoint(sent.protocol, inside),
            public: endpoint(sent.protocol, public),
            remote: Some(endpoint(sent.protocol, remote)),
        })
    }
}

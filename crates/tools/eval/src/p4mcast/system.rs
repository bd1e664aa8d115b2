//! The systems, and where their parts stand.

use clap::ValueEnum;
use std::net::{Ipv4Addr, SocketAddrV4};

/// A system that orders messages, or that which only carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum System {
    /// Multicast of this project: switches, controller, senders and receivers that ship.
    Stateplane,
    /// A software protocol like PrimCast, a process in each switch's place.
    Primcast,
    /// A log ordered by etcd, a member in each place of a group's switches.
    Etcd,
    /// The poster's protocol as printed, in the same switches.
    Poster,
    /// Datagrams through a switch that gives them to all receivers, in no order that is agreed on.
    Limit,
}

impl System {
    /// All of them, that which is evaluated first.
    pub const ALL: [Self; 5] = [
        Self::Stateplane,
        Self::Primcast,
        Self::Etcd,
        Self::Poster,
        Self::Limit,
    ];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stateplane => "stateplane",
            Self::Primcast => "like PrimCast",
            Self::Etcd => "etcd log",
            Self::Poster => "poster",
            Self::Limit => "limit",
        }
    }

    /// Name of its value as an option.
    pub fn word(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Bytes of header in front of a payload, in a frame of the length that a load names. etcd's
    /// messages have the same payload as the first system's.
    pub const fn header(self) -> usize {
        match self {
            Self::Stateplane | Self::Etcd => stateplane_wire::multicast::HEADER_LENGTH,
            Self::Primcast | Self::Poster | Self::Limit => super::frame::HEADER,
        }
    }

    /// True if it orders messages to so many groups. The poster's prototype and figures have one; as
    /// `lab/eval/p4mcast/poster.p4` has its protocol, it stops under load with two.
    pub fn takes_groups(self, groups: u8) -> bool {
        groups == 1 || self != Self::Poster
    }

    /// True if it goes on where messages are lost.
    pub const fn takes_loss(self) -> bool {
        matches!(self, Self::Stateplane | Self::Etcd)
    }

    /// True if a kernel has the interfaces of the switches' nodes, in which processes stand.
    pub const fn is_software(self) -> bool {
        matches!(self, Self::Primcast | Self::Etcd)
    }
}

/// Frames that the queue of a virtual Ethernet interface holds before a program takes them.
const QUEUE: u16 = 256;

impl System {
    /// Messages that each sender has in flight, of `wanted` ones: of the poster's protocol no more
    /// than the switches' queues hold acknowledgements of, since a loss would stop it for ever.
    pub fn window(self, shape: Shape, wanted: u8) -> u8 {
        if self != Self::Poster {
            return wanted;
        }
        // A proposal of each group, and the acknowledgements of all others.
        let places = u16::from(shape.places());
        let frames = u16::from(shape.groups) * places;
        let all = QUEUE / frames;
        let each = all / u16::from(SENDERS);
        u8::try_from(each).unwrap_or(u8::MAX).clamp(1, wanted)
    }
}

/// Receivers of a group.
pub const RECEIVERS: u8 = 3;
/// Hosts that send.
pub const SENDERS: u8 = 2;

/// Groups and their members. Switches have places from 0, those of the first group first; the first
/// of each group leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Groups, 1 or 2.
    pub groups: u8,
    /// Members of each.
    pub members: u8,
}

impl Shape {
    /// Number of places.
    pub const fn places(self) -> u8 {
        self.groups * self.members
    }

    /// Group of a place.
    pub const fn group_of(self, place: u8) -> u8 {
        place / self.members
    }

    /// Place of the leader of a group.
    pub const fn leader(self, group: u8) -> u8 {
        group * self.members
    }

    /// Members that are a majority of a group.
    pub const fn majority(self) -> u8 {
        self.members / 2 + 1
    }

    /// Number of the receiver to which a place hands messages.
    pub fn receiver_of(self, place: u8) -> Option<u8> {
        let member = place % self.members;
        (member < RECEIVERS).then_some(self.group_of(place) * RECEIVERS + member)
    }
}

/// UDP port of switches, members and receivers.
pub const PORT: u16 = 4799;
/// UDP port of the senders of systems other than the first.
pub const SENDER_PORT: u16 = 4800;
/// Address of the controller.
pub const CONTROLLER: Ipv4Addr = Ipv4Addr::new(10, 30, 0, 20);

/// Address of a place.
pub const fn place(place: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 30, 0, 1 + place)
}

/// Address of a receiver, by its number among those of all groups.
pub const fn receiver(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 30, 0, 11 + number), PORT)
}

/// Address of a sender.
pub const fn sender(number: u8) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 30, 0, 17 + number), SENDER_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_places_and_three_of_a_group_a_receiver() {
        let shape = Shape {
            groups: 2,
            members: 3,
        };
        assert_eq!(shape.places(), 6);
        assert_eq!((shape.group_of(2), shape.group_of(3)), (0, 1));
        assert_eq!((shape.leader(1), shape.majority()), (3, 2));
        assert_eq!(shape.receiver_of(4), Some(4));
        let five = Shape {
            groups: 1,
            members: 5,
        };
        assert_eq!((five.receiver_of(2), five.receiver_of(3)), (Some(2), None));
        assert_eq!(five.majority(), 3);
    }

    #[test]
    fn the_posters_window_fits_into_a_queue() {
        let shape = |groups, members| Shape { groups, members };
        let window = |shape| System::Poster.window(shape, 128);
        assert_eq!(window(shape(1, 3)), 42);
        assert_eq!(window(shape(1, 5)), 25);
        assert_eq!(window(shape(2, 3)), 10);
        assert_eq!(System::Poster.window(shape(2, 3), 8), 8);
        assert_eq!(System::Limit.window(shape(2, 3), 128), 128);
    }
}

use core::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;

use crate::error::split;
use crate::{Error, Header};

// As the example of the module's page, with fields that begin and end within bytes.
header! {
    layout LAYOUT = "barrier", then "names of the members, 4 bytes each";
    length HEADER_LENGTH = 20;
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Repr<'a> {
        members: &'a [u8],
    }
    offsets field;
    view Packet;
    may_not_fit Udp;
    fields {
        VERSION   4 (version: u8)          => "version of the format, 2";
        PRIORITY  4  priority: u8          => "0 goes first";
        COUNT     8 (count: usize)         => "number of members";
        ROUND     5  round: u8             => "round of the barrier";
        TICKET   17  ticket: u32           => "number of the request";
        SPARE     2 (spare: u8)            => "0";
        DEADLINE 64  deadline: u64         => "µs after which the barrier falls";
        ASKER    48  asker: SocketAddrV4   => "who is answered";
        LAST      8  last: u8              => "the last byte";
    }
}

#[derive(Debug, Clone, Copy)]
struct Packet<'a> {
    header: &'a [u8; HEADER_LENGTH],
    members: &'a [u8],
}

impl<'a> Packet<'a> {
    fn new_checked(bytes: &'a [u8]) -> Result<Packet<'a>, Error> {
        let (header, members) = split(Header::Udp, bytes)?;
        Ok(Packet { header, members })
    }
}

fn example() -> Repr<'static> {
    Repr {
        priority: 5,
        round: 0b10110,
        ticket: 0b1_0101_0101_0101_0101,
        deadline: 0x0102_0304_0506_0708,
        asker: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 0x1234),
        last: 0xff,
        members: b"name",
    }
}

#[test]
fn fields_lie_one_behind_the_other() {
    let offsets = [
        field::VERSION,
        field::PRIORITY,
        field::COUNT,
        field::ROUND,
        field::TICKET,
        field::SPARE,
        field::DEADLINE,
        field::ASKER,
        field::LAST,
    ];
    assert_eq!(offsets, [0, 0, 1, 2, 2, 4, 5, 13, 19]);
    let header = example().header_bytes(2, 3, 0b01).unwrap();
    assert_eq!(
        header,
        [
            0x25,
            3,
            0b1011_0101,
            0b0101_0101,
            0b0101_0101,
            1,
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            10,
            0,
            0,
            1,
            0x12,
            0x34,
            0xff
        ]
    );
}

#[test]
fn the_layout_says_the_same_in_a_table() {
    let lines: Vec<_> = LAYOUT
        .markdown()
        .lines()
        .skip(2)
        .map(str::to_owned)
        .collect();
    assert_eq!(
        lines[0],
        "| 0.0 | 4 bits | version | version of the format, 2 |"
    );
    assert_eq!(lines[2], "| 1 | 1 | count | number of members |");
    assert_eq!(
        lines[4],
        "| 2.5 | 17 bits | ticket | number of the request |"
    );
    assert_eq!(lines[7], "| 13 | 6 | asker | who is answered |");
    assert_eq!(LAYOUT.then, "names of the members, 4 bytes each");
}

#[test]
fn a_value_without_room_is_refused_by_its_name() {
    let refused = |repr: Repr<'_>, count| match repr.header_bytes(2, count, 0) {
        Err(Error::Unrepresentable { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(
            Repr {
                priority: 16,
                ..example()
            },
            0
        ),
        "priority"
    );
    assert_eq!(
        refused(
            Repr {
                ticket: 1 << 17,
                ..example()
            },
            0
        ),
        "ticket"
    );
    assert_eq!(refused(example(), 256), "count");
}

proptest! {
    #[test]
    fn any_bytes_are_a_view_whose_fields_give_them_back(
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let Ok(packet) = Packet::new_checked(&bytes) else {
            prop_assert!(bytes.len() < HEADER_LENGTH);
            return Ok(());
        };
        let repr = Repr {
            priority: packet.priority(),
            round: packet.round(),
            ticket: packet.ticket(),
            deadline: packet.deadline(),
            asker: packet.asker(),
            last: packet.last(),
            members: packet.members,
        };
        prop_assert_eq!(repr, Repr::from_header(packet.header, packet.members));
        let again = repr.header_bytes(packet.version(), packet.count(), packet.spare());
        prop_assert_eq!(&again.unwrap()[..], &bytes[..HEADER_LENGTH]);
    }
}

use core::net::Ipv4Addr;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::multicast::MAX_GROUPS;

fn address() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn standing() -> impl Strategy<Value = Standing> {
    (
        0..MAX_GROUPS,
        any::<bool>(),
        any::<[u32; 6]>(),
        any::<[u8; 2]>(),
        any::<[u32; 8]>(),
    )
        .prop_map(
            |(group, leads, numbers, [lacks_members, lacks_receivers], received)| {
                let [promised, base, end, commit, lacks_decided, lacks_done] = numbers;
                let mut standing = Standing {
                    group,
                    flags: u8::from(leads) * LEADS,
                    promised,
                    base,
                    end,
                    commit,
                    lacks_members,
                    lacks_receivers,
                    lacks_decided,
                    lacks_done,
                    received: [0; 32],
                };
                standing.set_received_by(received);
                standing
            },
        )
}

fn member() -> impl Strategy<Value = Member> {
    (
        0..MOST_NUMBERS,
        0..=role::FORMER,
        any::<(u32, u32)>(),
        address(),
    )
        .prop_map(|(number, role, (switch, incarnation), address)| Member {
            number,
            role,
            switch,
            incarnation,
            address,
        })
}

fn receiver() -> impl Strategy<Value = Receiver> {
    (0..MOST_NUMBERS, address()).prop_map(|(number, address)| Receiver { number, address })
}

fn group() -> impl Strategy<Value = Group> {
    let numbers = (0..MAX_GROUPS, any::<(u32, u32, u16)>());
    (
        numbers,
        address(),
        vec(member(), 0..5),
        vec(receiver(), 0..5),
    )
        .prop_map(
            |((group, (record, epoch, list)), leader, members, receivers)| Group {
                group,
                record,
                epoch,
                leader,
                list,
                members,
                receivers,
            },
        )
}

fn row() -> impl Strategy<Value = Row> {
    let session = (any::<(u16, u8)>(), 0..=slot::ENDED);
    prop_oneof![
        group().prop_map(Row::Group),
        session.prop_map(|((slot, lanes), state)| Row::Session(Session { slot, lanes, state })),
    ]
}

fn beat() -> impl Strategy<Value = Message> {
    let numbers = any::<(u32, u32, u64, u32, u64)>();
    (
        numbers,
        any::<[u8; 32]>(),
        vec(standing(), 0..5),
        0u16..1200,
    )
        .prop_map(
            |((switch, incarnation, number, controller, version), held, standings, room)| {
                Message::Beat(Beat {
                    switch,
                    incarnation,
                    number,
                    controller,
                    version,
                    held,
                    standings,
                    room,
                })
            },
        )
}

fn leaders() -> impl Strategy<Value = Message> {
    let leader = (0..MAX_GROUPS, any::<u32>(), address());
    let leader = leader.prop_map(|(group, epoch, leader)| Leader {
        group,
        epoch,
        leader,
    });
    (any::<(u32, u16, u16, bool)>(), vec(leader, 0..5)).prop_map(
        |((controller, slot, incarnation, open), leaders)| Message::Leaders {
            controller,
            slot,
            incarnation,
            open,
            leaders,
        },
    )
}

fn joined() -> impl Strategy<Value = Message> {
    let numbers = any::<(u64, u8, u8, u16, u32, u32, u64)>();
    (numbers, 0..=joined::NO_GROUP).prop_map(
        |((nonce, group, number, list, window, from_index, from_time), state)| {
            Message::Joined(Joined {
                nonce,
                group,
                state,
                number,
                list,
                window,
                from_index,
                from_time,
            })
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let opened = any::<(u64, u16, u16, u8, u32, u16, u32)>();
    prop_oneof![
        beat(),
        (any::<(u32, u64, u64)>(), vec(row(), 0..5)).prop_map(
            |((controller, after, version), rows)| Message::View {
                controller,
                after,
                version,
                rows,
            }
        ),
        (any::<(u16, u16)>(), room_for_leaders(0)..400).prop_map(|((slot, incarnation), room)| {
            Message::Learn(Learn {
                slot,
                incarnation,
                room,
            })
        }),
        leaders(),
        any::<(u64, u8)>().prop_map(|(nonce, lanes)| Message::Open { nonce, lanes }),
        (opened, 0..=reason::NO_LANE).prop_map(
            |((nonce, slot, incarnation, lanes, groups, longest, ttl_ms), reason)| {
                Message::Opened(Opened {
                    nonce,
                    slot,
                    incarnation,
                    lanes,
                    groups,
                    longest,
                    ttl_ms,
                    reason,
                })
            }
        ),
        any::<(u16, u16)>().prop_map(|(slot, incarnation)| Message::Close { slot, incarnation }),
        any::<(u16, u16)>().prop_map(|(slot, incarnation)| Message::Closed { slot, incarnation }),
        any::<(u64, u8, u8, u32, bool)>().prop_map(|(nonce, group, number, position, leaves)| {
            Message::Join {
                nonce,
                group,
                number,
                position,
                leaves,
            }
        }),
        joined(),
    ]
}

proptest! {
    #[test]
    fn messages_survive_emit_and_parse(message in message()) {
        let bytes = message.to_vec();
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
        for cut in 0..bytes.len() {
            prop_assert!(Message::parse(&bytes[..cut]).is_err());
        }
        let mut long = bytes;
        long.push(0);
        prop_assert_eq!(Message::parse(&long).unwrap_err().code(), "WIRE002");
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(
        bytes in vec(any::<u8>(), 0..160), shape: bool, kind in 0u8..12,
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() > 5 {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[4] = kind;
        }
        if let Ok(message) = Message::parse(&bytes) {
            prop_assert_eq!(message.to_vec(), bytes);
        }
    }

    #[test]
    fn each_message_is_long_enough_to_be_authenticated(message in message()) {
        prop_assert!(message.to_vec().len() >= 24);
    }

    #[test]
    fn rows_are_as_long_as_they_say(rows in vec(row(), 0..5)) {
        let length: usize = rows.iter().map(Row::length).sum();
        let bytes = view(rows).to_vec();
        prop_assert_eq!(rows_within(bytes.len()), length);
    }
}

fn view(rows: Vec<Row>) -> Message {
    Message::View {
        controller: 1,
        after: 2,
        version: 3,
        rows,
    }
}

#[test]
fn an_answer_is_not_longer_than_its_request() {
    for groups in 0..=MAX_GROUPS {
        let learn = Message::Learn(Learn {
            slot: 1,
            incarnation: 2,
            room: room_for_leaders(groups),
        });
        let length = learn.to_vec().len();
        assert_eq!(leaders_within(length), usize::from(groups));
        let leader = Leader {
            group: 0,
            epoch: 1,
            leader: Ipv4Addr::LOCALHOST,
        };
        let answer = Message::Leaders {
            controller: 1,
            slot: 1,
            incarnation: 2,
            open: false,
            leaders: vec![leader; groups.into()],
        };
        assert_eq!(answer.to_vec().len(), length);
    }
    assert_eq!(room_for_leaders(40), room_for_leaders(32));
    let open = Message::Open { nonce: 1, lanes: 1 };
    let opened = Message::Opened(Opened::from_header(&[0; OPENED_LENGTH]));
    assert_eq!(open.to_vec().len(), opened.to_vec().len());
    let (slot, incarnation) = (1, 2);
    let close = Message::Close { slot, incarnation };
    let closed = Message::Closed { slot, incarnation };
    assert_eq!(close.to_vec().len(), closed.to_vec().len());
    let join = Message::Join {
        nonce: 1,
        group: 2,
        number: 3,
        position: 4,
        leaves: false,
    };
    let joined = Message::Joined(Joined::from_header(&[0; JOINED_LENGTH]));
    assert_eq!(join.to_vec().len(), joined.to_vec().len());
}

#[test]
fn a_beat_holds_the_slots_that_it_says() {
    let mut beat = Beat {
        switch: 1,
        incarnation: 2,
        number: 3,
        controller: 4,
        version: 5,
        held: [0; 32],
        standings: Vec::new(),
        room: 0,
    };
    for slot in [0, 7, 8, MOST_SLOTS - 1, MOST_SLOTS, NO_SLOT] {
        beat.set_holds(slot);
    }
    let held = (0..=NO_SLOT).filter(|slot| beat.holds(*slot));
    assert_eq!(held.collect::<Vec<_>>(), [0, 7, 8, 255]);
    assert_eq!((beat.held[0], beat.held[31]), (0x81, 1));
}

#[test]
fn numbers_without_meaning_and_padding_that_is_not_zero_are_refused() {
    let session = |state| {
        view(vec![Row::Session(Session {
            slot: 1,
            lanes: 1,
            state,
        })])
    };
    assert!(Message::parse(&session(slot::ENDED).to_vec()).is_ok());
    assert!(Message::parse(&session(slot::ENDED + 1).to_vec()).is_err());
    let open = Message::Open { nonce: 1, lanes: 1 };
    let mut bytes = open.to_vec();
    *bytes.last_mut().unwrap() = 1;
    assert_eq!(Message::parse(&bytes).unwrap_err().code(), "WIRE004");
    let mut bytes = open.to_vec();
    bytes[0] = b'X';
    assert_eq!(Message::parse(&bytes).unwrap_err().code(), "WIRE004");
    let mut bytes = session(0).to_vec();
    bytes[FRONT_LENGTH + VIEW_LENGTH] = 3;
    assert_eq!(Message::parse(&bytes).unwrap_err().code(), "WIRE004");
}

#[test]
fn a_view_of_all_that_a_beat_has_room_for_fits_an_ethernet_frame() {
    let standing = Standing::from_header(&[0; STANDING_LENGTH]);
    let beat = Message::Beat(Beat {
        switch: 1,
        incarnation: 2,
        number: 3,
        controller: 4,
        version: 5,
        held: [0; 32],
        standings: vec![standing; 5],
        room: ROOM_OF_BEAT,
    });
    let length = beat.to_vec().len();
    assert!(length <= 1400, "{length}");
}

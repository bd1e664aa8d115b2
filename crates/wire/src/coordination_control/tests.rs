use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn a_chain() -> impl Strategy<Value = Chain> {
    let switches = vec(1u32.., 0..=MAX_CHAIN);
    (any::<(u16, u16, u32, bool, bool)>(), switches).prop_map(
        |((group, generation, epoch, joins, down), switches)| {
            let joins = joins && !switches.is_empty();
            let mut chain = Chain {
                group,
                generation,
                epoch,
                flags: u8::from(joins) * JOINS + u8::from(down) * DOWN,
                members: (switches.len() - usize::from(joins)) as u8,
                chain_1: Address::NONE,
                chain_2: Address::NONE,
                chain_3: Address::NONE,
                chain_4: Address::NONE,
            };
            chain.set_switches(switches.into_iter().map(Ipv4Addr::from));
            chain
        },
    )
}

fn session() -> impl Strategy<Value = Session> {
    any::<(u32, u16, u16, u16, u32)>().prop_map(
        |(session, first_lane, count, lane_incarnation, age_ms)| Session {
            session,
            first_lane,
            count,
            lane_incarnation,
            age_ms,
        },
    )
}

fn message() -> impl Strategy<Value = Message> {
    let learn = any::<(u32, u64, u16)>();
    prop_oneof![
        (learn, LEAST_ROOM_OF_LEARN..1400).prop_map(|((controller, version, group), room)| {
            Message::Learn(Learn {
                controller,
                version,
                group,
                room,
            })
        }),
        (any::<(u32, u64, [u16; 3])>(), vec(a_chain(), 0..5)).prop_map(
            |((controller, version, [groups, slots, next]), chains)| Message::Chains {
                controller,
                version,
                groups,
                slots,
                next,
                chains,
            }
        ),
        any::<(u64, u16)>().prop_map(|(nonce, lanes)| Message::Open { nonce, lanes }),
        any::<(u64, u32, [u16; 6], u32)>().prop_map(|(nonce, session, numbers, ttl_ms)| {
            let [first_lane, count, lane_incarnation, groups, lanes, slots] = numbers;
            Message::Opened(Opened {
                nonce,
                session,
                first_lane,
                count,
                lane_incarnation,
                groups,
                lanes,
                slots,
                ttl_ms,
            })
        }),
        any::<(u32, [u16; 3])>().prop_map(|(session, [first, count, incarnation])| {
            Message::Close(Lanes {
                session,
                first,
                count,
                incarnation,
            })
        }),
        any::<u32>().prop_map(|session| Message::Ended { session }),
        (any::<u32>(), LEAST_ROOM_OF_LIST..1400)
            .prop_map(|(session, room)| Message::List { session, room }),
        (any::<[u32; 4]>(), any::<u16>(), vec(session(), 0..5)).prop_map(
            |([controller, free_lanes, ttl_ms, next], sessions, rows)| Message::Sessions {
                controller,
                sessions,
                free_lanes,
                ttl_ms,
                next,
                rows,
            }
        ),
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
        bytes in vec(any::<u8>(), 0..120), shape: bool, kind in 0u8..10,
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
}

fn learn(room: u16) -> Message {
    Message::Learn(Learn {
        controller: 1,
        version: 2,
        group: 3,
        room,
    })
}

fn list(room: u16) -> Message {
    let session = 1;
    Message::List { session, room }
}

fn chains(rows: usize) -> Message {
    let chain = Chain::from_header(&[0; CHAIN_LENGTH]);
    Message::Chains {
        controller: 1,
        version: 2,
        groups: 64,
        slots: 1024,
        next: END_OF_GROUPS,
        chains: vec![chain; rows],
    }
}

fn sessions(rows: usize) -> Message {
    let session = Session::from_header(&[0; SESSION_LENGTH]);
    Message::Sessions {
        controller: 1,
        sessions: 2,
        free_lanes: 3,
        ttl_ms: 4,
        next: END_OF_SESSIONS,
        rows: vec![session; rows],
    }
}

#[test]
fn an_answer_is_not_longer_than_its_request() {
    for rows in 0..=MOST_ROWS {
        let request = learn(room_for_chains(rows)).to_vec();
        assert_eq!(chains_within(request.len()), rows);
        assert_eq!(request.len(), chains(rows).to_vec().len());
        let request = list(room_for_sessions(rows)).to_vec();
        assert_eq!(sessions_within(request.len()), rows);
        assert_eq!(request.len(), sessions(rows).to_vec().len());
    }
    assert_eq!((LEAST_ROOM_OF_LEARN, LEAST_ROOM_OF_LIST), (3, 13));
    assert_eq!(chains_within(0), 0);
    assert_eq!(chains_within(65_535), MOST_ROWS);
    let open = Message::Open { nonce: 1, lanes: 2 };
    let opened = Message::Opened(Opened::from_header(&[0; OPENED_LENGTH]));
    assert_eq!(open.to_vec().len(), opened.to_vec().len());
    let close = Message::Close(Lanes {
        session: 1,
        first: 2,
        count: 3,
        incarnation: 4,
    });
    let ended = Message::Ended { session: 1 };
    assert_eq!(close.to_vec().len(), ended.to_vec().len());
}

#[test]
fn the_longest_messages_fit_an_ethernet_frame() {
    assert!(chains(MOST_ROWS).to_vec().len() < 1400);
    assert!(sessions(MOST_ROWS).to_vec().len() < 1400);
}

#[test]
fn more_rows_are_cut_off_and_refused() {
    let bytes = chains(MOST_ROWS + 1).to_vec();
    assert_eq!(bytes, chains(MOST_ROWS).to_vec());
    let mut long = bytes;
    long[FRONT_LENGTH + CHAINS_LENGTH - 1] += 1;
    long.extend([0; CHAIN_LENGTH]);
    assert_eq!(Message::parse(&long).unwrap_err().code(), "WIRE004");
}

#[test]
fn padding_that_is_not_zero_is_refused() {
    let open = Message::Open { nonce: 1, lanes: 2 };
    let ended = Message::Ended { session: 1 };
    for message in [learn(3), list(13), open, ended] {
        let mut bytes = message.to_vec();
        *bytes.last_mut().unwrap() = 1;
        assert_eq!(Message::parse(&bytes).unwrap_err().code(), "WIRE004");
    }
    let fronts = [FRONT_LENGTH + LEARN_LENGTH, FRONT_LENGTH + LIST_LENGTH];
    for (message, front) in [learn(3), list(13)].into_iter().zip(fronts) {
        let mut short = message.to_vec();
        short[front - 1] -= 1;
        short.pop();
        assert_eq!(Message::parse(&short).unwrap_err().code(), "WIRE004");
    }
}

#[test]
fn a_row_lists_as_many_switches_as_it_counts() {
    let mut bytes = chains(1).to_vec();
    assert!(Message::parse(&bytes).is_ok());
    let row = FRONT_LENGTH + CHAINS_LENGTH;
    bytes[row + 9] = 1;
    assert_eq!(Message::parse(&bytes).unwrap_err().code(), "WIRE004");
    bytes[row + 10] = 10;
    assert!(Message::parse(&bytes).is_ok());
    bytes[row + 8] = JOINS;
    assert!(Message::parse(&bytes).is_err());
    bytes[row + 8] = DOWN;
    assert!(Message::parse(&bytes).is_ok());
    bytes[row + 8] = 4;
    assert!(Message::parse(&bytes).is_err());
}

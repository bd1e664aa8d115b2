use proptest::prelude::*;

use super::*;
use crate::numbers::in_capitals;

fn example(payload: &[u8]) -> Repr<'_> {
    Repr {
        code: 3,
        flags: flag::PAYLOAD,
        group: 5,
        origin: 6,
        list_version: 0x0708,
        epoch: 0x090a_0b0c,
        incarnation: 0x0d0e_0f10,
        destinations: 0x1112_1314,
        session: 0x1516,
        lane: 0x17,
        number: 0x18_191a_1b1c,
        index: 0x1d1e_1f20,
        term: 0x2122_2324,
        before: 0x2526_2728,
        timestamp: 0x292a_2b2c_2d2e_2f30,
        final_time: 0x3132_3334_3536_3738,
        sender_address: 0x393a_3b3c,
        sender_port: 0x3d3e,
        final_group: 0x3f,
        learner: 0x40,
        commit: 0x4142_4344,
        base: 0x4546_4748,
        payload,
        ..Repr::new(MessageType::Prop)
    }
}

#[test]
fn fields_lie_where_the_protocol_page_says() {
    let mut expected = vec![1, 0x21, 3, 1, 5, 6, 7, 8];
    expected.extend(0x09..=0x48);
    assert_eq!(expected.len(), HEADER_LENGTH);
    expected.extend(b"payload");
    assert_eq!(example(b"payload").to_vec().unwrap(), expected);
}

/// The first two cells of each row of the page's table whose head begins with `head`.
fn rows(head: &str) -> Vec<(String, String)> {
    let page = include_str!("../../../../docs/multicast-protocol.md");
    let head = format!("| {head} | value |");
    let behind = page.lines().skip_while(|line| !line.starts_with(&head));
    let table = behind.skip(2).take_while(|line| line.starts_with('|'));
    let cells = table.map(|line| {
        let mut cells = line.split('|').skip(1).map(|cell| cell.trim().to_owned());
        (cells.next().unwrap(), cells.next().unwrap())
    });
    cells.collect()
}

#[test]
fn the_page_has_the_types_codes_and_flags() {
    let types = MessageType::ALL.iter();
    let types = types.map(|one| (in_capitals(one), format!("{:#04x}", *one as u8)));
    assert_eq!(rows("type"), types.collect::<Vec<_>>());
    let codes = Code::ALL.iter();
    let codes = codes.map(|one| (in_capitals(one), (*one as u8).to_string()));
    assert_eq!(rows("code"), codes.collect::<Vec<_>>());
    let flags = flag::ALL.iter();
    let flags = flags.map(|(name, bit)| ((*name).to_owned(), format!("{bit:#04x}")));
    assert_eq!(rows("flag"), flags.collect::<Vec<_>>());
}

#[test]
fn every_truncation_of_the_header_is_refused() {
    let bytes = example(b"").to_vec().unwrap();
    for length in 0..HEADER_LENGTH {
        let error = Packet::new_checked(&bytes[..length]).unwrap_err();
        assert_eq!(error.code(), "WIRE001", "{length}");
    }
}

#[test]
fn what_is_not_the_message_is_refused() {
    let whole = example(b"payload").to_vec().unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Packet::new_checked(&bytes).unwrap_err().code()
    };
    assert_eq!(with(field::VERSION, 2), "WIRE003");
    assert_eq!(with(field::TYPE, 0x03), "WIRE004");
    assert_eq!(with(field::FLAGS, 0), "WIRE002");
    assert_eq!(with(field::TYPE, MessageType::Ack as u8), "WIRE004");
    let mut long = example(b"").to_vec().unwrap();
    long.resize(HEADER_LENGTH + MAX_PAYLOAD, 0);
    assert!(Packet::new_checked(&long).is_ok());
    long.push(0);
    assert_eq!(Packet::new_checked(&long).unwrap_err().code(), "WIRE002");
}

#[test]
fn what_does_not_fit_is_not_written() {
    let code = |message: Repr<'_>| message.to_vec().unwrap_err().code();
    let payload = vec![0; MAX_PAYLOAD + 1];
    assert_eq!(code(example(&payload)), "WIRE007");
    let unannounced = Repr {
        flags: 0,
        ..example(b"payload")
    };
    assert_eq!(code(unannounced), "WIRE007");
    let of_another_type = Repr {
        message_type: MessageType::Ack,
        ..example(b"")
    };
    assert_eq!(code(of_another_type), "WIRE007");
    let late = Repr {
        number: NUMBER_END,
        ..example(b"")
    };
    assert_eq!(code(late), "WIRE007");
    let short = example(b"").emit(&mut [0; HEADER_LENGTH - 1]);
    assert_eq!(short.unwrap_err().code(), "WIRE008");
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        (kind, code, flags) in (0..MessageType::ALL.len(), any::<u8>(), any::<u8>()),
        (session, lane, number) in (any::<u16>(), any::<u8>(), 0..NUMBER_END),
        (index, timestamp, final_time) in (any::<u32>(), any::<u64>(), any::<u64>()),
        payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let message_type = MessageType::ALL[kind];
        let bears = message_type.may_bear_payload();
        let message = Repr {
            code,
            flags: if bears { flags | flag::PAYLOAD } else { flags & !flag::PAYLOAD },
            session,
            lane,
            number,
            index,
            timestamp,
            final_time,
            payload: if bears { &payload } else { &[] },
            ..Repr::new(message_type)
        };
        let written = message.to_vec().unwrap();
        let read = Repr::parse(&Packet::new_checked(&written).unwrap());
        prop_assert_eq!(read, message);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(packet) = Packet::new_checked(&bytes) {
            prop_assert_eq!(Repr::parse(&packet).to_vec().unwrap(), bytes);
        }
    }

    #[test]
    fn damaged_messages_are_read_or_refused(
        at in 0..HEADER_LENGTH + 7,
        bit in 0..8,
    ) {
        let mut bytes = example(b"payload").to_vec().unwrap();
        bytes[at] ^= 1u8 << bit;
        if let Ok(packet) = Packet::new_checked(&bytes) {
            prop_assert_eq!(Repr::parse(&packet).to_vec().unwrap(), bytes);
        }
    }
}

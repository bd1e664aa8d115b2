use proptest::prelude::*;

use super::*;

fn example() -> Repr<'static> {
    let mut example = Repr {
        operation: Operation::Write as u8,
        outcome: Outcome::Mismatch as u8,
        flags: 0x05,
        hops: 0x06,
        redirects: 0x07,
        kind: 0x08,
        group: 0x090a,
        generation: 0x0b0c,
        epoch: 0x0d0e_0f10,
        client_address: Ipv4Addr::new(0x25, 0x26, 0x27, 0x28).into(),
        client_port: 0x292a,
        lane: 0x2b2c,
        lane_incarnation: 0x2d2e,
        slot: 0x2f30,
        request: 0x3132_3334,
        number: 0x3536_3738_393a_3b3c,
        newest: 0x3d3e_3f40_4142_4344,
        record: 0x4546_4748_494a_4b4c,
        key: Key([0x4d; 16]),
        condition: 0x5d,
        operand_length: 0x5e,
        guard_condition: 0x5f,
        operand: Operand([0x61; 16]),
        guard_key: Key([0x71; 16]),
        guard_number: 0x8182_8384_8586_8788,
        token: 0x898a_8b8c_8d8e_8f90,
        session: 0x9192_9394,
        handle: 0x9596_9798,
        send_time: 0x999a_9b9c_9d9e,
        value: b"seventeen bytes!!",
        ..Repr::new(MessageType::Entry)
    };
    example.set_chain((0x15..=0x18).map(|last| Ipv4Addr::new(10, 0, 0, last)));
    example
}

#[test]
fn fields_lie_where_the_protocol_page_says() {
    let mut expected = vec![1, 0x11, 2, 2, 5, 6, 7, 8];
    expected.extend(0x09..=0x10);
    expected.extend([0, 0, 0, 17]);
    for last in 0x15..=0x18 {
        expected.extend([10, 0, 0, last]);
    }
    expected.extend(0x25..=0x4c);
    expected.extend([0x4d; 16]);
    expected.extend([0x5d, 0x5e, 0x5f, 0]);
    expected.extend([0x61; 16]);
    expected.extend([0x71; 16]);
    expected.extend(0x81..=0x9e);
    expected.extend([0, 0]);
    assert_eq!(expected.len(), HEADER_LENGTH);
    expected.extend(b"seventeen bytes!!");
    expected.extend([0; 15]);
    let checksum = crate::checksum::of(&expected);
    expected[16..18].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(example().to_vec().unwrap(), expected);
}

#[test]
fn every_truncation_is_refused() {
    let bytes = example().to_vec().unwrap();
    for length in 0..bytes.len() {
        let error = Packet::new_checked(&bytes[..length]).unwrap_err();
        assert_eq!(error.code(), "WIRE001", "{length}");
    }
}

#[test]
fn what_is_not_the_message_is_refused() {
    let whole = example().to_vec().unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Packet::new_checked(&bytes).unwrap_err().code()
    };
    assert_eq!(with(field::VERSION, 2), "WIRE003");
    assert_eq!(with(field::TYPE, 0x99), "WIRE004");
    assert_eq!(with(field::VALUE_LENGTH, 5), "WIRE004");
    assert_eq!(with(field::KEY, 0), "WIRE006");
    assert_eq!(with(whole.len() - 1, 1), "WIRE006");
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(Packet::new_checked(&longer).unwrap_err().code(), "WIRE002");
}

#[test]
fn values_beyond_the_greatest_length_have_no_bytes() {
    let value = [7; MAX_VALUE + 1];
    let mut repr = Repr {
        value: &value[..MAX_VALUE],
        ..Repr::new(MessageType::Request)
    };
    assert_eq!(repr.to_vec().unwrap().len(), HEADER_LENGTH + MAX_VALUE);
    repr.value = &value;
    assert_eq!(repr.to_vec().unwrap_err().code(), "WIRE007");
    repr.value = &[];
    repr.send_time = SEND_TIME_END;
    assert_eq!(repr.to_vec().unwrap_err().code(), "WIRE007");
}

#[test]
fn long_values_are_padded_to_parts_with_a_checksum_of_their_own() {
    let value: Vec<u8> = (0..SHORT_VALUE + 1).map(|at| at as u8).collect();
    let repr = Repr {
        value: &value,
        ..Repr::new(MessageType::Entry)
    };
    let mut bytes = repr.to_vec().unwrap();
    let rest = HEADER_LENGTH + SHORT_VALUE;
    assert_eq!(bytes.len(), rest + PART_LENGTH);
    let packet = Packet::new_checked(&bytes).unwrap();
    assert_eq!(packet.value(), value);
    assert_eq!(packet.rest_checksum(), !0x8000);
    for at in [rest, bytes.len() - 1] {
        bytes[at] ^= 1;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE006");
        bytes[at] ^= 1;
    }
    let short = Repr {
        value: &value[..SHORT_VALUE],
        ..repr
    };
    let bytes = short.to_vec().unwrap();
    assert_eq!(bytes.len(), rest);
    assert_eq!(Packet::new_checked(&bytes).unwrap().rest_checksum(), 0);
}

#[test]
fn a_chain_ends_at_its_first_gap() {
    let mut repr = Repr::new(MessageType::Request);
    assert_eq!(repr.chain().count(), 0);
    let two = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];
    repr.set_chain(two);
    assert!(repr.chain().eq(two));
    repr.chain_4 = Address(two[0]);
    assert!(repr.chain().eq(two));
}

#[test]
fn operands_are_numbers_or_short_values() {
    assert_eq!(Operand::number(0x0102).0[14..], [1, 2]);
    assert_eq!(Operand::value(b"ab").unwrap().0[..3], *b"ab\0");
    assert_eq!(Operand::value(&[0; MAX_OPERAND + 1]), None);
}

#[test]
fn numbers_name_what_they_name() {
    for outcome in Outcome::ALL {
        assert_eq!(Outcome::from_u8(*outcome as u8), Some(*outcome));
        assert_eq!(outcome.is_final(), (*outcome as u8) < 0x80);
    }
    assert_eq!(Operation::from_u8(0), None);
    assert_eq!(MessageType::from_u8(0), None);
}

proptest! {
    #[test]
    fn parsing_gives_what_was_emitted(
        kind in proptest::sample::select(MessageType::ALL),
        fields in proptest::collection::vec(any::<u8>(), HEADER_LENGTH),
        value in proptest::collection::vec(any::<u8>(), 0..=MAX_VALUE),
    ) {
        let header: [u8; HEADER_LENGTH] = fields.try_into().unwrap();
        let repr = Repr::from_header(&header, kind, &value);
        let bytes = repr.to_vec().unwrap();
        let packet = Packet::new_checked(&bytes).unwrap();
        prop_assert_eq!(Repr::parse(&packet), repr);
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(packet) = Packet::new_checked(&bytes) {
            Repr::parse(&packet);
        }
    }
}

use proptest::prelude::*;

use super::*;

fn example() -> Repr<'static> {
    Repr {
        shared: true,
        chain_epoch: 0x0101_0102,
        shard: 0x0203,
        code: 0x03,
        switch_id: 0x0405_0607,
        incarnation: 0x0809_0a0b,
        claim: 0x0c0d_0e0f,
        request: 0x1011_1213,
        send_time: 0x1415_1617_1819,
        ingress_port: 0x1a1b,
        lease_epoch: 0x2c2d_2e2f,
        sequence: 0x3031_3233,
        age: 0x3435_3637_3839_3a3b,
        attempt: 0x3c3d,
        state: &[0xaa, 0xbb],
        packet: Some(&[0xcc]),
        ..Repr::new(MessageType::WriteReply, Key([0x77; 16]))
    }
}

#[test]
fn fields_lie_where_the_protocol_page_says() {
    let mut expected = vec![2, 0x12, 3, 3, 1, 1, 1, 2, 2, 3, 0, 0, 4, 5, 6, 7];
    expected.extend(0x08..=0x1b);
    expected.extend([0x77; 16]);
    expected.extend(0x2c..=0x3d);
    expected.extend([0, 2, 0xaa, 0xbb]);
    let checksum = crate::checksum::of(&expected);
    expected[10..12].copy_from_slice(&checksum.to_be_bytes());
    expected.push(0xcc);
    assert_eq!(example().to_vec().unwrap(), expected);
}

#[test]
fn every_truncation_of_a_message_without_packet_is_refused() {
    let repr = Repr {
        packet: None,
        ..example()
    };
    let bytes = repr.to_vec().unwrap();
    for length in 0..bytes.len() {
        assert_eq!(
            Packet::new_checked(&bytes[..length]).unwrap_err().code(),
            "WIRE001",
            "{length}"
        );
    }
}

#[test]
fn every_truncation_before_the_packet_is_refused() {
    let bytes = example().to_vec().unwrap();
    for length in 0..HEADER_LENGTH + 2 {
        assert_eq!(
            Packet::new_checked(&bytes[..length]).unwrap_err().code(),
            "WIRE001",
            "{length}"
        );
    }
}

#[test]
fn bytes_after_the_state_need_the_packet_flag() {
    let repr = Repr {
        packet: None,
        ..example()
    };
    let mut bytes = repr.to_vec().unwrap();
    bytes.push(0);
    assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE002");
}

#[test]
fn an_empty_packet_is_not_the_absence_of_one() {
    let repr = Repr {
        packet: Some(&[]),
        ..example()
    };
    let bytes = repr.to_vec().unwrap();
    assert_eq!(Packet::new_checked(&bytes).unwrap().packet(), Some(&[][..]));
}

#[test]
fn no_bit_of_header_and_state_flips_unseen() {
    let bytes = example().to_vec().unwrap();
    assert!(Packet::new_checked(&bytes).is_ok());
    for bit in 0..(HEADER_LENGTH + 2) * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Packet::new_checked(&damaged).is_err(), "{bit}");
    }
    // The packet on board has checksums of its own.
    let mut other = bytes.clone();
    *other.last_mut().unwrap() ^= 1;
    assert!(Packet::new_checked(&other).is_ok());
}

#[test]
fn another_version_and_types_without_meaning_are_refused() {
    let mut bytes = example().to_vec().unwrap();
    for kind in 0..=255 {
        bytes[field::TYPE] = kind;
        match Packet::new_checked(&bytes) {
            Ok(packet) => assert_eq!(packet.message_type() as u8, kind),
            Err(error) => {
                let known = MessageType::from_u8(kind).is_some();
                let code = if known { "WIRE006" } else { "WIRE004" };
                assert_eq!(error.code(), code);
            }
        }
    }
    bytes[field::VERSION] = 1;
    assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE003");
}

#[test]
fn a_state_or_time_that_does_not_fit_is_not_emitted() {
    let state = vec![0; 65_536];
    let long = Repr {
        state: &state,
        ..example()
    };
    assert_eq!(long.to_vec().unwrap_err().code(), "WIRE007");
    let late = Repr {
        send_time: SEND_TIME_END,
        ..example()
    };
    assert_eq!(late.to_vec().unwrap_err().code(), "WIRE007");
    assert_eq!(example().emit(&mut [0; 3]).unwrap_err().code(), "WIRE008");
}

#[test]
fn codes_and_types_have_the_values_of_the_protocol_page() {
    for (value, code) in (1..).zip(RefusalCode::ALL) {
        assert_eq!(RefusalCode::from_u8(value), Some(code));
    }
    assert_eq!(RefusalCode::from_u8(0), None);
    assert_eq!(RefusalCode::from_u8(11), None);
    let requests = MessageType::ALL.iter().filter(|t| t.is_request()).count();
    assert_eq!(requests, 6);
}

proptest! {
    #[test]
    fn parse_of_emit_is_the_same(
        kind in 0usize..MessageType::ALL.len(), shared: bool, numbers: [u32; 7], age: u64, shard: u16, code: u8, send_time in 0..SEND_TIME_END,
        ingress_port: u16, key: [u8; 16], attempt: u16,
        state in proptest::collection::vec(any::<u8>(), 0..48),
        packet in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..64)),
    ) {
        let [chain_epoch, switch_id, incarnation, claim, request, lease_epoch, sequence] = numbers;
        let repr = Repr {
            message_type: MessageType::ALL[kind], shared, chain_epoch, shard, code, switch_id, incarnation,
            claim, request, send_time, ingress_port, key: Key(key), lease_epoch, sequence, age,
            attempt, state: &state, packet: packet.as_deref(),
        };
        let bytes = repr.to_vec().unwrap();
        prop_assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap()), repr);
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..160), shape: bool, length in 0u8..100,
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() >= HEADER_LENGTH {
            bytes[field::VERSION] = VERSION;
            bytes[field::TYPE] &= 0x17;
            bytes[field::STATE_LENGTH] = 0;
            bytes[field::STATE_LENGTH + 1] = length;
        }
        if let Ok(packet) = Packet::new_checked(&bytes) {
            prop_assert_eq!(packet.as_bytes(), &bytes[..]);
            let again = Repr::parse(&packet).to_vec().unwrap();
            let view = Packet::new_checked(&again).unwrap();
            prop_assert_eq!(Repr::parse(&view), Repr::parse(&packet));
        }
    }
}

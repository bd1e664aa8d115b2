use proptest::prelude::*;

use super::*;

fn values() -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, value) in [
        (0x8182_8384, 0x8586_8788_898a_8b8c),
        (0x9192_9394, 0x9596_9798_999a_9b9c),
    ] {
        Value { index, value }.push(&mut bytes);
    }
    bytes
}

fn example(values: &[u8]) -> Repr<'_> {
    Repr {
        outcome: 3,
        operation: 4,
        group: 0x0506,
        kind: 0x08,
        switch_id: 0x090a_0b0c,
        incarnation: 0x0d0e_0f10,
        term: 0x1112_1314_1516_1718,
        starter: 0x191a_1b1c_1d1e_1f20,
        poll: 0x2122_2324_2526_2728,
        stamp: 0x292a_2b2c_2d2e_2f30,
        position: 0x3132_3334_3536_3738,
        before: 0x393a_3b3c_3d3e_3f40,
        after: 0x4142_4344_4546_4748,
        bound: 0x494a_4b4c_4d4e_4f50,
        threshold: 0x5152_5354_5556_5758,
        queued: 0x595a_5b5c,
        epoch: 0x5d5e_5f60,
        number: 0x6162_6364_6566_6768,
        operand: 0x696a_6b6c_6d6e_6f70,
        time: 0x7172_7374_7576,
        sweep: 0x797a_7b7c,
        lost: 0x7d7e_7f80,
        fetch: 0x7778,
        values: Values::new(values),
        ..Repr::new(MessageType::Update)
    }
}

#[test]
fn fields_lie_where_the_protocol_page_says() {
    let values = values();
    let mut expected = vec![4, 0x82, 3, 4, 5, 6, 2, 8];
    expected.extend(0x09..=0x80);
    assert_eq!(expected.len(), HEADER_LENGTH);
    expected.extend(0x81..=0x8c);
    expected.extend(0x91..=0x9c);
    assert_eq!(example(&values).to_vec().unwrap(), expected);
}

#[test]
fn the_highest_bit_of_an_index_tells_a_discontinuity() {
    let value = |index: u32| Value { index, value: 1 };
    let of = |index: u32| (value(index).location(), value(index).tells_discontinuity());
    assert_eq!(of(0x7fff_ffff), (0x7fff_ffff, false));
    assert_eq!(of(0x8000_0005), (5, true));
}

#[test]
fn every_truncation_is_refused() {
    let values = values();
    let bytes = example(&values).to_vec().unwrap();
    for length in 0..bytes.len() {
        let error = Packet::new_checked(&bytes[..length]).unwrap_err();
        assert_eq!(error.code(), "WIRE001", "{length}");
    }
}

#[test]
fn what_is_not_the_message_is_refused() {
    let values = values();
    let whole = example(&values).to_vec().unwrap();
    let with = |at: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[at] = value;
        Packet::new_checked(&bytes).unwrap_err().code()
    };
    assert_eq!(with(field::VERSION, 1), "WIRE003");
    assert_eq!(with(field::TYPE, 0x08), "WIRE004");
    assert_eq!(with(field::COUNT, 33), "WIRE004");
    assert_eq!(with(field::COUNT, 3), "WIRE001");
    assert_eq!(with(field::COUNT, 1), "WIRE002");
}

#[test]
fn what_does_not_fit_is_not_written() {
    let late = Repr {
        time: TIME_END,
        ..Repr::new(MessageType::Update)
    };
    assert_eq!(late.to_vec().unwrap_err().code(), "WIRE007");
    let many = vec![0; (MAX_VALUES + 1) * VALUE_LENGTH];
    let many = Repr {
        values: Values::new(&many),
        ..Repr::new(MessageType::Update)
    };
    assert_eq!(many.to_vec().unwrap_err().code(), "WIRE007");
    let short = Repr::new(MessageType::Update).emit(&mut [0; HEADER_LENGTH - 1]);
    assert_eq!(short.unwrap_err().code(), "WIRE008");
}

#[test]
fn frozen_values_lie_one_behind_the_other() {
    let bytes: Vec<u8> = (0..3 * FROZEN_LENGTH as u8).collect();
    let message = Repr {
        frozen: Frozen::new(&bytes[..2 * FROZEN_LENGTH + 1]),
        ..Repr::new(MessageType::Fetched)
    };
    let whole = message.to_vec().unwrap();
    assert_eq!(whole.len(), HEADER_LENGTH + 2 * FROZEN_LENGTH);
    assert_eq!(whole[HEADER_LENGTH..], bytes[..2 * FROZEN_LENGTH]);
    let packet = Packet::new_checked(&whole).unwrap();
    assert_eq!((packet.count(), packet.values().len()), (2, 0));
    let read: Vec<u64> = packet.frozen().iter().collect();
    assert_eq!(read, [0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f]);
    let refused = Packet::new_checked(&whole[..whole.len() - 1]);
    assert_eq!(refused.unwrap_err().code(), "WIRE001");
}

#[test]
fn a_message_has_values_of_its_own_kind_and_no_more_than_it_takes() {
    let bytes = [0; (MAX_FROZEN + 1) * FROZEN_LENGTH];
    let with = |message_type, values, frozen: usize| {
        let message = Repr {
            values: Values::new(&bytes[..values * VALUE_LENGTH]),
            frozen: Frozen::new(&bytes[..frozen * FROZEN_LENGTH]),
            ..Repr::new(message_type)
        };
        message.to_vec().map(|bytes| bytes.len()).ok()
    };
    let most = HEADER_LENGTH + MAX_FROZEN * FROZEN_LENGTH;
    assert_eq!(with(MessageType::Fetched, 0, MAX_FROZEN), Some(most));
    // It fits an MTU of 1,500 bytes behind the headers of IPv4 and UDP.
    assert_eq!(most, 1500 - 20 - 8);
    assert_eq!(with(MessageType::Fetched, 0, MAX_FROZEN + 1), None);
    assert_eq!(with(MessageType::Fetched, 1, 0), None);
    assert_eq!(with(MessageType::Update, 0, 1), None);
}

#[test]
fn only_outcomes_of_writes_are_final() {
    let is_final = Outcome::ALL.iter().filter(|outcome| outcome.is_final());
    assert!(is_final.eq(&[Outcome::Done, Outcome::Mismatch]));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        (kind, outcome, group) in (0..MessageType::ALL.len(), any::<u8>(), any::<u16>()),
        (stamp, position, time) in (any::<u64>(), any::<u64>(), 0..TIME_END),
        values in proptest::collection::vec((any::<u32>(), any::<u64>()), 0..=MAX_VALUES),
    ) {
        let values: Vec<Value> =
            values.into_iter().map(|(index, value)| Value { index, value }).collect();
        let mut bytes = Vec::new();
        for value in &values {
            value.push(&mut bytes);
        }
        let message = Repr {
            outcome,
            group,
            stamp,
            position,
            time,
            ..Repr::new(MessageType::ALL[kind])
        };
        let message = match message.message_type {
            MessageType::Fetched => Repr { frozen: Frozen::new(&bytes), ..message },
            _ => Repr { values: Values::new(&bytes), ..message },
        };
        let written = message.to_vec().unwrap();
        let read = Repr::parse(&Packet::new_checked(&written).unwrap());
        prop_assert_eq!(read, message);
        if message.message_type != MessageType::Fetched {
            prop_assert!(read.values.iter().eq(values));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(packet) = Packet::new_checked(&bytes) {
            prop_assert_eq!(packet.values().len() + packet.frozen().len(), packet.count());
        }
    }
}

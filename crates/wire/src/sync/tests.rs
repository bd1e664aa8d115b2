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
        values: Values::new(values),
        ..Repr::new(MessageType::Update)
    }
}

#[test]
fn fields_lie_where_the_protocol_page_says() {
    let values = values();
    let mut expected = vec![1, 0x82, 3, 4, 5, 6, 2, 8];
    expected.extend(0x09..=0x76);
    expected.extend([0, 0]);
    expected.extend(0x79..=0x80);
    assert_eq!(expected.len(), HEADER_LENGTH);
    expected.extend(0x81..=0x8c);
    expected.extend(0x91..=0x9c);
    assert_eq!(example(&values).to_vec().unwrap(), expected);
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
    assert_eq!(with(field::VERSION, 2), "WIRE003");
    assert_eq!(with(field::TYPE, 0x07), "WIRE004");
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
            values: Values::new(&bytes),
            ..Repr::new(MessageType::ALL[kind])
        };
        let written = message.to_vec().unwrap();
        let read = Repr::parse(&Packet::new_checked(&written).unwrap());
        prop_assert_eq!(read, message);
        prop_assert!(read.values.iter().eq(values));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(packet) = Packet::new_checked(&bytes) {
            prop_assert_eq!(packet.values().len(), packet.count());
        }
    }
}

use proptest::prelude::*;

use super::*;

fn question() -> Observe {
    Observe {
        parts: 4,
        incarnation: 7,
        switch_id: 0x0102_0304,
        number: 9,
        chain: 2,
        scan_shard: 5,
        scan: 6,
        stream: 0x1_0000_0003,
        after: 77,
    }
}

fn record(state: &[u8], lease: Option<Holding>) -> Record<'_> {
    Record {
        shard: 3,
        key: Key(*b"\x07key of 16 bytes"),
        epoch: 4,
        sequence: 5,
        lease,
        state,
    }
}

fn answer(body: &[u8]) -> Answer<'_> {
    Answer {
        flags: answer_flag::ANEW | answer_flag::LATEST,
        incarnation: 7,
        switch_id: 0x0102_0304,
        number: 9,
        chain: 2,
        chains: 8,
        part: 1,
        parts: 2,
        scan_shard: 5,
        scan: 6,
        chain_epoch: 3,
        stream: 0x1_0000_0004,
        upto: 78,
        applied: 79,
        body,
    }
}

fn body() -> Vec<u8> {
    let mut body = Vec::new();
    record(b"abcdef", Some(Holding::Owner))
        .append(&mut body)
        .unwrap();
    record(b"", None).append(&mut body).unwrap();
    body
}

#[test]
fn questions_and_answers_come_back() {
    let bytes = question().to_vec();
    assert_eq!(Message::parse(&bytes), Ok(Message::Observe(question())));
    let body = body();
    let bytes = answer(&body).to_vec();
    assert_eq!(Message::parse(&bytes), Ok(Message::Answer(answer(&body))));
    let records: Result<Vec<_>, _> = answer(&body).records().collect();
    let expected = [record(b"abcdef", Some(Holding::Owner)), record(b"", None)];
    assert_eq!(records.unwrap(), expected);
}

/// The check of a sealed request looks at one place for the switch that it names.
#[test]
fn a_question_names_its_observer_where_a_request_names_its_switch() {
    let at = crate::replication::field::SWITCH_ID * 8;
    assert_eq!(OBSERVE_LAYOUT.bit("SWITCH_ID"), at);
    assert_eq!(OBSERVED_LAYOUT.bit("SWITCH_ID"), at);
}

#[test]
fn no_bit_flips_unseen() {
    let body = body();
    for bytes in [question().to_vec(), answer(&body).to_vec()] {
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Message::parse(&damaged).is_err(), "{bit}");
        }
    }
}

#[test]
fn numbers_without_meaning_are_refused() {
    let refused = |bytes: &[u8], named: &str| match Message::parse(bytes) {
        Err(Error::Unknown { field, .. }) => assert_eq!(field, named),
        other => panic!("{other:?}"),
    };
    let none = Observe {
        parts: 0,
        ..question()
    };
    refused(&none.to_vec(), "parts");
    let many = Observe {
        parts: MOST_PARTS + 1,
        ..question()
    };
    refused(&many.to_vec(), "parts");
    let beyond = Answer {
        part: 2,
        ..answer(&[])
    };
    refused(&beyond.to_vec(), "parts");
    let chains = Answer {
        chains: 0,
        ..answer(&[])
    };
    refused(&chains.to_vec(), "chains");
    let mut body = body();
    body[0] = 4;
    assert!(answer(&body).records().any(|record| record.is_err()));
    let cut = &body[..body.len() - 1];
    assert!(answer(cut).records().any(|record| record.is_err()));
}

proptest! {
    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        if bytes.len() > 4 {
            bytes[..4].copy_from_slice(&MAGIC);
        }
        if let Ok(Message::Answer(answer)) = Message::parse(&bytes) {
            let _ = answer.records().count();
        }
        let whole = answer(&bytes);
        prop_assert!(whole.records().count() <= bytes.len());
    }
}

use proptest::prelude::*;

use super::*;

fn changes() -> Changes {
    let row = |shard| Row {
        shard,
        epoch: 0x0102_0304,
        flags: row_flag::HOLDS,
    };
    Changes {
        stream: 7,
        after: 3,
        version: 5,
        rows: vec![row(1), row(0x0203)],
    }
}

fn reply() -> Reply {
    Reply {
        switch_id: 1,
        incarnation: 2,
        number: 3,
        send_time: 0x0405_0607_0809,
        promise: 100_000,
        withheld: vec![4, 5],
        changes: changes(),
    }
}

fn all() -> Vec<Vec<u8>> {
    let heartbeat = Heartbeat {
        switch_id: 1,
        incarnation: 2,
        number: 3,
        send_time: 4,
        stream: 5,
        version: 6,
    };
    let question = Question {
        server: 1,
        incarnation: 2,
        number: 3,
        backing: 4,
        stream: 5,
        version: 6,
    };
    let answer = Answer {
        server: 1,
        incarnation: 2,
        number: 3,
        whole: true,
        changes: changes(),
    };
    vec![
        heartbeat.to_vec().unwrap(),
        question.to_vec(),
        reply().to_vec().unwrap(),
        answer.to_vec(),
    ]
}

#[test]
fn one_exchange_is_156_bytes_with_its_headers() {
    let headers = crate::ethernet::HEADER_LENGTH + crate::ipv4::HEADER_LENGTH;
    let headers = headers + crate::udp::HEADER_LENGTH;
    assert_eq!(HEARTBEAT_LENGTH + REPLY_LENGTH + 2 * headers, 156);
}

/// What authenticates requests looks at one place for the switch that a datagram names.
#[test]
fn a_heartbeat_names_its_switch_where_a_request_does() {
    let at = crate::replication::field::SWITCH_ID * 8;
    assert_eq!(HEARTBEAT_LAYOUT.bit("SWITCH_ID"), at);
    assert_eq!(REPLY_LAYOUT.bit("SWITCH_ID"), at);
}

#[test]
fn no_bit_flips_unseen() {
    for bytes in all() {
        assert!(Message::parse(&bytes).is_ok());
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Message::parse(&damaged).is_err(), "{bit}");
        }
        for length in 0..bytes.len() {
            assert!(Message::parse(&bytes[..length]).is_err(), "{length}");
        }
    }
}

#[test]
fn what_is_left_out_is_beyond_the_bounds() {
    let row = changes().rows[0];
    let long = Reply {
        withheld: vec![1; MOST_WITHHELD + 1],
        changes: Changes {
            rows: vec![row; MOST_ROWS + 1],
            ..changes()
        },
        ..reply()
    };
    let Ok(Message::Reply(read)) = Message::parse(&long.to_vec().unwrap()) else {
        panic!("a reply")
    };
    assert_eq!(read.withheld.len(), MOST_WITHHELD);
    assert_eq!(read.changes.rows.len(), MOST_ROWS);
    assert!(long.to_vec().unwrap().len() < 1_400);
}

proptest! {
    #[test]
    fn parse_of_to_vec_is_the_same(
        numbers: [u32; 6], number: u16, send_time in 0u64..1 << 48, whole: bool,
        withheld in proptest::collection::vec(any::<u16>(), 0..MOST_WITHHELD),
        rows in proptest::collection::vec(any::<(u16, u32, u8)>(), 0..MOST_ROWS),
    ) {
        let [a, b, c, stream, after, version] = numbers;
        let rows = rows.into_iter().map(|(shard, epoch, flags)| Row { shard, epoch, flags });
        let changes = Changes { stream, after, version, rows: rows.collect() };
        let reply = Reply {
            switch_id: a, incarnation: b, number, send_time, promise: c, withheld,
            changes: changes.clone(),
        };
        prop_assert_eq!(Message::parse(&reply.to_vec().unwrap()), Ok(Message::Reply(reply)));
        let answer = Answer { server: a, incarnation: b, number: c, whole, changes };
        prop_assert_eq!(Message::parse(&answer.to_vec()), Ok(Message::Answer(answer)));
        let heartbeat = Heartbeat {
            switch_id: a, incarnation: b, number, send_time, stream, version,
        };
        prop_assert_eq!(Message::parse(&heartbeat.to_vec().unwrap()), Ok(Message::Heartbeat(heartbeat)));
        let question = Question {
            server: a, incarnation: b, number: c, backing: after, stream, version,
        };
        prop_assert_eq!(Message::parse(&question.to_vec()), Ok(Message::Question(question)));
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..160)) {
        let _ = Message::parse(&bytes);
        let _ = Message::parse(&summed([&MAGIC[..], &bytes, &[0; 8]].concat()));
    }
}

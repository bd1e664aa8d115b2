use core::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;

fn address() -> impl Strategy<Value = SocketAddrV4> {
    any::<(u32, u16)>().prop_map(|(ip, port)| SocketAddrV4::new(ip.into(), port))
}

fn member() -> impl Strategy<Value = Member> {
    (any::<u32>(), any::<u32>(), address(), address()).prop_map(
        |(server, incarnation, requests, links)| Member {
            server,
            incarnation,
            requests,
            links,
        },
    )
}

fn status() -> impl Strategy<Value = ChainStatus> {
    let numbers = any::<[u64; 2]>();
    (any::<(u16, u32, bool, bool, bool)>(), numbers).prop_map(
        |((chain, epoch, joined, suspects, lost), [applied, base])| ChainStatus {
            chain,
            epoch,
            joined,
            suspects,
            lost,
            applied,
            base,
        },
    )
}

fn config() -> impl Strategy<Value = ChainConfig> {
    let members = proptest::collection::vec(member(), 0..5);
    let joining = proptest::option::of(member());
    (any::<(u16, u32)>(), members, joining).prop_map(|((chain, epoch), members, joining)| {
        ChainConfig {
            chain,
            epoch,
            members,
            joining,
        }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let statuses = proptest::collection::vec(status(), 0..5);
    let row = (any::<(u16, u32)>(), address()).prop_map(|((shard, epoch), head)| Row {
        shard,
        epoch,
        head,
    });
    let rows = proptest::collection::vec(row, 0..5);
    prop_oneof![
        (member(), any::<u64>(), statuses).prop_map(|(from, number, statuses)| {
            Message::Heartbeat(Heartbeat {
                from,
                number,
                statuses,
            })
        }),
        (any::<u32>(), config())
            .prop_map(|(controller, config)| Message::Configure { controller, config }),
        any::<(u32, u32, u64)>().prop_map(|(switch, controller, version)| Message::Subscribe {
            switch,
            controller,
            version,
        }),
        (any::<(u32, u64, u64)>(), rows).prop_map(|((controller, after, version), rows)| {
            Message::Rows {
                controller,
                after,
                version,
                rows,
            }
        }),
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
    fn configurations_survive_a_log(config in config()) {
        let mut bytes = Vec::new();
        config.append(&mut bytes);
        prop_assert_eq!(ChainConfig::parse(&bytes), Ok(config));
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..120), shape: bool, kind in 0u8..6,
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() > 5 {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[4] = kind;
        }
        let _ = Message::parse(&bytes);
    }
}

#[test]
fn the_longest_messages_fit_an_ethernet_frame() {
    let here = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1);
    let row = Row {
        shard: 0,
        epoch: 1,
        head: here,
    };
    let rows = Message::Rows {
        controller: 1,
        after: 0,
        version: 1,
        rows: vec![row; MOST_ROWS],
    };
    assert!(rows.to_vec().len() < 1400);
}

#[test]
fn a_subscription_is_as_long_as_an_answer_to_it() {
    let subscribe = Message::Subscribe {
        switch: 1,
        controller: 2,
        version: 3,
    };
    let mut bytes = subscribe.to_vec();
    assert_eq!(bytes.len(), 24);
    bytes[23] = 1;
    assert!(Message::parse(&bytes).is_err());
}

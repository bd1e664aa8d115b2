use core::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;

use super::*;
use crate::replication::{KEY_LENGTH, Key};

fn decision() -> impl Strategy<Value = Decision> {
    let creation = prop_oneof![
        Just(None),
        Just(Some(Creation::Zero)),
        any::<(u32, u16)>().prop_map(|(address, port)| Some(Creation::Mapping {
            address: Ipv4Addr::from(address),
            port
        })),
    ];
    prop_oneof![
        (any::<(u32, u32, u32, Option<u16>)>(), creation).prop_map(
            |((lease_epoch, parked, period, holder), creation)| Decision::Grant {
                lease_epoch,
                parked,
                period,
                holder,
                creation
            }
        ),
        any::<(bool, u32)>().prop_map(|(install, period)| Decision::Write { install, period }),
        any::<u32>().prop_map(|period| Decision::Renew { period }),
        Just(Decision::Probe),
        any::<(u16, u32)>().prop_map(|(code, lease_epoch)| Decision::Refuse { code, lease_epoch }),
        any::<(u16, [u8; 16])>().prop_map(|(shard, key)| Decision::Expire {
            shard,
            key: Key(key)
        }),
    ]
}

fn parse(bytes: &[u8]) -> Result<(), Error> {
    let message = Repr::parse(&Packet::new_checked(bytes)?);
    if message.kind == Kind::Update {
        Entry::parse(message.body)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn entries_survive_emit_and_parse(
        decision in decision(), address: u32, port: u16,
        request in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let expiry = matches!(decision, Decision::Expire { .. });
        let entry = Entry {
            decision,
            switch: SocketAddrV4::new(address.into(), port),
            request: if expiry { &[] } else { &request },
        };
        let mut bytes = vec![0; entry.buffer_len()];
        entry.emit(&mut bytes).unwrap();
        prop_assert_eq!(Entry::parse(&bytes), Ok(entry));
        let promised = ENTRY_HEADER_LENGTH + if expiry { KEY_LENGTH } else { 0 };
        for length in 0..promised {
            prop_assert_eq!(Entry::parse(&bytes[..length]).unwrap_err().code(), "WIRE001");
        }
    }

    #[test]
    fn messages_survive_emit_and_parse(
        update: bool, replica: u8, chain_epoch: u32, incarnation: u32, number: u64,
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let repr = Repr {
            kind: if update { Kind::Update } else { Kind::Ack },
            replica, chain_epoch, incarnation, number,
            body: if update { &body } else { &[] },
        };
        let bytes = repr.to_vec().unwrap();
        prop_assert_eq!(Repr::parse(&Packet::new_checked(&bytes).unwrap()), repr);
        for length in 0..HEADER_LENGTH {
            prop_assert_eq!(Packet::new_checked(&bytes[..length]).unwrap_err().code(), "WIRE001");
        }
    }

    #[test]
    fn any_bytes_give_a_message_or_an_error(
        bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..4, decision in 0u8..8, shape: bool,
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() > HEADER_LENGTH {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[field::KIND] = kind;
            bytes[field::RESERVED..field::CHAIN_EPOCH].fill(0);
            bytes[field::BODY] = decision;
        }
        let _ = parse(&bytes);
        let _ = Entry::parse(&bytes);
    }
}

#[test]
fn header_lies_where_the_protocol_page_says() {
    let repr = Repr {
        kind: Kind::Update,
        replica: 2,
        chain_epoch: 0x0102_0304,
        incarnation: 0x0506_0708,
        number: 0x090a_0b0c_0d0e_0f10,
        body: &[0xff],
    };
    assert_eq!(
        repr.to_vec().unwrap(),
        [
            b'S', b'P', b'C', b'1', 1, 2, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
            16, 0xff
        ]
    );
}

#[test]
fn foreign_magic_kind_and_reserved_bits_are_refused() {
    let good = Repr {
        kind: Kind::Ack,
        replica: 0,
        chain_epoch: 1,
        incarnation: 1,
        number: 1,
        body: &[],
    }
    .to_vec()
    .unwrap();
    for (at, value) in [(0, b'X'), (field::KIND, 3), (field::RESERVED, 1)] {
        let mut bytes = good.clone();
        bytes[at] = value;
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE004");
    }
    let mut long = good;
    long.push(0);
    assert_eq!(Packet::new_checked(&long).unwrap_err().code(), "WIRE002");
}

#[test]
fn an_entry_with_a_field_that_its_decision_does_not_use_is_refused() {
    let entry = Entry {
        decision: Decision::Probe,
        switch: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4793),
        request: &[],
    };
    let mut good = vec![0; entry.buffer_len()];
    entry.emit(&mut good).unwrap();
    for at in [
        entry_field::FLAGS,
        entry_field::CODE,
        entry_field::LEASE_EPOCH,
        entry_field::PARKED,
        entry_field::PERIOD,
        entry_field::PUBLIC_PORT,
        entry_field::PUBLIC_ADDRESS,
        entry_field::HOLDER,
        entry_field::SHARD,
    ] {
        let mut bytes = good.clone();
        bytes[at] = 1;
        assert_eq!(Entry::parse(&bytes).unwrap_err().code(), "WIRE004", "{at}");
    }
}

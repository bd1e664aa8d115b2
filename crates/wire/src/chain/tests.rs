use core::net::{Ipv4Addr, SocketAddrV4};

use proptest::prelude::*;

use super::*;
use crate::replication::{KEY_LENGTH, Key};

fn decision() -> impl Strategy<Value = Decision> {
    let creation = prop_oneof![
        Just(None),
        any::<(u8, [u8; 6])>().prop_map(|(kind, payload)| {
            let kind = kind & entry_flag::KIND;
            let payload = if kind == 0 { [0; 6] } else { payload };
            Some(Creation { kind, payload })
        }),
    ];
    prop_oneof![
        (any::<(u32, Option<(u16, bool)>)>(), creation).prop_map(
            |((lease_epoch, holder), creation)| Decision::Grant {
                lease_epoch,
                holder: holder.map(|(at, drops)| HolderPlace {
                    at: at & LAST_PLACE,
                    drops,
                }),
                creation,
            }
        ),
        any::<bool>().prop_map(|install| Decision::Write { install }),
        Just(Decision::Renew),
        Just(Decision::Probe),
        Just(Decision::Release),
        any::<(u8, u32)>().prop_map(|(code, lease_epoch)| Decision::Refuse { code, lease_epoch }),
        any::<(u16, [u8; 16])>().prop_map(|(shard, key)| Decision::Expire {
            shard,
            key: Key(key)
        }),
    ]
}

fn parse(bytes: &[u8]) -> Result<(), Error> {
    let message = Repr::parse(&Packet::new_checked(bytes)?);
    let packet = Packet::new_checked(bytes)?;
    match message.kind {
        Kind::Update => packet
            .entries()
            .try_for_each(|entry| Entry::parse(entry?).map(drop)),
        Kind::Snapshot => Item::all(message.body).try_for_each(|item| item.map(drop)),
        _ => Ok(()),
    }
}

#[test]
fn a_place_beyond_the_last_does_not_fit() {
    let emitted = |at| {
        let entry = Entry {
            decision: Decision::Grant {
                lease_epoch: 1,
                holder: Some(HolderPlace { at, drops: true }),
                creation: None,
            },
            switch: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            request: b"request",
        };
        entry.emit(&mut vec![0; entry.buffer_len()])
    };
    assert_eq!(emitted(LAST_PLACE), Ok(()));
    assert_eq!(emitted(LAST_PLACE + 1).unwrap_err().code(), "WIRE007");
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
        update: bool, replica: u8, chain: u16, chain_epoch: u32, incarnation: u32,
        number: u64, base: u64,
        body in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let repr = Repr {
            kind: if update { Kind::Update } else { Kind::Ack },
            replica, chain, chain_epoch, incarnation, number, base,
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
        bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..6, decision in 0u8..8, shape: bool,
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() > HEADER_LENGTH {
            bytes[..4].copy_from_slice(&MAGIC);
            bytes[field::KIND] = kind;
            bytes[HEADER_LENGTH] = decision;
        }
        let _ = parse(&bytes);
        let _ = Entry::parse(&bytes);
        for item in Item::all(&bytes).flatten() {
            let _ = item.emit(&mut Vec::new());
        }
    }
}

#[test]
fn header_lies_where_the_protocol_page_says() {
    let repr = Repr {
        kind: Kind::Update,
        replica: 2,
        chain: 0x1112,
        chain_epoch: 0x0102_0304,
        incarnation: 0x0506_0708,
        number: 0x090a_0b0c_0d0e_0f10,
        base: 0x1314_1516_1718_191a,
        body: &[0xff],
    };
    assert_eq!(
        repr.to_vec().unwrap(),
        [
            b'S', b'P', b'C', b'3', 1, 2, 17, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
            15, 16, 19, 20, 21, 22, 23, 24, 25, 26, 0xff
        ]
    );
}

#[test]
fn foreign_magic_and_kind_are_refused() {
    let good = Repr {
        kind: Kind::Ack,
        replica: 0,
        chain: 0,
        chain_epoch: 1,
        incarnation: 1,
        number: 1,
        base: 0,
        body: &[],
    }
    .to_vec()
    .unwrap();
    for (at, value) in [(0, b'X'), (field::KIND, 7)] {
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
        entry_field::PAYLOAD,
        entry_field::HOLDER,
        entry_field::SHARD,
    ] {
        let mut bytes = good.clone();
        bytes[at] = 1;
        assert_eq!(Entry::parse(&bytes).unwrap_err().code(), "WIRE004", "{at}");
    }
}

#[test]
fn entries_lie_behind_their_lengths() {
    let repr = Repr {
        kind: Kind::Update,
        replica: 0,
        chain: 0,
        chain_epoch: 1,
        incarnation: 1,
        number: 1,
        base: 0,
        body: &[0, 2, 7, 8, 0, 0, 0, 1, 9],
    };
    let bytes = repr.to_vec().unwrap();
    let entries: Vec<_> = Packet::new_checked(&bytes).unwrap().entries().collect();
    assert_eq!(entries, [Ok(&[7, 8][..]), Ok(&[][..]), Ok(&[9][..])]);
    let cut = &bytes[..bytes.len() - 1];
    let last = Packet::new_checked(cut).unwrap().entries().last().unwrap();
    assert_eq!(last.unwrap_err().code(), "WIRE001");
}

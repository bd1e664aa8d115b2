//! Headers that `stateplane_wire` and `p4/lib` both declare are the same, field by field, and
//! the constants of the replication message value by value.

use num_bigint::BigUint;
use stateplane_compile::shipped;
use stateplane_ir::Type;
use stateplane_syntax::Parsed;
use stateplane_syntax::tree::{Declaration, ExprKind, StructKind};
use stateplane_wire::layout::Layout;
use stateplane_wire::replication::{
    HEADER_LENGTH, Key, MessageType, PORT, RefusalCode, Repr, VERSION, field, flag,
};
use stateplane_wire::{ethernet, ipv4, replication, tcp, udp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Headers of the library, and what the wire crate says of them.
const LAYOUTS: [(&str, &Layout); 5] = [
    ("ethernet_t", &ethernet::LAYOUT),
    ("ipv4_t", &ipv4::LAYOUT),
    ("tcp_t", &tcp::LAYOUT),
    ("udp_t", &udp::LAYOUT),
    ("replication_t", &replication::LAYOUT),
];

/// Headers of the library that only switches know: a flow's state, whose width the program
/// says; a frame of the packet generator; and parts of others, to look ahead at.
const WITHOUT_LAYOUT: [&str; 4] = [
    "replication_state_t",
    "replication_probe_t",
    "replication_front_t",
    "replication_udp_front_t",
];

/// A field: name, and first bit and width in bits.
type Place = (String, usize, usize);

/// The fields of the headers of a program with all of them, as the compiler understands them.
fn p4_headers() -> BTreeMap<String, Vec<Place>> {
    let program = shipped("apps/nat/nat.p4").program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    let headers = program.structs.iter();
    let headers = headers.filter(|header| LAYOUTS.iter().any(|(name, _)| header.name == *name));
    let headers = headers.map(|header| {
        let mut at = 0;
        let places = header.fields.iter().map(|field| {
            let Type::Bits(width) = field.ty else {
                panic!("{} is no bit<W>", field.name);
            };
            let begin = at;
            at += width as usize;
            (field.name.clone(), begin, width as usize)
        });
        (header.name.clone(), places.collect())
    });
    headers.collect()
}

/// The message's file, which includes that of the other headers.
fn p4_declarations() -> Parsed {
    let message = shipped("lib/replication_message.p4").define("REPLICATION_STATE_BITS", "64");
    message.tree().unwrap_or_else(|refused| panic!("{refused}"))
}

/// The constants that the message's file declares as plain numbers.
fn p4_constants() -> BTreeMap<String, u64> {
    let parsed = p4_declarations();
    let declarations = parsed.tree.declarations.iter();
    declarations
        .filter_map(|declaration| match declaration {
            Declaration::Const(constant) => match &constant.value.kind {
                ExprKind::Number(number) => {
                    let value = u64::try_from(&number.value).expect("at most 64 bits");
                    Some((constant.name.to_string(), value))
                }
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// `WriteRequest` as `WRITE_REQUEST`.
fn in_capitals(name: &impl Debug) -> String {
    let mut capitals = String::new();
    for letter in format!("{name:?}").chars() {
        if letter.is_ascii_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.push(letter.to_ascii_uppercase());
    }
    capitals
}

/// Names and values with the names' `prefix` in front.
fn prefixed(
    prefix: &str,
    values: impl IntoIterator<Item = (String, u64)>,
) -> BTreeMap<String, u64> {
    let with_prefix = |(name, value)| (format!("{prefix}{name}"), value);
    values.into_iter().map(with_prefix).collect()
}

#[test]
fn fields_have_the_same_names_places_and_widths() {
    let p4 = p4_headers();
    for (name, layout) in LAYOUTS {
        let fields = layout.fields.iter();
        let wire = fields.map(|field| (field.name.to_lowercase(), field.at, field.bits));
        let wire: Vec<Place> = wire.collect();
        assert_eq!(p4.get(name), Some(&wire), "{name}");
    }
}

#[test]
fn no_header_of_the_library_is_forgotten() {
    let parsed = p4_declarations();
    let declared = parsed.tree.declarations.iter();
    let declared = declared.filter_map(|declaration| match declaration {
        Declaration::Struct(header) if header.kind == StructKind::Header => {
            Some(header.name.to_string())
        }
        _ => None,
    });
    let declared: BTreeSet<String> = declared.collect();
    let known = LAYOUTS.iter().map(|(name, _)| *name);
    let known = known.chain(WITHOUT_LAYOUT).map(str::to_owned);
    assert_eq!(declared, known.collect());
}

#[test]
fn what_one_writes_the_other_reads() {
    let message = Repr {
        message_type: MessageType::WriteReply,
        shared: true,
        chain_epoch: 0x0102_0304,
        shard: 0x0506,
        code: 0x07,
        switch_id: 0x1112_1314,
        incarnation: 0x1516_1718,
        claim: 0x2122_2324,
        request: 0x2526_2728,
        send_time: 0x3132_3334_3536,
        ingress_port: 0x4142,
        key: Key(*b"key of 16 bytes!"),
        lease_epoch: 0x5152_5354,
        sequence: 0x5556_5758,
        parked: 0x6162_6364,
        period: 0x6566_6768,
        attempt: 0x7172,
        state: b"state",
        packet: Some(b"packet"),
    };
    let bytes = message.to_vec().expect("a message");
    let number = BigUint::from_bytes_be(&bytes[..HEADER_LENGTH]);
    for (name, begin, width) in &p4_headers()["replication_t"] {
        let behind = HEADER_LENGTH * 8 - begin - width;
        let found = (&number >> behind) & ((BigUint::from(1u32) << width) - 1u32);
        let expected = match name.as_str() {
            "version" => u64::from(VERSION).into(),
            "type" => (message.message_type as u64).into(),
            "flags" => u64::from(flag::PACKET | flag::SHARED).into(),
            "chain_epoch" => message.chain_epoch.into(),
            "shard" => message.shard.into(),
            "code" => message.code.into(),
            "checksum" => {
                let at = field::CHECKSUM;
                u16::from_be_bytes([bytes[at], bytes[at + 1]]).into()
            }
            "switch_id" => message.switch_id.into(),
            "incarnation" => message.incarnation.into(),
            "claim" => message.claim.into(),
            "request" => message.request.into(),
            "send_time" => message.send_time.into(),
            "ingress_port" => message.ingress_port.into(),
            "key" => BigUint::from_bytes_be(&message.key.0),
            "lease_epoch" => message.lease_epoch.into(),
            "sequence" => message.sequence.into(),
            "parked" => message.parked.into(),
            "period" => message.period.into(),
            "attempt" => message.attempt.into(),
            "state_length" => (message.state.len() as u64).into(),
            _ => panic!("the wire crate has no field {name}"),
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn constants_have_the_same_names_and_values() {
    let types = MessageType::ALL.map(|kind| (in_capitals(&kind), kind as u64));
    let codes = RefusalCode::ALL.map(|code| (in_capitals(&code), code as u64));
    let flags = [("PACKET", flag::PACKET), ("SHARED", flag::SHARED)];
    let flags = flags.map(|(name, bit)| (name.to_owned(), bit.into()));
    let others = [
        ("REPLICATION_UDP_PORT", PORT.into()),
        ("REPLICATION_VERSION", VERSION.into()),
        ("MESSAGE_BYTES", HEADER_LENGTH as u64),
        ("ETHERNET_BYTES", ethernet::HEADER_LENGTH as u64),
        ("IPV4_BYTES", ipv4::HEADER_LENGTH as u64),
        ("UDP_BYTES", udp::HEADER_LENGTH as u64),
        ("IP_PROTOCOL_TCP", ipv4::PROTOCOL_TCP.into()),
        ("IP_PROTOCOL_UDP", ipv4::PROTOCOL_UDP.into()),
        ("ETHERTYPE_IPV4", ethernet::TYPE_IPV4.into()),
    ];
    let mut p4 = p4_constants();
    for (name, value) in others {
        assert_eq!(p4.remove(name), Some(value), "{name}");
    }
    let with = |prefix: &str| -> BTreeMap<String, u64> {
        let names = p4.iter().filter(|(name, _)| name.starts_with(prefix));
        names.map(|(name, value)| (name.clone(), *value)).collect()
    };
    assert_eq!(with("TYPE_"), prefixed("TYPE_", types));
    assert_eq!(with("CODE_"), prefixed("CODE_", codes));
    assert_eq!(with("FLAG_"), prefixed("FLAG_", flags));
}

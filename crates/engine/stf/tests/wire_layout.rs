//! Headers that `stateplane_wire` and `p4/lib` both declare are the same, field by field, and
//! the constants of the replication and of the coordination message value by value.

use num_bigint::BigUint;
use stateplane_compile::shipped;
use stateplane_ir::Type;
use stateplane_syntax::Parsed;
use stateplane_syntax::tree::{Declaration, ExprKind, StructKind};
use stateplane_wire::layout::Layout;
use stateplane_wire::numbers::in_capitals;
use stateplane_wire::replication::{
    HEADER_LENGTH, Key, MessageType, PORT, RefusalCode, Repr, VERSION, field, flag,
};
use stateplane_wire::{coordination, ethernet, ipv4, multicast, replication, sync, tcp, udp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// The headers that one file of the library declares, and those that it includes.
struct Library {
    /// The file.
    file: &'static str,
    /// A program with all of its headers.
    program: &'static str,
    /// Headers, and what the wire crate says of them.
    layouts: &'static [(&'static str, &'static Layout)],
    /// Headers that only switches know.
    without_layout: &'static [&'static str],
}

/// A flow's state, whose width the program says; a frame of the packet generator; and parts of
/// others, to look ahead at, have no layout.
const REPLICATION: Library = Library {
    file: "lib/replication_message.p4",
    program: "apps/nat/nat.p4",
    layouts: &[
        ("ethernet_t", &ethernet::LAYOUT),
        ("ipv4_t", &ipv4::LAYOUT),
        ("tcp_t", &tcp::LAYOUT),
        ("udp_t", &udp::LAYOUT),
        ("replication_t", &replication::LAYOUT),
    ],
    without_layout: &[
        "replication_state_t",
        "replication_probe_t",
        "replication_front_t",
        "replication_udp_front_t",
    ],
};

/// A part of a value and a frame of the packet generator have no layout.
const COORDINATION: Library = Library {
    file: "lib/coordination_message.p4",
    program: "apps/coordination/coordination_switch.p4",
    layouts: &[
        ("ethernet_t", &ethernet::LAYOUT),
        ("ipv4_t", &ipv4::LAYOUT),
        ("tcp_t", &tcp::LAYOUT),
        ("udp_t", &udp::LAYOUT),
        ("coordination_t", &coordination::LAYOUT),
    ],
    without_layout: &[
        "coordination_chunk_t",
        "coordination_part_t",
        "coordination_tick_t",
    ],
};

/// A frame of the packet generator, what the parser looks ahead at, and plain numbers one behind
/// the other have no layout.
const SYNC: Library = Library {
    file: "lib/sync_message.p4",
    program: "apps/packet-counter/packet_counter.p4",
    layouts: &[
        ("ethernet_t", &ethernet::LAYOUT),
        ("ipv4_t", &ipv4::LAYOUT),
        ("tcp_t", &tcp::LAYOUT),
        ("udp_t", &udp::LAYOUT),
        ("sync_t", &sync::LAYOUT),
        ("sync_value_t", &sync::VALUE_LAYOUT),
    ],
    without_layout: &[
        "sync_frozen_t",
        "sync_tick_t",
        "sync_front_t",
        "sync_port_front_t",
    ],
};

const MULTICAST: Library = Library {
    file: "lib/multicast_message.p4",
    program: "apps/multicast/multicast_switch.p4",
    layouts: &[
        ("ethernet_t", &ethernet::LAYOUT),
        ("ipv4_t", &ipv4::LAYOUT),
        ("tcp_t", &tcp::LAYOUT),
        ("udp_t", &udp::LAYOUT),
        ("multicast_t", &multicast::LAYOUT),
    ],
    without_layout: &[],
};

/// A field: name, and first bit and width in bits.
type Place = (String, usize, usize);

/// The fields of the headers of a program with all of them, as the compiler understands them.
fn p4_headers(library: &Library) -> BTreeMap<String, Vec<Place>> {
    let program = shipped(library.program).program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    let headers = program.structs.iter();
    let headers =
        headers.filter(|header| library.layouts.iter().any(|(name, _)| header.name == *name));
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
fn p4_declarations(library: &Library) -> Parsed {
    let message = shipped(library.file).define("REPLICATION_STATE_BITS", "64");
    message.tree().unwrap_or_else(|refused| panic!("{refused}"))
}

/// The constants that the message's file declares as plain numbers.
fn p4_constants(library: &Library) -> BTreeMap<String, u64> {
    let parsed = p4_declarations(library);
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

/// Names and bits of flags.
fn bits(flags: &[(&str, u8)]) -> Vec<(String, u64)> {
    let of = |(name, bit): &(&str, u8)| ((*name).to_owned(), u64::from(*bit));
    flags.iter().map(of).collect()
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
    for library in [REPLICATION, COORDINATION, SYNC, MULTICAST] {
        let p4 = p4_headers(&library);
        for &(name, layout) in library.layouts {
            let fields = layout.fields.iter();
            let wire = fields.map(|field| (field.name.to_lowercase(), field.at, field.bits));
            let wire: Vec<Place> = wire.collect();
            // Programs keep the headers that they use.
            if name != "tcp_t" || p4.contains_key(name) {
                assert_eq!(p4.get(name), Some(&wire), "{name}");
            }
        }
    }
    assert!(p4_headers(&REPLICATION).contains_key("tcp_t"));
}

#[test]
fn no_header_of_the_library_is_forgotten() {
    for library in [REPLICATION, COORDINATION, SYNC, MULTICAST] {
        no_header_is_forgotten(&library);
    }
}

/// Every header that the message's file declares has a layout, or is known to have none.
fn no_header_is_forgotten(library: &Library) {
    let parsed = p4_declarations(library);
    let declared = parsed.tree.declarations.iter();
    let declared = declared.filter_map(|declaration| match declaration {
        Declaration::Struct(header) if header.kind == StructKind::Header => {
            Some(header.name.to_string())
        }
        _ => None,
    });
    let declared: BTreeSet<String> = declared.collect();
    let known = library.layouts.iter().map(|(name, _)| *name);
    let known = known.chain(library.without_layout.iter().copied());
    let known = known.map(str::to_owned);
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
        age: 0x6162_6364_6566_6768,
        attempt: 0x7172,
        state: b"state",
        packet: Some(b"packet"),
    };
    let bytes = message.to_vec().expect("a message");
    let number = BigUint::from_bytes_be(&bytes[..HEADER_LENGTH]);
    for (name, begin, width) in &p4_headers(&REPLICATION)["replication_t"] {
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
            "age" => message.age.into(),
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
    let mut p4 = p4_constants(&REPLICATION);
    for (name, value) in others {
        assert_eq!(p4.remove(name), Some(value), "{name}");
    }
    let with = |prefix: &str| starting_with(prefix, &p4);
    assert_eq!(with("TYPE_"), prefixed("TYPE_", types));
    assert_eq!(with("CODE_"), prefixed("CODE_", codes));
    assert_eq!(with("FLAG_"), prefixed("FLAG_", bits(flag::ALL)));
}

/// The constants whose names begin with `prefix`.
fn starting_with(prefix: &str, constants: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let names = constants.iter();
    let names = names.filter(|(name, _)| name.starts_with(prefix));
    names.map(|(name, value)| (name.clone(), *value)).collect()
}

/// The names in capitals and the numbers of an enumeration.
fn numbered<T: Debug + Copy>(all: &[T], number: impl Fn(T) -> u8) -> Vec<(String, u64)> {
    let of = |one: &T| (in_capitals(one), u64::from(number(*one)));
    all.iter().map(of).collect()
}

#[test]
fn constants_of_coordination_have_the_same_names_and_values() {
    use coordination::{Condition, Kind, MessageType, Operation, Outcome, flag};
    let others = [
        ("COORDINATION_UDP_PORT", coordination::PORT.into()),
        ("COORDINATION_VERSION", coordination::VERSION.into()),
        ("MESSAGE_BYTES", coordination::HEADER_LENGTH as u64),
        ("CHUNK_BYTES", coordination::CHUNK_LENGTH as u64),
        ("SHORT_VALUE", coordination::SHORT_VALUE as u64),
        ("PART_BYTES", coordination::PART_LENGTH as u64),
        ("MAX_VALUE", coordination::MAX_VALUE as u64),
        ("MAX_OPERAND", coordination::MAX_OPERAND as u64),
        ("MAX_CHAIN", coordination::MAX_CHAIN as u64),
    ];
    let p4 = p4_constants(&COORDINATION);
    for (name, value) in others {
        assert_eq!(p4.get(name), Some(&value), "{name}");
    }
    let of = [
        ("TYPE_", numbered(MessageType::ALL, |one| one as u8)),
        ("OPERATION_", numbered(Operation::ALL, |one| one as u8)),
        ("OUTCOME_", numbered(Outcome::ALL, |one| one as u8)),
        ("KIND_", numbered(Kind::ALL, |one| one as u8)),
        ("CONDITION_", numbered(Condition::ALL, |one| one as u8)),
        ("FLAG_", bits(flag::ALL)),
    ];
    for (prefix, names) in of {
        assert_eq!(starting_with(prefix, &p4), prefixed(prefix, names));
    }
}

#[test]
fn the_switch_reads_fields_of_coordination_where_the_wire_crate_writes_them() {
    // A byte of each field that differs from all others tells where it lies.
    let mut message = coordination::Repr::new(coordination::MessageType::Entry);
    message.group = 0x1112;
    message.epoch = 0x2122_2324;
    message.number = 0x3132_3334_3536_3738;
    message.key = coordination::Key(*b"key of 16 bytes!");
    message.guard_number = 0x4142_4344_4546_4748;
    message.handle = 0x5152_5354;
    message.send_time = 0x6162_6364_6566;
    message.value = b"a value";
    let bytes = message.to_vec().expect("a message");
    let length = coordination::HEADER_LENGTH;
    let number = BigUint::from_bytes_be(&bytes[..length]);
    let headers = p4_headers(&COORDINATION);
    let read = |name: &str| {
        let place = headers["coordination_t"].iter();
        let (_, begin, width) = place.clone().find(|(one, ..)| one == name).expect(name);
        (&number >> (length * 8 - begin - width)) & ((BigUint::from(1u32) << width) - 1u32)
    };
    for (name, expected) in [
        (
            "type",
            BigUint::from(coordination::MessageType::Entry as u64),
        ),
        ("group", message.group.into()),
        ("epoch", message.epoch.into()),
        ("number", message.number.into()),
        ("key", BigUint::from_bytes_be(&message.key.0)),
        ("guard_number", message.guard_number.into()),
        ("handle", message.handle.into()),
        ("send_time", message.send_time.into()),
        ("value_length", message.value.len().into()),
    ] {
        assert_eq!(read(name), expected, "{name}");
    }
}

#[test]
fn constants_of_sync_have_the_same_names_and_values() {
    use sync::{CutKind, MessageType, Operation, Outcome};
    let others = [
        ("SYNC_UDP_PORT", sync::PORT.into()),
        ("SYNC_VERSION", sync::VERSION.into()),
        ("SYNC_MESSAGE_BYTES", sync::HEADER_LENGTH as u64),
        ("SYNC_VALUE_BYTES", sync::VALUE_LENGTH as u64),
        ("SYNC_FROZEN_BYTES", sync::FROZEN_LENGTH as u64),
    ];
    let p4 = p4_constants(&SYNC);
    for (name, value) in others {
        assert_eq!(p4.get(name), Some(&value), "{name}");
    }
    let of = [
        ("SYNC_TYPE_", numbered(MessageType::ALL, |one| one as u8)),
        ("SYNC_OPERATION_", numbered(Operation::ALL, |one| one as u8)),
        ("SYNC_OUTCOME_", numbered(Outcome::ALL, |one| one as u8)),
        ("SYNC_CUT_", numbered(CutKind::ALL, |one| one as u8)),
    ];
    for (prefix, names) in of {
        assert_eq!(starting_with(prefix, &p4), prefixed(prefix, names));
    }
}

#[test]
fn constants_of_multicast_have_the_same_names_and_values() {
    use multicast::{Code, MessageType, flag};
    let others = [
        ("MULTICAST_UDP_PORT", multicast::PORT.into()),
        ("MULTICAST_VERSION", multicast::VERSION.into()),
        ("MULTICAST_MESSAGE_BYTES", multicast::HEADER_LENGTH as u64),
        ("MULTICAST_MAX_JUMP", multicast::MAX_JUMP),
        ("MULTICAST_NO_LEARNER", multicast::NO_LEARNER.into()),
    ];
    let p4 = p4_constants(&MULTICAST);
    for (name, value) in others {
        assert_eq!(p4.get(name), Some(&value), "{name}");
    }
    let of = [
        (
            "MULTICAST_TYPE_",
            numbered(MessageType::ALL, |one| one as u8),
        ),
        ("MULTICAST_CODE_", numbered(Code::ALL, |one| one as u8)),
        ("MULTICAST_FLAG_", bits(flag::ALL)),
    ];
    for (prefix, names) in of {
        assert_eq!(starting_with(prefix, &p4), prefixed(prefix, names));
    }
}

//! The architecture: parser errors, metadata, clones, checksums, truncation.

use super::{Bed, EGRESS, accept, b8, ingress, ingress_with, load, through, value};
use num_bigint::BigUint;
use stateplane_ir::builder::{Builder, add, bits, boolean, emit, equal, extract, slice, when};
use stateplane_ir::{
    CloneKind, Expr, ExprKind, FieldList, HashAlgorithm, KeySet, Op, Place, Stmt, Target,
    Transition, Type,
};
use stateplane_runtime::{CloneRequest, Engine, IngressInput, InstanceType, Preserved};

fn error_of(bed: &mut Bed) -> stateplane_ir::VarId {
    let var = bed.b.var("error", Type::Error);
    let read = bed.b.read(&bed.standard("parser_error"));
    bed.set(Place::var(var), read);
    var
}

#[test]
fn short_packets_go_on_with_an_error() {
    let mut bed = Bed::new();
    let error = error_of(&mut bed);
    let mut interp = bed.load();
    for frame in [&[][..], &[1]] {
        assert_eq!(through(&mut interp, frame).0, frame);
        assert_eq!(value(&interp, error), BigUint::from(1u32));
    }
    through(&mut interp, &[1, 2]);
    assert_eq!(value(&interp, error), BigUint::from(0u32));
    assert_eq!(interp.state().events.parser_errors[1], 2);
}

#[test]
fn verify_reject_and_no_match() {
    for (condition, cases, expected) in [
        (false, Vec::new(), 6),
        (true, vec![(vec![KeySet::Any], Target::Reject)], 0),
        (
            true,
            vec![(vec![KeySet::Exact(BigUint::from(9u32))], Target::Accept)],
            2,
        ),
    ] {
        let mut bed = Bed::new();
        let key = bed.b.read(&bed.b.field(bed.v.parser.headers, "h.a"));
        bed.b.start().body.push(Stmt::Op(Op::Verify {
            condition: boolean(condition),
            error: stateplane_ir::builder::error(6),
        }));
        bed.b.start().transition = Transition::Select {
            keys: vec![key],
            cases,
        };
        let error = error_of(&mut bed);
        let mut interp = bed.load();
        assert_eq!(through(&mut interp, &[1, 2, 3]).0, [1, 2, 3]);
        assert_eq!(value(&interp, error), BigUint::from(expected as u32));
        assert_eq!(interp.state().events.parser_errors[expected], 1);
    }
}

#[test]
fn a_parser_that_does_not_end_times_out() {
    let mut bed = Bed::new();
    let again = bed
        .b
        .state("again", Vec::new(), Transition::To(Target::Accept));
    bed.b.program.parsers[0].states[again.index()].transition =
        Transition::To(Target::State(again));
    bed.b.start().transition = Transition::To(Target::State(again));
    let error = error_of(&mut bed);
    let mut interp = bed.load();
    through(&mut interp, &[1, 2]);
    assert_eq!(value(&interp, error), BigUint::from(5u32));
}

#[test]
fn key_sets() {
    let n = |value: u32| BigUint::from(value);
    let sets = [
        (KeySet::Exact(n(7)), vec![7]),
        (KeySet::Mask(n(0x10), n(0xf0)), (0x10..0x20).collect()),
        (KeySet::Range(n(250), n(255)), (250..=255).collect()),
        (KeySet::Prefix(n(0x80), 2), (0x80..0xc0).collect()),
    ];
    for (set, members) in sets {
        for wide in [false, true] {
            let mut bed = Bed::new();
            let a = bed.b.read(&bed.b.field(bed.v.parser.headers, "h.a"));
            // The same sets behind 192 zero bits.
            let (key, set) = match (wide, &set) {
                (false, set) => (a, set.clone()),
                (true, KeySet::Prefix(value, length)) => (
                    stateplane_ir::builder::cast(Type::Bits(200), a),
                    KeySet::Prefix(value.clone(), length + 192),
                ),
                (true, set) => (
                    stateplane_ir::builder::cast(Type::Bits(200), a),
                    set.clone(),
                ),
            };
            let seen = bed.b.field(bed.v.parser.headers, "h.b");
            let found = bed
                .b
                .state("found", vec![Stmt::Assign(seen, b8(1))], accept());
            bed.b.start().transition = Transition::Select {
                keys: vec![key, b8(3)],
                cases: vec![
                    (vec![set.clone(), KeySet::Exact(n(3))], Target::State(found)),
                    (vec![KeySet::Any, KeySet::Any], Target::Accept),
                ],
            };
            let mut interp = bed.load();
            for a in 0..=255u8 {
                let found = through(&mut interp, &[a, 0]).0[1] == 1;
                assert_eq!(found, members.contains(&u32::from(a)), "{set:?} {a}");
            }
        }
    }
}

#[test]
fn lookahead_advance_and_length() {
    let mut b = Builder::new();
    let header = b.header("h_t", &[("a", 4), ("wide", 196)]);
    let headers = b.structure("headers", &[("h", Type::Header(header))]);
    let metadata = b.structure(
        "metadata",
        &[("peek", Type::Bits(12)), ("length", Type::Bits(32))],
    );
    let v = b.pipeline(headers, metadata);
    let h = b.field(v.parser.headers, "h");
    let peek = b.field(v.parser.metadata, "peek");
    let length = b.field(v.parser.metadata, "length");
    let copy = b.var("copy", Type::Header(header));
    b.start().body.extend([
        Stmt::Op(Op::Advance { bits: bits(32, 8) }),
        Stmt::Op(Op::Lookahead { result: peek }),
        Stmt::Op(Op::PacketLength { result: length }),
        Stmt::Op(Op::Lookahead {
            result: Place::var(copy),
        }),
        extract(h),
    ]);
    let all = Place::var(v.deparser.headers);
    b.deparser().push(emit(all));
    let mut interp = load(b);
    let frame: Vec<u8> = (0..30).collect();
    assert_eq!(through(&mut interp, &frame).0, frame[1..]);
    let copied = value(&interp, copy);
    assert!(copied.bit(0), "lookahead gives a valid header");
    let at = interp.code.metadata.start;
    assert_eq!(interp.machine.words[at], 0x010);
    assert_eq!(interp.machine.words[at + 1], 30);
    assert_eq!(through(&mut interp, &frame[..20]).0, frame[1..20]);
    assert_eq!(interp.state().events.parser_errors[1], 1);
    assert!(through(&mut interp, &[]).0.is_empty());
}

#[test]
fn varbits() {
    let mut b = Builder::new();
    let header = b.structure(
        "h_t",
        &[("n", Type::Bits(8)), ("options", Type::Varbit(320))],
    );
    let headers = b.structure("headers", &[("h", Type::Header(header))]);
    let metadata = b.structure("metadata", &[]);
    let v = b.pipeline(headers, metadata);
    let h = b.field(v.parser.headers, "h");
    let n = b.var("n", Type::Bits(8));
    let n_value = b.get(n);
    b.start().body.extend([
        Stmt::Op(Op::Lookahead {
            result: Place::var(n),
        }),
        Stmt::Op(Op::Extract {
            header: h,
            varbit_size: Some(Expr {
                kind: ExprKind::Binary(
                    stateplane_ir::BinaryOp::Concat,
                    Box::new(bits(24, 0)),
                    Box::new(n_value),
                ),
                ty: Type::Bits(32),
            }),
        }),
    ]);
    let checksum = b.var("checksum", Type::Bits(16));
    let options = b.read(&b.field(v.compute.headers, "h.options"));
    b.compute_checksum().push(Stmt::Op(Op::UpdateChecksum {
        condition: boolean(true),
        data: vec![options],
        checksum: Place::var(checksum),
        algorithm: HashAlgorithm::Xor16,
        with_payload: false,
    }));
    let copy = b.var("copy", Type::Header(header));
    let read = b.read(&b.field(v.ingress.headers, "h"));
    b.ingress().push(Stmt::Assign(Place::var(copy), read));
    let same = b.var("same", Type::Bool);
    let compare = equal(
        b.read(&b.field(v.ingress.headers, "h.options")),
        b.read(&b.field(copy, "options")),
    );
    b.ingress().push(Stmt::Assign(Place::var(same), compare));
    let all = Place::var(v.deparser.headers);
    b.deparser().push(emit(all));
    let mut interp = load(b);
    let mut frame = vec![200];
    frame.extend(0..40);
    assert_eq!(through(&mut interp, &frame).0, frame);
    let xor = (0..25).step_by(2).fold(0, |xor, byte: u32| {
        xor ^ (byte << 8 | if byte == 24 { 0 } else { byte + 1 })
    });
    assert_eq!(value(&interp, checksum), BigUint::from(xor));
    assert_eq!(value(&interp, same), BigUint::from(1u32));
    for (first, error) in [(255, 6), (0, 0), (9, 6)] {
        frame[0] = first;
        assert_eq!(through(&mut interp, &frame).0, frame);
        let errors = interp.state().events.parser_errors.clone();
        assert_eq!(errors[error] > 0, error != 0, "{first}: {errors:?}");
    }
    // 328 bits do not fit an 8-bit length, so ask for more than there is instead.
    frame[0] = 248;
    assert_eq!(through(&mut interp, &frame[..20]).0, frame[..20]);
    assert_eq!(interp.state().events.parser_errors[1], 1);
}

#[test]
fn standard_metadata_of_ingress_and_egress() {
    let mut bed = Bed::new();
    let mut seen = Vec::new();
    for name in [
        "ingress_port",
        "egress_spec",
        "instance_type",
        "packet_length",
        "ingress_global_timestamp",
    ] {
        let read = bed.b.read(&bed.standard(name));
        let var = bed.b.var(name, read.ty);
        bed.set(Place::var(var), read);
        seen.push(var);
    }
    bed.set(bed.standard("egress_spec"), bits(9, 17));
    bed.set(bed.standard("mcast_grp"), bits(16, 300));
    let mut egress_seen = Vec::new();
    for name in [
        "egress_port",
        "egress_spec",
        "egress_rid",
        "enq_timestamp",
        "enq_qdepth",
        "deq_qdepth",
        "deq_timedelta",
        "egress_global_timestamp",
        "ingress_port",
    ] {
        let read = bed.b.read(&bed.egress_standard(name));
        let var = bed.b.var(name, read.ty);
        bed.b.egress().push(Stmt::Assign(Place::var(var), read));
        egress_seen.push(var);
    }
    let mut interp = bed.load();
    let outcome = ingress(&mut interp, &[1, 2, 3]);
    assert_eq!((outcome.egress_spec, outcome.mcast_grp), (17, 300));
    assert_eq!(interp.length(&outcome.packet), 3);
    assert!(outcome.clone.is_none() && outcome.resubmit.is_none());
    let values = |interp: &crate::Interp, vars: &[stateplane_ir::VarId]| {
        vars.iter()
            .map(|&var| stateplane_runtime::bits::low_word(&value(interp, var)))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&interp, &seen), [5, 0, 0, 3, 1000]);
    interp.egress(outcome.packet, &EGRESS, &mut Vec::new());
    assert_eq!(
        values(&interp, &egress_seen),
        [9, 0, 3, 1100, 7, 4, 400, 1500, 5]
    );
}

#[test]
fn timestamps_have_48_bits() {
    let mut bed = Bed::new();
    let read = bed.b.read(&bed.standard("ingress_global_timestamp"));
    let var = bed.b.var("now", read.ty);
    bed.set(Place::var(var), read);
    let mut interp = bed.load();
    interp.ingress(&IngressInput {
        frame: &[],
        port: 0,
        instance_type: InstanceType::Normal,
        preserved: &Preserved::default(),
        now: (1 << 48) + 6,
    });
    assert_eq!(value(&interp, var), BigUint::from(6u32));
}

#[test]
fn mark_to_drop_in_ingress_and_egress() {
    let mut bed = Bed::new();
    let drop = when(
        equal(bed.b.read(&bed.h("a")), b8(1)),
        vec![
            Stmt::Assign(bed.standard("mcast_grp"), bits(16, 4)),
            Stmt::Op(Op::MarkToDrop {
                standard_metadata: Place::var(bed.v.ingress.standard),
            }),
        ],
    );
    bed.b.ingress().push(drop);
    let second = bed.b.read(&bed.b.field(bed.v.egress.headers, "h.a"));
    let drop = when(
        equal(second, b8(2)),
        vec![Stmt::Op(Op::MarkToDrop {
            standard_metadata: Place::var(bed.v.egress.standard),
        })],
    );
    bed.b.egress().push(drop);
    let mut interp = bed.load();
    let outcome = ingress(&mut interp, &[1, 0]);
    assert_eq!((outcome.egress_spec, outcome.mcast_grp), (511, 0));
    let (frame, outcome) = through(&mut interp, &[2, 0]);
    assert!(outcome.dropped && frame.is_empty());
    assert!(!through(&mut interp, &[3, 0]).1.dropped);
}

/// Metadata `x` and `y` are preserved by list 4, in whole bytes.
fn preserving() -> Bed {
    let mut bed = Bed::with_metadata(&[
        ("x", Type::Bits(4)),
        ("y", Type::Bits(12)),
        ("z", Type::Bits(8)),
        ("wide", Type::Bits(136)),
    ]);
    bed.b.program.field_lists.push(FieldList {
        number: 4,
        fields: vec![vec![1], vec![0], vec![3]],
    });
    bed
}

/// Values of the field list: 12 bits, 4 bits, and 136 bits of which the last one is set.
fn list_four() -> [u64; 3] {
    [0x5abc, 0, 1 << 23]
}

fn fill(bed: &mut Bed) {
    bed.set(bed.meta("x"), bits(4, 5));
    bed.set(bed.meta("y"), bits(12, 0xabc));
    bed.set(bed.meta("z"), b8(9));
    let wide = BigUint::from(1u32) << 135u32;
    bed.set(
        bed.meta("wide"),
        stateplane_ir::builder::big_bits(136, wide),
    );
}

fn clone_of(kind: CloneKind, session: u128, list: Option<u128>) -> Stmt {
    Stmt::Op(Op::Clone {
        kind,
        session: bits(32, session),
        field_list: list.map(|list| bits(8, list)),
    })
}

#[test]
fn the_last_clone_wins_and_takes_metadata_at_the_end() {
    let mut bed = preserving();
    let requests = [
        clone_of(CloneKind::IngressToEgress, 1, None),
        clone_of(CloneKind::IngressToEgress, 2, Some(4)),
        Stmt::Op(Op::Resubmit {
            field_list: bits(8, 4),
        }),
        Stmt::Op(Op::Recirculate {
            field_list: bits(8, 4),
        }),
    ];
    bed.b.ingress().extend(requests);
    fill(&mut bed);
    let mut interp = bed.load();
    let outcome = ingress(&mut interp, &[1, 2]);
    let preserved = Preserved {
        field_list: Some(4),
        bits: list_four().into_iter().collect(),
    };
    assert_eq!(
        outcome.clone,
        Some(CloneRequest {
            session: 2,
            preserved: preserved.clone()
        })
    );
    assert_eq!(outcome.resubmit, Some(preserved));
    let egress = interp.egress(outcome.packet, &EGRESS, &mut Vec::new());
    assert!(egress.recirculate.is_none() && egress.clone.is_none());
}

#[test]
fn preserved_metadata_comes_back() {
    let mut bed = preserving();
    let sum = bed.b.var("seen", Type::Bits(12));
    let (y, z) = (bed.b.read(&bed.meta("y")), bed.b.read(&bed.meta("z")));
    bed.set(Place::var(sum), y);
    let z_seen = bed.b.var("z_seen", Type::Bits(8));
    bed.set(Place::var(z_seen), z);
    let wide = bed.b.var("wide_seen", Type::Bits(136));
    let read = bed.b.read(&bed.meta("wide"));
    bed.set(Place::var(wide), read);
    let mut interp = bed.load();
    let preserved = |list, bits: &[u64]| Preserved {
        field_list: list,
        bits: bits.iter().copied().collect(),
    };
    ingress_with(&mut interp, &[1, 2], &preserved(Some(4), &list_four()));
    assert_eq!(value(&interp, sum), BigUint::from(0xabcu32));
    assert_eq!(value(&interp, z_seen), BigUint::from(0u32));
    assert_eq!(value(&interp, wide), BigUint::from(1u32) << 135u32);
    for (list, bits) in [
        (None, &list_four()[..]),
        (Some(9), &list_four()),
        (Some(4), &[]),
    ] {
        ingress_with(&mut interp, &[1, 2], &preserved(list, bits));
        assert_eq!(value(&interp, sum), BigUint::from(0u32));
    }
    // Those that are missing are 0.
    ingress_with(&mut interp, &[1, 2], &preserved(Some(4), &[7]));
    assert_eq!(value(&interp, sum), BigUint::from(7u32));
    assert_eq!(value(&interp, wide), BigUint::from(0u32));
    // Bits that the fields do not have are left out.
    ingress_with(&mut interp, &[1, 2], &preserved(Some(4), &[u64::MAX; 4]));
    assert_eq!(value(&interp, sum), BigUint::from(0xfffu32));
    assert_eq!(value(&interp, wide), (BigUint::from(1u32) << 136u32) - 1u32);
}

#[test]
fn egress_clones_keep_headers_and_lose_metadata() {
    let mut bed = preserving();
    fill(&mut bed);
    bed.set(bed.h("a"), b8(77));
    let normal = equal(
        bed.b.read(&bed.egress_standard("instance_type")),
        bits(32, 0),
    );
    let z = bed.b.read(&bed.b.field(bed.v.egress.metadata, "z"));
    let x = bed.b.read(&bed.b.field(bed.v.egress.metadata, "x"));
    let b_field = bed.b.field(bed.v.egress.headers, "h.b");
    let sum = add(z, stateplane_ir::builder::cast(Type::Bits(8), x));
    bed.b.egress().extend([
        when(
            normal,
            vec![clone_of(CloneKind::EgressToEgress, 3, Some(4))],
        ),
        Stmt::Assign(b_field, sum),
        Stmt::Op(Op::Recirculate {
            field_list: bits(8, 4),
        }),
    ]);
    let checksum = bed.b.field(bed.v.compute.headers, "h.a");
    bed.b
        .compute_checksum()
        .push(Stmt::Assign(checksum, b8(0xcc)));
    let mut interp = bed.load();
    let (frame, outcome) = through(&mut interp, &[1, 2, 3, 4]);
    assert_eq!(frame, [0xcc, 14, 3, 4]);
    let recirculated = outcome.recirculate.unwrap();
    assert_eq!(recirculated.bits[..], list_four());
    let (request, mut packet) = outcome.clone.unwrap();
    assert_eq!(request.session, 3);
    interp.restore(&mut packet, &request.preserved);
    interp.truncate(&mut packet, 3);
    let input = stateplane_runtime::EgressInput {
        instance_type: InstanceType::EgressClone,
        ..EGRESS
    };
    let copy = packet.clone();
    let mut frame = Vec::new();
    let outcome = interp.egress(packet, &input, &mut frame);
    assert!(outcome.clone.is_none());
    assert_eq!(
        frame,
        [0xcc, 5, 3],
        "z is reset, x is preserved, one byte is cut"
    );
    interp.egress(copy, &input, &mut frame);
    assert_eq!(frame, [0xcc, 5, 3], "a copy gives the same");
}

#[test]
fn ingress_clones_are_parsed_alone() {
    let mut bed = preserving();
    bed.set(bed.h("a"), b8(77));
    let mut interp = bed.load();
    let packet = interp.parse(&IngressInput {
        frame: &[1, 2, 3],
        port: 1,
        instance_type: InstanceType::IngressClone,
        preserved: &Preserved::default(),
        now: 0,
    });
    let mut frame = Vec::new();
    interp.egress(packet, &EGRESS, &mut frame);
    assert_eq!(frame, [1, 2, 3]);
}

#[test]
fn truncate_cuts_headers_and_payload() {
    for (limit, expected) in [(0, &[][..]), (1, &[1]), (3, &[1, 2, 3]), (9, &[1, 2, 3, 4])] {
        let mut bed = Bed::new();
        let cut = |length| {
            Stmt::Op(Op::Truncate {
                length: bits(32, length),
            })
        };
        bed.b.ingress().extend([cut(limit), cut(100)]);
        assert_eq!(through(&mut bed.load(), &[1, 2, 3, 4]).0, expected);
    }
}

fn checksum_bed(with_payload: bool) -> Bed {
    let mut bed = Bed::new();
    let data = bed.b.read(&bed.b.field(bed.v.verify.headers, "h.a"));
    let carried = bed.b.read(&bed.b.field(bed.v.verify.headers, "h.b"));
    bed.b.verify_checksum().push(Stmt::Op(Op::VerifyChecksum {
        condition: boolean(true),
        data: vec![data],
        checksum: carried,
        algorithm: HashAlgorithm::Xor16,
        with_payload,
    }));
    let read = bed.b.read(&bed.standard("checksum_error"));
    let var = bed.b.var("checksum_error", Type::Bits(1));
    bed.set(Place::var(var), read);
    let data = bed.b.read(&bed.b.field(bed.v.compute.headers, "h.a"));
    let place = bed.b.field(bed.v.compute.headers, "h.b");
    bed.b.compute_checksum().push(Stmt::Op(Op::UpdateChecksum {
        condition: equal(slice(data.clone(), 7, 7), bits(1, 0)),
        data: vec![data, b8(0x0f)],
        checksum: place,
        algorithm: HashAlgorithm::Xor16,
        with_payload,
    }));
    bed
}

#[test]
fn checksums_without_payload() {
    let bed = checksum_bed(false);
    let mut interp = bed.load();
    // The low byte of XOR-16 over one byte is 0.
    assert_eq!(through(&mut interp, &[5, 0, 9]).0, [5, 0x0f, 9]);
    assert_eq!(interp.state().events.checksum_errors, 0);
    assert_eq!(through(&mut interp, &[0x85, 1, 9]).0, [0x85, 1, 9]);
    assert_eq!(interp.state().events.checksum_errors, 1);
}

#[test]
fn checksums_with_payload() {
    let bed = checksum_bed(true);
    let mut interp = bed.load();
    assert_eq!(through(&mut interp, &[5, 9, 9, 3]).0, [5, 0x0f ^ 3, 9, 3]);
    assert_eq!(interp.state().events.checksum_errors, 0);
    through(&mut interp, &[5, 8, 9]);
    assert_eq!(interp.state().events.checksum_errors, 1);
}

#[test]
fn emitted_bits_are_padded_to_bytes() {
    let mut b = Builder::new();
    let header = b.header("h_t", &[("a", 3)]);
    let headers = b.structure(
        "headers",
        &[("g", Type::Header(header)), ("h", Type::Header(header))],
    );
    let metadata = b.structure("metadata", &[]);
    let v = b.pipeline(headers, metadata);
    let (g, h) = (
        b.field(v.parser.headers, "g"),
        b.field(v.parser.headers, "h"),
    );
    b.start().body.extend([extract(g), extract(h)]);
    let (g, h) = (
        b.field(v.deparser.headers, "g"),
        b.field(v.deparser.headers, "h"),
    );
    b.deparser().extend([emit(g), emit(h)]);
    let mut interp = load(b);
    assert_eq!(through(&mut interp, &[0xff, 1]).0, [0xfc, 1]);
}

#[test]
fn messages_assertions_and_digests() {
    let mut bed = Bed::new();
    let a = bed.b.read(&bed.h("a"));
    let ok = equal(a.clone(), b8(1));
    bed.b.ingress().extend([
        Stmt::Op(Op::Assert {
            condition: ok.clone(),
            location: "nat.p4:3:5".to_owned(),
        }),
        Stmt::Op(Op::LogMessage {
            format: "a={} ok={} {}".to_owned(),
            values: vec![a.clone(), ok],
        }),
        Stmt::Op(Op::Digest {
            name: "seen".to_owned(),
            data: a,
        }),
    ]);
    let mut interp = bed.load();
    ingress(&mut interp, &[1, 0]);
    ingress(&mut interp, &[2, 0]);
    let state = interp.state_mut();
    assert_eq!(state.events.failed_assertions, 1);
    assert_eq!(state.log.poll().unwrap(), "a=1 ok=true {}");
    assert_eq!(state.log.poll().unwrap(), "nat.p4:3:5: assertion failed");
    assert_eq!(state.log.poll().unwrap(), "a=2 ok=false {}");
    let digest = state.digests.poll().unwrap();
    assert_eq!(digest.name, "seen");
    assert_eq!(digest.data, stateplane_runtime::Value::from(1));
    state.log.set_limit(1);
    for _ in 0..3 {
        ingress(&mut interp, &[1, 0]);
    }
    assert_eq!(interp.state().log.len(), 1);
    assert_eq!(interp.state().log.dropped(), 2);
}

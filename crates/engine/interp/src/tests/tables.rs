//! Tables, registers, counters, meters, hashes.

use super::{Bed, b8, ingress, through, value};
use num_bigint::BigUint;
use stateplane_ir::builder::{add, bits, boolean, cast};
use stateplane_ir::{
    ActionId, Arg, Counter, CounterId, CounterKind, Direction, HashAlgorithm, MatchKind, Meter,
    MeterId, Op, Param, Place, Stmt, TableId, Type, VarId,
};
use stateplane_runtime::{Engine, Entry, KeyMatch, MeterConfig, Value};

fn exact(value: u64) -> KeyMatch {
    KeyMatch::Exact(BigUint::from(value))
}

fn entry(key: u64, action: &str, data: &[u64]) -> Entry {
    Entry {
        keys: vec![exact(key)],
        priority: 0,
        action: action.to_owned(),
        data: data.iter().map(|&value| BigUint::from(value)).collect(),
    }
}

/// A table `t` on `h.a` with `set(v)`, which sets `h.b`, and `none`, the default.
fn bed() -> (Bed, TableId) {
    let mut bed = Bed::new();
    let data = bed.b.var("ingress.set.v", Type::Bits(8));
    let body = vec![Stmt::Assign(bed.h("b"), bed.b.get(data))];
    let set = bed.b.action("ingress.set", &[data], body);
    let none = bed.b.action("ingress.none", &[], Vec::new());
    let key = bed.b.read(&bed.h("a"));
    let table = bed
        .b
        .table("ingress.t", vec![(MatchKind::Exact, key)], &[set, none]);
    (bed, table)
}

fn apply(bed: &mut Bed, table: TableId) -> (VarId, VarId) {
    let hit = bed.b.var("hit", Type::Bool);
    let run = bed.b.var("run", Type::Bits(32));
    bed.b.ingress().push(Stmt::Apply {
        table,
        hit: Some(Place::var(hit)),
        action_run: Some(Place::var(run)),
    });
    (hit, run)
}

#[test]
fn a_hit_runs_its_action_and_a_miss_the_default() {
    let (mut bed, table) = bed();
    let (hit, run) = apply(&mut bed, table);
    let mut interp = bed.load();
    let t = interp.state_mut().table_mut("t").unwrap();
    t.insert(&entry(7, "set", &[42])).unwrap();
    assert_eq!(through(&mut interp, &[7, 1]).0, [7, 42]);
    assert_eq!(value(&interp, hit), BigUint::from(1u32));
    assert_eq!(value(&interp, run), BigUint::from(0u32));
    assert_eq!(through(&mut interp, &[8, 1]).0, [8, 1]);
    assert_eq!(value(&interp, hit), BigUint::from(0u32));
    assert_eq!(value(&interp, run), BigUint::from(1u32));
    let t = interp.state_mut().table_mut("ingress.t").unwrap();
    t.set_default("set", &[BigUint::from(3u32)]).unwrap();
    assert_eq!(through(&mut interp, &[8, 1]).0, [8, 3]);
}

#[test]
fn actions_take_arguments_bound_in_the_table() {
    let (mut bed, table) = bed();
    let p = bed.b.var("p", Type::Bits(8));
    let increment = Stmt::Assign(Place::var(p), add(bed.b.get(p), b8(1)));
    bed.b.action("ingress.bound", &[], vec![increment]);
    bed.b.program.actions[2].params.push(Param {
        var: p,
        direction: Direction::InOut,
    });
    let argument = Arg::InOut(bed.h("b"));
    let listed = &mut bed.b.program.tables[table.index()];
    listed.actions[1].action = ActionId(2);
    listed.actions[1].bound.push(argument);
    apply(&mut bed, table);
    assert_eq!(through(&mut bed.load(), &[8, 1]).0, [8, 2]);
}

#[test]
fn exit_in_an_action_ends_ingress() {
    let (mut bed, table) = bed();
    bed.b.program.actions[1].body.push(Stmt::Exit);
    let (hit, _) = apply(&mut bed, table);
    bed.set(bed.h("b"), b8(9));
    let mut interp = bed.load();
    assert_eq!(through(&mut interp, &[8, 1]).0, [8, 1]);
    assert_eq!(value(&interp, hit), BigUint::from(0u32));
}

#[test]
fn direct_counters_and_meters_of_hits() {
    let (mut bed, table) = bed();
    bed.b.program.counters.push(Counter {
        name: "ingress.direct".to_owned(),
        kind: CounterKind::PacketsAndBytes,
        size: 0,
        table: Some(table),
    });
    bed.b.program.meters.push(Meter {
        name: "ingress.rate".to_owned(),
        bytes: true,
        size: 0,
        table: Some(table),
    });
    let def = &mut bed.b.program.tables[table.index()];
    def.direct_counter = Some(CounterId(0));
    def.direct_meter = Some(MeterId(0));
    apply(&mut bed, table);
    let color = bed.b.var("color", Type::Bits(2));
    bed.b.ingress().push(Stmt::Op(Op::DirectMeterRead {
        meter: MeterId(0),
        result: Place::var(color),
    }));
    let mut interp = bed.load();
    let t = interp.state_mut().table_mut("t").unwrap();
    t.insert(&entry(7, "set", &[42])).unwrap();
    let config = MeterConfig {
        committed_rate: 1,
        committed_burst: 4,
        peak_rate: 1,
        peak_burst: 9,
    };
    t.set_meter(&[exact(7)], 0, Some(config), 1000).unwrap();
    let mut colors = Vec::new();
    for frame in [&[7, 0, 0, 0][..], &[7, 0, 0, 0], &[7, 0, 0, 0], &[8, 0]] {
        ingress(&mut interp, frame);
        colors.push(value(&interp, color));
    }
    assert_eq!(colors, [0u32, 1, 2, 0].map(BigUint::from));
    let listed = &interp.state().tables()[0].entries()[0];
    assert_eq!((listed.count.packets, listed.count.bytes), (3, 12));
}

#[test]
fn counters_count_frames() {
    let mut bed = Bed::new();
    bed.b.program.counters.push(Counter {
        name: "c".to_owned(),
        kind: CounterKind::Packets,
        size: 2,
        table: None,
    });
    let index = bed.b.read(&bed.h("a"));
    bed.b.ingress().push(Stmt::Op(Op::CounterCount {
        counter: CounterId(0),
        index,
    }));
    let mut interp = bed.load();
    for frame in [&[1, 0, 0][..], &[1, 0], &[2, 0]] {
        ingress(&mut interp, frame);
    }
    let counter = interp.state().counter("c").unwrap();
    assert_eq!(counter.read(0).unwrap().packets, 0);
    let one = counter.read(1).unwrap();
    assert_eq!((one.packets, one.bytes), (2, 5));
}

#[test]
fn registers_of_any_element() {
    let mut bed = Bed::new();
    let pair = bed
        .b
        .structure("pair", &[("n", Type::Bits(8)), ("w", Type::Bits(200))]);
    let register = bed.b.register("r", Type::Struct(pair), 4);
    let var = bed.b.var("v", Type::Struct(pair));
    let index = bed.b.read(&bed.h("a"));
    bed.b.ingress().push(Stmt::Op(Op::RegisterRead {
        register,
        index: index.clone(),
        result: Place::var(var),
    }));
    let n = bed.b.field(var, "n");
    let sum = add(bed.b.read(&n), b8(1));
    bed.set(n.clone(), sum);
    let copy = bed.b.read(&n);
    bed.set(bed.h("b"), copy);
    let whole = bed.b.get(var);
    bed.b.ingress().push(Stmt::Op(Op::RegisterWrite {
        register,
        index,
        value: whole,
    }));
    let mut interp = bed.load();
    let wide = Value::Bits(BigUint::from(5u32) << 150u32);
    let register = interp.state_mut().register_mut("r").unwrap();
    register
        .write(3, &Value::Struct(vec![Value::from(20), wide.clone()]))
        .unwrap();
    assert_eq!(through(&mut interp, &[3, 0]).0, [3, 21]);
    assert_eq!(through(&mut interp, &[3, 0]).0, [3, 22]);
    assert_eq!(
        through(&mut interp, &[4, 9]).0,
        [4, 1],
        "past the end reads 0"
    );
    let register = interp.state().register("r").unwrap();
    assert_eq!(
        register.read(3).unwrap(),
        Value::Struct(vec![Value::from(22), wide])
    );
    assert_eq!(register.read(4).unwrap_err().code(), "TG017");
}

fn hash_of(algorithm: HashAlgorithm, base: u128, max: u128, result: u32) -> u128 {
    let mut bed = Bed::new();
    let var = bed.b.var("hash", Type::Bits(result));
    // "123456789" in pieces that are no bytes.
    let data = vec![
        bits(12, 0x313),
        bits(20, 0x23334),
        boolean(false),
        bits(39, 0x35_3637_3839),
    ];
    bed.b.ingress().push(Stmt::Op(Op::Hash {
        result: Place::var(var),
        algorithm,
        base: bits(result, base),
        data,
        max: bits(64, max),
    }));
    let mut interp = bed.load();
    ingress(&mut interp, &[0, 0]);
    stateplane_runtime::bits::low_word(&value(&interp, var))
}

#[test]
fn hashes_of_pieces() {
    use HashAlgorithm::{Crc16, Crc32, Identity};
    assert_eq!(hash_of(Crc32, 0, 1 << 32, 32), 0xcbf4_3926);
    assert_eq!(hash_of(Crc32, 5, 100, 32), 5 + 0xcbf4_3926 % 100);
    assert_eq!(hash_of(Crc16, 0, 1 << 16, 16), 0xbb3d);
    assert_eq!(hash_of(Crc32, 0, 1 << 32, 8), 0x26);
    assert_eq!(hash_of(Crc32, 7, 0, 32), 7, "v1model.p4: max 0 gives base");
    assert_eq!(
        hash_of(Identity, 0, u128::from(u64::MAX), 200),
        0x3132_3334_3536_3738
    );
}

#[test]
fn random_stays_within_its_bounds() {
    let mut bed = Bed::new();
    let wide = bed.b.var("wide", Type::Bits(200));
    bed.b.ingress().push(Stmt::Op(Op::Random {
        result: Place::var(wide),
        lo: cast(Type::Bits(200), bits(8, 5)),
        hi: cast(Type::Bits(200), bits(8, 9)),
    }));
    let spot = bed.h("b");
    bed.b.ingress().push(Stmt::Op(Op::Random {
        result: spot,
        lo: b8(10),
        hi: b8(12),
    }));
    let mut interp = bed.load();
    let mut seen = [0u32; 3];
    for _ in 0..100 {
        let frame = through(&mut interp, &[0, 0]).0;
        seen[usize::from(frame[1]) - 10] += 1;
        let wide = value(&interp, wide);
        assert!((5..=9).any(|bound| wide == BigUint::from(bound as u32)));
    }
    assert!(seen.iter().all(|count| *count > 10), "{seen:?}");
}

//! Value sets in `select`.

use super::{Bed, b8, through};
use num_bigint::BigUint;
use stateplane_ir::builder::bits;
use stateplane_ir::{
    KeySet, MatchKind, Stmt, Target, Transition, ValueSet, ValueSetField, ValueSetId,
};
use stateplane_runtime::{Engine, KeyMatch};

/// The set's fields are keys 1 and 2 of three; a member leads to a state that marks
/// the packet.
#[test]
fn members_come_from_the_control_plane() {
    let mut bed = Bed::new();
    let field = |name: &str, width, match_kind| ValueSetField {
        name: name.to_owned(),
        width,
        match_kind,
    };
    bed.b.program.value_sets.push(ValueSet {
        name: "parser.known".to_owned(),
        fields: vec![
            field("a", 8, MatchKind::Exact),
            field("b", 8, MatchKind::Ternary),
        ],
        size: 2,
        annotations: Vec::new(),
    });
    let marked = bed.b.field(bed.v.parser.metadata, "x");
    let mark = Stmt::Assign(marked, b8(0xee));
    let to_mark = bed
        .b
        .state("mark", vec![mark], Transition::To(Target::Accept));
    let key = |bed: &Bed, name| bed.b.read(&bed.b.field(bed.v.parser.headers, name));
    let keys = vec![bits(130, 3), key(&bed, "h.a"), key(&bed, "h.b")];
    let member = |field| KeySet::Member {
        set: ValueSetId(0),
        field,
    };
    bed.b.start().transition = Transition::Select {
        keys,
        cases: vec![
            (
                vec![KeySet::Exact(BigUint::from(3u32)), member(0), member(1)],
                Target::State(to_mark),
            ),
            (vec![KeySet::Any; 3], Target::Accept),
        ],
    };
    let shown = bed.b.read(&bed.meta("x"));
    bed.set(bed.h("a"), shown);
    let mut interp = bed.load();
    assert_eq!(through(&mut interp, &[1, 0x25]).0, [0, 0x25]);

    let set = interp.state_mut().value_set_mut("known").unwrap();
    set.insert(&[
        KeyMatch::Exact(BigUint::from(1u32)),
        KeyMatch::Mask {
            value: BigUint::from(0x20u32),
            mask: BigUint::from(0xf0u32),
        },
    ])
    .unwrap();
    assert_eq!(through(&mut interp, &[1, 0x25]).0, [0xee, 0x25]);
    assert_eq!(through(&mut interp, &[1, 0x35]).0, [0, 0x35]);
    assert_eq!(through(&mut interp, &[2, 0x25]).0, [0, 0x25]);

    interp
        .state_mut()
        .value_set_mut("parser.known")
        .unwrap()
        .clear();
    assert_eq!(through(&mut interp, &[1, 0x25]).0, [0, 0x25]);
}

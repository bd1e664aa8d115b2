//! Each rule refuses a program that breaks it.

use crate::builder::{
    Builder, PipelineVars, add, binary, bits, boolean, cast, equal, extract, slice,
};
use crate::*;
use num_bigint::BigUint;

/// A sound program with a header, a stack, a register, an action and a table.
struct Bed {
    b: Builder,
    v: PipelineVars,
    header: StructId,
    stack: StackId,
}

fn bed() -> Bed {
    let mut b = Builder::new();
    let header = b.header("h_t", &[("a", 8)]);
    let stack = b.stack(Type::Header(header), 2);
    let headers = b.structure(
        "headers",
        &[("h", Type::Header(header)), ("s", Type::Stack(stack))],
    );
    let metadata = b.structure("metadata", &[("m", Type::Bits(8))]);
    let v = b.pipeline(headers, metadata);
    b.register("r", Type::Bits(8), 4);
    let data = b.var("data", Type::Bits(8));
    let set = b.action("set", &[data], Vec::new());
    let none = b.action("none", &[], Vec::new());
    let key = b.read(&b.field(v.ingress.headers, "h.a"));
    b.table("t", vec![(MatchKind::Exact, key)], &[set, none]);
    Bed {
        b,
        v,
        header,
        stack,
    }
}

impl Bed {
    fn a(&self) -> Place {
        self.b.field(self.v.ingress.headers, "h.a")
    }

    fn push(&mut self, stmt: Stmt) {
        self.b.ingress().push(stmt);
    }
}

fn broken(rule: u8, change: impl FnOnce(&mut Bed)) {
    let mut bed = bed();
    change(&mut bed);
    let errors = verify(&bed.b.program).expect_err("a broken rule is found");
    assert!(
        errors.iter().any(|error| error.rule == rule),
        "rule {rule}: {errors:?}"
    );
}

#[test]
fn sound_programs_pass() {
    assert_eq!(verify(&bed().b.program), Ok(()));
    assert_eq!(verify(&crate::sample::program()), Ok(()));
}

#[test]
fn rule_1_handles() {
    let place = || Place::var(VarId(0));
    broken(1, |bed| {
        bed.b.program.vars[0].ty = Type::Header(StructId(99))
    });
    broken(1, |bed| bed.b.program.vars[0].ty = Type::Enum(EnumId(0)));
    broken(1, |bed| bed.b.program.pipeline.ingress = ControlId(99));
    broken(1, |bed| bed.b.program.pipeline.parser = ParserId(9));
    broken(1, |bed| bed.push(Stmt::SetValid(Place::var(VarId(999)))));
    broken(1, |bed| bed.b.program.controls[1].locals.push(VarId(999)));
    broken(1, |bed| {
        bed.b.program.tables[0].actions[0].action = ActionId(9)
    });
    broken(1, |bed| {
        bed.push(Stmt::Apply {
            table: TableId(9),
            hit: None,
            action_run: None,
        });
    });
    broken(1, |bed| {
        bed.push(Stmt::Op(Op::RegisterRead {
            register: RegisterId(9),
            index: bits(8, 0),
            result: place(),
        }));
    });
    for callee in [
        Callee::Action(ActionId(9)),
        Callee::Function(FunctionId(9)),
        Callee::Control(ControlId(9)),
        Callee::Parser(ParserId(9)),
    ] {
        broken(1, |bed| {
            bed.push(Stmt::Call {
                callee,
                args: Vec::new(),
                result: None,
            });
        });
    }
}

#[test]
fn rule_2_types() {
    broken(2, |bed| bed.b.program.vars[0].ty = Type::Bits(2049));
    broken(2, |bed| bed.b.program.vars[0].ty = Type::Int(0));
    broken(2, |bed| bed.b.program.stacks[0].size = 0);
    broken(2, |bed| bed.b.program.stacks[0].element = Type::Varbit(8));
    broken(2, |bed| {
        bed.b.program.stacks[0].element = Type::Stack(bed.stack)
    });
    broken(2, |bed| {
        let header = Type::Header(bed.header);
        bed.b.program.structs[0].fields[0].ty = header;
    });
    broken(2, |bed| {
        let header = bed.b.structure("v", &[("x", Type::Varbit(65_536))]);
        bed.b.var("v", Type::Header(header));
    });
    broken(2, |bed| {
        let union = bed.b.structure("u", &[("x", Type::Bits(8))]);
        bed.b.var("u", Type::Union(union));
    });
    // Each type holds two of the one before: 2^60 parts.
    broken(2, |bed| {
        let mut last = bed.b.structure("s", &[("x", Type::Bits(8))]);
        for _ in 0..60 {
            let member = Type::Struct(last);
            last = bed.b.structure("s", &[("x", member), ("y", member)]);
        }
    });
}

#[test]
fn rule_3_expressions() {
    let assign = |bed: &mut Bed, value: Expr| {
        let var = bed.b.var("x", value.ty);
        bed.push(Stmt::Assign(Place::var(var), value));
    };
    let wrong = [
        add(bits(8, 1), bits(9, 1)),
        binary(BinaryOp::LogicalAnd, bits(8, 1), bits(8, 1)),
        binary(BinaryOp::Lt, boolean(true), boolean(false)),
        binary(BinaryOp::Shl, bits(8, 1), builder::int(8, 1)),
        bits(8, 256),
        builder::error(99),
        cast(Type::Bool, bits(8, 1)),
        slice(bits(8, 1), 8, 0),
        slice(boolean(true), 0, 0),
        builder::mux(bits(1, 1), bits(8, 1), bits(8, 1)),
        builder::mux(boolean(true), bits(8, 1), bits(9, 1)),
        builder::unary(UnaryOp::Not, bits(1, 1)),
        builder::unary(UnaryOp::Negate, boolean(true)),
        Expr {
            kind: ExprKind::Record(vec![bits(8, 1)]),
            ty: Type::Bits(8),
        },
        Expr {
            kind: ExprKind::Read(Place::var(VarId(0))),
            ty: Type::Bool,
        },
        Expr {
            kind: ExprKind::Const(Const::Bool(true)),
            ty: Type::Bits(1),
        },
        builder::is_valid(Place::var(VarId(1))),
    ];
    for value in wrong {
        broken(3, |bed| assign(bed, value));
    }
    broken(3, |bed| {
        let ty = Type::Header(bed.header);
        let value = Expr {
            kind: ExprKind::Record(Vec::new()),
            ty,
        };
        assign(bed, value);
    });
    broken(3, |bed| {
        let ty = Type::Stack(bed.stack);
        let value = Expr {
            kind: ExprKind::Array(Vec::new()),
            ty,
        };
        assign(bed, value);
    });
}

#[test]
fn rule_4_places() {
    let steps = [
        vec![Projection::Field(9)],
        vec![Projection::Next],
        vec![Projection::Slice { hi: 1, lo: 0 }],
        vec![
            Projection::Field(1),
            Projection::Index(Box::new(boolean(true))),
        ],
        vec![
            Projection::Field(0),
            Projection::Field(0),
            Projection::Slice { hi: 8, lo: 0 },
        ],
        vec![
            Projection::Field(0),
            Projection::Field(0),
            Projection::Slice { hi: 3, lo: 0 },
            Projection::Slice { hi: 1, lo: 0 },
        ],
    ];
    for path in steps {
        broken(4, |bed| {
            let var = bed.v.ingress.headers;
            bed.push(Stmt::SetValid(Place { var, path }));
        });
    }
}

#[test]
fn rule_5_statements() {
    broken(5, |bed| {
        let a = bed.a();
        bed.push(Stmt::Assign(a, bits(9, 1)));
    });
    broken(5, |bed| bed.push(builder::when(bits(1, 1), Vec::new())));
    broken(5, |bed| {
        let a = bed.a();
        bed.push(Stmt::SetValid(a));
    });
    broken(5, |bed| {
        let a = bed.a();
        bed.push(Stmt::PushFront(a, 1));
    });
    for labels in [vec![256u32], vec![1, 1]] {
        broken(5, |bed| {
            let value = bed.b.read(&bed.a());
            let labels = labels.into_iter().map(BigUint::from).collect();
            bed.push(Stmt::Switch {
                value,
                cases: vec![(labels, Vec::new())],
                default: Vec::new(),
            });
        });
    }
    broken(5, |bed| {
        let hit = bed.a();
        bed.push(Stmt::Apply {
            table: TableId(0),
            hit: Some(hit),
            action_run: None,
        });
    });
    broken(5, |bed| bed.push(Stmt::Break));
    broken(5, |bed| {
        bed.push(Stmt::Loop {
            body: vec![Stmt::Break],
            update: vec![Stmt::Block(vec![Stmt::Continue])],
        });
    });
}

#[test]
fn rule_8_value_sets() {
    let case = |bed: &mut Bed, fields: &[(u32, MatchKind)], positions: &[u32]| {
        let field = |&(width, match_kind)| ValueSetField {
            name: String::new(),
            width,
            match_kind,
        };
        bed.b.program.value_sets.push(ValueSet {
            name: "set".to_owned(),
            fields: fields.iter().map(field).collect(),
            size: 1,
            annotations: Vec::new(),
        });
        let member = |&field| KeySet::Member {
            set: ValueSetId(0),
            field,
        };
        let sets: Vec<KeySet> = positions.iter().map(member).collect();
        bed.b.start().transition = Transition::Select {
            keys: vec![bits(8, 1); sets.len()],
            cases: vec![(sets, Target::Accept)],
        };
    };
    let exact = (8, MatchKind::Exact);
    let mut sound = bed();
    case(&mut sound, &[exact, exact], &[0, 1, 0, 1]);
    assert_eq!(verify(&sound.b.program), Ok(()));
    broken(8, |bed| case(bed, &[], &[]));
    broken(8, |bed| case(bed, &[(8, MatchKind::Selector)], &[0]));
    broken(8, |bed| case(bed, &[(9, MatchKind::Exact)], &[0]));
    for positions in [&[0][..], &[1], &[0, 0, 1], &[0, 1, 1], &[1, 0], &[0, 2]] {
        broken(8, |bed| case(bed, &[exact, exact], positions));
    }
}

#[test]
fn rule_7_action_profiles() {
    let case = |bed: &mut Bed, selector: Option<Selector>, id: u32| {
        let key = &mut bed.b.program.tables[0].keys[0];
        key.match_kind = MatchKind::Selector;
        bed.b.program.tables[0].implementation = Some(ActionProfileId(id));
        bed.b.program.action_profiles.push(ActionProfile {
            name: "profile".to_owned(),
            size: 4,
            selector,
            annotations: Vec::new(),
        });
    };
    let selector = Selector {
        algorithm: HashAlgorithm::Crc16,
        output_width: 16,
    };
    let mut sound = bed();
    case(&mut sound, Some(selector), 0);
    assert_eq!(verify(&sound.b.program), Ok(()));
    broken(7, |bed| case(bed, None, 0));
    broken(1, |bed| case(bed, Some(selector), 1));
}

#[test]
fn rule_6_calls() {
    let call = |bed: &mut Bed, args| {
        let p = bed.b.var("p", Type::Bits(8));
        let control = bed.b.control("c", &[(p, Direction::InOut)]);
        bed.push(Stmt::Call {
            callee: Callee::Control(control),
            args,
            result: None,
        });
    };
    broken(6, |bed| call(bed, Vec::new()));
    broken(6, |bed| call(bed, vec![Arg::In(bits(8, 1))]));
    broken(6, |bed| {
        let a = bed.a();
        call(bed, vec![Arg::Out(a)]);
    });
    broken(6, |bed| {
        let h = bed.b.field(bed.v.ingress.headers, "h");
        call(bed, vec![Arg::InOut(h)]);
    });
    broken(6, |bed| {
        let a = bed.a();
        bed.push(Stmt::Call {
            callee: Callee::Action(ActionId(1)),
            args: Vec::new(),
            result: Some(a),
        });
    });
}

#[test]
fn rule_7_tables() {
    broken(7, |bed| bed.b.program.tables[0].default_action.action = 5);
    broken(7, |bed| bed.b.program.tables[0].default_action.action = 0);
    broken(7, |bed| {
        let call = &mut bed.b.program.tables[0].default_action;
        call.data.push(Const::Bits(BigUint::from(1u32)));
    });
    broken(7, |bed| {
        let call = &mut bed.b.program.tables[0].default_action;
        call.action = 0;
        call.data.push(Const::Bits(BigUint::from(256u32)));
    });
    broken(7, |bed| {
        let bound = &mut bed.b.program.tables[0].actions[0].bound;
        bound.push(Arg::In(bits(8, 1)));
    });
    let entry = |keys| Entry {
        keys,
        priority: 1,
        call: ActionCall {
            action: 1,
            data: Vec::new(),
        },
        is_const: true,
    };
    for keys in [
        Vec::new(),
        vec![KeySet::Exact(BigUint::from(256u32))],
        vec![KeySet::Prefix(BigUint::from(1u32), 9)],
    ] {
        broken(7, |bed| bed.b.program.tables[0].entries.push(entry(keys)));
    }
    broken(7, |bed| {
        let h = bed.b.field(bed.v.ingress.headers, "h");
        let key = bed.b.read(&h);
        bed.b.program.tables[0].keys[0].expr = key;
    });
}

#[test]
fn rule_8_parsers() {
    broken(8, |bed| bed.b.program.parsers[0].start = StateId(9));
    broken(8, |bed| {
        bed.b.start().transition = Transition::To(Target::State(StateId(9)));
    });
    for sets in [Vec::new(), vec![KeySet::Exact(BigUint::from(256u32))]] {
        broken(8, |bed| {
            bed.b.start().transition = Transition::Select {
                keys: vec![bits(8, 1)],
                cases: vec![(sets, Target::Accept)],
            };
        });
    }
}

fn call_control(index: u32) -> Stmt {
    Stmt::Call {
        callee: Callee::Control(ControlId(index)),
        args: Vec::new(),
        result: None,
    }
}

#[test]
fn rule_9_recursion_and_nesting() {
    broken(9, |bed| {
        let first = bed.b.control("first", &[]);
        let second = bed.b.control("second", &[]);
        let controls = &mut bed.b.program.controls;
        controls[first.index()].body.push(call_control(second.0));
        controls[second.index()].body.push(call_control(first.0));
    });
    // An action that applies its own table.
    broken(9, |bed| {
        bed.b.program.actions[1].body.push(Stmt::Apply {
            table: TableId(0),
            hit: None,
            action_run: None,
        });
    });
    let nested = |depth| {
        let mut value = bits(8, 1);
        for _ in 0..depth {
            value = add(value, bits(8, 1));
        }
        value
    };
    broken(9, |bed| {
        let a = bed.a();
        bed.push(Stmt::Assign(a, nested(600)));
    });
    let mut fine = bed();
    let a = fine.a();
    fine.push(Stmt::Assign(a, nested(500)));
    assert_eq!(verify(&fine.b.program), Ok(()));
    // 20 controls of 30 levels each call the next.
    broken(9, |bed| {
        let first = bed.b.program.controls.len() as u32;
        for index in 0..20 {
            let control = bed.b.control("c", &[]);
            let mut body = vec![call_control(first + index + 1)];
            for _ in 0..30 {
                body = vec![Stmt::Block(body)];
            }
            bed.b.program.controls[control.index()].body = body;
        }
        bed.b.control("last", &[]);
    });
}

#[test]
fn rule_10_operations() {
    broken(10, |bed| {
        let h = bed.b.field(bed.v.ingress.headers, "h");
        bed.push(extract(h));
    });
    broken(10, |bed| {
        let a = bed.b.field(bed.v.parser.headers, "h.a");
        bed.b.start().body.push(extract(a));
    });
    broken(10, |bed| {
        let s = bed.b.field(bed.v.parser.headers, "h");
        bed.b.start().body.push(builder::emit(s));
    });
    broken(10, |bed| {
        let member = ("h", Type::Header(bed.header));
        let union = bed.b.structure("u_t", &[member]);
        let result = Place::var(bed.b.var("u", Type::Union(union)));
        bed.b.start().body.push(Stmt::Op(Op::Lookahead { result }));
    });
    broken(10, |bed| {
        bed.push(Stmt::Op(Op::RegisterWrite {
            register: RegisterId(0),
            index: bits(8, 0),
            value: bits(9, 0),
        }));
    });
    broken(10, |bed| {
        bed.b.program.counters.push(Counter {
            name: "c".to_owned(),
            kind: CounterKind::Packets,
            size: 0,
            table: Some(TableId(0)),
        });
        bed.push(Stmt::Op(Op::CounterCount {
            counter: CounterId(0),
            index: bits(8, 0),
        }));
    });
    broken(10, |bed| {
        let header = Type::Header(bed.header);
        bed.b.register("headers", header, 2);
    });
    broken(5, |bed| {
        let a = bed.a();
        bed.push(Stmt::Op(Op::MarkToDrop {
            standard_metadata: a,
        }));
    });
    broken(10, |bed| {
        bed.push(Stmt::Op(Op::Assert {
            condition: bits(1, 1),
            location: String::new(),
        }));
    });
}

#[test]
fn rule_11_pipeline() {
    broken(11, |bed| {
        bed.b.program.controls[1].params.pop();
    });
    broken(11, |bed| {
        bed.b.program.controls[4].params[0].direction = Direction::InOut;
    });
    broken(11, |bed| {
        bed.b.program.parsers[0].params[0].direction = Direction::InOut;
    });
}

#[test]
fn rule_12_field_lists() {
    let list = |number, fields| FieldList { number, fields };
    broken(12, |bed| {
        bed.b.program.field_lists.push(list(1, vec![vec![4]]));
    });
    broken(12, |bed| {
        let lists = [list(1, Vec::new()), list(1, Vec::new())];
        bed.b.program.field_lists.extend(lists);
    });
}

#[test]
fn errors_say_where() {
    let mut bed = bed();
    let sum = equal(bits(8, 1), bits(9, 1));
    bed.push(builder::when(sum, Vec::new()));
    let errors = verify(&bed.b.program).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "control ingress: Eq of Bits(8) and Bits(9) gives Bool (rule 3)"
    );
}

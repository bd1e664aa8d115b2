//! A sound program that has one of everything, for tests.

use crate::*;
use num_bigint::BigUint;

pub(crate) const ETHERNET: StructId = StructId(0);
pub(crate) const TAG: StructId = StructId(1);
pub(crate) const OPTION: StructId = StructId(2);
pub(crate) const CHOICE: StructId = StructId(3);
pub(crate) const HEADERS: StructId = StructId(4);
pub(crate) const METADATA: StructId = StructId(5);
pub(crate) const STANDARD: StructId = StructId(6);
pub(crate) const TAGS: StackId = StackId(0);
pub(crate) const COLOR: EnumId = EnumId(0);

/// Position of the ingress control.
pub(crate) const INGRESS: usize = 1;

/// Variables, in the order of [`vars`].
pub(crate) mod var {
    use crate::VarId;
    pub(crate) const PARSER_HDR: VarId = VarId(0);
    pub(crate) const PEEK: VarId = VarId(3);
    pub(crate) const HDR: VarId = VarId(4);
    pub(crate) const META: VarId = VarId(5);
    pub(crate) const STD: VarId = VarId(6);
    pub(crate) const HIT: VarId = VarId(7);
    pub(crate) const RUN: VarId = VarId(8);
    pub(crate) const WIDE: VarId = VarId(9);
    pub(crate) const SIGNED: VarId = VarId(10);
    pub(crate) const SHADE: VarId = VarId(11);
    pub(crate) const FORWARD_KEY: VarId = VarId(12);
    pub(crate) const FORWARD_PORT: VarId = VarId(13);
    pub(crate) const DOUBLE_X: VarId = VarId(14);
    pub(crate) const DOUBLE_RESULT: VarId = VarId(15);
    /// The parameters of the other four controls follow.
    pub(crate) const OTHERS: u32 = 16;
}

fn var(name: &str, ty: Type) -> Var {
    Var {
        name: name.to_owned(),
        ty,
    }
}

fn vars() -> Vec<Var> {
    let (headers, metadata, standard) = (
        Type::Struct(HEADERS),
        Type::Struct(METADATA),
        Type::Struct(STANDARD),
    );
    vec![
        var("parse.hdr", headers),
        var("parse.meta", metadata),
        var("parse.std", standard),
        var("parse.peek", Type::Bits(16)),
        var("ingress.hdr", headers),
        var("ingress.meta", metadata),
        var("ingress.std", standard),
        var("ingress.tmp", Type::Bool),
        var("ingress.tmp", Type::Bits(32)),
        var("ingress.wide", Type::Bits(32)),
        var("ingress.signed", Type::Int(8)),
        var("ingress.shade", Type::Enum(COLOR)),
        var("ingress.forward.key", Type::Bits(16)),
        var("ingress.forward.port", Type::Bits(9)),
        var("double.x", Type::Bits(32)),
        var("double.result", Type::Bits(32)),
        var("verify.hdr", headers),
        var("verify.meta", metadata),
        var("egress.hdr", headers),
        var("egress.meta", metadata),
        var("egress.std", standard),
        var("compute.hdr", headers),
        var("compute.meta", metadata),
        var("deparse.hdr", headers),
    ]
}

fn def(name: &str, fields: &[(&str, Type)]) -> StructDef {
    StructDef {
        name: name.to_owned(),
        fields: fields
            .iter()
            .map(|&(name, ty)| FieldDef {
                name: name.to_owned(),
                ty,
                annotations: Vec::new(),
            })
            .collect(),
        annotations: Vec::new(),
    }
}

pub(crate) fn place(var: VarId, path: &[u32]) -> Place {
    Place {
        var,
        path: path.iter().map(|&field| Projection::Field(field)).collect(),
    }
}

pub(crate) fn big(value: u64) -> BigUint {
    BigUint::from(value)
}

pub(crate) fn bits(width: u32, value: u64) -> Expr {
    typed(Type::Bits(width), ExprKind::Const(Const::Bits(big(value))))
}

pub(crate) fn typed(ty: Type, kind: ExprKind) -> Expr {
    Expr { kind, ty }
}

pub(crate) fn read(place: Place, ty: Type) -> Expr {
    typed(ty, ExprKind::Read(place))
}

pub(crate) fn binary(op: BinaryOp, left: Expr, right: Expr, ty: Type) -> Expr {
    typed(ty, ExprKind::Binary(op, Box::new(left), Box::new(right)))
}

pub(crate) fn wide() -> Expr {
    read(Place::var(var::WIDE), Type::Bits(32))
}

pub(crate) fn set_wide(value: Expr) -> Stmt {
    Stmt::Assign(Place::var(var::WIDE), value)
}

fn params(of: &[(u32, Direction)]) -> Vec<Param> {
    of.iter()
        .map(|&(var, direction)| Param {
            var: VarId(var),
            direction,
        })
        .collect()
}

fn types(program: &mut Program) {
    program.structs = vec![
        def(
            "ethernet_t",
            &[
                ("dst", Type::Bits(48)),
                ("src", Type::Bits(48)),
                ("kind", Type::Bits(16)),
            ],
        ),
        def("tag_t", &[("label", Type::Bits(20)), ("more", Type::Bool)]),
        def(
            "option_t",
            &[("length", Type::Bits(8)), ("body", Type::Varbit(64))],
        ),
        def("choice_t", &[("tag", Type::Header(TAG))]),
        def(
            "headers_t",
            &[
                ("ethernet", Type::Header(ETHERNET)),
                ("tags", Type::Stack(TAGS)),
                ("option", Type::Header(OPTION)),
                ("choice", Type::Union(CHOICE)),
            ],
        ),
        def(
            "metadata_t",
            &[("port", Type::Bits(16)), ("failure", Type::Error)],
        ),
        def(
            "standard_metadata_t",
            &[
                ("egress_spec", Type::Bits(9)),
                ("mcast_grp", Type::Bits(16)),
            ],
        ),
    ];
    program.structs[METADATA.index()].fields[0].annotations = vec![Annotation {
        name: "field_list".to_owned(),
        body: AnnotationBody::Tokens(vec![
            AnnotationToken::Number(1.into(), "0x1".to_owned()),
            AnnotationToken::Other(",".to_owned()),
            AnnotationToken::String("\"".to_owned()),
        ]),
    }];
    program.stacks = vec![StackDef {
        element: Type::Header(TAG),
        size: 2,
    }];
    program.enums = vec![EnumDef {
        name: "Color".to_owned(),
        members: vec!["red".to_owned(), "green".to_owned()],
    }];
}

fn parser() -> Parser {
    use Direction::{InOut, Out};
    let ethernet = place(var::PARSER_HDR, &[0]);
    let mut next_tag = place(var::PARSER_HDR, &[1]);
    next_tag.path.push(Projection::Next);
    let kind = read(place(var::PARSER_HDR, &[0, 2]), Type::Bits(16));
    let last_index = typed(
        Type::Bits(32),
        ExprKind::LastIndex(place(var::PARSER_HDR, &[1])),
    );
    Parser {
        name: "Parse".to_owned(),
        params: params(&[(0, Out), (1, InOut), (2, InOut)]),
        locals: vec![var::PEEK],
        init: vec![Stmt::Assign(Place::var(var::PEEK), bits(16, 0))],
        states: vec![
            State {
                name: "start".to_owned(),
                body: vec![
                    Stmt::Op(Op::Extract {
                        header: ethernet,
                        varbit_size: None,
                    }),
                    Stmt::Op(Op::Lookahead {
                        result: Place::var(var::PEEK),
                    }),
                ],
                transition: Transition::Select {
                    keys: vec![kind, read(Place::var(var::PEEK), Type::Bits(16))],
                    cases: vec![
                        (
                            vec![KeySet::Exact(big(0x8100)), KeySet::Any],
                            Target::State(StateId(1)),
                        ),
                        (
                            vec![
                                KeySet::Mask(big(0x800), big(0xff00)),
                                KeySet::Range(big(1), big(9)),
                            ],
                            Target::Accept,
                        ),
                        (
                            vec![
                                KeySet::Member {
                                    set: ValueSetId(0),
                                    field: 0,
                                },
                                KeySet::Any,
                            ],
                            Target::Accept,
                        ),
                        (vec![KeySet::Any, KeySet::Any], Target::Reject),
                    ],
                },
            },
            State {
                name: "tag".to_owned(),
                body: vec![
                    Stmt::Op(Op::Extract {
                        header: next_tag,
                        varbit_size: None,
                    }),
                    Stmt::Op(Op::Extract {
                        header: place(var::PARSER_HDR, &[2]),
                        varbit_size: Some(bits(32, 16)),
                    }),
                    Stmt::Op(Op::Verify {
                        condition: binary(BinaryOp::Lt, last_index, bits(32, 2), Type::Bool),
                        error: typed(Type::Error, ExprKind::Const(Const::Bits(big(3)))),
                    }),
                ],
                transition: Transition::To(Target::Accept),
            },
        ],
        start: StateId(0),
    }
}

fn ingress() -> Control {
    use Direction::InOut;
    let egress_spec = || place(var::STD, &[0]);
    let mut tag = place(var::HDR, &[1]);
    tag.path.push(Projection::Index(Box::new(wide())));
    tag.path.push(Projection::Field(0));
    tag.path.push(Projection::Slice { hi: 7, lo: 4 });
    let signed = || read(Place::var(var::SIGNED), Type::Int(8));
    Control {
        name: "ingress".to_owned(),
        params: params(&[(4, InOut), (5, InOut), (6, InOut)]),
        locals: vec![var::HIT, var::RUN, var::WIDE, var::SIGNED, var::SHADE],
        body: vec![
            Stmt::Assign(
                Place::var(var::SIGNED),
                typed(Type::Int(8), ExprKind::Const(Const::Bits(big(0xff)))),
            ),
            Stmt::Assign(
                Place::var(var::SHADE),
                typed(Type::Enum(COLOR), ExprKind::Const(Const::Bits(big(1)))),
            ),
            Stmt::Assign(
                tag,
                typed(
                    Type::Bits(4),
                    ExprKind::Slice {
                        value: Box::new(signed()),
                        hi: 3,
                        lo: 0,
                    },
                ),
            ),
            Stmt::If {
                condition: typed(Type::Bool, ExprKind::IsValid(place(var::HDR, &[0]))),
                then: vec![Stmt::Apply {
                    table: TableId(0),
                    hit: Some(Place::var(var::HIT)),
                    action_run: Some(Place::var(var::RUN)),
                }],
                otherwise: vec![
                    Stmt::Unlikely,
                    Stmt::At("sample.p4:7:5".to_owned()),
                    Stmt::Op(Op::MarkToDrop {
                        standard_metadata: Place::var(var::STD),
                    }),
                ],
            },
            Stmt::Switch {
                value: read(Place::var(var::RUN), Type::Bits(32)),
                cases: vec![(vec![big(0)], vec![Stmt::SetValid(place(var::HDR, &[0]))])],
                default: vec![Stmt::Exit],
            },
            Stmt::Call {
                callee: Callee::Function(FunctionId(0)),
                args: vec![Arg::In(wide())],
                result: Some(Place::var(var::WIDE)),
            },
            Stmt::Call {
                callee: Callee::Action(ActionId(0)),
                args: vec![Arg::InOut(place(var::META, &[0])), Arg::In(bits(9, 3))],
                result: None,
            },
            Stmt::Atomic(vec![
                Stmt::Op(Op::Uses {
                    units: "part of\nall".to_owned(),
                    numbers: vec![wide(), bits(32, 3)],
                }),
                Stmt::Apart(vec![Stmt::Op(Op::RegisterWrite {
                    register: RegisterId(0),
                    index: bits(32, 1),
                    value: bits(32, 7),
                })]),
                Stmt::Op(Op::RegisterRead {
                    register: RegisterId(0),
                    index: bits(32, 0),
                    result: Place::var(var::WIDE),
                }),
                Stmt::Op(Op::RegisterWrite {
                    register: RegisterId(0),
                    index: bits(32, 0),
                    value: binary(BinaryOp::Add, wide(), bits(32, 1), Type::Bits(32)),
                }),
            ]),
            Stmt::Op(Op::CounterCount {
                counter: CounterId(0),
                index: read(egress_spec(), Type::Bits(9)),
            }),
            Stmt::Op(Op::MeterExecute {
                meter: MeterId(0),
                index: wide(),
                result: Place::var(var::WIDE),
            }),
            Stmt::Op(Op::Hash {
                result: place(var::META, &[0]),
                algorithm: HashAlgorithm::Crc32,
                base: bits(16, 0),
                data: vec![read(place(var::HDR, &[0, 0]), Type::Bits(48)), signed()],
                max: bits(32, 0x10000),
            }),
            Stmt::PopFront(place(var::HDR, &[1]), 1),
            Stmt::Op(Op::Clone {
                kind: CloneKind::IngressToEgress,
                session: bits(32, 7),
                field_list: Some(bits(8, 1)),
            }),
            Stmt::Op(Op::LogMessage {
                format: "color {}\n".to_owned(),
                values: vec![read(Place::var(var::SHADE), Type::Enum(COLOR))],
            }),
        ],
    }
}

fn control(name: &str, first: u32, directions: &[Direction], body: Vec<Stmt>) -> Control {
    Control {
        name: name.to_owned(),
        params: (first..)
            .zip(directions)
            .map(|(var, &direction)| Param {
                var: VarId(var),
                direction,
            })
            .collect(),
        locals: Vec::new(),
        body,
    }
}

fn table() -> Table {
    let key = |name: &str, field: u32, width: u32, match_kind| Key {
        name: name.to_owned(),
        expr: read(place(var::HDR, &[0, field]), Type::Bits(width)),
        match_kind,
    };
    let forward = |port| ActionCall {
        action: 0,
        data: vec![Const::Bits(big(port))],
    };
    Table {
        name: "ingress.route".to_owned(),
        keys: vec![
            key("hdr.ethernet.dst", 0, 48, MatchKind::Lpm),
            key("kind", 2, 16, MatchKind::Ternary),
        ],
        actions: vec![
            TableAction {
                action: ActionId(0),
                bound: vec![Arg::InOut(place(var::META, &[0]))],
                in_entries: true,
                as_default: true,
            },
            TableAction {
                action: ActionId(1),
                bound: Vec::new(),
                in_entries: false,
                as_default: true,
            },
        ],
        default_action: ActionCall {
            action: 1,
            data: Vec::new(),
        },
        const_default: true,
        entries: vec![
            Entry {
                keys: vec![KeySet::Prefix(big(0xaa << 40), 8), KeySet::Any],
                priority: 2,
                call: forward(1),
                is_const: true,
            },
            Entry {
                keys: vec![KeySet::Any, KeySet::Mask(big(0x800), big(0xffff))],
                priority: 1,
                call: forward(2),
                is_const: false,
            },
        ],
        const_entries: false,
        size: 1024,
        direct_counter: Some(CounterId(1)),
        direct_meter: Some(MeterId(1)),
        support_timeout: true,
        implementation: Some(ActionProfileId(0)),
        annotations: Vec::new(),
    }
}

fn objects(program: &mut Program) {
    program.registers = vec![Register {
        name: "ingress.total".to_owned(),
        element: Type::Bits(32),
        size: 16,
        annotations: vec![Annotation {
            name: UNIT.to_owned(),
            body: AnnotationBody::Values(vec![
                AnnotationValue::String("part of\nall".to_owned()),
                AnnotationValue::Int(4.into()),
            ]),
        }],
    }];
    let counter = |name: &str, size, table| Counter {
        name: name.to_owned(),
        kind: CounterKind::PacketsAndBytes,
        size,
        table,
    };
    program.counters = vec![
        counter("ingress.ports", 512, None),
        counter("ingress.hits", 0, Some(TableId(0))),
    ];
    let meter = |name: &str, size, table| Meter {
        name: name.to_owned(),
        bytes: true,
        size,
        table,
    };
    program.meters = vec![
        meter("ingress.rate", 64, None),
        meter("ingress.police", 0, Some(TableId(0))),
    ];
}

/// The program.
#[allow(clippy::too_many_lines, reason = "one of each kind of declaration")]
pub(crate) fn program() -> Program {
    use Direction::{Data, In, InOut};
    let errors = [
        "NoError",
        "PacketTooShort",
        "NoMatch",
        "StackOutOfBounds",
        "HeaderTooShort",
        "ParserTimeout",
        "ParserInvalidArgument",
        "Odd",
    ];
    let emits = (0..4)
        .map(|field| {
            Stmt::Op(Op::Emit {
                value: place(VarId(var::OTHERS + 7), &[field]),
            })
        })
        .collect();
    let mut program = Program {
        structs: Vec::new(),
        stacks: Vec::new(),
        enums: Vec::new(),
        errors: errors.map(str::to_owned).to_vec(),
        vars: vars(),
        parsers: vec![parser()],
        controls: vec![
            control("verify", var::OTHERS, &[InOut, InOut], Vec::new()),
            ingress(),
            control(
                "egress",
                var::OTHERS + 2,
                &[InOut, InOut, InOut],
                Vec::new(),
            ),
            control("compute", var::OTHERS + 5, &[InOut, InOut], Vec::new()),
            control("deparse", var::OTHERS + 7, &[In], emits),
        ],
        actions: vec![
            Action {
                name: "ingress.forward".to_owned(),
                params: params(&[(12, InOut), (13, Data)]),
                locals: Vec::new(),
                body: vec![
                    Stmt::Assign(
                        place(var::STD, &[0]),
                        read(Place::var(var::FORWARD_PORT), Type::Bits(9)),
                    ),
                    Stmt::Op(Op::DirectMeterRead {
                        meter: MeterId(1),
                        result: Place::var(var::FORWARD_KEY),
                    }),
                ],
                annotations: Vec::new(),
            },
            Action {
                name: "NoAction".to_owned(),
                params: Vec::new(),
                locals: Vec::new(),
                body: Vec::new(),
                annotations: vec![
                    Annotation::text("noWarn", "unused"),
                    Annotation {
                        name: "list".to_owned(),
                        body: AnnotationBody::Values(vec![
                            AnnotationValue::String("a".to_owned()),
                            AnnotationValue::Int(7.into()),
                        ]),
                    },
                ],
            },
        ],
        functions: vec![Function {
            name: "double".to_owned(),
            params: params(&[(14, In)]),
            locals: vec![var::DOUBLE_RESULT],
            result: Some(var::DOUBLE_RESULT),
            body: vec![
                Stmt::Assign(
                    Place::var(var::DOUBLE_RESULT),
                    binary(
                        BinaryOp::Shl,
                        read(Place::var(var::DOUBLE_X), Type::Bits(32)),
                        bits(1, 1),
                        Type::Bits(32),
                    ),
                ),
                Stmt::Loop {
                    body: vec![
                        Stmt::If {
                            condition: binary(
                                BinaryOp::Lt,
                                read(Place::var(var::DOUBLE_RESULT), Type::Bits(32)),
                                bits(32, 9),
                                Type::Bool,
                            ),
                            then: vec![Stmt::Continue],
                            otherwise: Vec::new(),
                        },
                        Stmt::Break,
                    ],
                    update: vec![Stmt::Assign(Place::var(var::DOUBLE_RESULT), bits(32, 9))],
                },
                Stmt::Return,
            ],
        }],
        tables: vec![table()],
        registers: Vec::new(),
        counters: Vec::new(),
        meters: Vec::new(),
        value_sets: vec![ValueSet {
            name: "Parse.kinds".to_owned(),
            fields: vec![ValueSetField {
                name: String::new(),
                width: 16,
                match_kind: MatchKind::Exact,
            }],
            size: 4,
            annotations: Vec::new(),
        }],
        action_profiles: vec![ActionProfile {
            name: "Ingress.members".to_owned(),
            size: 16,
            selector: Some(Selector {
                algorithm: HashAlgorithm::Crc16,
                output_width: 14,
            }),
            annotations: vec![Annotation {
                name: "mode".to_owned(),
                body: AnnotationBody::Pairs(vec![
                    ("fair".to_owned(), AnnotationValue::Bool(true)),
                    ("match".to_owned(), AnnotationValue::Int((-3).into())),
                ]),
            }],
        }],
        field_lists: vec![FieldList {
            number: 1,
            fields: vec![vec![0]],
        }],
        pipeline: Pipeline {
            parser: ParserId(0),
            verify_checksum: ControlId(0),
            ingress: ControlId(1),
            egress: ControlId(2),
            compute_checksum: ControlId(3),
            deparser: ControlId(4),
            headers: Type::Struct(HEADERS),
            metadata: Type::Struct(METADATA),
            standard_metadata: STANDARD,
        },
    };
    types(&mut program);
    objects(&mut program);
    program
}

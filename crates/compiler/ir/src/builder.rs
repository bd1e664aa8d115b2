//! Building programs by hand, for tests and tools.
//!
//! ```
//! use stateplane_ir::builder::{Builder, bits};
//! use stateplane_ir::{Stmt, Type};
//!
//! let mut b = Builder::new();
//! let ethernet = b.header("ethernet_t", &[("dst", 48), ("src", 48), ("type", 16)]);
//! let headers = b.structure("headers", &[("ethernet", Type::Header(ethernet))]);
//! let metadata = b.structure("metadata", &[]);
//! let v1 = b.pipeline(headers, metadata);
//! let spec = b.field(v1.ingress.standard, "egress_spec");
//! b.ingress().push(Stmt::Assign(spec, bits(9, 3)));
//! let program = b.finish().unwrap();
//! assert_eq!(program.controls.len(), 5);
//! ```

use crate::*;
use num_bigint::BigUint;

/// Names of core.p4's errors in its order.
pub const CORE_ERRORS: [&str; 7] = [
    "NoError",
    "PacketTooShort",
    "NoMatch",
    "StackOutOfBounds",
    "HeaderTooShort",
    "ParserTimeout",
    "ParserInvalidArgument",
];

/// Fields of v1model's `standard_metadata_t` and their widths; `parser_error` is an
/// `error`.
pub const STANDARD_METADATA: [(&str, u32); 16] = [
    ("ingress_port", 9),
    ("egress_spec", 9),
    ("egress_port", 9),
    ("instance_type", 32),
    ("packet_length", 32),
    ("enq_timestamp", 32),
    ("enq_qdepth", 19),
    ("deq_timedelta", 32),
    ("deq_qdepth", 19),
    ("ingress_global_timestamp", 48),
    ("egress_global_timestamp", 48),
    ("mcast_grp", 16),
    ("egress_rid", 16),
    ("checksum_error", 1),
    ("parser_error", 0),
    ("priority", 3),
];

/// Variables of one block of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct BlockVars {
    /// The headers.
    pub headers: VarId,
    /// The user metadata.
    pub metadata: VarId,
    /// The standard metadata; of blocks without it, an unused variable.
    pub standard: VarId,
}

/// Variables of all blocks.
#[derive(Clone, Copy, Debug)]
pub struct PipelineVars {
    /// Parser.
    pub parser: BlockVars,
    /// VerifyChecksum.
    pub verify: BlockVars,
    /// Ingress.
    pub ingress: BlockVars,
    /// Egress.
    pub egress: BlockVars,
    /// ComputeChecksum.
    pub compute: BlockVars,
    /// Deparser.
    pub deparser: BlockVars,
}

/// A program under construction. Everything in it may be changed directly too.
#[derive(Clone, Debug)]
pub struct Builder {
    /// The program so far.
    pub program: Program,
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

impl Builder {
    /// A program with core.p4's errors and nothing else.
    pub fn new() -> Builder {
        Builder {
            program: Program {
                structs: Vec::new(),
                stacks: Vec::new(),
                enums: Vec::new(),
                errors: CORE_ERRORS.map(str::to_owned).to_vec(),
                vars: Vec::new(),
                parsers: Vec::new(),
                controls: Vec::new(),
                actions: Vec::new(),
                functions: Vec::new(),
                tables: Vec::new(),
                registers: Vec::new(),
                counters: Vec::new(),
                meters: Vec::new(),
                value_sets: Vec::new(),
                action_profiles: Vec::new(),
                field_lists: Vec::new(),
                pipeline: Pipeline {
                    parser: ParserId(0),
                    verify_checksum: ControlId(0),
                    ingress: ControlId(1),
                    egress: ControlId(2),
                    compute_checksum: ControlId(3),
                    deparser: ControlId(4),
                    headers: Type::Struct(StructId(0)),
                    metadata: Type::Struct(StructId(0)),
                    standard_metadata: StructId(0),
                },
            },
        }
    }

    /// A struct with typed members.
    pub fn structure(&mut self, name: &str, fields: &[(&str, Type)]) -> StructId {
        self.program.structs.push(StructDef {
            name: name.to_owned(),
            fields: fields
                .iter()
                .map(|(name, ty)| FieldDef {
                    name: (*name).to_owned(),
                    ty: *ty,
                    annotations: Vec::new(),
                })
                .collect(),
            annotations: Vec::new(),
        });
        StructId(self.program.structs.len() as u32 - 1)
    }

    /// A header of `bit<W>` fields.
    pub fn header(&mut self, name: &str, fields: &[(&str, u32)]) -> StructId {
        let fields: Vec<(&str, Type)> = fields
            .iter()
            .map(|(name, width)| (*name, Type::Bits(*width)))
            .collect();
        self.structure(name, &fields)
    }

    /// A stack of headers.
    pub fn stack(&mut self, element: Type, size: u32) -> StackId {
        self.program.stacks.push(StackDef { element, size });
        StackId(self.program.stacks.len() as u32 - 1)
    }

    /// A variable.
    pub fn var(&mut self, name: &str, ty: Type) -> VarId {
        self.program.vars.push(Var {
            name: name.to_owned(),
            ty,
        });
        VarId(self.program.vars.len() as u32 - 1)
    }

    /// An action without directed parameters, whose action data are `data`.
    pub fn action(&mut self, name: &str, data: &[VarId], body: Vec<Stmt>) -> ActionId {
        self.program.actions.push(Action {
            name: name.to_owned(),
            params: data
                .iter()
                .map(|&var| Param {
                    var,
                    direction: Direction::Data,
                })
                .collect(),
            locals: Vec::new(),
            body,
            annotations: Vec::new(),
        });
        ActionId(self.program.actions.len() as u32 - 1)
    }

    /// A table of 1024 entries whose default action is the last of `actions`, which
    /// has no action data.
    pub fn table(
        &mut self,
        name: &str,
        keys: Vec<(MatchKind, Expr)>,
        actions: &[ActionId],
    ) -> TableId {
        self.program.tables.push(Table {
            name: name.to_owned(),
            keys: keys
                .into_iter()
                .enumerate()
                .map(|(index, (match_kind, expr))| Key {
                    name: format!("key{index}"),
                    expr,
                    match_kind,
                })
                .collect(),
            actions: actions
                .iter()
                .map(|&action| TableAction {
                    action,
                    bound: Vec::new(),
                    in_entries: true,
                    as_default: true,
                })
                .collect(),
            default_action: ActionCall {
                action: (actions.len() as u32).saturating_sub(1),
                data: Vec::new(),
            },
            const_default: false,
            entries: Vec::new(),
            const_entries: false,
            size: 1024,
            direct_counter: None,
            direct_meter: None,
            support_timeout: false,
            implementation: None,
            annotations: Vec::new(),
        });
        TableId(self.program.tables.len() as u32 - 1)
    }

    /// A register array.
    pub fn register(&mut self, name: &str, element: Type, size: u64) -> RegisterId {
        self.program.registers.push(Register {
            name: name.to_owned(),
            element,
            size,
            annotations: Vec::new(),
        });
        RegisterId(self.program.registers.len() as u32 - 1)
    }

    /// A control without parameters that is called by other controls.
    pub fn control(&mut self, name: &str, params: &[(VarId, Direction)]) -> ControlId {
        self.program.controls.push(Control {
            name: name.to_owned(),
            params: params
                .iter()
                .map(|&(var, direction)| Param { var, direction })
                .collect(),
            locals: Vec::new(),
            body: Vec::new(),
        });
        ControlId(self.program.controls.len() as u32 - 1)
    }

    fn block_vars(&mut self, block: &str, headers: Type, metadata: Type) -> BlockVars {
        let standard = Type::Struct(self.program.pipeline.standard_metadata);
        BlockVars {
            headers: self.var(&format!("{block}.hdr"), headers),
            metadata: self.var(&format!("{block}.meta"), metadata),
            standard: self.var(&format!("{block}.standard_metadata"), standard),
        }
    }

    /// The six blocks, all empty; the parser has one state, which accepts. To be
    /// called once, before any control or parser is added.
    pub fn pipeline(&mut self, headers: StructId, metadata: StructId) -> PipelineVars {
        let fields: Vec<(&str, Type)> = STANDARD_METADATA
            .iter()
            .map(|&(name, width)| match name {
                "parser_error" => (name, Type::Error),
                _ => (name, Type::Bits(width)),
            })
            .collect();
        let standard_metadata = self.structure("standard_metadata_t", &fields);
        let (headers, metadata) = (Type::Struct(headers), Type::Struct(metadata));
        let pipeline = &mut self.program.pipeline;
        pipeline.headers = headers;
        pipeline.metadata = metadata;
        pipeline.standard_metadata = standard_metadata;
        let vars = PipelineVars {
            parser: self.block_vars("parser", headers, metadata),
            verify: self.block_vars("verify", headers, metadata),
            ingress: self.block_vars("ingress", headers, metadata),
            egress: self.block_vars("egress", headers, metadata),
            compute: self.block_vars("compute", headers, metadata),
            deparser: self.block_vars("deparser", headers, metadata),
        };
        use Direction::{In, InOut, Out};
        let two = |vars: BlockVars| [(vars.headers, InOut), (vars.metadata, InOut)];
        let three = |vars: BlockVars| {
            [
                (vars.headers, InOut),
                (vars.metadata, InOut),
                (vars.standard, InOut),
            ]
        };
        self.program.parsers.push(Parser {
            name: "parser".to_owned(),
            params: [
                (vars.parser.headers, Out),
                (vars.parser.metadata, InOut),
                (vars.parser.standard, InOut),
            ]
            .map(|(var, direction)| Param { var, direction })
            .to_vec(),
            locals: Vec::new(),
            init: Vec::new(),
            states: vec![State {
                name: "start".to_owned(),
                body: Vec::new(),
                transition: Transition::To(Target::Accept),
            }],
            start: StateId(0),
        });
        self.control("verify", &two(vars.verify));
        self.control("ingress", &three(vars.ingress));
        self.control("egress", &three(vars.egress));
        self.control("compute", &two(vars.compute));
        self.control("deparser", &[(vars.deparser.headers, In)]);
        vars
    }

    /// Statements of the parser's state `start`.
    pub fn start(&mut self) -> &mut State {
        &mut self.program.parsers[0].states[0]
    }

    /// Adds a state to the parser.
    pub fn state(&mut self, name: &str, body: Vec<Stmt>, transition: Transition) -> StateId {
        let states = &mut self.program.parsers[0].states;
        states.push(State {
            name: name.to_owned(),
            body,
            transition,
        });
        StateId(states.len() as u32 - 1)
    }

    fn body(&mut self, control: ControlId) -> &mut Vec<Stmt> {
        &mut self.program.controls[control.index()].body
    }

    /// Statements of VerifyChecksum.
    pub fn verify_checksum(&mut self) -> &mut Vec<Stmt> {
        self.body(self.program.pipeline.verify_checksum)
    }

    /// Statements of ingress.
    pub fn ingress(&mut self) -> &mut Vec<Stmt> {
        self.body(self.program.pipeline.ingress)
    }

    /// Statements of egress.
    pub fn egress(&mut self) -> &mut Vec<Stmt> {
        self.body(self.program.pipeline.egress)
    }

    /// Statements of ComputeChecksum.
    pub fn compute_checksum(&mut self) -> &mut Vec<Stmt> {
        self.body(self.program.pipeline.compute_checksum)
    }

    /// Statements of the deparser.
    pub fn deparser(&mut self) -> &mut Vec<Stmt> {
        self.body(self.program.pipeline.deparser)
    }

    /// The place of a member, by names with dots: `ethernet.dst`.
    ///
    /// # Panics
    ///
    /// Panics if there is no such member.
    pub fn field(&self, var: VarId, path: &str) -> Place {
        self.member(Place::var(var), path)
    }

    /// The place of a member of a place, by names with dots.
    ///
    /// # Panics
    ///
    /// Panics if there is no such member.
    pub fn member(&self, mut place: Place, path: &str) -> Place {
        for name in path.split('.') {
            let fields = match self.program.place_type(&place) {
                Some(Type::Struct(id) | Type::Header(id) | Type::Union(id)) => {
                    &self.program.structs[id.index()].fields
                }
                other => panic!("{place:?} of type {other:?} has no member {name}"),
            };
            match fields.iter().position(|field| field.name == name) {
                Some(position) => place.path.push(Projection::Field(position as u32)),
                None => panic!("there is no member {name} in {path}"),
            }
        }
        place
    }

    /// Reads a place.
    ///
    /// # Panics
    ///
    /// Panics if the place does not exist.
    pub fn read(&self, place: &Place) -> Expr {
        match self.program.place_type(place) {
            Some(ty) => Expr {
                kind: ExprKind::Read(place.clone()),
                ty,
            },
            None => panic!("{place:?} does not exist"),
        }
    }

    /// Reads a variable.
    pub fn get(&self, var: VarId) -> Expr {
        self.read(&Place::var(var))
    }

    /// The program, verified.
    ///
    /// # Errors
    ///
    /// Returns the errors of the verifier.
    pub fn finish(self) -> Result<Program, Vec<VerifyError>> {
        verify(&self.program)?;
        Ok(self.program)
    }
}

/// A constant of type `bit<width>`.
pub fn bits(width: u32, value: u128) -> Expr {
    big_bits(width, BigUint::from(value))
}

/// A constant of type `bit<width>`.
pub fn big_bits(width: u32, value: BigUint) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bits(value)),
        ty: Type::Bits(width),
    }
}

/// A constant of type `int<width>`.
pub fn int(width: u32, value: i128) -> Expr {
    let modulus = BigUint::from(1u32) << width;
    let magnitude = BigUint::from(value.unsigned_abs()) % &modulus;
    let value = if value < 0 {
        (&modulus - magnitude) % modulus
    } else {
        magnitude
    };
    Expr {
        kind: ExprKind::Const(Const::Bits(value)),
        ty: Type::Int(width),
    }
}

/// A constant of type `bool`.
pub fn boolean(value: bool) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bool(value)),
        ty: Type::Bool,
    }
}

/// A constant `error`.
pub fn error(index: u32) -> Expr {
    Expr {
        kind: ExprKind::Const(Const::Bits(BigUint::from(index))),
        ty: Type::Error,
    }
}

/// `op` on two values; comparisons and logic give `bool`, `++` the sum of the
/// widths, all others the left operand's type.
pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    let ty = op.result_type(left.ty, right.ty);
    Expr {
        kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
        ty,
    }
}

/// `op` on a value of its own type.
pub fn unary(op: UnaryOp, value: Expr) -> Expr {
    Expr {
        ty: value.ty,
        kind: ExprKind::Unary(op, Box::new(value)),
    }
}

/// `left == right`.
pub fn equal(left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Eq, left, right)
}

/// `left + right`.
pub fn add(left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Add, left, right)
}

/// Conversion to `ty`.
pub fn cast(ty: Type, value: Expr) -> Expr {
    Expr {
        kind: ExprKind::Cast(Box::new(value)),
        ty,
    }
}

/// `value[hi:lo]`.
pub fn slice(value: Expr, hi: u32, lo: u32) -> Expr {
    Expr {
        kind: ExprKind::Slice {
            value: Box::new(value),
            hi,
            lo,
        },
        ty: Type::Bits(hi + 1 - lo),
    }
}

/// `condition ? then : otherwise`.
pub fn mux(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr {
        ty: then.ty,
        kind: ExprKind::Mux {
            condition: Box::new(condition),
            then: Box::new(then),
            otherwise: Box::new(otherwise),
        },
    }
}

/// `place.isValid()`.
pub fn is_valid(place: Place) -> Expr {
    Expr {
        kind: ExprKind::IsValid(place),
        ty: Type::Bool,
    }
}

/// `if (condition) { then }`.
pub fn when(condition: Expr, then: Vec<Stmt>) -> Stmt {
    Stmt::If {
        condition,
        then,
        otherwise: Vec::new(),
    }
}

/// `packet.extract(header)`.
pub fn extract(header: Place) -> Stmt {
    Stmt::Op(Op::Extract {
        header,
        varbit_size: None,
    })
}

/// `packet.emit(value)`.
pub fn emit(value: Place) -> Stmt {
    Stmt::Op(Op::Emit { value })
}

//! The flows of a replicated program, as far as its text tells them: classes, bytes of state,
//! shards. A switch compares them with what the store keeps.

use crate::misuse::{METADATA, member};
use stateplane_ir::{
    Arg, BinaryOp, Callee, Const, Expr, ExprKind, Op, Param, Place, Program, Stmt, Type, VarId,
};
use std::collections::BTreeSet;

/// Register of the flows' states.
const VALUE: &str = "slot_value";

/// Bits of a class, the first byte of a key.
const CLASS_BITS: u32 = 8;

/// Deepest chain of copies that a value is followed through.
const MOST_COPIES: usize = 32;

/// Flows of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flows {
    /// Classes that stand as constants in front of the keys; those that the program computes are
    /// missing.
    pub classes: BTreeSet<u8>,
    /// Bytes of a flow's state.
    pub state_length: u16,
    /// Number of shards among which keys are distributed, if it is a constant.
    pub shards: Option<u16>,
}

impl Flows {
    /// The flows of a program that includes the replication library; `None` of any other.
    pub fn of(program: &Program) -> Option<Flows> {
        program.structs.iter().find(|it| it.name == METADATA)?;
        let value = program.registers.iter().find(|it| it.name.ends_with(VALUE));
        let bits = value.map_or(0, |register| match register.element {
            Type::Bits(width) => width,
            _ => 0,
        });
        let mut search = Search {
            program,
            seen: Vec::new(),
            classes: BTreeSet::new(),
        };
        let mut shards = BTreeSet::new();
        for statement in statements(program) {
            match statement {
                Stmt::Assign(place, value) if is_member(program, place, "key") => {
                    search.first_byte(value, MOST_COPIES);
                }
                Stmt::Call { callee, args, .. } => {
                    for (arg, param) in args.iter().zip(params(program, *callee)) {
                        if let Arg::Out(place) | Arg::InOut(place) = arg
                            && is_member(program, place, "key")
                        {
                            search.of_variable(param.var, MOST_COPIES);
                        }
                    }
                }
                Stmt::Op(Op::Hash { result, max, .. }) if is_member(program, result, "shard") => {
                    shards.extend(constant(max).and_then(|(value, _)| u16::try_from(value).ok()));
                }
                _ => {}
            }
        }
        Some(Flows {
            classes: search.classes,
            state_length: bits.div_ceil(8) as u16,
            shards: shards.first().copied().filter(|_| shards.len() == 1),
        })
    }
}

/// Follows values back to constants.
struct Search<'p> {
    program: &'p Program,
    /// Places that were followed.
    seen: Vec<Place>,
    classes: BTreeSet<u8>,
}

impl Search<'_> {
    /// Notes the constants that are the first byte of `value`.
    fn first_byte(&mut self, value: &Expr, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        if let Some((value, width)) = constant(value) {
            // A key of 0 is that of no flow.
            if value != 0 && width >= CLASS_BITS {
                let class = value >> (width - CLASS_BITS);
                self.classes.extend(u8::try_from(class));
            }
            return;
        }
        match &value.kind {
            ExprKind::Binary(BinaryOp::Concat, first, _) if width(first) >= CLASS_BITS => {
                self.first_byte(first, depth);
            }
            ExprKind::Cast(inner) if width(inner) == width(value) => self.first_byte(inner, depth),
            ExprKind::Mux {
                then, otherwise, ..
            } => {
                self.first_byte(then, depth);
                self.first_byte(otherwise, depth);
            }
            ExprKind::Read(place) => self.of_place(place, depth),
            _ => {}
        }
    }

    fn of_variable(&mut self, var: VarId, depth: usize) {
        let path = Vec::new();
        self.of_place(&Place { var, path }, depth);
    }

    /// Notes what is written to a place.
    fn of_place(&mut self, place: &Place, depth: usize) {
        let library = is_member(self.program, place, "key");
        if library || self.seen.contains(place) {
            return;
        }
        self.seen.push(place.clone());
        let program = self.program;
        for statement in statements(program) {
            match statement {
                Stmt::Assign(to, value) if to == place => self.first_byte(value, depth),
                Stmt::Call {
                    callee,
                    args,
                    result,
                } => {
                    for (arg, param) in args.iter().zip(params(program, *callee)) {
                        match arg {
                            Arg::Out(to) | Arg::InOut(to) if to == place => {
                                self.of_variable(param.var, depth);
                            }
                            Arg::In(value) if place.path.is_empty() && param.var == place.var => {
                                self.first_byte(value, depth);
                            }
                            _ => {}
                        }
                    }
                    if let (Callee::Function(id), true) = (callee, result.as_ref() == Some(place))
                        && let Some(var) = program.functions[id.index()].result
                    {
                        self.of_variable(var, depth);
                    }
                }
                _ => {}
            }
        }
    }
}

fn is_member(program: &Program, place: &Place, name: &str) -> bool {
    member(program, place).is_some_and(|(of, field, _)| of == METADATA && field == name)
}

fn width(value: &Expr) -> u32 {
    match value.ty {
        Type::Bits(width) => width,
        _ => 0,
    }
}

/// A constant of at most 128 bits, and its width.
fn constant(value: &Expr) -> Option<(u128, u32)> {
    match &value.kind {
        ExprKind::Const(Const::Bits(bits)) => Some((u128::try_from(bits).ok()?, width(value))),
        _ => None,
    }
}

fn params(program: &Program, callee: Callee) -> &[Param] {
    match callee {
        Callee::Action(id) => &program.actions[id.index()].params,
        Callee::Function(id) => &program.functions[id.index()].params,
        Callee::Control(id) => &program.controls[id.index()].params,
        Callee::Parser(id) => &program.parsers[id.index()].params,
    }
}

/// All statements of a program, those inside others too.
fn statements(program: &Program) -> Vec<&Stmt> {
    let controls = program.controls.iter().map(|it| &it.body);
    let actions = program.actions.iter().map(|it| &it.body);
    let functions = program.functions.iter().map(|it| &it.body);
    let states = program.parsers.iter().flat_map(|it| &it.states);
    let bodies = controls.chain(actions).chain(functions);
    let mut all = Vec::new();
    for body in bodies.chain(states.map(|state| &state.body)) {
        append(body, &mut all);
    }
    all
}

fn append<'p>(body: &'p [Stmt], all: &mut Vec<&'p Stmt>) {
    for statement in body {
        all.push(statement);
        match statement {
            Stmt::If {
                then, otherwise, ..
            } => {
                append(then, all);
                append(otherwise, all);
            }
            Stmt::Switch { cases, default, .. } => {
                for (_, body) in cases {
                    append(body, all);
                }
                append(default, all);
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => append(body, all),
            Stmt::Loop { body, update } => {
                append(body, all);
                append(update, all);
            }
            _ => {}
        }
    }
}

//! Inlined callables, and their arguments that are passed by reference.

use super::each_within;
use stateplane_ir::{Arg, Callee, Direction, ExprKind, Param, Place, Program, Projection, Stmt};
use stateplane_ir::{TableId, Type};

/// Statements that a program may have after all calls have been replaced by what they
/// call. Above, larger callables with more than one caller are made once: such code is up to ten times as
/// slow and takes longer to make, so that the limit only bounds what grows without reason. A program of
/// 128 synchronised registers has 100,000.
const INLINE_LIMIT: u64 = 250_000;

/// Callables up to this many statements become part of their callers in any case.
const SMALL: u64 = 24;

/// Binding of a parameter to its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// Copied in, or out, or both.
    Copy,
    /// The parameter is the argument's place, from this word on.
    Reference(usize),
}

/// Facts about the calls of a program.
#[derive(Debug)]
pub(crate) struct Calls {
    /// True if all callables become part of their callers.
    pub(crate) inline_all: bool,
    actions: Vec<u64>,
    functions: Vec<u64>,
    controls: Vec<u64>,
    parsers: Vec<u64>,
    /// Variables that some statement writes, other than by copying in.
    written: Vec<bool>,
}

struct Weights<'a> {
    program: &'a Program,
    actions: Vec<Option<u64>>,
    functions: Vec<Option<u64>>,
    controls: Vec<Option<u64>>,
    parsers: Vec<Option<u64>>,
}

impl Weights<'_> {
    fn callee(&mut self, callee: Callee) -> u64 {
        let program = self.program;
        let known = match callee {
            Callee::Action(id) => self.actions[id.index()],
            Callee::Function(id) => self.functions[id.index()],
            Callee::Control(id) => self.controls[id.index()],
            Callee::Parser(id) => self.parsers[id.index()],
        };
        if let Some(weight) = known {
            return weight;
        }
        let weight = match callee {
            Callee::Action(id) => self.stmts(&program.actions[id.index()].body),
            Callee::Function(id) => self.stmts(&program.functions[id.index()].body),
            Callee::Control(id) => self.stmts(&program.controls[id.index()].body),
            Callee::Parser(id) => {
                let parser = &program.parsers[id.index()];
                let states = parser.states.iter();
                let states: u64 = states.map(|state| 2 + self.stmts(&state.body)).sum();
                self.stmts(&parser.init).saturating_add(states)
            }
        };
        let slot = match callee {
            Callee::Action(id) => &mut self.actions[id.index()],
            Callee::Function(id) => &mut self.functions[id.index()],
            Callee::Control(id) => &mut self.controls[id.index()],
            Callee::Parser(id) => &mut self.parsers[id.index()],
        };
        *slot = Some(weight);
        weight
    }

    fn table(&mut self, table: TableId) -> u64 {
        let actions = &self.program.tables[table.index()].actions;
        let actions = actions.iter();
        actions.fold(4, |sum, listed| {
            sum.saturating_add(self.callee(Callee::Action(listed.action)))
        })
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> u64 {
        let mut calls = Vec::new();
        let mut weight = 0u64;
        each_within(stmts, &mut |stmt| {
            weight += 1;
            match stmt {
                Stmt::Apply { table, .. } => calls.push(Err(*table)),
                Stmt::Call { callee, .. } => calls.push(Ok(*callee)),
                _ => {}
            }
        });
        for call in calls {
            let inner = match call {
                Ok(callee) => self.callee(callee),
                Err(table) => self.table(table),
            };
            weight = weight.saturating_add(inner);
        }
        weight
    }
}

impl Calls {
    pub(crate) fn new(program: &Program) -> Calls {
        let mut weights = Weights {
            program,
            actions: vec![None; program.actions.len()],
            functions: vec![None; program.functions.len()],
            controls: vec![None; program.controls.len()],
            parsers: vec![None; program.parsers.len()],
        };
        let pipeline = &program.pipeline;
        let mut total = weights.callee(Callee::Parser(pipeline.parser));
        for control in [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ] {
            total = total.saturating_add(weights.callee(Callee::Control(control)));
        }
        let known = |weights: Vec<Option<u64>>| {
            let weights = weights.into_iter();
            weights.map(|weight| weight.unwrap_or(0)).collect()
        };
        Calls {
            inline_all: total <= INLINE_LIMIT,
            actions: known(weights.actions),
            functions: known(weights.functions),
            controls: known(weights.controls),
            parsers: known(weights.parsers),
            written: written_variables(program),
        }
    }

    /// True if a callable becomes part of its callers.
    pub(crate) fn inlines(&self, callee: Callee) -> bool {
        let weight = match callee {
            Callee::Action(id) => self.actions[id.index()],
            Callee::Function(id) => self.functions[id.index()],
            Callee::Control(id) => self.controls[id.index()],
            // Their states are blocks of the caller.
            Callee::Parser(id) => self.parsers[id.index()],
        };
        self.inline_all || weight <= SMALL
    }

    /// Bindings of a callable's parameters.
    ///
    /// A parameter can be its argument's place where that is fixed, no other written argument
    /// overlaps it, and the callable has no other access to it: actions see the variables of their
    /// control, so theirs are copied.
    pub(crate) fn bindings(
        &self,
        program: &Program,
        callee: Callee,
        params: &[Param],
        args: &[Arg],
        resolve: impl Fn(&Place) -> Option<(usize, usize)>,
    ) -> Vec<Binding> {
        let copies = vec![Binding::Copy; args.len()];
        if !self.inline_all || matches!(callee, Callee::Action(_)) {
            return copies;
        }
        let places: Vec<Option<(usize, usize)>> = args
            .iter()
            .map(|arg| match arg {
                Arg::InOut(place) | Arg::Out(place) => resolve(place),
                Arg::In(value) => match &value.kind {
                    ExprKind::Read(place) => resolve(place),
                    _ => None,
                },
            })
            .collect();
        let writes = |arg: &Arg| !matches!(arg, Arg::In(_));
        let overlap = |a: usize, b: usize| match (places[a], places[b]) {
            (Some((a, a_end)), Some((b, b_end))) => a < b_end && b < a_end,
            // A place that is not fixed may lie anywhere.
            _ => true,
        };
        let free = |index: usize| {
            (0..args.len()).all(|other| {
                let harmless = !writes(&args[index]) && !writes(&args[other]);
                let copied = !writes(&args[other]) && places[other].is_none();
                other == index || harmless || copied || !overlap(index, other)
            })
        };
        let mut bindings = copies;
        for (index, (param, arg)) in params.iter().zip(args).enumerate() {
            let ty = program.vars[param.var.index()].ty;
            let composite = matches!(
                ty,
                Type::Struct(_) | Type::Header(_) | Type::Union(_) | Type::Stack(_)
            );
            let kept = match arg {
                Arg::In(_) => param.direction == Direction::In && !self.written[param.var.index()],
                _ => true,
            };
            // A parser that copies an argument out has no code for each of its paths.
            let referable = composite || (matches!(callee, Callee::Parser(_)) && writes(arg));
            if let Some((at, _)) = places[index]
                && referable
                && kept
                && free(index)
            {
                bindings[index] = Binding::Reference(at);
            }
        }
        bindings
    }
}

/// A place's variable is written by these statements.
fn written_variables(program: &Program) -> Vec<bool> {
    let mut written = vec![false; program.vars.len()];
    super::each_statement(program, &mut |stmt| {
        super::writes::each_written(stmt, &mut |place| written[place.var.index()] = true);
    });
    for table in &program.tables {
        for arg in table.actions.iter().flat_map(|listed| &listed.bound) {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                written[place.var.index()] = true;
            }
        }
    }
    written
}

/// First word and end of a place that is fixed: only members, and none of a union's.
pub(crate) fn fixed_place(
    program: &Program,
    storage: &stateplane_runtime::Storage,
    bases: &[usize],
    place: &Place,
) -> Option<(usize, usize)> {
    let mut ty = program.vars[place.var.index()].ty;
    let mut at = bases[place.var.index()];
    for step in &place.path {
        let Projection::Field(field) = step else {
            return None;
        };
        if matches!(ty, Type::Union(_)) {
            return None;
        }
        at += storage.layout.field_offset(ty, *field);
        ty = program.step_type(ty, step)?;
    }
    Some((at, at + storage.layout.words(ty)))
}

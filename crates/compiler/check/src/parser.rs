//! Parsers: states and transitions.

use crate::checker::Checker;
use crate::codes;
use crate::doubt::Cases;
use crate::types::{StructKind, Ty};
use crate::value::ValueKind;
use indexmap::IndexMap;
use stateplane_diagnostics::Span;
use stateplane_diagnostics::{Diagnostic, nearest};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ParserLocal, TransitionKind};

/// States by name.
type States<'a> = IndexMap<&'a str, (ir::StateId, Span)>;

impl<'a> Checker<'a> {
    /// Declares the locals of a parser; their initialisers are appended to the block.
    pub(crate) fn parser_locals(&mut self, locals: &'a [ParserLocal]) {
        for local in locals {
            match local {
                ParserLocal::Const(decl) => self.constant_decl(decl),
                ParserLocal::Variable(decl) => self.variable(decl, false),
                ParserLocal::Instantiation(decl) => self.local_instance(decl),
                ParserLocal::ValueSet(decl) => self.value_set(decl),
            }
        }
    }

    /// Checks the states of a parser.
    pub(crate) fn states(&mut self, decl: &'a tree::ParserDecl) -> (Vec<ir::State>, ir::StateId) {
        let mut states: States<'a> = States::new();
        for (position, state) in decl.states.iter().enumerate() {
            let name = state.name.as_str();
            if matches!(name, "accept" | "reject") {
                self.report(
                    Diagnostic::error(
                        codes::RESERVED_STATE,
                        state.name.span,
                        format!("the state `{name}` exists in every parser"),
                    )
                    .with_help("give the state another name"),
                );
            }
            match states.get(name) {
                Some((_, previous)) => {
                    let previous = *previous;
                    self.duplicate(&state.name, previous);
                }
                None => {
                    states.insert(name, (ir::StateId(position as u32), state.name.span));
                }
            }
        }
        let start = match states.get("start") {
            Some((start, _)) => *start,
            None => {
                self.report(
                    Diagnostic::error(
                        codes::NO_START_STATE,
                        decl.signature.name.span,
                        format!("the parser `{}` has no state `start`", decl.signature.name),
                    )
                    .with_help("add `state start { … }`"),
                );
                ir::StateId(0)
            }
        };
        let lowered: Vec<ir::State> = decl
            .states
            .iter()
            .map(|state| self.state(state, &states))
            .collect();
        if !self.diagnostics.has_errors() && !ends(&lowered, start) {
            self.report(
                Diagnostic::error(
                    codes::ENDLESS_PARSER,
                    decl.signature.name.span,
                    format!("the parser `{}` never ends", decl.signature.name),
                )
                .with_help("add a transition to `accept` or `reject`"),
            );
        }
        (lowered, start)
    }

    fn state(&mut self, state: &'a tree::ParserState, states: &States<'a>) -> ir::State {
        let (transition, body) = self.nested(|checker| {
            checker.scoped(|checker| {
                checker.statements(&state.statements);
                match &state.transition {
                    None => ir::Transition::To(ir::Target::Reject),
                    Some(transition) => checker.transition(&transition.kind, states),
                }
            })
        });
        ir::State {
            name: state.name.to_string(),
            body,
            transition,
        }
    }

    fn transition(&mut self, kind: &'a TransitionKind, states: &States<'a>) -> ir::Transition {
        match kind {
            TransitionKind::Malformed => ir::Transition::To(ir::Target::Reject),
            TransitionKind::Direct(name) => ir::Transition::To(self.target(name, states)),
            TransitionKind::Select { subjects, cases } => self.select(subjects, cases, states),
        }
    }

    fn select(
        &mut self,
        subjects: &'a [tree::Expr],
        cases: &'a [tree::SelectCase],
        states: &States<'a>,
    ) -> ir::Transition {
        let subjects: Vec<&'a tree::Expr> = subjects.iter().collect();
        let mut values = self.sequence(&subjects);
        // One tuple selects like its members.
        if let [only] = values.as_mut_slice()
            && let ValueKind::List(members) = &mut only.kind
        {
            let members = std::mem::take(members);
            values = members;
        }
        let mut matchable = true;
        let mut types: Vec<Ty> = Vec::new();
        for value in &values {
            if self.types.struct_kind(&value.ty) == Some(StructKind::Struct) {
                let shown = self.quote(&value.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_MATCHABLE,
                        value.span,
                        format!("a `select` is not on a value of type {shown}"),
                    )
                    .with_help("select on its fields: select(value.field, …)"),
                );
                matchable = false;
            } else if !self.selectable(&value.ty.clone(), value.span) {
                matchable = false;
            }
            types.push(value.ty.clone());
        }
        if cases.iter().any(|case| self.has_computed(&case.keyset)) {
            values = values.into_iter().map(|value| self.settle(value)).collect();
        }
        let mut lowered = Vec::new();
        let mut taken = Cases::default();
        let mut conditions = Vec::new();
        for case in cases {
            let target = self.target(&case.target, states);
            if !matchable {
                continue;
            }
            let computed = self.has_computed(&case.keyset);
            let condition = self.computed_sets(&case.keyset, &values);
            for sets in self.keyset(&case.keyset, &types).into_iter().flatten() {
                if !computed && let Some(earlier) = taken.take(&sets, case.keyset.span) {
                    self.unreachable_case("case", case.keyset.span, earlier);
                }
                lowered.push((sets, target, condition.as_ref().map(|_| conditions.len())));
            }
            conditions.extend(condition);
        }
        if !matchable {
            return ir::Transition::To(ir::Target::Reject);
        }
        let mut keys = Vec::new();
        for value in values {
            self.scalars_of(value, &mut keys);
        }
        let cases = lowered.into_iter().map(|(mut sets, target, condition)| {
            let one = ir::KeySet::Exact(1u32.into());
            sets.extend((0..conditions.len()).map(|position| {
                if condition == Some(position) {
                    one.clone()
                } else {
                    ir::KeySet::Any
                }
            }));
            (sets, target)
        });
        let cases = cases.collect();
        keys.extend(conditions);
        ir::Transition::Select { keys, cases }
    }

    fn target(&mut self, name: &'a tree::Ident, states: &States<'a>) -> ir::Target {
        match name.as_str() {
            "accept" => ir::Target::Accept,
            "reject" => ir::Target::Reject,
            other => match states.get(other) {
                Some((state, _)) => ir::Target::State(*state),
                None => {
                    let diagnostic = Diagnostic::error(
                        codes::UNKNOWN_STATE,
                        name.span,
                        format!("the parser has no state `{name}`"),
                    );
                    let known = states.keys().copied().chain(["accept", "reject"]);
                    self.report(match nearest(other, known) {
                        Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                        None => diagnostic,
                    });
                    ir::Target::Reject
                }
            },
        }
    }
}

/// True if a path leads from the state `start` out of the parser.
fn ends(states: &[ir::State], start: ir::StateId) -> bool {
    let mut reached = vec![false; states.len()];
    let mut waiting = vec![start];
    while let Some(id) = waiting.pop() {
        let Some(state) = states.get(id.index()) else {
            continue;
        };
        if std::mem::replace(&mut reached[id.index()], true) {
            continue;
        }
        let targets: Vec<ir::Target> = match &state.transition {
            ir::Transition::To(target) => vec![*target],
            ir::Transition::Select { cases, .. } => {
                let total = |sets: &[ir::KeySet]| sets.iter().all(|set| *set == ir::KeySet::Any);
                if !cases.iter().any(|(sets, _)| total(sets)) {
                    return true;
                }
                cases.iter().map(|(_, target)| *target).collect()
            }
        };
        for target in targets {
            match target {
                ir::Target::State(next) => waiting.push(next),
                ir::Target::Accept | ir::Target::Reject => return true,
            }
        }
    }
    false
}

//! Parsers: what is certain in each state, and which are never entered.

use super::Lint;
use super::body::Body;
use super::flow::Flow;
use super::locals::Kind;
use crate::codes;
use stateplane_diagnostics::Diagnostic;
use stateplane_syntax::tree::{ParserDecl, ParserLocal, ParserState, TransitionKind};
use std::collections::BTreeMap;

/// States are walked this many times each at most until a fixed point is reached. Without
/// one nothing is said about values.
const ROUNDS: usize = 16;

impl<'t> Lint<'t, '_> {
    /// Walks a parser.
    pub(super) fn parser(&mut self, decl: &'t ParserDecl) {
        self.scoped(|lint| {
            lint.constructor_parameters(&decl.constructor_params);
            lint.parameters(&decl.signature.params);
            lint.scoped(|lint| {
                for local in &decl.locals {
                    lint.parser_local(local);
                }
                lint.states(decl);
            });
        });
    }

    fn parser_local(&mut self, local: &'t ParserLocal) {
        match local {
            ParserLocal::Const(decl) => self.constant(decl),
            ParserLocal::Variable(decl) => self.variable(decl),
            ParserLocal::Instantiation(decl) => self.instance(decl),
            ParserLocal::ValueSet(decl) => {
                self.mention_type(&decl.element);
                self.read(&decl.size);
                self.declare(&decl.name, Kind::ValueSet, None, &decl.annotations);
            }
        }
    }

    fn states(&mut self, decl: &'t ParserDecl) {
        let positions: BTreeMap<&str, usize> = decl
            .states
            .iter()
            .enumerate()
            .map(|(position, state)| (state.name.as_str(), position))
            .collect();
        let Some(start) = positions.get("start") else {
            return;
        };
        let outs = self.scalar_outs(&decl.signature.params);
        self.body = Body::default();
        // Before the first pass, ways that have not been walked count as none.
        let mut entries = vec![Flow::dead(); decl.states.len()];
        entries[*start] = std::mem::take(&mut self.flow);
        let mut accepted = Flow::dead();
        let mut waiting = vec![*start];
        let mut is_waiting = vec![false; decl.states.len()];
        let mut budget = decl.states.len().saturating_mul(ROUNDS);
        let reporting = std::mem::replace(&mut self.reporting, false);
        while let Some(position) = waiting.pop() {
            if budget == 0 {
                break;
            }
            budget -= 1;
            is_waiting[position] = false;
            let state = &decl.states[position];
            self.flow = entries[position].clone();
            for target in self.state(state) {
                if target == "accept" {
                    accepted.join(&self.flow);
                }
                let Some(next) = positions.get(target) else {
                    continue;
                };
                let mut joined = entries[*next].clone();
                joined.join(&self.flow);
                if joined != entries[*next] {
                    entries[*next] = joined;
                    if !std::mem::replace(&mut is_waiting[*next], true) {
                        waiting.push(*next);
                    }
                }
            }
        }
        self.reporting = reporting;
        for (state, entry) in decl.states.iter().zip(entries) {
            if state.transition.is_none() {
                self.report(
                    Diagnostic::warning(
                        codes::NO_TRANSITION,
                        state.name.span,
                        format!("the state `{}` has no transition: it rejects", state.name),
                    )
                    .with_help("end it with `transition accept;`, or write `transition reject;`"),
                );
            }
            if entry.is_dead() && budget > 0 {
                self.report(
                    Diagnostic::warning(
                        codes::UNREACHABLE_STATE,
                        state.name.span,
                        format!("no path leads to the state `{}`", state.name),
                    )
                    .with_help("remove it, or add a transition to it"),
                );
            }
            self.flow = if budget > 0 { entry } else { Flow::dead() };
            self.state(state);
        }
        self.flow = if budget > 0 { accepted } else { Flow::dead() };
        self.body.outs = outs;
        self.at_end(decl.span);
    }

    /// Walks a state; the names of those that may follow it.
    fn state(&mut self, state: &'t ParserState) -> Vec<&'t str> {
        self.scoped(|lint| {
            lint.statements(&state.statements);
            match state.transition.as_ref().map(|transition| &transition.kind) {
                None | Some(TransitionKind::Malformed) => Vec::new(),
                Some(TransitionKind::Direct(target)) => vec![target.as_str()],
                Some(TransitionKind::Select { subjects, cases }) => {
                    for subject in subjects {
                        lint.read(subject);
                    }
                    for case in cases {
                        lint.keyset(&case.keyset);
                    }
                    let mut targets: Vec<&str> =
                        cases.iter().map(|case| case.target.as_str()).collect();
                    targets.sort_unstable();
                    targets.dedup();
                    targets
                }
            }
        })
    }
}

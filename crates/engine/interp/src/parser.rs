//! Parsers: states and transitions.

use crate::machine::{Flow, Run};
use crate::observe::{Datum, Event, Observer};
use crate::wide::is_in;
use stateplane_ir::{Expr, KeySet, ParserId, Target, Transition};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::scalar_bits;
use stateplane_runtime::parser::{MAX_TRANSITIONS, core_error};

impl<O: Observer> Run<'_, O> {
    /// Runs a parser, whose parameters and locals are in place, from its start state
    /// to `accept` ([`Flow::Next`]) or an error.
    pub(crate) fn states(&mut self, id: ParserId) -> Flow {
        let parser = &self.code.program.parsers[id.index()];
        match self.stmts(&parser.init) {
            Flow::Next | Flow::Return => {}
            stopped => return stopped,
        }
        let mut state = parser.start;
        loop {
            self.m.transitions += 1;
            if self.m.transitions > MAX_TRANSITIONS {
                return Flow::Reject(core_error::PARSER_TIMEOUT);
            }
            let current = &parser.states[state.index()];
            self.tell(|_| Event::State(id, state));
            match self.stmts(&current.body) {
                Flow::Next | Flow::Return => {}
                stopped => return stopped,
            }
            let target = match &current.transition {
                Transition::To(target) => {
                    self.tell(|_| Event::Transition(id, Vec::new(), Some(*target)));
                    Some(*target)
                }
                Transition::Select { keys, cases } => self.select(id, keys, cases),
            };
            if let Some(flow) = self.faulted() {
                return flow;
            }
            match target {
                Some(Target::State(next)) => state = next,
                Some(Target::Accept) => return Flow::Next,
                Some(Target::Reject) => return Flow::Reject(core_error::NO_ERROR),
                None => return Flow::Reject(core_error::NO_MATCH),
            }
        }
    }

    fn select(
        &mut self,
        parser: ParserId,
        keys: &[Expr],
        cases: &[(Vec<KeySet>, Target)],
    ) -> Option<Target> {
        let base = self.m.stack.len();
        for key in keys {
            self.push(key);
        }
        let words = &self.m.stack[base..];
        let state = &self.m.state;
        let matches = |sets: &[KeySet]| {
            let mut at = 0;
            keys.iter().zip(sets).all(|(key, set)| {
                let width = scalar_bits(key.ty);
                let start = at;
                at += word_count(width);
                match set {
                    // The first field speaks for the whole set, whose other fields
                    // are the keys that follow.
                    KeySet::Member { set, field: 0 } => {
                        state.value_set_at(*set).contains(&words[start..])
                    }
                    KeySet::Member { .. } => true,
                    set => is_in(&words[start..at], width, set),
                }
            })
        };
        let target = cases
            .iter()
            .find(|(sets, _)| matches(sets))
            .map(|(_, target)| *target);
        if self.m.fault.is_none() {
            self.tell(|run| {
                let mut at = base;
                let values = keys.iter().map(|key| {
                    let start = at;
                    at += word_count(scalar_bits(key.ty));
                    run.datum(key.ty, &run.m.stack[start..at])
                });
                let values: Vec<Datum> = values.collect();
                Event::Transition(parser, values, target)
            });
        }
        self.m.stack.truncate(base);
        target
    }
}

//! Calls and tables: copy-in, run, copy-out.

use crate::machine::{Flow, Run};
use crate::observe::{Block, Datum, Event, Observer};
use crate::place::Spot;
use stateplane_ir::{
    Action, ActionId, Arg, Callee, ControlId, Direction, HashAlgorithm, Key, LOOP_LIMIT, MatchKind,
    Param, Place, Table, TableId, VarId,
};
use stateplane_runtime::bits::word_count;
use stateplane_runtime::layout::scalar_bits;
use std::ops::Range;

/// `action_run` where a hit entry's group is empty: no action of any table.
const NO_ACTION: u32 = u32::MAX;

impl<O: Observer> Run<'_, O> {
    fn reset(&mut self, ranges: &[Range<usize>]) {
        for range in ranges {
            self.m.words[range.clone()].fill(0);
        }
    }

    fn variable(&self, var: VarId) -> Spot {
        Spot {
            at: self.code.bases[var.index()],
            ty: self.program().vars[var.index()].ty,
            slice: None,
            union: None,
        }
    }

    /// Gives parameters their arguments, and pushes the places of `out` and `inout`
    /// ones for [`Run::copy_out`].
    fn copy_in<'p>(&mut self, params: impl Iterator<Item = &'p Param>, args: &[Arg]) {
        for (param, arg) in params.zip(args) {
            let inside = self.variable(param.var);
            match arg {
                Arg::In(value) => {
                    let base = self.m.stack.len();
                    self.push(value);
                    self.pop_into(base, Some(inside));
                }
                Arg::InOut(place) => {
                    let outside = self.spot(place);
                    match outside {
                        Some(outside) => self.copy(outside, inside),
                        None => self.clear(inside),
                    }
                    self.m.spots.push(outside);
                }
                Arg::Out(place) => {
                    let outside = self.spot(place);
                    self.clear(inside);
                    self.m.spots.push(outside);
                }
            }
        }
    }

    /// Writes `out` and `inout` parameters back, from left to right. Their places
    /// begin at `base` of the pushed ones.
    fn copy_out<'p>(&mut self, params: impl Iterator<Item = &'p Param>, args: &[Arg], base: usize) {
        let mut next = base;
        for (param, arg) in params.zip(args) {
            if matches!(arg, Arg::In(_)) {
                continue;
            }
            if let Some(outside) = self.m.spots[next] {
                self.copy(self.variable(param.var), outside);
            }
            next += 1;
        }
        self.m.spots.truncate(base);
    }

    /// Runs a callable with arguments.
    pub(crate) fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) -> Flow {
        let code = self.code;
        let program = &code.program;
        let (params, resets) = match callee {
            Callee::Action(id) => (
                &program.actions[id.index()].params,
                &code.action_resets[id.index()],
            ),
            Callee::Function(id) => (
                &program.functions[id.index()].params,
                &code.function_resets[id.index()],
            ),
            Callee::Control(id) => (
                &program.controls[id.index()].params,
                &code.control_resets[id.index()],
            ),
            Callee::Parser(id) => (
                &program.parsers[id.index()].params,
                &code.parser_resets[id.index()],
            ),
        };
        let base = self.m.spots.len();
        self.copy_in(params.iter(), args);
        if let Some(flow) = self.faulted() {
            self.m.spots.truncate(base);
            return flow;
        }
        self.reset(resets);
        self.tell(|run| Event::Call(callee, run.parameters(params.iter())));
        let flow = match callee {
            Callee::Action(id) => self.stmts(&program.actions[id.index()].body),
            Callee::Function(id) => self.stmts(&program.functions[id.index()].body),
            Callee::Control(id) => self.stmts(&program.controls[id.index()].body),
            Callee::Parser(id) => self.states(id),
        };
        self.copy_out(params.iter(), args, base);
        self.tell(|_| Event::End);
        match flow {
            Flow::Next | Flow::Return => {
                if let (Callee::Function(id), Some(place)) = (callee, result)
                    && let Some(var) = program.functions[id.index()].result
                    && let Some(spot) = self.spot(place)
                {
                    self.copy(self.variable(var), spot);
                }
                Flow::Next
            }
            stopped => stopped,
        }
    }

    /// Runs a block of the pipeline; its parameters are in place.
    pub(crate) fn block(&mut self, control: ControlId, block: fn(ControlId) -> Block) {
        let code = self.code;
        self.tell(|_| Event::Block(block(control)));
        self.m.rounds = LOOP_LIMIT;
        self.reset(&code.control_resets[control.index()]);
        self.stmts(&code.program.controls[control.index()].body);
        self.tell(|_| Event::End);
    }

    /// Enters the pipeline's parser; its parameters are in place.
    pub(crate) fn enter_parser(&mut self) -> Flow {
        let code = self.code;
        let id = code.parser();
        self.m.rounds = LOOP_LIMIT;
        self.reset(&code.parser_resets[id.index()]);
        self.states(id)
    }

    /// Looks a table up and runs the action that it names.
    pub(crate) fn apply(
        &mut self,
        id: TableId,
        hit: Option<&Place>,
        action_run: Option<&Place>,
    ) -> Flow {
        let code = self.code;
        let def = &code.program.tables[id.index()];
        let base = self.m.stack.len();
        for key in matched(def) {
            self.push(&key.expr);
        }
        if let Some(flow) = self.faulted() {
            self.m.stack.truncate(base);
            return flow;
        }
        let keys = self.keys(def, base);
        let bytes = self.m.frame.len() as u64;
        let now = self.m.now;
        let m = &mut *self.m;
        let table = m.state.table_at(id);
        let entry = table.lookup(&mut m.stack[base..]);
        m.stack.truncate(base);
        let color = match entry {
            Some(entry) => table.hit(entry, bytes, now),
            None => table.miss(bytes, now),
        };
        if let Some(meter) = def.direct_meter {
            m.colors[meter.index()] = color;
        }
        let hash = match m.state.selector_at(id, entry) {
            Some(selector) => self.selection(selector.algorithm, def),
            None => 0,
        };
        let m = &mut *self.m;
        let found = m.state.action_at(id, entry, hash);
        let position = found.map_or(NO_ACTION, |(position, _)| position);
        let listed = found.map(|(position, _)| &def.actions[position as usize]);
        let action = listed.map(|listed| &code.program.actions[listed.action.index()]);
        if let (Some(action), Some((_, data))) = (action, found) {
            let mut from = 0;
            for param in data_params(action) {
                let at = code.bases[param.var.index()];
                let size = word_count(scalar_bits(code.program.vars[param.var.index()].ty));
                m.words[at..at + size].copy_from_slice(&data[from..from + size]);
                from += size;
            }
        }
        self.tell(|run| Event::Apply {
            table: id,
            keys,
            entry: entry.and_then(|entry| run.m.state.table_at(id).entry(entry)),
            action: listed.map(|listed| listed.action),
            data: action.map_or_else(Vec::new, |action| run.parameters(data_params(action))),
        });
        let flow = match listed {
            Some(listed) => self.run_action(listed.action, &listed.bound),
            None => Flow::Next,
        };
        if flow != Flow::Next {
            return flow;
        }
        if let Some(place) = hit {
            self.store_number(place, u128::from(entry.is_some()));
        }
        if let Some(place) = action_run {
            self.store_number(place, u128::from(position));
        }
        Flow::Next
    }

    /// Values of a table's keys, whose words begin at `base` of the stack; for an observer.
    fn keys(&self, table: &Table, base: usize) -> Vec<Datum> {
        if !O::ACTIVE {
            return Vec::new();
        }
        let mut at = base;
        let keys = matched(table).map(|key| {
            let start = at;
            at += self.size(key.expr.ty);
            self.datum(key.expr.ty, &self.m.stack[start..at])
        });
        keys.collect()
    }

    /// The hash of a table's selector keys.
    fn selection(&mut self, algorithm: HashAlgorithm, table: &Table) -> u64 {
        let mut bytes = std::mem::take(&mut self.m.data);
        bytes.clear();
        let keys = table.keys.iter();
        let keys = keys.filter(|key| key.match_kind == MatchKind::Selector);
        self.collect(keys.map(|key| &key.expr), &mut bytes);
        let hash = self.m.state.hash(algorithm, &bytes);
        self.m.data = bytes;
        hash
    }

    /// Runs an action whose action data are in place.
    fn run_action(&mut self, id: ActionId, bound: &[Arg]) -> Flow {
        let code = self.code;
        let action = &code.program.actions[id.index()];
        let base = self.m.spots.len();
        let directed = || {
            let params = action.params.iter();
            params.filter(|param| param.direction != Direction::Data)
        };
        self.copy_in(directed(), bound);
        self.reset(&code.action_resets[id.index()]);
        self.tell(|run| Event::Call(Callee::Action(id), run.parameters(action.params.iter())));
        let flow = self.stmts(&action.body);
        self.copy_out(directed(), bound, base);
        self.tell(|_| Event::End);
        match flow {
            Flow::Return => Flow::Next,
            other => other,
        }
    }
}

/// Keys that are compared; those of an action selector are not.
fn matched(table: &Table) -> impl Iterator<Item = &Key> {
    let keys = table.keys.iter();
    keys.filter(|key| key.match_kind != MatchKind::Selector)
}

fn data_params(action: &Action) -> impl Iterator<Item = &Param> {
    let params = action.params.iter();
    params.filter(|param| param.direction == Direction::Data)
}

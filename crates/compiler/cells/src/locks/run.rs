//! A symbolic run of a program, in which values are equal only if they have one symbol.
//!
//! All paths are taken. Paths that meet leave a choice between their values; a loop is taken
//! twice, each time with new symbols for all that it changes, so that an index that changes from
//! round to round has two.

mod calls;
mod ops;
mod values;

use super::arrays::Arrays;
use super::leaves::{Leaf, Leaves};
use super::state::{Set, State};
use crate::symbols::{Node, Symbol, Symbols};
use indexmap::IndexMap;
use stateplane_ir::{Program, Stmt, VarId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Statements after which the run gives up.
const MOST_STATEMENTS: u64 = 1 << 20;

/// Symbols after which it gives up.
const MOST_SYMBOLS: usize = 1 << 21;

/// A use of an array in an atomic block.
#[derive(Clone, Debug)]
pub(super) struct Use {
    /// Number of the array ([`Arrays`]).
    pub array: usize,
    pub index: Symbol,
    /// True in a block that stands apart from one around it.
    pub apart: bool,
    /// `file:line:column`, or nothing.
    pub place: Rc<str>,
    /// The elements that the block may have used before, by their numbers in [`Run::elements`].
    pub maybe: Set,
    /// The arrays that it has used before in any case.
    pub surely: Set,
}

pub(super) struct Run<'p> {
    program: &'p Program,
    leaves: Leaves<'p>,
    pub symbols: Symbols,
    state: State,
    /// True if the present statement is reached.
    live: bool,
    /// States in which the present callable was left.
    returns: Vec<State>,
    /// States in which the innermost loop was left, and in which it goes on.
    breaks: Vec<State>,
    continues: Vec<State>,
    /// True within an atomic block.
    inside: bool,
    /// True within one that stands apart from another.
    apart: bool,
    place: Rc<str>,
    names: u32,
    statements: u64,
    /// Leaves that were set, while somebody asks for them.
    changes: Option<Set>,
    arrays: &'p Arrays,
    pub uses: Vec<Use>,
    /// Units, and of each the first register of which a block uses an element before it can have
    /// named any of them, with the place.
    pub without_units: BTreeMap<usize, (usize, Rc<str>)>,
    /// For units the variables or expressions by which blocks name them.
    pub unit_numbers: BTreeMap<usize, BTreeSet<String>>,
    /// Arrays with indices at which blocks use them, and the place of the first use.
    pub elements: IndexMap<(usize, Symbol), Rc<str>>,
}

impl<'p> Run<'p> {
    /// Runs the controls of the pipeline; `None` if the program is too large to follow.
    pub fn new(program: &'p Program, arrays: &'p Arrays) -> Option<Run<'p>> {
        let leaves = Leaves::new(program)?;
        let mut run = Run {
            program,
            state: State::new(leaves.count),
            // Lower numbers are those of leaves.
            names: leaves.count as u32,
            leaves,
            symbols: Symbols::default(),
            live: true,
            returns: Vec::new(),
            breaks: Vec::new(),
            continues: Vec::new(),
            inside: false,
            apart: false,
            place: Rc::from(""),
            statements: 0,
            changes: None,
            arrays,
            uses: Vec::new(),
            without_units: BTreeMap::new(),
            unit_numbers: BTreeMap::new(),
            elements: IndexMap::new(),
        };
        let pipeline = &program.pipeline;
        for id in [
            pipeline.verify_checksum,
            pipeline.ingress,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ] {
            // Variables may hold values that another packet left.
            run.state = State::new(run.leaves.count);
            run.live = true;
            let control = &program.controls[id.index()];
            run.callable(&control.locals, &control.body);
        }
        run.is_within_limits().then_some(run)
    }

    fn is_within_limits(&self) -> bool {
        self.statements < MOST_STATEMENTS && self.symbols.len() < MOST_SYMBOLS
    }

    /// A value that equals no other.
    fn fresh(&mut self, name: &str) -> Symbol {
        self.names += 1;
        self.symbols.make(Node::Named(self.names, name.to_owned()))
    }

    fn set(&mut self, leaf: Leaf, value: Symbol) {
        self.state.leaves[leaf] = value;
        if let Some(changes) = &mut self.changes {
            changes.add(leaf);
        }
    }

    fn forget(&mut self, leaves: std::ops::Range<Leaf>) {
        for leaf in leaves {
            let unknown = self.fresh("?");
            self.set(leaf, unknown);
        }
    }

    /// Sets variables to their defaults.
    fn reset(&mut self, vars: &[VarId]) {
        for var in vars {
            let ty = self.program.vars[var.index()].ty;
            let leaves = self.leaves.variable(*var);
            let zeros = self.zeros(ty);
            for (leaf, zero) in leaves.zip(zeros) {
                self.set(leaf, zero);
            }
        }
    }

    /// Runs a body up to where all that leaves it meets.
    fn callable(&mut self, locals: &[VarId], body: &[Stmt]) {
        self.reset(locals);
        let returns = std::mem::take(&mut self.returns);
        let breaks = std::mem::take(&mut self.breaks);
        let continues = std::mem::take(&mut self.continues);
        self.stmts(body);
        let left = std::mem::replace(&mut self.returns, returns);
        self.breaks = breaks;
        self.continues = continues;
        self.join(left);
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if !self.live || !self.is_within_limits() {
                return;
            }
            self.statements += 1;
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::At(place) => self.place = Rc::from(place.as_str()),
            Stmt::Unlikely => {}
            Stmt::Assign(place, value) => {
                let values = self.values(value);
                self.write(place, values);
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.scalar(condition);
                let bodies = [then.as_slice(), otherwise];
                self.choose(Some(condition), 2, |run, at| run.stmts(bodies[at]));
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => {
                self.values(value);
                let mut bodies: Vec<&[Stmt]> =
                    cases.iter().map(|(_, body)| body.as_slice()).collect();
                bodies.push(default);
                self.choose(None, bodies.len(), |run, at| run.stmts(bodies[at]));
            }
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => self.apply(*table, [hit, action_run]),
            Stmt::Call {
                callee,
                args,
                result,
            } => self.call(*callee, args, result.as_ref()),
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) => self.set_validity(place, "1"),
            Stmt::SetInvalid(place) => self.set_validity(place, "0"),
            Stmt::PushFront(place, _) | Stmt::PopFront(place, _) => {
                let spot = self.leaves.spot(place);
                self.forget(spot.union.unwrap_or(spot.leaves));
            }
            Stmt::Block(body) => self.stmts(body),
            Stmt::Atomic(body) => self.atomic(body),
            Stmt::Apart(body) => self.apart(body),
            Stmt::Loop { body, update } => self.rounds(body, update),
            Stmt::Break => {
                let state = self.state.clone();
                self.breaks.push(state);
                self.live = false;
            }
            Stmt::Continue => {
                let state = self.state.clone();
                self.continues.push(state);
                self.live = false;
            }
            Stmt::Return => {
                let state = self.state.clone();
                self.returns.push(state);
                self.live = false;
            }
            // Nothing behind it uses an array for this packet.
            Stmt::Exit => self.live = false,
        }
    }

    /// A block within another is a part of it.
    fn atomic(&mut self, body: &[Stmt]) {
        if self.inside {
            return self.stmts(body);
        }
        self.inside = true;
        self.state.maybe = Set::default();
        self.state.surely = Set::default();
        self.stmts(body);
        self.inside = false;
    }

    /// Its locks are taken behind those that the block around it holds, and are free behind it.
    fn apart(&mut self, body: &[Stmt]) {
        if !self.inside {
            return self.atomic(body);
        }
        let (maybe, surely) = (self.state.maybe.clone(), self.state.surely.clone());
        self.apart = true;
        self.stmts(body);
        self.apart = false;
        (self.state.maybe, self.state.surely) = (maybe, surely);
    }

    /// Runs one of `count` ways: by a condition the first or the second, or else by something that
    /// no symbol tells.
    fn choose(
        &mut self,
        condition: Option<Symbol>,
        count: usize,
        mut way: impl FnMut(&mut Run<'p>, usize),
    ) {
        let before = self.state.clone();
        let place = Rc::clone(&self.place);
        let mut ends: Vec<Option<State>> = Vec::new();
        for at in 0..count {
            self.state = before.clone();
            self.live = true;
            way(self, at);
            let end = std::mem::replace(&mut self.state, State::new(0));
            ends.push(self.live.then_some(end));
            self.place = Rc::clone(&place);
        }
        match (condition, &mut ends[..]) {
            (Some(condition), [Some(then), Some(otherwise)]) => {
                let (then, otherwise) = (then.clone(), otherwise.clone());
                self.state = then.clone();
                self.live = true;
                self.meet(&[then, otherwise], |run, values| {
                    run.symbols
                        .operation("?:", vec![condition, values[0], values[1]])
                });
            }
            _ => {
                self.live = false;
                self.state = before;
                self.join(ends.into_iter().flatten().collect());
            }
        }
    }

    /// The present state, if it is reached, and others meet.
    fn join(&mut self, mut states: Vec<State>) {
        if self.live {
            let present = std::mem::replace(&mut self.state, State::new(0));
            states.push(present);
        }
        let Some(first) = states.first() else {
            return;
        };
        self.state = first.clone();
        self.live = true;
        if states.len() > 1 {
            self.names += 1;
            let name = format!("choice {}", self.names);
            self.meet(&states, |run, values| {
                run.symbols.operation(name.clone(), values.to_vec())
            });
        }
    }

    /// Merges states into the present one, which is the first of them. Equal choices between equal
    /// values are equal.
    fn meet(&mut self, states: &[State], choice: impl Fn(&mut Run<'p>, &[Symbol]) -> Symbol) {
        let mut differing = Set::default();
        for other in &states[1..] {
            for leaf in states[0].differing(other) {
                differing.add(leaf);
            }
            self.state.meet(other);
        }
        for leaf in differing.iter() {
            let values: Vec<Symbol> = states
                .iter()
                .map(|state| self.leaf_in(state.leaves[leaf], leaf))
                .collect();
            let same = values.iter().all(|value| *value == values[0]);
            let value = if same {
                values[0]
            } else {
                choice(self, &values)
            };
            self.set(leaf, value);
        }
    }

    fn rounds(&mut self, body: &[Stmt], update: &[Stmt]) {
        let breaks = std::mem::take(&mut self.breaks);
        let continues = std::mem::take(&mut self.continues);
        let changed = self.changed_in_a_round(body, update);
        for _ in 0..2 {
            for leaf in changed.iter() {
                self.forget(leaf..leaf + 1);
            }
            self.round(body, update);
            if !self.live {
                break;
            }
        }
        self.live = false;
        let left = std::mem::replace(&mut self.breaks, breaks);
        self.continues = continues;
        self.join(left);
    }

    fn round(&mut self, body: &[Stmt], update: &[Stmt]) {
        self.stmts(body);
        let next = std::mem::take(&mut self.continues);
        self.join(next);
        self.stmts(update);
    }

    /// The leaves that a round of a loop may set. The run is as it was.
    fn changed_in_a_round(&mut self, body: &[Stmt], update: &[Stmt]) -> Set {
        let before = self.state.clone();
        let place = Rc::clone(&self.place);
        let (uses, returns) = (self.uses.len(), self.returns.len());
        let around = self.changes.replace(Set::default());
        self.round(body, update);
        let changed = std::mem::replace(&mut self.changes, around).unwrap_or_default();
        if let Some(around) = &mut self.changes {
            around.unite(&changed);
        }
        self.uses.truncate(uses);
        self.returns.truncate(returns);
        self.breaks.clear();
        self.state = before;
        self.place = place;
        self.live = true;
        changed
    }
}

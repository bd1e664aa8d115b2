//! A symbolic run of a program's ingress and egress: all paths at once, branches merged.

mod calls;
mod registers;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stateplane_ir::{Program, RegisterId, Stmt, VarId};

use super::profile::Profile;
use super::store::{Address, Store, path_of};
use super::value::Value;
use crate::symbols::Symbols;
use values::validity;

/// Changes of a branch.
type Changed = BTreeMap<Address, Option<Value>>;

/// An operation on a register.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub register: RegisterId,
    pub writes: bool,
    pub index: Value,
    /// Of a write: the value, with the conditions under which it is written.
    pub written: Value,
    pub egress: bool,
}

/// Tells if the statements behind are reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Left,
}

/// The run.
pub(super) struct Walk<'p> {
    program: &'p Program,
    profile: &'p Profile,
    /// The cell of each register; none before they are known.
    cells: Vec<Option<u32>>,
    /// The registers that are written; none before they are known.
    written: Option<BTreeSet<RegisterId>>,
    pub symbols: Symbols,
    store: Store,
    /// Conditions of the present statement.
    control: Value,
    place: Rc<str>,
    /// Changes of branches that left the present callable or loop.
    left: Vec<Changed>,
    leaves: u64,
    exits: u64,
    egress: bool,
    pub accesses: Vec<Access>,
    /// Cells whose longest path grows from one round of a loop to the next.
    pub growing: BTreeSet<u32>,
}

impl<'p> Walk<'p> {
    /// Runs ingress and egress.
    pub fn run(
        program: &'p Program,
        profile: &'p Profile,
        cells: Vec<Option<u32>>,
        written: Option<BTreeSet<RegisterId>>,
    ) -> Walk<'p> {
        let mut symbols = Symbols::default();
        let control = Value::of(symbols.input("true"));
        let mut walk = Walk {
            program,
            profile,
            cells,
            written,
            symbols,
            store: Store::default(),
            control,
            place: Rc::from(""),
            left: Vec::new(),
            leaves: 0,
            exits: 0,
            egress: false,
            accesses: Vec::new(),
            growing: BTreeSet::new(),
        };
        let ingress = &program.controls[program.pipeline.ingress.index()];
        walk.callable(&ingress.locals, &ingress.body);
        walk.egress = true;
        walk.control = Value::of(walk.symbols.input("true"));
        let egress = &program.controls[program.pipeline.egress.index()];
        for (from, to) in ingress.params.iter().zip(&egress.params) {
            walk.carry(from.var, to.var);
        }
        walk.callable(&egress.locals, &egress.body);
        walk
    }

    /// A variable gets all that another one holds.
    fn carry(&mut self, from: VarId, to: VarId) {
        let whole = (from, Vec::new());
        let mut all: Vec<(Vec<u32>, Value)> = Vec::new();
        all.extend(self.store.exact(&whole).map(|it| (Vec::new(), it.clone())));
        all.extend(
            self.store
                .within(&whole)
                .map(|((_, path), value)| (path.clone(), value.clone())),
        );
        for (path, value) in all {
            self.store.set((to, path), value);
        }
    }

    fn callable(&mut self, locals: &[VarId], body: &[Stmt]) {
        for local in locals {
            let zero = self.zero();
            self.store.set((*local, Vec::new()), zero);
        }
        let left = std::mem::take(&mut self.left);
        let (leaves, exits) = (self.leaves, self.exits);
        let control = self.control.clone();
        self.stmts(body);
        let returned = std::mem::replace(&mut self.left, left);
        if !returned.is_empty() {
            let condition = self.control.clone();
            let mut all = returned;
            all.push(Changed::new());
            self.merge(all, &condition);
        }
        self.leaves = leaves;
        // What follows an `exit` that may have been reached depends on its conditions.
        if self.exits == exits {
            self.control = control;
        }
    }

    fn zero(&mut self) -> Value {
        Value::of(self.symbols.input("0"))
    }

    fn stmts(&mut self, stmts: &[Stmt]) -> Flow {
        for stmt in stmts {
            if self.stmt(stmt) == Flow::Left {
                return Flow::Left;
            }
        }
        Flow::Next
    }

    fn stmt(&mut self, stmt: &Stmt) -> Flow {
        match stmt {
            Stmt::At(place) => self.place = Rc::from(place.as_str()),
            Stmt::Unlikely => {}
            Stmt::Assign(place, value) => {
                let value = self.value(value);
                self.assign(place, value);
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.value(condition);
                return self.branches(&condition, [then.as_slice(), otherwise]);
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => {
                let value = self.value(value);
                let value = value.after("switch", self.profile.compare, &self.place);
                let bodies = cases.iter().map(|(_, body)| body.as_slice());
                return self.branches(&value, bodies.chain([default.as_slice()]));
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
            Stmt::SetValid(place) | Stmt::SetInvalid(place) => {
                let (at, _) = path_of(place);
                let valid = self.symbols.input(match stmt {
                    Stmt::SetValid(_) => "1",
                    _ => "0",
                });
                self.store.set(validity(at), Value::of(valid));
            }
            Stmt::PushFront(place, _) | Stmt::PopFront(place, _) => {
                let before = self.read(place);
                let symbol = self.symbols.unknown();
                self.assign(place, Value { symbol, ..before });
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => return self.stmts(body),
            Stmt::Loop { body, update } => self.rounds(body, update),
            Stmt::Exit => {
                self.leaves += 1;
                self.exits += 1;
                return Flow::Left;
            }
            Stmt::Break | Stmt::Continue | Stmt::Return => {
                self.leaves += 1;
                return Flow::Left;
            }
        }
        Flow::Next
    }

    /// Branches of which one runs, by `condition`.
    fn branches<'s>(
        &mut self,
        condition: &Value,
        bodies: impl IntoIterator<Item = &'s [Stmt]>,
    ) -> Flow {
        let bodies: Vec<&[Stmt]> = bodies.into_iter().collect();
        self.choose(condition, bodies.len(), |walk, at| walk.stmts(bodies[at]))
    }

    fn choose(
        &mut self,
        condition: &Value,
        count: usize,
        mut run: impl FnMut(&mut Walk<'p>, usize) -> Flow,
    ) -> Flow {
        let outer = self.control.clone();
        let leaves = self.leaves;
        let place = Rc::clone(&self.place);
        let mut after = outer.with(condition);
        let mut next = Vec::new();
        for at in 0..count {
            self.control = outer.with(condition);
            self.store.branch();
            let flow = run(self, at);
            let changed = self.store.take_back();
            after = after.with(&self.control);
            match flow {
                Flow::Next => next.push(changed),
                Flow::Left => self.left.push(changed),
            }
            self.place = Rc::clone(&place);
        }
        // Statements behind are reached or not by what made a branch leave.
        self.control = if self.leaves > leaves { after } else { outer };
        if next.is_empty() {
            return Flow::Left;
        }
        self.merge(next, condition);
        Flow::Next
    }

    /// Puts in place what branches changed, chosen by `condition`.
    fn merge(&mut self, mut branches: Vec<Changed>, condition: &Value) {
        if branches.len() == 1 {
            return self.store.apply(branches.remove(0));
        }
        let all: BTreeSet<Address> = branches.iter().flat_map(BTreeMap::keys).cloned().collect();
        for at in all {
            let values: Vec<Value> = branches
                .iter()
                .map(|changed| self.value_in(changed, &at))
                .collect();
            let merged = self.select(&values, condition);
            self.store.set(at, merged);
        }
    }

    /// Value of a place at the end of a branch.
    fn value_in(&mut self, changed: &Changed, at: &Address) -> Value {
        let (var, path) = at;
        for length in (0..=path.len()).rev() {
            let around = (*var, path[..length].to_vec());
            if let Some(Some(value)) = changed.get(&around) {
                let value = value.clone();
                return self.part(value, at, length);
            }
        }
        self.look(at)
    }

    /// Two rounds: the second shows what a further one adds to a path.
    fn rounds(&mut self, body: &[Stmt], update: &[Stmt]) {
        let left = std::mem::take(&mut self.left);
        let mut depths = Vec::new();
        for _ in 0..2 {
            let from = self.accesses.len();
            let flow = self.stmts(body);
            if flow == Flow::Next {
                self.stmts(update);
            }
            depths.push(longest(&self.accesses[from..]));
            if flow == Flow::Left {
                break;
            }
        }
        if let [first, second] = &depths[..] {
            for (cell, depth) in second {
                if first.get(cell).is_none_or(|before| depth > before) {
                    self.growing.insert(*cell);
                }
            }
        }
        let mut all = std::mem::replace(&mut self.left, left);
        if !all.is_empty() {
            all.push(Changed::new());
            let condition = self.control.clone();
            self.merge(all, &condition);
        }
    }
}

/// The longest path to a write of each cell.
fn longest(accesses: &[Access]) -> BTreeMap<u32, u32> {
    let mut longest = BTreeMap::new();
    for access in accesses.iter().filter(|access| access.writes) {
        for (cell, step) in access.written.steps.iter() {
            let most = longest.entry(*cell).or_insert(0);
            *most = step.at.max(*most);
        }
    }
    longest
}

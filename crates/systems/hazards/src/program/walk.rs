//! A symbolic run of a program's ingress and egress: all paths at once, branches merged.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use stateplane_ir::{
    Action, ActionId, Arg, Callee, Const, Direction, Expr, ExprKind, Op, Param, Place, Program,
    Projection, RegisterId, Stmt, TableId, Type, VarId,
};

use super::profile::Profile;
use super::store::{Address, Store, path_of};
use super::value::{Step, Symbol, Symbols, Value};

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
            Stmt::Block(body) | Stmt::Atomic(body) => return self.stmts(body),
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

    fn select(&mut self, values: &[Value], condition: &Value) -> Value {
        let first = &values[0];
        let same =
            |value: &Value| value.symbol == first.symbol && value.registers == first.registers;
        if values.iter().all(same) {
            return values
                .iter()
                .fold(first.clone(), |sum, value| sum.with(value));
        }
        let mut operands = vec![condition.symbol];
        operands.extend(values.iter().map(|value| value.symbol));
        let symbol = self.symbols.operation("?:", operands);
        let sum = values
            .iter()
            .fold(condition.clone(), |sum, value| sum.with(value));
        let sum = Value { symbol, ..sum };
        sum.after("select", self.profile.select, &self.place)
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

    fn apply(&mut self, id: TableId, results: [&Option<Place>; 2]) {
        let table = &self.program.tables[id.index()];
        let keys: Vec<Value> = table.keys.iter().map(|key| self.value(&key.expr)).collect();
        let symbols = keys.iter().map(|key| key.symbol).collect();
        let symbol = self
            .symbols
            .operation(format!("lookup {}", table.name), symbols);
        let found = keys
            .iter()
            .fold(Value::of(symbol), |sum, key| sum.with(key))
            .after("lookup", self.profile.lookup, &self.place);
        for place in results.into_iter().flatten() {
            self.assign(place, found.clone());
        }
        self.choose(&found, table.actions.len(), |walk, at| {
            let used = &table.actions[at];
            let action = &walk.program.actions[used.action.index()];
            walk.bind_data(&table.name, action, &found);
            let args: Vec<&Arg> = used.bound.iter().collect();
            walk.invoke(action_parts(action), &args, None);
            Flow::Next
        });
    }

    /// Action data come from the entry that was found.
    fn bind_data(&mut self, table: &str, action: &Action, found: &Value) {
        for param in &action.params {
            if param.direction == Direction::Data {
                let name = &self.program.vars[param.var.index()].name;
                let name = format!("{table}:{}", last_part(name));
                let symbol = self.symbols.input(name);
                let data = Value {
                    symbol,
                    ..found.clone()
                };
                self.store.set((param.var, Vec::new()), data);
            }
        }
    }

    fn call(&mut self, callee: Callee, args: &[Arg], result: Option<&Place>) {
        let args: Vec<&Arg> = args.iter().collect();
        let program = self.program;
        match callee {
            Callee::Action(id) => {
                let action: &Action = &program.actions[ActionId::index(id)];
                self.invoke(action_parts(action), &args, None);
            }
            Callee::Control(id) => {
                let control = &program.controls[id.index()];
                self.invoke(
                    (&control.params, &control.locals, &control.body),
                    &args,
                    None,
                );
            }
            Callee::Function(id) => {
                let function = &program.functions[id.index()];
                let value = function.result.zip(result);
                self.invoke(
                    (&function.params, &function.locals, &function.body),
                    &args,
                    value,
                );
            }
            // Sub-parsers touch no register.
            Callee::Parser(_) => {}
        }
    }

    fn invoke(
        &mut self,
        (params, locals, body): (&[Param], &[VarId], &[Stmt]),
        args: &[&Arg],
        result: Option<(VarId, &Place)>,
    ) {
        for (param, arg) in params.iter().zip(args) {
            let value = match arg {
                Arg::In(Expr {
                    kind: ExprKind::Read(place),
                    ..
                }) if path_of(place).1 => {
                    self.copy(place, param.var);
                    continue;
                }
                Arg::In(value) => self.value(value),
                Arg::Out(_) => self.zero(),
                Arg::InOut(place) => {
                    self.copy(place, param.var);
                    continue;
                }
            };
            self.store.set((param.var, Vec::new()), value);
        }
        self.callable(locals, body);
        for (param, arg) in params.iter().zip(args) {
            if let Arg::Out(place) | Arg::InOut(place) = arg {
                self.copy_out(param.var, place);
            }
        }
        if let Some((var, place)) = result {
            self.copy_out(var, place);
        }
    }

    /// A parameter gets a place with all its parts.
    fn copy(&mut self, place: &Place, to: VarId) {
        let (at, whole) = path_of(place);
        let value = self.look(&at);
        let parts: Vec<(Vec<u32>, Value)> = self
            .store
            .within(&at)
            .map(|((_, path), value)| (path[at.1.len()..].to_vec(), value.clone()))
            .collect();
        self.store.set((to, Vec::new()), value);
        for (path, value) in parts.into_iter().filter(|_| whole) {
            self.store.set((to, path), value);
        }
    }

    fn copy_out(&mut self, from: VarId, place: &Place) {
        let (at, whole) = path_of(place);
        let value = self.look(&(from, Vec::new()));
        if !whole {
            return self.assign(place, value);
        }
        let parts: Vec<(Vec<u32>, Value)> = self
            .store
            .within(&(from, Vec::new()))
            .map(|((_, path), value)| ([at.1.as_slice(), path].concat(), value.clone()))
            .collect();
        self.store.set(at.clone(), value);
        for (path, value) in parts {
            self.store.set((at.0, path), value);
        }
    }

    fn assign(&mut self, place: &Place, value: Value) {
        let (at, whole) = path_of(place);
        if whole {
            return self.store.set(at, value);
        }
        // A part of it changes, and nobody knows which: it depends on both.
        let before = self.look(&at);
        let symbol = self.symbols.unknown();
        let sum = Value { symbol, ..before }.with(&value);
        self.store.set(at, sum);
    }

    /// The value at a place with its parts.
    fn read(&mut self, place: &Place) -> Value {
        let (at, whole) = path_of(place);
        let base = self.look(&at);
        let parts: Vec<Value> = self.store.within(&at).map(|(_, it)| it.clone()).collect();
        let mut symbol = base.symbol;
        if !parts.is_empty() {
            let mut operands = vec![base.symbol];
            operands.extend(parts.iter().map(|part| part.symbol));
            symbol = self.symbols.operation("parts", operands);
        }
        let sum = parts.iter().fold(base, |sum, part| sum.with(part));
        let mut sum = Value { symbol, ..sum };
        if !whole {
            for step in &place.path[at.1.len()..] {
                let (name, index) = match step {
                    Projection::Field(field) => (format!("field {field}"), None),
                    Projection::Index(index) => ("element".to_owned(), Some(self.value(index))),
                    Projection::Next => ("next".to_owned(), None),
                    Projection::Last => ("last".to_owned(), None),
                    Projection::Slice { hi, lo } => (format!("slice {hi}:{lo}"), None),
                };
                let mut operands = vec![sum.symbol];
                operands.extend(index.as_ref().map(|index| index.symbol));
                let symbol = self.symbols.operation(name, operands);
                sum = Value { symbol, ..sum };
                if let Some(index) = index {
                    sum = sum.with(&index);
                }
            }
        }
        sum
    }

    /// The value of a place as far as it was set as a whole.
    fn look(&mut self, at: &Address) -> Value {
        if let Some(value) = self.store.exact(at) {
            return value.clone();
        }
        let (var, path) = at;
        let near = (0..path.len()).rev().find_map(|length| {
            let value = self.store.exact(&(*var, path[..length].to_vec()))?;
            Some((length, value.clone()))
        });
        match near {
            Some((length, value)) => self.part(value, at, length),
            None => {
                let name = last_part(&self.program.vars[var.index()].name).to_owned();
                let name = name + &self.members(at, 0);
                Value::of(self.symbols.input(name))
            }
        }
    }

    /// The part at `at` of the value of its first `length` members.
    fn part(&mut self, value: Value, at: &Address, length: usize) -> Value {
        // All of a cleared variable is zero.
        if at.1.len() == length || value.symbol == self.symbols.input("0") {
            return value;
        }
        let members = self.members(at, length);
        let symbol = match self.symbols.name(value.symbol) {
            Some(name) => {
                let name = format!("{name}{members}");
                self.symbols.input(name)
            }
            None => self.symbols.operation(members, vec![value.symbol]),
        };
        Value { symbol, ..value }
    }

    /// Names of the members of a place behind the first `length`, each behind a dot.
    fn members(&self, (var, path): &Address, length: usize) -> String {
        let mut names = String::new();
        let mut ty = Some(self.program.vars[var.index()].ty);
        for (at, field) in path.iter().enumerate() {
            let known = match ty {
                Some(Type::Struct(id) | Type::Header(id) | Type::Union(id)) => {
                    self.program.structs[id.index()].fields.get(*field as usize)
                }
                _ => None,
            };
            if at >= length {
                names.push('.');
                names.push_str(known.map_or("isValid()", |known| &known.name));
            }
            ty = known.map(|known| known.ty);
        }
        names
    }

    fn value(&mut self, expr: &Expr) -> Value {
        match &expr.kind {
            ExprKind::Const(constant) => {
                let text = match constant {
                    Const::Bool(value) => u8::from(*value).to_string(),
                    Const::Bits(bits) => bits.to_string(),
                };
                Value::of(self.symbols.input(text))
            }
            ExprKind::Default => self.zero(),
            ExprKind::Read(place) => self.read(place),
            ExprKind::IsValid(place) => {
                let (at, _) = path_of(place);
                self.look(&validity(at))
            }
            ExprKind::LastIndex(place) => {
                let value = self.read(place);
                self.made("lastIndex", 0, vec![value])
            }
            ExprKind::Unary(op, value) => {
                let value = self.value(value);
                let cycles = self.profile.unary(*op);
                self.made(&format!("{op:?}").to_lowercase(), cycles, vec![value])
            }
            ExprKind::Binary(op, left, right) => {
                let (left, right) = (self.value(left), self.value(right));
                let fixed = self.symbols.is_constant(right.symbol);
                let cycles = self.profile.binary(*op, fixed);
                self.made(op.sign(), cycles, vec![left, right])
            }
            ExprKind::Cast(value) => {
                let value = self.value(value);
                let width = expr.ty.scalar_width().unwrap_or(0);
                if self.symbols.is_constant(value.symbol) {
                    value
                } else {
                    self.made(&format!("bit<{width}>"), 0, vec![value])
                }
            }
            ExprKind::Slice { value, hi, lo } => {
                let value = self.value(value);
                self.made(&format!("slice {hi}:{lo}"), 0, vec![value])
            }
            ExprKind::Mux {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.value(condition);
                let values = [self.value(then), self.value(otherwise)];
                self.select(&values, &condition)
            }
            ExprKind::Record(parts) | ExprKind::Array(parts) => {
                let parts = parts.iter().map(|part| self.value(part)).collect();
                self.made("record", 0, parts)
            }
        }
    }

    /// The value of an operation.
    fn made(&mut self, operation: &str, cycles: u32, operands: Vec<Value>) -> Value {
        let symbols: Vec<Symbol> = operands.iter().map(|operand| operand.symbol).collect();
        let symbol = self.symbols.operation(operation, symbols);
        operands
            .iter()
            .fold(Value::of(symbol), |sum, operand| sum.with(operand))
            .after(operation, cycles, &self.place)
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::RegisterRead {
                register,
                index,
                result,
            } => {
                let index = self.value(index);
                let value = self.register_read(*register, &index);
                self.assign(result, value);
            }
            Op::RegisterWrite {
                register,
                index,
                value,
            } => {
                let (index, value) = (self.value(index), self.value(value));
                let written = value.with(&index).with(&self.control);
                let written = written.after(
                    &format!("write {}", self.register_name(*register)),
                    self.profile.write,
                    &self.place,
                );
                self.access(*register, true, index, written);
            }
            Op::Hash {
                result,
                algorithm,
                base,
                data,
                max,
            } => {
                let mut values: Vec<Value> = data.iter().map(|value| self.value(value)).collect();
                values.push(self.value(base));
                values.push(self.value(max));
                let name = format!("hash {algorithm:?}").to_lowercase();
                let value = self.made(&name, self.profile.hash, values);
                self.assign(result, value);
            }
            Op::Random { result, lo, hi } => {
                let (lo, hi) = (self.value(lo), self.value(hi));
                let symbol = self.symbols.unknown();
                self.assign(result, Value::of(symbol).with(&lo).with(&hi));
            }
            Op::MeterExecute { index, result, .. } => {
                let index = self.value(index);
                let symbol = self.symbols.unknown();
                self.assign(result, Value { symbol, ..index });
            }
            Op::DirectMeterRead { result, .. } | Op::PacketLength { result } => {
                let symbol = self.symbols.unknown();
                self.assign(result, Value::of(symbol));
            }
            Op::MarkToDrop { standard_metadata } => {
                let dropped = Value::of(self.symbols.input("511"));
                let (at, _) = path_of(standard_metadata);
                for name in ["egress_spec", "mcast_grp"] {
                    if let Some(field) = self.standard_field(name) {
                        let path = [at.1.as_slice(), &[field]].concat();
                        self.store.set((at.0, path), dropped.clone());
                    }
                }
            }
            // The others bring no value to a register's index or element.
            _ => {}
        }
    }

    fn standard_field(&self, name: &str) -> Option<u32> {
        let id = self.program.pipeline.standard_metadata;
        let fields = &self.program.structs[id.index()].fields;
        let at = fields.iter().position(|field| field.name == name)?;
        u32::try_from(at).ok()
    }

    fn register_name(&self, register: RegisterId) -> &'p str {
        &self.program.registers[register.index()].name
    }

    /// False for a register that only the control plane writes.
    fn is_written(&self, register: RegisterId) -> bool {
        self.written
            .as_ref()
            .is_none_or(|it| it.contains(&register))
    }

    fn register_read(&mut self, register: RegisterId, index: &Value) -> Value {
        let name = self.register_name(register);
        let mut operands = vec![index.symbol];
        if self.is_written(register) {
            operands.push(self.symbols.unknown());
        }
        let symbol = self.symbols.operation(format!("value of {name}"), operands);
        let mut registers = BTreeSet::clone(&index.registers);
        registers.insert(register);
        let operation = format!("read {name}");
        let later = index.after(&operation, self.profile.read, &self.place);
        let mut steps = BTreeMap::clone(&later.steps);
        if let Some(cell) = self.cells.get(register.index()).copied().flatten() {
            let place = Rc::clone(&self.place);
            steps.entry(cell).or_insert_with(|| {
                Rc::new(Step {
                    at: self.profile.read,
                    operation,
                    place,
                    before: None,
                })
            });
        }
        let value = Value {
            symbol,
            registers: Rc::new(registers),
            steps: Rc::new(steps),
        };
        self.access(register, false, index.clone(), value.clone());
        value
    }

    fn access(&mut self, register: RegisterId, writes: bool, index: Value, written: Value) {
        self.accesses.push(Access {
            register,
            writes,
            index,
            written,
            egress: self.egress,
        });
    }
}

fn action_parts(action: &Action) -> (&[Param], &[VarId], &[Stmt]) {
    (&action.params, &action.locals, &action.body)
}

/// Place of the note of a header's validity: behind its fields.
fn validity((var, mut path): Address) -> Address {
    path.push(u32::MAX);
    (var, path)
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
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

//! The slice of a program that computes the key of the state that a packet locks first: its parser,
//! and of ingress what leads to the first lock of an element or a unit.
//!
//! Workers ask it of frames that they have not forwarded yet, to give frames with equal state to
//! one worker. It is a hint, since atomic blocks lock what they use in any case: where the way to a
//! lock depends on more than the frame and entries of tables (registers that packets write, time),
//! the slice takes the way that leads there.

mod follow;
mod marks;
mod needed;

use super::arrays::Arrays;
use super::callables::{Name, body, called, name};
use super::leaves::Leaves;
use super::{Grain, LockPlan};
use stateplane_ir::passes::{children, each_op, optimise, parses_only};
use stateplane_ir::{
    ActionId, Arg, Callee, CloneKind, Direction, Expr, ExprKind, HashAlgorithm, Op, Program, Stmt,
    TableAction, TableId, Type,
};
use std::collections::BTreeSet;

/// Locks of a domain whose index is a key, at least. Fewer are those of kinds of traffic, such as
/// protocols and ports: one of them may be of nearly all packets, and would give them to one worker.
const LEAST_LOCKS: u64 = 512;

/// A slice of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct KeySlice {
    /// The slice. Its ingress asks for a clone to the mirror session whose number is the key, and
    /// does nothing else: of all that ingress leaves behind, only such a request stands at once
    /// wherever it is made. It has the program's registers, tables and value sets, and reads those
    /// registers that no packet writes.
    pub program: Program,
    /// The tables that it applies, ascending; the others have no entries.
    pub applied: Vec<TableId>,
}

/// The slice of `program` for the locks of `plan`, which was made for it
/// ([`locks`](super::locks())).
///
/// `None` if no key follows from a frame: nothing is locked by a key of many, each key depends on more
/// than the frame and entries or on none of the frame's bytes, the parser does more than parse, or
/// the program is too large to be followed.
pub fn key_slice(program: &Program, plan: &LockPlan) -> Option<KeySlice> {
    if !parses_only(program) {
        return None;
    }
    let mut slicer = Slicer {
        program,
        plan,
        leaves: Leaves::new(program)?,
        arrays: Arrays::new(program),
        choices: Choices::default(),
    };
    // Choices are only added.
    loop {
        let before = slicer.choices.clone();
        slicer.follow()?;
        if before == slicer.choices {
            let mut slice = slicer.slice();
            needed::keep_needed(&mut slice, &slicer.leaves);
            return finished(slice);
        }
    }
}

/// The slice without what it does not need; `None` if nothing is left of it.
fn finished(mut slice: Program) -> Option<KeySlice> {
    // Tables that are not applied name actions.
    let mut reached = BTreeSet::new();
    let ingress = &slice.controls[slice.pipeline.ingress.index()];
    called(&slice, &ingress.body, &mut reached);
    for (id, action) in slice.actions.iter_mut().enumerate() {
        if !reached.contains(&name(Callee::Action(ActionId(id as u32)))) {
            action.body.clear();
        }
    }
    optimise(&mut slice);
    let mut asks = false;
    each_op(&slice, &mut |op| asks |= matches!(op, Op::Clone { .. }));
    if !asks {
        return None;
    }
    let mut applied = BTreeSet::new();
    let controls = slice.controls.iter().map(|it| &it.body);
    let actions = slice.actions.iter().map(|it| &it.body);
    controls
        .chain(actions)
        .for_each(|body| tables(body, &mut applied));
    for (id, table) in slice.tables.iter_mut().enumerate() {
        if !applied.contains(&TableId(id as u32)) {
            table.entries.clear();
        }
    }
    Some(KeySlice {
        program: slice,
        applied: applied.into_iter().collect(),
    })
}

/// Adds the tables that statements apply.
fn tables(stmts: &[Stmt], applied: &mut BTreeSet<TableId>) {
    for stmt in stmts {
        if let Stmt::Apply { table, .. } = stmt {
            applied.insert(*table);
        }
        for list in children(stmt) {
            tables(list, applied);
        }
    }
}

/// Choices that the slice makes, at statements and operations of the program by their addresses.
#[derive(Clone, Default, PartialEq, Eq)]
struct Choices {
    /// Branches and lookups that depend on more than the frame and entries.
    unknown: BTreeSet<*const Stmt>,
    /// Uses of arrays whose index is no key.
    refused: BTreeSet<*const Op>,
}

struct Slicer<'p> {
    program: &'p Program,
    plan: &'p LockPlan,
    leaves: Leaves<'p>,
    arrays: Arrays,
    choices: Choices,
}

/// A branch whose condition the frame does not tell.
enum Way<'p> {
    /// It goes this way, which may lead to a key.
    Taken(&'p [Stmt]),
    /// None of its ways leads to a key, and it is left out.
    None,
}

impl<'p> Slicer<'p> {
    /// The program in which the first use of an element or unit tells the key and ends ingress.
    fn slice(&self) -> Program {
        let mut slice = self.program.clone();
        let pipeline = &self.program.pipeline;
        let empty = [
            pipeline.verify_checksum,
            pipeline.egress,
            pipeline.compute_checksum,
            pipeline.deparser,
        ];
        for (id, control) in slice.controls.iter_mut().enumerate() {
            control.body = if empty.iter().any(|it| it.index() == id) {
                Vec::new()
            } else {
                self.stmts(&self.program.controls[id].body)
            };
        }
        for (action, of) in slice.actions.iter_mut().zip(&self.program.actions) {
            action.body = self.stmts(&of.body);
        }
        for (function, of) in slice.functions.iter_mut().zip(&self.program.functions) {
            function.body = self.stmts(&of.body);
        }
        slice
    }

    /// Statements in their place, up to one that tells a key on each way.
    fn stmts(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        let end = stmts.iter().position(|stmt| self.tells(stmt));
        let reached = &stmts[..end.map_or(stmts.len(), |end| end + 1)];
        reached.iter().flat_map(|stmt| self.stmt(stmt)).collect()
    }

    /// True if each way through a statement tells a key.
    fn tells(&self, stmt: &Stmt) -> bool {
        let all_tell = |body: &[Stmt]| {
            let reached = body.iter().take_while(|stmt| !may_leave(stmt));
            { reached }.any(|stmt| self.tells(stmt))
        };
        match (self.way(stmt), stmt) {
            (Some(Way::Taken(body)), _) => all_tell(body),
            (Some(Way::None), _) => false,
            (None, Stmt::Op(op)) => self.key(op).is_some(),
            (None, Stmt::Call { callee, .. }) => all_tell(body(self.program, *callee)),
            (None, Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body)) => all_tell(body),
            (None, Stmt::If { .. } | Stmt::Switch { .. }) => {
                children(stmt).into_iter().all(|way| all_tell(way))
            }
            _ => false,
        }
    }

    /// Statements in a statement's place.
    fn stmt(&self, stmt: &Stmt) -> Vec<Stmt> {
        if let Some(way) = self.way(stmt) {
            return match way {
                Way::Taken(body) => vec![Stmt::Block(self.stmts(body))],
                Way::None => Vec::new(),
            };
        }
        match stmt {
            Stmt::If {
                condition,
                then,
                otherwise,
            } => vec![Stmt::If {
                condition: condition.clone(),
                then: self.stmts(then),
                otherwise: self.stmts(otherwise),
            }],
            Stmt::Switch {
                value,
                cases,
                default,
            } => {
                let cases = cases.iter();
                let cases = cases.map(|(labels, body)| (labels.clone(), self.stmts(body)));
                vec![Stmt::Switch {
                    value: value.clone(),
                    cases: cases.collect(),
                    default: self.stmts(default),
                }]
            }
            Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => {
                vec![Stmt::Block(self.stmts(body))]
            }
            Stmt::Apply { table, .. } => match self.applied(*table) {
                _ if !self.is_unknown(stmt) => {
                    vec![stmt.clone()]
                }
                Some(listed) => vec![Stmt::Call {
                    callee: Callee::Action(listed.action),
                    args: self.args(listed),
                    result: None,
                }],
                None => Vec::new(),
            },
            Stmt::Op(op) => match self.key(op) {
                Some(index) => vec![tell(index), Stmt::Exit],
                None if self.stays(op) => vec![stmt.clone()],
                None => Vec::new(),
            },
            Stmt::At(_) | Stmt::Unlikely | Stmt::Loop { .. } => Vec::new(),
            Stmt::Assign(..)
            | Stmt::Call { .. }
            | Stmt::SetValid(_)
            | Stmt::SetInvalid(_)
            | Stmt::PushFront(..)
            | Stmt::PopFront(..)
            | Stmt::Break
            | Stmt::Continue
            | Stmt::Return
            | Stmt::Exit => vec![stmt.clone()],
        }
    }

    /// The way that a branch takes whose condition is unknown; `None` for other statements.
    fn way<'s>(&self, stmt: &'s Stmt) -> Option<Way<'s>> {
        let is_branch = matches!(stmt, Stmt::If { .. } | Stmt::Switch { .. });
        if !is_branch || !self.is_unknown(stmt) {
            return None;
        }
        let mut ways = children(stmt).into_iter();
        let leads = ways.find(|way| self.leads(way, &mut BTreeSet::new()));
        Some(leads.map_or(Way::None, |way| Way::Taken(way)))
    }

    fn is_unknown(&self, stmt: &Stmt) -> bool {
        self.choices.unknown.contains(&std::ptr::from_ref(stmt))
    }

    /// The action of a table that may lead to a key.
    fn applied(&self, table: TableId) -> Option<&'p TableAction> {
        let mut actions = self.program.tables[table.index()].actions.iter();
        actions.find(|it| self.callee_leads(Callee::Action(it.action), &mut BTreeSet::new()))
    }

    /// Arguments of a table's action; the table's own data are left out.
    fn args(&self, listed: &TableAction) -> Vec<Arg> {
        let params = self.program.actions[listed.action.index()].params.iter();
        let data = params.filter(|param| param.direction == Direction::Data);
        let data = data.map(|param| {
            Arg::In(Expr {
                kind: ExprKind::Default,
                ty: self.program.vars[param.var.index()].ty,
            })
        });
        listed.bound.iter().cloned().chain(data).collect()
    }

    /// True if a way through the statements may tell a key.
    fn leads(&self, stmts: &[Stmt], seen: &mut BTreeSet<Name>) -> bool {
        stmts.iter().any(|stmt| match stmt {
            Stmt::Op(op) => self.key(op).is_some(),
            Stmt::Call { callee, .. } => self.callee_leads(*callee, seen),
            Stmt::Apply { table, .. } => {
                let mut actions = self.program.tables[table.index()].actions.iter();
                actions.any(|it| self.callee_leads(Callee::Action(it.action), seen))
            }
            Stmt::Loop { .. } => false,
            _ => children(stmt)
                .into_iter()
                .any(|list| self.leads(list, seen)),
        })
    }

    fn callee_leads(&self, callee: Callee, seen: &mut BTreeSet<Name>) -> bool {
        seen.insert(name(callee)) && self.leads(body(self.program, callee), seen)
    }

    /// The index at which an operation takes a lock, unless it is refused as a key.
    fn key<'o>(&self, op: &'o Op) -> Option<&'o Expr> {
        let (domain, index) = match op {
            Op::RegisterRead {
                register, index, ..
            }
            | Op::RegisterWrite {
                register, index, ..
            } => (self.plan.of_register(*register), index),
            Op::MeterExecute { meter, index, .. } => (self.plan.of_meter(*meter), index),
            Op::Uses { units, numbers } => (self.plan.of_units(units), numbers.first()?),
            _ => return None,
        };
        let locks = match &self.plan.domains[domain?].grain {
            Grain::Element { length, .. } => *length,
            Grain::Unit { count, .. } => *count,
            Grain::Whole(_) => 1,
        };
        let is_refused = self.choices.refused.contains(&std::ptr::from_ref(op));
        (locks >= LEAST_LOCKS && !is_refused).then_some(index)
    }

    /// True for operations that depend on the frame alone and leave nothing behind.
    fn stays(&self, op: &Op) -> bool {
        match op {
            Op::Hash { algorithm, .. } => *algorithm != HashAlgorithm::Random,
            Op::RegisterRead { register, .. } => !self.arrays.change(register.index()),
            Op::PacketLength { .. } => true,
            _ => false,
        }
    }
}

/// True if some way through a statement leaves the callable around it.
fn may_leave(stmt: &Stmt) -> bool {
    matches!(
        stmt,
        Stmt::Break | Stmt::Continue | Stmt::Return | Stmt::Exit
    ) || children(stmt).into_iter().flatten().any(may_leave)
}

/// Asks for a clone to the session of that number.
fn tell(index: &Expr) -> Stmt {
    let session = match index.ty {
        Type::Bits(32) => index.clone(),
        _ => Expr {
            kind: ExprKind::Cast(Box::new(index.clone())),
            ty: Type::Bits(32),
        },
    };
    Stmt::Op(Op::Clone {
        kind: CloneKind::IngressToEgress,
        session,
        field_list: None,
    })
}

//! Places that few packets come to ([`Stmt::Unlikely`]).
//!
//! Unlikely branches are side exits: the specialised code for an end of the parser contains in
//! their place a jump to the same statement in the general code. So the fast paths contain no rare
//! code, and facts established on them stay known.

use super::Gen;
use super::place::Spot;
use crate::plan::fixed_place;
use cranelift_codegen::ir::Block;
use stateplane_ir::{Arg, BinaryOp, ControlId, Expr, ExprKind, Place, Stmt, UnaryOp};
use std::collections::BTreeMap;

/// Treatment of unlikely statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Unlikely branches are compiled in place.
    #[default]
    Ignore,
    /// Unlikely branches are side exits.
    Leave,
    /// The side exits join here.
    Join,
}

/// A step from the pipeline towards a place in its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A control of the pipeline, by its position in the program.
    Control(usize),
    /// A statement, by the number of statements from it to the end of its list: lists lose
    /// statements at their beginning only ([`Gen::certain`]).
    Statement(usize),
    /// A branch of a conditional statement: true for that of the condition that holds.
    Branch(bool),
}

/// Identifies a place: the control of the pipeline, and the statements that the place is in,
/// outermost first. A statement has one body at most, but for the branches of a conditional.
pub(super) type Path = Vec<Step>;

#[derive(Debug, Default)]
pub(super) struct Rare {
    mode: Mode,
    path: Path,
    /// Statements with side exits that have not joined yet.
    left: BTreeMap<Path, Block>,
}

impl Rare {
    /// True if side exits within the present statement have not joined yet.
    fn is_awaited(&self) -> bool {
        let mut behind = self.left.range::<Path, _>(&self.path..);
        behind
            .next()
            .is_some_and(|(path, _)| path.starts_with(&self.path))
    }
}

impl Gen<'_, '_> {
    /// Generates the pipeline with side exits at unlikely statements.
    pub(super) fn leaving<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.in_mode(Mode::Leave, make)
    }

    /// Generates the code in which all side exits join.
    pub(super) fn joining<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.in_mode(Mode::Join, make)
    }

    /// A side exit that the code behind all paths does not join, by the path of its statement. No
    /// program should have one: its machine code would jump into nothing.
    pub(super) fn unjoined_exit(&self) -> Option<&Path> {
        self.rare.left.keys().next()
    }

    /// Generates code in which side exits neither leave nor join.
    pub(super) fn closed<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> T {
        self.in_mode(Mode::Ignore, make)
    }

    fn in_mode<T>(&mut self, mode: Mode, make: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.rare.mode, mode);
        let made = make(self);
        self.rare.mode = around;
        made
    }

    /// Makes a control of the pipeline.
    pub(super) fn within_control(&mut self, id: ControlId, make: impl FnOnce(&mut Self)) {
        self.rare.path.push(Step::Control(id.index()));
        make(self);
        self.rare.path.pop();
    }

    /// Makes the first statement of `stmts`, if it is reached.
    pub(super) fn at_statement(&mut self, stmts: &[Stmt], make: impl FnOnce(&mut Self)) {
        self.rare.path.push(Step::Statement(stmts.len()));
        if self.is_reached() {
            make(self);
        }
        self.rare.path.pop();
    }

    /// Makes a branch of the present statement, which is conditional.
    pub(super) fn in_branch(&mut self, holds: bool, make: impl FnOnce(&mut Self)) {
        self.rare.path.push(Step::Branch(holds));
        make(self);
        self.rare.path.pop();
    }

    /// The present place.
    pub(super) fn path(&self) -> &Path {
        &self.rare.path
    }

    /// True if unlikely branches here are side exits.
    pub(super) fn leaves(&self) -> bool {
        self.rare.mode == Mode::Leave
    }

    /// True if the present statement is reached, or a side exit joins in it.
    pub(super) fn is_reached(&self) -> bool {
        self.live || self.rare.mode == Mode::Join && self.rare.is_awaited()
    }

    /// True if statements behind one after which none is reached may be.
    pub(super) fn may_be_joined(&self) -> bool {
        self.rare.mode == Mode::Join
    }

    /// A place that few packets come to.
    pub(super) fn unlikely(&mut self) {
        match self.rare.mode {
            Mode::Ignore => {}
            Mode::Leave => {
                if let Some(block) = self.b.current_block() {
                    self.b.set_cold_block(block);
                }
                let path = self.rare.path.clone();
                let place = match self.rare.left.get(&path) {
                    Some(block) => *block,
                    None => self.b.create_block(),
                };
                self.rare.left.insert(path, place);
                self.make_deferred();
                self.jump(place);
            }
            Mode::Join => {
                if let Some(block) = self.rare.left.remove(&self.rare.path) {
                    self.jump(block);
                    self.enter(block);
                }
            }
        }
    }

    /// The statements of a branch that is always taken on the present path: it is not unlikely
    /// here.
    pub(super) fn certain<'s>(&self, stmts: &'s [Stmt]) -> &'s [Stmt] {
        match stmts {
            [Stmt::Unlikely, rest @ ..] if self.rare.mode == Mode::Leave => rest,
            _ => stmts,
        }
    }

    /// True if side exits are possible from within a call: all its copy-outs go to places that are
    /// the same for every execution of the call.
    pub(super) fn can_be_left(&self, args: &[Arg]) -> bool {
        args.iter().all(|arg| match arg {
            Arg::In(_) => true,
            Arg::Out(place) | Arg::InOut(place) => {
                fixed_place(self.program(), &self.plan.storage, &self.bases, place).is_some()
            }
        })
    }

    /// In a branch beside which the other is left: what holds there because it was taken.
    pub(super) fn learn(&mut self, condition: &Expr, holds: bool, other: &[Stmt]) {
        if self.rare.mode == Mode::Leave && matches!(other.first(), Some(Stmt::Unlikely)) {
            self.learn_from(condition, holds);
        }
    }

    fn learn_from(&mut self, condition: &Expr, holds: bool) {
        match &condition.kind {
            ExprKind::Unary(UnaryOp::Not, value) => self.learn_from(value, !holds),
            ExprKind::Binary(op, left, right)
                if (*op, holds) == (BinaryOp::LogicalAnd, true)
                    || (*op, holds) == (BinaryOp::LogicalOr, false) =>
            {
                self.learn_from(left, holds);
                self.learn_from(right, holds);
            }
            ExprKind::Read(place) | ExprKind::IsValid(place) => self.learn_bit(place, holds),
            _ => {}
        }
    }

    /// Sets a `bool`, or a header's validity, to what it is.
    fn learn_bit(&mut self, place: &Place, holds: bool) {
        let fixed = fixed_place(self.program(), &self.plan.storage, &self.bases, place);
        if fixed.is_none() {
            return;
        }
        let Some(Spot {
            at,
            dynamic: None,
            guard: None,
            slice: None,
            ..
        }) = self.spot(place)
        else {
            return;
        };
        if let Some((1, crate::plan::Home::Register)) = self.home(at) {
            let value = self.number(u64::from(holds));
            self.define_register(at, 1, value);
        }
    }
}

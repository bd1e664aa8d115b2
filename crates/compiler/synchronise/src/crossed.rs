//! Accesses of elements that have crossed the last cut, because the packet accessed them before. A cut comes
//! between two packets, so these need not look whether it has passed the element.

use crate::uses::{Call, Place};
use num_bigint::BigInt;
use stateplane_check::effects::has_effects;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{Argument, Declaration, Expr, ExprKind, Program, Stmt, StmtKind};
use std::collections::{BTreeMap, BTreeSet};

/// An index whose value follows from one variable, or from none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Index<'t> {
    /// A variable, or a field of one: its names, outermost first.
    Variable(Vec<&'t str>),
    Number(&'t BigInt),
}

/// An element that has crossed the last cut: its register, by the place of the declaration, and its index.
type Element<'t> = (Span, Index<'t>);

struct Finder<'t> {
    /// Calls in bodies of controls, by their callees.
    calls: BTreeMap<Span, Call>,
    /// Elements that have crossed on each path to the statement that is looked at.
    crossed: BTreeSet<Element<'t>>,
    /// Callees whose element has crossed.
    found: BTreeSet<Span>,
}

/// Marks the calls in bodies of controls that come behind another access of the same element, with nothing
/// between them that may change the index.
pub(crate) fn mark(tree: &Program, calls: &mut [Call]) {
    let in_body = calls.iter().filter(|call| call.place == Place::Body);
    let mut finder = Finder {
        calls: in_body.map(|call| (call.callee, *call)).collect(),
        crossed: BTreeSet::new(),
        found: BTreeSet::new(),
    };
    for declaration in &tree.declarations {
        if let Declaration::Control(control) = declaration {
            finder.crossed.clear();
            finder.statements(&control.body.statements);
        }
    }
    for call in calls {
        if finder.found.contains(&call.callee) {
            call.place = Place::Crossed;
        }
    }
}

impl<'t> Finder<'t> {
    fn statements(&mut self, statements: &'t [Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    /// Statements of an inner scope. An element that crosses there may be of a variable that ends with it, or
    /// on a path that is not taken: it is not known behind them.
    fn inner(&mut self, inside: impl FnOnce(&mut Self)) -> BTreeSet<Element<'t>> {
        let before = self.crossed.clone();
        inside(self);
        let after = std::mem::replace(&mut self.crossed, before);
        self.crossed.intersection(&after).cloned().collect()
    }

    fn statement(&mut self, statement: &'t Stmt) {
        match &statement.kind {
            StmtKind::Malformed
            | StmtKind::Empty
            | StmtKind::Exit
            | StmtKind::Break
            | StmtKind::Continue => {}
            StmtKind::Assign { target, value, .. } => {
                self.evaluated(value);
                self.evaluated(target);
                self.assigned(target);
            }
            StmtKind::Variable(variable) => {
                if let Some(value) = &variable.init {
                    self.evaluated(value);
                }
                self.forget(&[variable.name.as_str()]);
            }
            StmtKind::Const(constant) => self.forget(&[constant.name.as_str()]),
            StmtKind::Return(value) => {
                if let Some(value) = value {
                    self.evaluated(value);
                }
            }
            StmtKind::Call(call) => self.call(call),
            StmtKind::Block(block) => {
                self.crossed = self.inner(|finder| finder.statements(&block.statements));
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                self.evaluated(condition);
                let then = self.inner(|finder| finder.statement(then));
                let otherwise = match otherwise {
                    Some(otherwise) => self.inner(|finder| finder.statement(otherwise)),
                    None => self.crossed.clone(),
                };
                self.crossed = then.intersection(&otherwise).cloned().collect();
            }
            StmtKind::Switch { cases, .. } => {
                // The subject may be a table, whose actions may do anything.
                for case in cases {
                    self.crossed.clear();
                    if let Some(body) = &case.body {
                        self.statements(&body.statements);
                    }
                }
                self.crossed.clear();
            }
            StmtKind::For { body, .. } | StmtKind::ForIn { body, .. } => {
                self.crossed.clear();
                self.statement(body);
                self.crossed.clear();
            }
        }
    }

    /// A call: of a register, or of what may do anything.
    fn call(&mut self, call: &'t Expr) {
        let ExprKind::Call { callee, args, .. } = &call.kind else {
            self.crossed.clear();
            return;
        };
        let values: Vec<&Expr> = args.iter().filter_map(|arg| arg.value.as_ref()).collect();
        let (Some(access), [first, second], false) = (
            self.calls.get(&callee.span).copied(),
            values.as_slice(),
            args.iter().any(is_named) || values.iter().any(|value| has_effects(value)),
        ) else {
            self.crossed.clear();
            return;
        };
        let index = if access.writes { first } else { second };
        let element = index_of(index).map(|index| (access.register, index));
        if element.is_some_and(|element| !self.crossed.insert(element)) {
            self.found.insert(callee.span);
        }
        if !access.writes {
            self.assigned(first);
        }
    }

    fn evaluated(&mut self, value: &Expr) {
        if has_effects(value) {
            self.crossed.clear();
        }
    }

    /// Forgets elements whose index `target` holds, or is part of.
    fn assigned(&mut self, target: &'t Expr) {
        match &target.kind {
            ExprKind::Index { base, .. }
            | ExprKind::Slice { base, .. }
            | ExprKind::PlusSlice { base, .. } => self.assigned(base),
            _ => match variable(target) {
                Some(path) => self.forget(&path),
                None => self.crossed.clear(),
            },
        }
    }

    /// Forgets elements whose index may change with the variable or field `path`. What is assigned as a whole may
    /// be a header of a union, with which the other headers of the union end.
    fn forget(&mut self, path: &[&str]) {
        self.crossed.retain(|(_, index)| match index {
            Index::Variable(index) if path.len() < index.len() => path.first() != index.first(),
            Index::Variable(index) => !path.starts_with(index),
            Index::Number(_) => true,
        });
    }
}

fn is_named(argument: &Argument) -> bool {
    argument.name.is_some()
}

fn index_of(expr: &Expr) -> Option<Index<'_>> {
    match &expr.kind {
        ExprKind::Number(number) => Some(Index::Number(&number.value)),
        _ => variable(expr).map(Index::Variable),
    }
}

/// The names of a variable, or of a field of one. An element of a stack is neither.
fn variable(expr: &Expr) -> Option<Vec<&str>> {
    match &expr.kind {
        ExprKind::Name(path) if !path.absolute => Some(vec![path.name.as_str()]),
        ExprKind::Member { base, member } => {
            let mut path = variable(base)?;
            path.push(member.as_str());
            Some(path)
        }
        _ => None,
    }
}

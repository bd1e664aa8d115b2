//! Rules 5 and 6: statements.

use super::{Verifier, index_or_scalar_width};
use crate::graph::Node;
use crate::{Callee, Expr, Place, Stmt, Type};
use num_bigint::BigUint;

impl Verifier<'_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            self.nested(|this| this.stmt(stmt));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(place, value) => {
                self.expr(value);
                if let Some(ty) = self.place(place) {
                    self.expect_type(5, "an assigned value", ty, value.ty);
                }
            }
            Stmt::If {
                condition,
                then,
                otherwise,
            } => {
                self.expr_of(5, "a condition", Type::Bool, condition);
                self.stmts(then);
                self.stmts(otherwise);
            }
            Stmt::Switch {
                value,
                cases,
                default,
            } => {
                self.switch(value, cases);
                self.stmts(default);
            }
            Stmt::Apply {
                table,
                hit,
                action_run,
            } => {
                if table.index() < self.program.tables.len() {
                    self.graph.call(Node::Table(*table), self.depth);
                } else {
                    self.fail(1, format!("{table} does not exist"));
                }
                self.result(hit, Type::Bool);
                self.result(action_run, Type::Bits(32));
            }
            Stmt::Call {
                callee,
                args,
                result,
            } => self.call(*callee, args, result),
            Stmt::Op(op) => self.op(op),
            Stmt::SetValid(place) | Stmt::SetInvalid(place) => {
                if let Some(ty) = self.place(place)
                    && !matches!(ty, Type::Header(_))
                {
                    self.fail(5, format!("validity of {ty:?}"));
                }
            }
            Stmt::PushFront(place, _) | Stmt::PopFront(place, _) => {
                if let Some(ty) = self.place(place)
                    && !matches!(ty, Type::Stack(_))
                {
                    self.fail(5, format!("a shift of {ty:?}"));
                }
            }
            Stmt::Block(stmts) | Stmt::Atomic(stmts) | Stmt::Apart(stmts) => self.stmts(stmts),
            Stmt::Loop { body, update } => {
                let around = std::mem::replace(&mut self.in_loop, true);
                self.stmts(body);
                self.in_loop = false;
                self.stmts(update);
                self.in_loop = around;
            }
            Stmt::Break | Stmt::Continue => {
                if !self.in_loop {
                    self.fail(5, format!("{stmt:?} outside of a loop's body"));
                }
            }
            Stmt::Unlikely | Stmt::At(_) | Stmt::Return | Stmt::Exit => {}
        }
    }

    fn switch(&mut self, value: &Expr, cases: &[(Vec<BigUint>, Vec<Stmt>)]) {
        self.scalar(5, "the value of a switch", value);
        let width = u64::from(index_or_scalar_width(value.ty).unwrap_or(0));
        let mut labels: Vec<&BigUint> = cases.iter().flat_map(|(labels, _)| labels).collect();
        labels.sort_unstable();
        if labels.windows(2).any(|pair| pair[0] == pair[1]) {
            self.fail(5, "two cases of a switch have one label");
        }
        if labels.last().is_some_and(|label| label.bits() > width) {
            self.fail(5, "a label of a switch does not fit its value");
        }
        for (_, stmts) in cases {
            self.stmts(stmts);
        }
    }

    /// A place that gets a result of type `wanted`.
    pub(super) fn result(&mut self, place: &Option<Place>, wanted: Type) {
        if let Some(place) = place
            && let Some(ty) = self.place(place)
        {
            self.expect_type(5, "a result", wanted, ty);
        }
    }

    fn call(&mut self, callee: Callee, args: &[crate::Arg], result: &Option<Place>) {
        let program = self.program;
        let mut returned = None;
        let found = match callee {
            Callee::Action(id) => program.actions.get(id.index()).map(|it| &it.params),
            Callee::Function(id) => program.functions.get(id.index()).map(|function| {
                returned = function.result;
                &function.params
            }),
            Callee::Control(id) => program.controls.get(id.index()).map(|it| &it.params),
            Callee::Parser(id) => program.parsers.get(id.index()).map(|it| &it.params),
        };
        let Some(params) = found else {
            self.fail(1, format!("{callee:?} does not exist"));
            return;
        };
        if matches!(callee, Callee::Parser(_)) && !self.in_parser {
            self.fail(6, "a parser is called outside of parsers");
        }
        self.graph.call(Node::Call(callee), self.depth);
        self.args(6, params, args);
        match (result, returned) {
            (None, _) => {}
            (Some(_), None) => self.fail(6, "the result of a callable without one"),
            (Some(_), Some(var)) => {
                if let Some(ty) = self.var_type(var) {
                    self.result(result, ty);
                }
            }
        }
    }
}

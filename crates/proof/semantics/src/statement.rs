//! Statements (P4-16 1.2.5, §12), and the bodies of controls (§14).

use crate::Fault;
use crate::machine::{Frame, Machine, Run, Stop, Variable};
use crate::types::Type;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::{
    BinaryOp, ConstDecl, ControlDecl, ControlLocal, Expr, ExprKind, ForCollection, Stmt, StmtKind,
    SwitchCase, VariableDecl,
};

/// Control flow after a statement.
#[derive(Debug)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Value>),
}

impl<'p> Machine<'p> {
    /// Declares a name in the innermost scope.
    pub(crate) fn declare_variable(&mut self, name: &'p str, ty: Type, value: Value) {
        if let Some(frame) = self.frames.last_mut() {
            frame.variables.push(Variable { name, ty, value });
        }
    }

    pub(crate) fn variable(&mut self, decl: &'p VariableDecl) -> Run<()> {
        let ty = self.ty(&decl.ty)?;
        let value = match &decl.init {
            Some(init) => self.eval(init)?.fit(&ty)?,
            None => ty.uninitialised(),
        };
        self.declare_variable(decl.name.as_str(), ty, value);
        Ok(())
    }

    pub(crate) fn local_constant(&mut self, decl: &'p ConstDecl) -> Run<()> {
        let ty = self.ty(&decl.ty)?;
        let value = self.eval(&decl.value)?.fit(&ty)?;
        self.declare_variable(decl.name.as_str(), ty, value);
        Ok(())
    }

    /// The declarations of a control whose scope is the innermost one, and its body, in a
    /// scope within.
    pub(crate) fn control(&mut self, decl: &'p ControlDecl) -> Run<Flow> {
        for local in &decl.locals {
            match local {
                ControlLocal::Variable(decl) => self.variable(decl)?,
                ControlLocal::Const(decl) => self.local_constant(decl)?,
                ControlLocal::Instantiation(_)
                | ControlLocal::Action(_)
                | ControlLocal::Table(_) => {}
            }
        }
        let outer = self.frames.len().checked_sub(1);
        self.frames.push(Frame {
            outer,
            ..Frame::default()
        });
        let result = self.body(&decl.body.statements);
        match result {
            Err(Stop::Exit) if self.is(Fault::ExitEndsOneControl) => Ok(Flow::Next),
            result => result,
        }
    }

    /// Statements in a scope of their own.
    pub(crate) fn body(&mut self, statements: &'p [Stmt]) -> Run<Flow> {
        let declared = self.frames.last().map_or(0, |frame| frame.variables.len());
        let flow = self.statements(statements);
        self.forget(declared);
        flow
    }

    fn forget(&mut self, declared: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.variables.truncate(declared);
        }
    }

    fn statements(&mut self, statements: &'p [Stmt]) -> Run<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    pub(crate) fn statement(&mut self, statement: &'p Stmt) -> Run<Flow> {
        self.step()?;
        match &statement.kind {
            StmtKind::Empty => {}
            StmtKind::Malformed => return Err(Stop::unsupported("what cannot be read")),
            StmtKind::Assign {
                target, op, value, ..
            } => self.assign(target, *op, value)?,
            StmtKind::Call(call) => {
                self.eval(call)?;
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                if self.eval(condition)?.truth()? {
                    return self.statement(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.statement(otherwise);
                }
            }
            StmtKind::Block(block) => {
                let flow = self.body(&block.statements)?;
                return Ok(match flow {
                    Flow::Return(_) if self.is(Fault::ReturnEndsOneBlock) => Flow::Next,
                    flow => flow,
                });
            }
            StmtKind::Return(value) => {
                let value = match value {
                    Some(value) => Some(self.eval(value)?),
                    None => None,
                };
                return Ok(Flow::Return(value));
            }
            StmtKind::Exit => return Err(Stop::Exit),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Switch { subject, cases } => return self.switch(subject, cases),
            StmtKind::For {
                init,
                condition,
                update,
                body,
                ..
            } => {
                let declared = self.frames.last().map_or(0, |frame| frame.variables.len());
                let flow = self.loop_while(init, condition, update, body);
                self.forget(declared);
                return flow;
            }
            StmtKind::ForIn {
                variable,
                collection,
                body,
                ..
            } => return self.loop_in(variable, collection, body),
            StmtKind::Variable(decl) => self.variable(decl)?,
            StmtKind::Const(decl) => self.local_constant(decl)?,
        }
        Ok(Flow::Next)
    }

    /// First the place, then the value (§12.1).
    fn assign(&mut self, target: &'p Expr, op: Option<BinaryOp>, value: &'p Expr) -> Run<()> {
        if self.is(Fault::AssignedValueFirst) && op.is_none() {
            let value = self.eval(value)?;
            let place = self.place(target)?;
            let value = value.fit(&place.ty)?;
            return self.write(&place, value);
        }
        let place = self.place(target)?;
        let value = match op {
            None => self.eval(value)?,
            Some(op) => {
                let old = self.read(&place);
                let value = self.eval(value)?;
                self.binary(op, old, value)?
            }
        };
        let mut value = value.fit(&place.ty)?;
        if self.is(Fault::CopiesAreValid)
            && let Value::Header(_, valid, _) = &mut value
        {
            *valid = Some(true);
        }
        self.write(&place, value)
    }

    fn switch(&mut self, subject: &'p Expr, cases: &'p [SwitchCase]) -> Run<Flow> {
        let subject = self.eval(subject)?;
        let mut chosen = None;
        for (number, case) in cases.iter().enumerate() {
            let Some(label) = &case.label else {
                chosen = chosen.or(Some(number));
                continue;
            };
            let label = match (&subject, &label.kind) {
                (Value::ActionRun(_), ExprKind::Name(path)) => {
                    Value::ActionRun(path.name.to_string())
                }
                _ => {
                    let label = self.eval(label)?;
                    match subject.ty() {
                        Some(ty) => label.fit(&ty)?,
                        None => label,
                    }
                }
            };
            let equal = subject.equals(&label)?;
            if equal.ok_or(Stop::Unknown("the subject of a switch"))? {
                chosen = Some(number);
                break;
            }
        }
        let Some(chosen) = chosen else {
            return Ok(Flow::Next);
        };
        // A case without a body is that of the next (§12.7.3).
        let cases = if self.is(Fault::NothingFallsThrough) {
            &cases[chosen..=chosen]
        } else {
            &cases[chosen..]
        };
        match cases.iter().find_map(|case| case.body.as_ref()) {
            Some(body) => self.body(&body.statements),
            None => Ok(Flow::Next),
        }
    }

    fn loop_while(
        &mut self,
        init: &'p [Stmt],
        condition: &'p Expr,
        update: &'p [Stmt],
        body: &'p Stmt,
    ) -> Run<Flow> {
        self.statements(init)?;
        let mut first = true;
        while first && self.is(Fault::LoopsRunOnce) || self.eval(condition)?.truth()? {
            first = false;
            match self.statement(body)? {
                Flow::Next => {}
                Flow::Continue if self.is(Fault::ContinueBreaks) => break,
                Flow::Continue => {}
                Flow::Break if self.is(Fault::BreakContinues) => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => return Ok(flow),
            }
            self.statements(update)?;
            self.step()?;
        }
        Ok(Flow::Next)
    }

    fn loop_in(
        &mut self,
        variable: &'p VariableDecl,
        collection: &'p ForCollection,
        body: &'p Stmt,
    ) -> Run<Flow> {
        let ty = self.ty(&variable.ty)?;
        let values: Vec<Value> = match collection {
            ForCollection::Range { low, high } => {
                let low = self.eval(low)?.plain();
                let high = self.eval(high)?.plain();
                let unknown = || Stop::Unknown("a range");
                let low = low.number().cloned().ok_or_else(unknown)?;
                let high = high.number().cloned().ok_or_else(unknown)?;
                let mut values = Vec::new();
                let mut number = low;
                let last = if self.is(Fault::RangesLackTheirEnd) {
                    high - BigInt::from(1)
                } else {
                    high
                };
                while number <= last {
                    self.step()?;
                    values.push(Value::Integer(number.clone()).fit(&ty)?);
                    number += 1;
                }
                values
            }
            ForCollection::Elements(elements) => match self.eval(elements)? {
                Value::Stack(_, elements, _) | Value::List(elements) => elements,
                _ => return Err(Stop::unsupported("such a collection")),
            },
        };
        for value in values {
            self.step()?;
            let declared = self.frames.last().map_or(0, |frame| frame.variables.len());
            let value = value.fit(&ty)?;
            self.declare_variable(variable.name.as_str(), ty.clone(), value);
            let flow = self.statement(body);
            self.forget(declared);
            match flow? {
                Flow::Next => {}
                Flow::Continue if self.is(Fault::ContinueBreaks) => break,
                Flow::Continue => {}
                Flow::Break if self.is(Fault::BreakContinues) => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }
}

//! Calls whose arguments are not copied as the IR does it, which copies them in and out in
//! the order of the parameters, right before and right after the callee runs.
//!
//! An `inout` argument before one with side effects is copied in from what it held before
//! those; named arguments in another order are copied out in the order of the call
//! (spec §6.8). Such a call becomes one of a callable of its own, whose parameters
//! stand in the order of the arguments and which calls the callee. So what is written is
//! copied out, too, where the callee leaves by `exit` or an error.

use crate::arguments::{CallArguments, IrArg};
use crate::checker::Checker;
use crate::scope::Param;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// Appends a call of something with a body.
    pub(crate) fn emit_call(
        &mut self,
        callee: ir::Callee,
        params: &[Param<'a>],
        arguments: CallArguments,
        result: Option<ir::Place>,
        span: Span,
    ) {
        if !matches!(callee, ir::Callee::Function(_)) {
            self.callable.rounds.may_leave = true;
        }
        let (callee, args) = self.prepare_call(callee, params, arguments, span);
        self.emit(ir::Stmt::Call {
            callee,
            args,
            result,
        });
    }

    /// The callee of a call in the IR, and its arguments. Action data that are not among
    /// the arguments come last, as they do in the callee.
    pub(crate) fn prepare_call(
        &mut self,
        callee: ir::Callee,
        params: &[Param<'a>],
        arguments: CallArguments,
        span: Span,
    ) -> (ir::Callee, Vec<ir::Arg>) {
        let CallArguments { passed, order, .. } = arguments;
        let args = self.ir_args(params, passed, span);
        if args.iter().any(|arg| arg.kept.is_some()) || self.swaps(&args, &order) {
            return self.copying(callee, args, &order);
        }
        (callee, args.into_iter().map(|arg| arg.arg).collect())
    }

    fn ir_params(&self, callee: ir::Callee) -> &[ir::Param] {
        match callee {
            ir::Callee::Action(id) => &self.out.actions[id.index()].params,
            ir::Callee::Function(id) => &self.out.functions[id.index()].params,
            ir::Callee::Control(id) => &self.out.controls[id.index()].params,
            ir::Callee::Parser(id) => &self.out.parsers[id.index()].params,
        }
    }

    /// A callable that copies arguments in `order`, with its arguments.
    fn copying(
        &mut self,
        callee: ir::Callee,
        args: Vec<IrArg>,
        order: &[usize],
    ) -> (ir::Callee, Vec<ir::Arg>) {
        let inner = self.ir_params(callee).to_vec();
        let around = self.name_around(callee);
        let named = |name: &str, prefix: &str| {
            let last = name.rsplit('.').next().unwrap_or(name);
            format!("{around}.{prefix}{last}")
        };
        let mut params = Vec::new();
        let mut given = Vec::new();
        let mut body = Vec::new();
        let mut passed: Vec<ir::Arg> = Vec::new();
        let mut turns: Vec<(usize, usize)> = Vec::new();
        for (number, (arg, param)) in args.into_iter().zip(&inner).enumerate() {
            let turn = order.iter().position(|position| *position == arg.position);
            turns.push((turn.unwrap_or(usize::MAX), number));
            let ir::Var { name, ty } = self.out.vars[param.var.index()].clone();
            let var = self.out.var(named(&name, ""), ty);
            let place = ir::Place::var(var);
            let read = |var| ir::Expr {
                kind: ir::ExprKind::Read(ir::Place::var(var)),
                ty,
            };
            let mut own = Vec::new();
            let direction = match (&arg.arg, arg.kept) {
                (ir::Arg::In(_), _) => ir::Direction::In,
                (ir::Arg::Out(_), _) => ir::Direction::Out,
                (ir::Arg::InOut(_), None) => ir::Direction::InOut,
                (ir::Arg::InOut(_), Some(kept)) => {
                    let before = self.out.var(named(&name, "$"), ty);
                    body.push(ir::Stmt::Assign(place.clone(), read(before)));
                    let direction = ir::Direction::In;
                    own.push((
                        ir::Param {
                            var: before,
                            direction,
                        },
                        ir::Arg::In(kept),
                    ));
                    ir::Direction::Out
                }
            };
            passed.push(match &arg.arg {
                ir::Arg::In(_) => ir::Arg::In(read(var)),
                ir::Arg::Out(_) => ir::Arg::Out(place),
                ir::Arg::InOut(_) => ir::Arg::InOut(place),
            });
            let arg = match arg.arg {
                ir::Arg::InOut(place) if direction == ir::Direction::Out => ir::Arg::Out(place),
                arg => arg,
            };
            own.push((ir::Param { var, direction }, arg));
            given.push(own);
        }
        turns.sort_unstable();
        let mut ordered = Vec::new();
        for (_, number) in turns {
            for (param, arg) in std::mem::take(&mut given[number]) {
                params.push(param);
                ordered.push(arg);
            }
        }
        for param in &inner[passed.len().min(inner.len())..] {
            let ir::Var { name, ty } = self.out.vars[param.var.index()].clone();
            let var = self.out.var(named(&name, ""), ty);
            params.push(ir::Param { var, ..*param });
            passed.push(ir::Arg::In(ir::Expr {
                kind: ir::ExprKind::Read(ir::Place::var(var)),
                ty,
            }));
        }
        (
            self.callable_around(around, callee, params, body, passed),
            ordered,
        )
    }

    /// The name of a callable around another: `$` begins its last part.
    fn name_around(&self, callee: ir::Callee) -> String {
        let name = match callee {
            ir::Callee::Action(id) => &self.out.actions[id.index()].name,
            ir::Callee::Function(id) => &self.out.functions[id.index()].name,
            ir::Callee::Control(id) => &self.out.controls[id.index()].name,
            ir::Callee::Parser(id) => &self.out.parsers[id.index()].name,
        };
        let (front, last) = name.split_at(name.rfind('.').map_or(0, |dot| dot + 1));
        format!("{front}${last}")
    }

    /// A callable that runs `body` and then `callee` with `args`.
    fn callable_around(
        &mut self,
        name: String,
        callee: ir::Callee,
        params: Vec<ir::Param>,
        mut body: Vec<ir::Stmt>,
        args: Vec<ir::Arg>,
    ) -> ir::Callee {
        let mut result = None;
        if let ir::Callee::Function(id) = callee
            && let Some(inner) = self.out.functions[id.index()].result
        {
            let ty = self.out.vars[inner.index()].ty;
            result = Some(self.out.var(format!("{name}.$result"), ty));
        }
        body.push(ir::Stmt::Call {
            callee,
            args,
            result: result.map(ir::Place::var),
        });
        let locals = Vec::new();
        match callee {
            ir::Callee::Action(id) => {
                self.out.actions.push(ir::Action {
                    name,
                    params,
                    locals,
                    body,
                    annotations: Vec::new(),
                });
                self.made
                    .actions
                    .push(Rc::clone(&self.made.actions[id.index()]));
                ir::Callee::Action(ir::ActionId(self.out.actions.len() as u32 - 1))
            }
            ir::Callee::Function(_) => {
                self.out.functions.push(ir::Function {
                    name,
                    params,
                    locals,
                    result,
                    body,
                });
                ir::Callee::Function(ir::FunctionId(self.out.functions.len() as u32 - 1))
            }
            ir::Callee::Control(id) => {
                self.out.controls.push(ir::Control {
                    name,
                    params,
                    locals,
                    body,
                });
                self.made
                    .controls
                    .push(Rc::clone(&self.made.controls[id.index()]));
                ir::Callee::Control(ir::ControlId(self.out.controls.len() as u32 - 1))
            }
            ir::Callee::Parser(id) => {
                self.out.parsers.push(ir::Parser {
                    name,
                    params,
                    locals,
                    init: Vec::new(),
                    states: vec![ir::State {
                        name: "start".to_owned(),
                        body,
                        transition: ir::Transition::To(ir::Target::Accept),
                    }],
                    start: ir::StateId(0),
                });
                self.made
                    .parsers
                    .push(Rc::clone(&self.made.parsers[id.index()]));
                ir::Callee::Parser(ir::ParserId(self.out.parsers.len() as u32 - 1))
            }
        }
    }

    /// True if arguments that are copied out to one place, or to parts of one, stand in
    /// another order than their parameters.
    fn swaps(&self, args: &[IrArg], order: &[usize]) -> bool {
        let mut written = Vec::new();
        for arg in args {
            let turn = order.iter().position(|position| *position == arg.position);
            if let (ir::Arg::Out(place) | ir::Arg::InOut(place), Some(turn)) = (&arg.arg, turn) {
                written.push((turn, place));
            }
        }
        written.iter().enumerate().any(|(number, (turn, place))| {
            let later = &written[number + 1..];
            later
                .iter()
                .any(|(other_turn, other)| other_turn < turn && !self.apart(place, other))
        })
    }

    /// True if no write to one place changes the other.
    fn apart(&self, one: &ir::Place, other: &ir::Place) -> bool {
        if one.var != other.var {
            return true;
        }
        let mut ty = self.out.vars[one.var.index()].ty;
        for steps in one.path.iter().zip(&other.path) {
            // Members of a union make each other invalid.
            let (
                ir::Type::Struct(id) | ir::Type::Header(id),
                (ir::Projection::Field(field), ir::Projection::Field(other)),
            ) = (ty, steps)
            else {
                return false;
            };
            if field != other {
                return true;
            }
            ty = self.out.structs[id.index()].fields[*field as usize].ty;
        }
        false
    }
}

//! Calls: copy-in and copy-out (P4-16 1.2.5, §6.8), methods of headers and stacks (§8.17,
//! §8.18), and the functions of `core.p4` and `v1model.p4` that are evaluated.

use crate::Fault;
use crate::machine::{Block, Frame, Instance, Machine, Run, Stop, Variable};
use crate::number::Width;
use crate::place::{Place, Reference};
use crate::statement::Flow;
use crate::types::Type;
use crate::value::Value;
use num_bigint::BigInt;
use stateplane_syntax::tree::Type as Written;
use stateplane_syntax::tree::{Argument, Block as Body, Direction, Expr, ExprKind, Parameter};
use std::rc::Rc;

/// Parameters with what they begin as, and where they are copied to.
pub(crate) struct Bound<'p> {
    pub(crate) variables: Vec<Variable<'p>>,
    /// In order of the arguments.
    out: Vec<CopyOut<'p>>,
}

/// A parameter that is copied out.
pub(crate) struct CopyOut<'p> {
    /// The number of the parameter.
    number: usize,
    place: Place,
    /// The argument.
    arg: &'p Expr,
}

impl<'p> Machine<'p> {
    /// Evaluates arguments in the order in which they are written; saves the places of
    /// those that are copied out, and the values of those that are copied in. Parameters
    /// without an argument get `data` in order, and then their default values.
    pub(crate) fn bind(
        &mut self,
        params: &'p [Parameter],
        args: &'p [Argument],
        data: &[Value],
    ) -> Run<Bound<'p>> {
        let mut values: Vec<Option<Value>> = params.iter().map(|_| None).collect();
        let mut types = Vec::new();
        for param in params {
            types.push(match self.parameter_type(param) {
                Ok(ty) => ty,
                // Packets, and what is of the architecture's types.
                Err(_) => Type::Other,
            });
        }
        let mut out: Vec<CopyOut<'p>> = Vec::new();
        let mut order: Vec<usize> = (0..args.len()).collect();
        if self.is(Fault::ArgumentsFromTheRight) {
            order.reverse();
        }
        for position in order {
            let arg = &args[position];
            let number = match &arg.name {
                None => Some(position),
                Some(name) => params.iter().position(|param| param.name.name == name.name),
            };
            let number = number.filter(|number| *number < params.len());
            let number = number.ok_or_else(|| Stop::unsupported("an argument too many"))?;
            let ty = &types[number];
            let value = match (params[number].direction, &arg.value) {
                (Direction::None | Direction::In, Some(value)) => self.eval(value)?.fit(ty)?,
                (Direction::Out, None) => ty.uninitialised(),
                (Direction::Out, Some(arg)) => {
                    let place = self.place(arg)?;
                    let begins = if self.is(Fault::OutParametersKeepTheirValue) {
                        self.read(&place)
                    } else {
                        ty.uninitialised()
                    };
                    out.push(CopyOut { number, place, arg });
                    begins
                }
                (Direction::InOut, Some(arg)) => {
                    let place = self.place(arg)?;
                    let value = self.read(&place);
                    out.push(CopyOut { number, place, arg });
                    value
                }
                (_, None) => return Err(Stop::unsupported("an argument that is none")),
            };
            values[number] = Some(value);
        }
        if self.is(Fault::ArgumentsAreReadLast) {
            for CopyOut { number, place, .. } in &out {
                if params[*number].direction == Direction::InOut {
                    values[*number] = Some(self.read(place));
                }
            }
        }
        if self.is(Fault::CopiedOutByParameter) {
            out.sort_by_key(|out| out.number);
        }
        let mut data = data.iter();
        let mut variables = Vec::new();
        for ((param, value), ty) in params.iter().zip(values).zip(types) {
            let value = match (value, &param.default) {
                (Some(value), _) => value,
                (None, _) if param.direction == Direction::None && data.len() > 0 => {
                    let value = data.next().cloned().unwrap_or(Value::Void);
                    value.fit(&ty)?
                }
                (None, Some(default)) => self.eval(default)?.fit(&ty)?,
                (None, None) => return Err(Stop::unsupported("a missing argument")),
            };
            variables.push(Variable {
                name: param.name.as_str(),
                ty,
                value,
            });
        }
        Ok(Bound { variables, out })
    }

    /// Copies parameters out, in the order of the arguments, unless evaluation has ended
    /// for good. Both `return` and `exit` copy out.
    pub(crate) fn finish(
        &mut self,
        variables: &[Variable<'p>],
        out: &[CopyOut<'p>],
        result: Run<Flow>,
    ) -> Run<Flow> {
        match &result {
            Ok(Flow::Return(_)) if self.is(Fault::ReturnLosesParameters) => {}
            Err(Stop::Exit) if self.is(Fault::ExitLosesParameters) => {}
            Ok(_) | Err(Stop::Exit) => {
                for CopyOut { number, place, arg } in out {
                    let value = variables[*number].value.clone();
                    if self.is(Fault::IndicesAreReadLate) {
                        let place = self.place(arg)?;
                        self.write(&place, value)?;
                        continue;
                    }
                    self.write(place, value)?;
                }
            }
            // The effects of a sub-parser that fails are unspecified (§13.10).
            Err(Stop::Reject(_)) => {
                for CopyOut { place, .. } in out {
                    self.write(place, place.ty.unknown())?;
                }
            }
            Err(_) => {}
        }
        result
    }

    /// Runs the body of an action or function in a scope of its own within `outer`.
    pub(crate) fn run_body(
        &mut self,
        bound: Bound<'p>,
        outer: Option<usize>,
        body: &'p Body,
    ) -> Run<Flow> {
        let depth = self.frames.len();
        self.frames.push(Frame {
            variables: bound.variables,
            outer,
            block: None,
        });
        let result = self.body(&body.statements);
        self.frames.truncate(depth + 1);
        let frame = self.frames.pop().unwrap_or_default();
        self.finish(&frame.variables, &bound.out, result)
    }

    /// Runs a parser or control, and gives back its parameters.
    pub(crate) fn run_block(
        &mut self,
        instance: &Rc<Instance<'p>>,
        variables: Vec<Variable<'p>>,
    ) -> (Vec<Variable<'p>>, Run<Flow>) {
        let depth = self.frames.len();
        let mut all = instance.settings.clone();
        let settings = all.len();
        all.extend(variables);
        self.frames.push(Frame {
            variables: all,
            outer: None,
            block: Some(instance.clone()),
        });
        let result = match instance.block {
            Block::Control(decl) => self.control(decl),
            Block::Parser(decl) => self.parser(decl).map(|()| Flow::Next),
        };
        self.frames.truncate(depth + 1);
        let frame = self.frames.pop().unwrap_or_default();
        let params = instance.params().len();
        let variables = frame.variables.into_iter().skip(settings).take(params);
        (variables.collect(), result)
    }

    fn apply(&mut self, instance: &Rc<Instance<'p>>, args: &'p [Argument]) -> Run<Value> {
        let bound = self.bind(instance.params(), args, &[])?;
        let (variables, result) = self.run_block(instance, bound.variables);
        self.finish(&variables, &bound.out, result)?;
        Ok(Value::Void)
    }

    /// The value of a call.
    pub(crate) fn call(
        &mut self,
        callee: &'p Expr,
        type_args: &'p [Written],
        args: &'p [Argument],
    ) -> Run<Value> {
        self.step()?;
        match &callee.kind {
            ExprKind::Name(path) => self.call_name(path.name.as_str(), args),
            ExprKind::Member { base, member } if member.as_str() == "apply" => match &base.kind {
                ExprKind::Name(path) => {
                    let name = path.name.as_str();
                    if let Some((table, frame)) = self.find_table(name) {
                        return self.apply_table(table, frame);
                    }
                    match self.find_instance(name) {
                        Some(instance) => self.apply(&instance, args),
                        None => Err(Stop::unsupported(format!("{name}.apply"))),
                    }
                }
                ExprKind::Type(ty) => {
                    let here = self.here();
                    let name = match &ty.kind {
                        stateplane_syntax::tree::TypeKind::Named(path) => path.name.to_string(),
                        _ => return Err(Stop::unsupported("a generic block")),
                    };
                    let path = format!("{here}.{name}");
                    let instance = self.instantiate(ty, &[], Some(path))?;
                    self.apply(&instance, args)
                }
                _ => Err(Stop::unsupported("such an apply")),
            },
            ExprKind::Member { base, member } => {
                self.call_method(base, member.as_str(), type_args, args)
            }
            _ => Err(Stop::unsupported("such a call")),
        }
    }

    fn call_name(&mut self, name: &'p str, args: &'p [Argument]) -> Run<Value> {
        if let Some((action, outer)) = self.find_action(name) {
            let bound = self.bind(&action.params, args, &[])?;
            self.run_body(bound, outer, &action.body)?;
            return Ok(Value::Void);
        }
        if let Some(function) = self.function(name) {
            let bound = self.bind(&function.prototype.params, args, &[])?;
            let flow = self.run_body(bound, None, &function.body)?;
            let ty = self.ty(&function.prototype.return_type)?;
            return match flow {
                Flow::Return(Some(value)) => value.fit(&ty),
                _ => Ok(ty.unknown()),
            };
        }
        match name {
            "verify" => {
                let (mut check, mut error) = (None, None);
                for (position, arg) in args.iter().enumerate() {
                    let value = self.argument(arg)?;
                    let first = match &arg.name {
                        Some(name) => name.as_str() == "check",
                        None => position == 0,
                    };
                    *(if first { &mut check } else { &mut error }) = Some(value);
                }
                let (Some(check), Some(Value::Error(error))) = (check, error) else {
                    return Err(Stop::unsupported("such a verification"));
                };
                if check.truth()? != self.is(Fault::VerifyIsInverted) {
                    return Ok(Value::Void);
                }
                Err(Stop::Reject(error.ok_or(Stop::Unknown("an error"))?))
            }
            "mark_to_drop" => {
                let [arg] = args else {
                    return Err(Stop::unsupported("mark_to_drop without metadata"));
                };
                let place = match &arg.value {
                    Some(value) => self.place(value)?,
                    None => return Err(Stop::unsupported("an argument that is none")),
                };
                let Value::Struct(decl, mut fields) = self.read(&place) else {
                    return Err(Stop::unsupported("metadata that is none"));
                };
                let values = [("egress_spec", crate::v1model::DROP_PORT), ("mcast_grp", 0)];
                for (name, value) in values {
                    if let Some(field) = decl.field(name) {
                        fields[field] = Value::Integer(value.into()).fit(&decl.fields[field].1)?;
                    }
                }
                self.write(&place, Value::Struct(decl, fields))?;
                Ok(Value::Void)
            }
            _ => Err(Stop::unsupported(format!("the function {name}"))),
        }
    }

    fn argument(&mut self, arg: &'p Argument) -> Run<Value> {
        match &arg.value {
            Some(value) => self.eval(value),
            None => Err(Stop::unsupported("an argument that is none")),
        }
    }

    fn call_method(
        &mut self,
        base: &'p Expr,
        method: &str,
        type_args: &'p [Written],
        args: &'p [Argument],
    ) -> Run<Value> {
        let reference = self.reference(base)?;
        let value = match &reference {
            Reference::Place(place) => self.read(place),
            Reference::Value(value) => value.clone(),
        };
        match (value, method, args) {
            (Value::Header(_, valid, _), "isValid", []) => Ok(Value::Bool(valid)),
            (Value::Header(decl, valid, fields), "setValid" | "setInvalid", []) => {
                let Reference::Place(place) = reference else {
                    return Err(Stop::unsupported("a change of a value"));
                };
                let header = match (method, valid) {
                    ("setValid", Some(true)) => Value::Header(decl, valid, fields),
                    // Its fields have not been initialised since (§8.25).
                    ("setValid", _) => {
                        let fields = decl.fields.iter().map(|(_, ty)| ty.uninitialised());
                        let fields = fields.collect();
                        Value::Header(decl, Some(true), fields)
                    }
                    _ => Type::Struct(decl).uninitialised(),
                };
                self.write(&place, header)?;
                Ok(Value::Void)
            }
            (Value::Stack(ty, elements, next), "push_front" | "pop_front", [count]) => {
                let Reference::Place(place) = reference else {
                    return Err(Stop::unsupported("a change of a value"));
                };
                let count = self.argument(count)?.index()?;
                let front = (method == "push_front") != self.is(Fault::PushIsPop);
                let stack = shifted(&ty, elements, next, front, count);
                self.write(&place, stack)?;
                Ok(Value::Void)
            }
            (Value::PacketIn, "extract", [arg]) => {
                let Some(value) = &arg.value else {
                    let [ty] = type_args else {
                        return Err(Stop::unsupported("an extraction of no type"));
                    };
                    let ty = self.ty(ty)?;
                    self.packet.extract(&ty)?;
                    return Ok(Value::Void);
                };
                let place = self.place(value)?;
                let header = self.packet.extract(&place.ty)?;
                self.write(&place, header)?;
                // §13.8.1: an element got by `next` has been taken.
                if let ExprKind::Member { base, member } = &value.kind
                    && member.as_str() == "next"
                    && !self.is(Fault::NextStays)
                {
                    // The base is a place without side effects, or `next` was no header.
                    let stack = self.place(base)?;
                    if let Value::Stack(ty, elements, next) = self.read(&stack) {
                        self.write(&stack, Value::Stack(ty, elements, next + 1))?;
                    }
                }
                Ok(Value::Void)
            }
            (Value::PacketIn, "lookahead", []) => {
                let [ty] = type_args else {
                    return Err(Stop::unsupported("a lookahead of no type"));
                };
                let ty = self.ty(ty)?;
                self.packet.lookahead(&ty)
            }
            (Value::PacketIn, "advance", [arg]) => {
                let bits = self.argument(arg)?.index()?;
                self.packet.advance(bits)?;
                Ok(Value::Void)
            }
            (Value::PacketIn, "length", []) => {
                let bytes = BigInt::from(self.packet.bytes());
                Ok(Value::Number(Width::unsigned(32), Some(bytes)))
            }
            (Value::PacketOut, "emit", [arg]) => {
                let value = self.argument(arg)?;
                self.emitted.emit(&value)?;
                Ok(Value::Void)
            }
            _ => Err(Stop::unsupported(format!("the method {method}"))),
        }
    }
}

/// A stack after `push_front` or `pop_front` (§8.18).
fn shifted(ty: &Rc<Type>, old: Vec<Value>, next: usize, front: bool, count: usize) -> Value {
    let size = old.len();
    let count_in = count.min(size);
    let elements = (0..size).map(|index| {
        let from = if front {
            index.checked_sub(count_in)
        } else {
            Some(index + count_in)
        };
        let moved = from.and_then(|from| old.get(from).cloned());
        moved.unwrap_or_else(|| ty.uninitialised())
    });
    let next = if front {
        next.saturating_add(count).min(size)
    } else {
        next.saturating_sub(count)
    };
    Value::Stack(ty.clone(), elements.collect(), next)
}

//! Programs for other architectures: instances of their packages and calls of their externs are
//! checked as the declarations say, though nothing of them is run.

use crate::arguments::{CallArguments, Passed};
use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::expr::is_known;
use crate::scope::{Entity, Signature, Symbol};
use crate::types::{Bindings, Ty, TypeVar};
use crate::value::{Value, ValueKind};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{self, Direction, ExprKind};

impl<'a> Checker<'a> {
    /// Checks the instances of packages in order; each may be an argument of a later one.
    pub(crate) fn foreign_packages(&mut self, packages: &[(&'a tree::Instantiation, u32)]) {
        self.thrown_away(|checker| {
            for (decl, order) in packages {
                checker.order = *order;
                checker.callable = Callable::new(CallableKind::Constant, String::new());
                let value = checker.named_instance(decl);
                let symbol = Symbol {
                    entity: Entity::Value(value),
                    span: decl.name.span,
                    order: *order,
                };
                let name = decl.name.as_str().to_owned();
                checker.globals.entry(name).or_insert_with(|| vec![symbol]);
            }
        });
    }

    /// An instance of a package.
    pub(crate) fn package_instance(
        &mut self,
        id: u32,
        type_args: &'a [tree::Type],
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let package = self.packages[id as usize].clone();
        let Some(mut bindings) = self.written_bindings(&package, type_args, span) else {
            return Value::poison(span);
        };
        let Some(pairs) =
            self.pair_or_report(package.name, package.span, &package.params, args, span)
        else {
            return Value::poison(span);
        };
        let (mut fits, mut defaults) = (true, false);
        for (position, pair) in pairs.into_iter().enumerate() {
            let given = pair.and_then(|position| args[position].value.as_ref());
            let default = package.params[position].default;
            let value = match (given, default) {
                (Some(expr), _) => self.package_value(expr, &package, position, &bindings),
                (None, Some(expr)) => {
                    defaults = true;
                    self.scoped(|checker| {
                        checker.declare_type_vars(&package, &bindings);
                        checker.package_value(expr, &package, position, &bindings)
                    })
                }
                (None, None) => continue,
            };
            fits &= self.fits_package(value, &package, position, &mut bindings);
        }
        bindings.retain(|var, ty| *ty != Ty::Var(*var));
        // Only the default arguments name the type parameters.
        if !fits || (defaults && !self.all_bound(&package, &bindings, span)) {
            return Value::poison(span);
        }
        let args = package
            .vars
            .iter()
            .map(|var| bindings.get(var).cloned().unwrap_or(Ty::Var(*var)))
            .collect();
        Value::unknown(Ty::Package(id, args), span)
    }

    /// Declares the type parameters of a package, for its default arguments.
    fn declare_type_vars(&mut self, package: &Signature<'a>, bindings: &Bindings) {
        for var in &package.vars {
            let symbol = Symbol {
                entity: Entity::Type(bindings.get(var).cloned().unwrap_or(Ty::Var(*var))),
                span: package.span,
                order: self.order,
            };
            let name = self.types.var_names[var.0 as usize].clone();
            if let Some(frame) = self.frames.last_mut() {
                frame.insert(name, symbol);
            }
        }
    }

    /// The value of an argument of a package: an instance or a constant.
    fn package_value(
        &mut self,
        expr: &'a tree::Expr,
        package: &Signature<'a>,
        position: usize,
        bindings: &Bindings,
    ) -> Value {
        let param = &package.params[position];
        let ExprKind::Construct { ty, args } = &expr.kind else {
            let what = format!("the argument `{}` of `{}`", param.name, package.name);
            return match self.constant(expr, &what) {
                Some(value) => Value {
                    span: expr.span,
                    ..value
                },
                None => Value::poison(expr.span),
            };
        };
        // Type arguments that are left out are those that the parameter asks for.
        let expected = self.types.substitute(&param.ty, bindings);
        let outer = self.expected.replace(expected);
        let value = self.construct(ty, args, Some(param.name.to_owned()), &[], expr.span);
        self.expected = outer;
        self.without_abstract(&value, expr.span);
        value
    }

    /// Checks that an argument of a package is of its parameter's type, and finds type arguments
    /// of the package. Reports a mismatch, and returns false then.
    fn fits_package(
        &mut self,
        value: Value,
        package: &Signature<'a>,
        position: usize,
        bindings: &mut Bindings,
    ) -> bool {
        let param = &package.params[position];
        let wanted = self.types.substitute(&param.ty, bindings);
        if value.is_poison() || wanted == Ty::Poison {
            return false;
        }
        if let (Ty::Body(..), Ty::Block(block, args)) = (&value.ty, &wanted) {
            let vars = with_open(&package.vars, args);
            return self.fits_block(&value.ty, *block, args, &vars, bindings, value.span);
        }
        let object = |ty: &Ty| {
            matches!(
                ty,
                Ty::Body(..) | Ty::Block(..) | Ty::Package(..) | Ty::Extern(..)
            )
        };
        let vars = match &wanted {
            Ty::Package(_, args) | Ty::Extern(_, args) => with_open(&package.vars, args),
            _ => package.vars.clone(),
        };
        let unified = self.types.unify(&wanted, &value.ty, &vars, bindings);
        let wanted = self.types.substitute(&wanted, bindings);
        let same_kind = match (&wanted, &value.ty) {
            (Ty::Package(left, _), Ty::Package(right, _))
            | (Ty::Extern(left, _), Ty::Extern(right, _)) => left == right,
            _ => false,
        };
        let open = |types: &Self, ty: &Ty| match ty {
            Ty::Package(_, args) | Ty::Extern(_, args) => {
                args.iter().any(|arg| types.types.is_open(arg))
            }
            ty => types.types.is_open(ty),
        };
        let fits = unified.is_ok()
            && (wanted == value.ty || same_kind && (open(self, &wanted) || open(self, &value.ty)));
        if fits {
            return true;
        }
        if !object(&wanted) && !object(&value.ty) {
            self.coerce(value, &wanted);
            return true;
        }
        let (found, wanted) = (self.quote(&value.ty), self.quote(&wanted));
        self.report(
            Diagnostic::error(
                codes::BLOCK_PARAMETERS,
                value.span,
                format!("{found} stands where {wanted} is needed"),
            )
            .with_secondary(
                param.span,
                format!("the parameter `{}` of `{}`", param.name, package.name),
            ),
        );
        false
    }

    /// Checks the arguments of an extern's function or method as far as its declaration tells:
    /// those of parameters with a direction are values of packets.
    pub(crate) fn foreign_arguments(
        &mut self,
        signature: &Signature<'a>,
        arguments: &CallArguments,
        span: Span,
    ) {
        for (param, passed) in signature.params.iter().zip(&arguments.passed) {
            let at = match passed {
                Passed::In(value) => value.span,
                _ => span,
            };
            let ty = self.types.substitute(&param.ty, &arguments.bindings);
            self.value_of_packets(param.direction, &ty, at, param.span);
        }
    }

    /// Checks that a parameter with a direction has, with all type arguments, a type of which
    /// packets have values.
    pub(crate) fn value_of_packets(
        &mut self,
        direction: Direction,
        ty: &Ty,
        span: Span,
        declared: Span,
    ) {
        if direction == Direction::None {
            return;
        }
        let shown = self.quote(ty);
        let (code, message, help) = match ty {
            Ty::Integer => (
                codes::UNKNOWN_WIDTH,
                "the width of this number is not known".to_owned(),
                "give it a width, for example 32w0",
            ),
            Ty::Record(..) => (
                codes::CANNOT_INFER,
                "the type of this struct is not known".to_owned(),
                "write it: (Name) { … }",
            ),
            Ty::Str | Ty::Extern(..) | Ty::Block(..) | Ty::Package(..) => (
                codes::INVALID_DIRECTION,
                format!("a parameter of type {shown} has no direction"),
                "packets have no values of this type",
            ),
            _ => return,
        };
        self.report(
            Diagnostic::error(code, span, message)
                .with_secondary(declared, "the parameter is declared here")
                .with_help(help),
        );
    }

    /// Checks that the arguments of a function that makes an object are known at compile time.
    pub(crate) fn known_arguments(&mut self, signature: &Signature<'a>, arguments: &CallArguments) {
        for (param, passed) in signature.params.iter().zip(&arguments.passed) {
            if let Passed::In(value) = passed
                && !is_known(value)
                && !matches!(value.kind, ValueKind::Void)
            {
                let what = format!("the argument `{}`", param.name);
                self.not_constant(value.span, &what);
            }
        }
    }
}

/// Type variables, and those that stand for `_` in type arguments.
fn with_open(vars: &[TypeVar], args: &[Ty]) -> Vec<TypeVar> {
    let open = args.iter().filter_map(|arg| match arg {
        Ty::Var(var) => Some(*var),
        _ => None,
    });
    vars.iter().copied().chain(open).collect()
}

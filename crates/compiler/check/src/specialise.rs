//! Parsers, controls and functions with parameters that packets do not carry: extern
//! objects, numbers without a width, texts. Each is made anew for each combination of
//! arguments that it is called with.

use crate::arguments::{CallArguments, Passed};
use crate::checker::Checker;
use crate::codes;
use crate::expr::is_known;
use crate::scope::{BodyDecl, Param, Signature};
use crate::types::{Bindings, Ty, TypeVar};
use crate::value::{Instance, Value, ValueKind};
use stateplane_diagnostics::Span;
use stateplane_syntax::tree;
use std::collections::BTreeMap;
use std::rc::Rc;

/// An instance of a parser or control that is made when it is applied.
#[derive(Clone)]
pub(crate) struct Deferred<'a> {
    pub body: u32,
    pub type_args: Rc<[Ty]>,
    pub constructor: Vec<Param<'a>>,
    pub values: Vec<Value>,
    pub name: String,
    /// Instances made of it, by their arguments.
    pub made: BTreeMap<Vec<String>, Value>,
}

impl<'a> Checker<'a> {
    /// True if an argument of the type is known when the program is compiled.
    pub(crate) fn is_static(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Extern(id, _) => !matches!(
                self.types.extern_names[*id as usize].as_str(),
                "packet_in" | "packet_out"
            ),
            Ty::Integer | Ty::Str | Ty::MatchKind | Ty::ListOf(_) => true,
            _ => false,
        }
    }

    pub(crate) fn has_static(&self, params: &[Param<'a>]) -> bool {
        params.iter().any(|param| self.is_static(&param.ty))
    }

    /// Unknown arguments for the parameters that need static ones.
    pub(crate) fn unknown_statics(&self, params: &[Param<'a>]) -> Vec<Value> {
        params
            .iter()
            .filter(|param| self.is_static(&param.ty))
            .map(|param| Value::unknown(param.ty.clone(), param.span))
            .collect()
    }

    /// The arguments of a call that are known when the program is compiled; reports one
    /// that is not.
    pub(crate) fn static_arguments(
        &mut self,
        params: &[Param<'a>],
        arguments: &CallArguments,
        span: Span,
    ) -> Option<Vec<Value>> {
        let mut statics = Vec::new();
        for (param, passed) in params.iter().zip(&arguments.passed) {
            if !self.is_static(&param.ty) {
                continue;
            }
            match passed {
                Passed::In(value) if is_known(value) => statics.push(value.clone()),
                Passed::In(value) => {
                    let what = format!("the argument `{}`", param.name);
                    self.not_constant(value.span, &what);
                    return None;
                }
                _ => statics.push(Value::unknown(param.ty.clone(), span)),
            }
        }
        Some(statics)
    }

    /// Key that distinguishes combinations of static arguments.
    pub(crate) fn static_key(statics: &[Value]) -> Vec<String> {
        statics
            .iter()
            .map(|value| format!("{:?}", value.kind))
            .collect()
    }

    /// The parser or control that a deferred instance is for these arguments.
    pub(crate) fn specialised(&mut self, id: u32, statics: Vec<Value>, span: Span) -> Value {
        let key = Self::static_key(&statics);
        let deferred = self.made.deferred[id as usize].clone();
        if let Some(found) = deferred.made.get(&key) {
            return found.clone();
        }
        let value = self.body_instance(
            deferred.body,
            &deferred.type_args,
            &deferred.constructor,
            deferred.values,
            deferred.name,
            Some(statics),
            span,
        );
        self.made.deferred[id as usize]
            .made
            .insert(key, value.clone());
        value
    }

    /// Keeps what is needed to make an instance later.
    pub(crate) fn defer(&mut self, deferred: Deferred<'a>, span: Span) -> Value {
        let ty = Ty::Body(deferred.body, deferred.type_args.clone());
        self.made.deferred.push(deferred);
        let id = self.made.deferred.len() as u32 - 1;
        Value {
            ty,
            kind: ValueKind::Instance(Instance::Deferred(id)),
            span,
        }
    }

    /// The parameters of `apply` of a body with these type arguments.
    pub(crate) fn apply_signature(&mut self, body: u32, type_args: &[Ty]) -> Signature<'a> {
        let info = self.bodies[body as usize];
        self.at_top(info.order, |checker| {
            checker.scoped(|checker| {
                checker.declare_type_args(info.decl, type_args);
                checker.body_signature(info.decl)
            })
        })
    }

    /// The constructor of a body with these type arguments.
    pub(crate) fn constructor_signature(&mut self, body: u32, type_args: &[Ty]) -> Signature<'a> {
        let info = self.bodies[body as usize];
        let written = info.decl.signature();
        self.at_top(info.order, |checker| {
            checker.scoped(|checker| {
                checker.declare_type_args(info.decl, type_args);
                Signature {
                    name: written.name.as_str(),
                    span: written.name.span,
                    vars: Vec::new(),
                    params: checker.resolve_params(info.decl.constructor_params()),
                    ret: Ty::Void,
                }
            })
        })
    }

    /// Declares the type parameters of a body as its type arguments.
    pub(crate) fn declare_type_args(&mut self, decl: BodyDecl<'a>, type_args: &[Ty]) {
        let params = &decl.signature().type_params;
        for (param, ty) in params.iter().zip(type_args) {
            self.declare(param, crate::scope::Entity::Type(ty.clone()));
        }
    }

    /// The type arguments of an instance of a body: those written, or else found in the
    /// constructor's arguments. Reports if they are not known.
    pub(crate) fn body_type_args(
        &mut self,
        body: u32,
        written: Vec<Ty>,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<Rc<[Ty]>> {
        let expected = self.expected.take();
        let decl = self.bodies[body as usize].decl;
        let signature = decl.signature();
        let wanted = signature.type_params.len();
        if written.len() == wanted {
            return Some(written.into());
        }
        let (name, declared) = (signature.name.as_str(), signature.name.span);
        if !written.is_empty() {
            self.report(
                stateplane_diagnostics::Diagnostic::error(
                    codes::TYPE_ARGUMENT_COUNT,
                    span,
                    format!(
                        "`{name}` takes {wanted} type arguments, not {}",
                        written.len()
                    ),
                )
                .with_secondary(declared, "declared here"),
            );
            return None;
        }
        let vars: Vec<_> = signature
            .type_params
            .iter()
            .map(|param| self.types.fresh_var(param.as_str()))
            .collect();
        let open: Vec<Ty> = vars.iter().map(|var| Ty::Var(*var)).collect();
        let mut constructor = self.constructor_signature(body, &open);
        constructor.vars = vars.clone();
        let mut bindings = self.inferred_bindings(&constructor, args, span)?;
        if let Some(Ty::Block(block, args)) = expected {
            self.bindings_of_block(body, &open, &vars, (block, &args), &mut bindings);
            // The package asks for no type either.
            for var in &vars {
                bindings.entry(*var).or_insert(Ty::Var(*var));
            }
        }
        if !self.all_bound(&constructor, &bindings, span) {
            return None;
        }
        Some(vars.iter().map(|var| bindings[var].clone()).collect())
    }

    /// Finds type arguments of a body in the parameters that the package asks for.
    fn bindings_of_block(
        &mut self,
        body: u32,
        open: &[Ty],
        vars: &[TypeVar],
        (block, args): (u32, &[Ty]),
        bindings: &mut Bindings,
    ) {
        let wanted = self.blocks[block as usize].signature.clone();
        let of_block: Bindings = wanted
            .vars
            .iter()
            .copied()
            .zip(args.iter().cloned())
            .collect();
        let signature = self.apply_signature(body, open);
        for (found, wanted) in signature.params.iter().zip(&wanted.params) {
            let ty = self.types.substitute(&wanted.ty, &of_block);
            if !self.types.is_open(&ty) {
                // A contradiction shows when the parameters are compared.
                let _ = self.types.unify(&found.ty, &ty, vars, bindings);
            }
        }
    }

    /// The type arguments of a constructor as its arguments give them; some may be left
    /// open.
    pub(crate) fn inferred_bindings(
        &mut self,
        constructor: &Signature<'a>,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Option<Bindings> {
        let pairs = self.pair_or_report(
            constructor.name,
            constructor.span,
            &constructor.params,
            args,
            span,
        )?;
        let mut bindings = Bindings::new();
        for (param, pair) in constructor.params.iter().zip(pairs) {
            let expr = pair.and_then(|position| args[position].value.as_ref());
            let Some(expr) = expr else { continue };
            if matches!(expr.kind, tree::ExprKind::Construct { .. }) {
                continue;
            }
            // What is wrong with an argument is reported when it is converted.
            let reported = std::mem::take(&mut self.diagnostics);
            let value = self.constant(expr, "a constructor argument");
            self.diagnostics = reported;
            if let Some(value) = value {
                let vars = &constructor.vars;
                // A contradiction shows when the arguments are converted.
                let _ = self.types.unify(&param.ty, &value.ty, vars, &mut bindings);
            }
        }
        for binding in bindings.values_mut() {
            *binding = crate::arguments::closed(binding);
        }
        Some(bindings)
    }
}

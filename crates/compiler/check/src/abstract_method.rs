//! Bodies of the abstract methods of extern objects. No extern of v1model has any, so
//! they are checked, and what they make is thrown away.

use crate::annotation;
use crate::block::direction_word;
use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::scope::{Param, Signature};
use crate::types::{Bindings, Ty};
use crate::value::{Value, ValueKind};
use stateplane_diagnostics::{Diagnostic, Span, nearest};
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ExternMember, ObjectMember};
use std::rc::Rc;

/// An abstract method of an extern.
struct AbstractMethod<'a> {
    signature: Rc<Signature<'a>>,
    /// True if an object may leave it without a body: `@optional`.
    optional: bool,
}

impl<'a> Checker<'a> {
    /// Checks the block of an extern object's declaration.
    pub(crate) fn object_members(&mut self, object: &Value, members: &'a [ObjectMember]) {
        if let Ty::Body(..) | Ty::Package(..) = object.ty {
            let shown = self.quote(&object.ty);
            self.report(
                Diagnostic::error(
                    codes::UNKNOWN_METHOD,
                    object.span,
                    format!("{shown} has no abstract methods, so that its instance has no block"),
                )
                .with_help("remove `= { … }`: only objects of externs have it"),
            );
            return;
        }
        self.has_all_methods(object, members, object.span);
        let this = self.this.replace(object.clone());
        self.thrown_away(|checker| {
            checker.scoped(|checker| {
                for member in members {
                    match member {
                        ObjectMember::Instantiation(decl) => checker.local_instance(decl),
                        ObjectMember::Function(decl) => checker.method_body(&object.ty, decl),
                    }
                }
            });
        });
        self.this = this;
    }

    /// Checks an object whose declaration has no block: its extern has no abstract methods.
    pub(crate) fn without_abstract(&mut self, object: &Value, span: Span) {
        self.has_all_methods(object, &[], span);
    }

    /// The abstract methods of an extern.
    fn abstract_methods(&self, id: u32) -> Vec<AbstractMethod<'a>> {
        let info = &self.externs[id as usize];
        let methods = info.decl.members.iter().filter_map(|member| match member {
            ExternMember::Method(method) => Some(method),
            ExternMember::Constructor(_) => None,
        });
        methods
            .zip(&info.methods)
            .filter(|(method, _)| method.is_abstract)
            .map(|(method, signature)| AbstractMethod {
                signature: signature.clone(),
                optional: annotation::find(&method.annotations, "optional").is_some(),
            })
            .collect()
    }

    fn has_all_methods(&mut self, object: &Value, members: &'a [ObjectMember], span: Span) {
        let Ty::Extern(id, _) = object.ty else {
            return;
        };
        let methods = self.abstract_methods(id);
        for method in methods.into_iter().filter(|method| !method.optional) {
            let method = method.signature;
            let has_body = members.iter().any(|member| match member {
                ObjectMember::Function(decl) => decl.prototype.name.as_str() == method.name,
                ObjectMember::Instantiation(_) => false,
            });
            if !has_body {
                let shown = self.quote(&object.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_CONSTRUCTIBLE,
                        span,
                        format!("this {shown} lacks a body of its abstract method `{}`", method.name),
                    )
                    .with_secondary(method.span, "declared here")
                    .with_help(format!(
                        "declare the object by itself, and give it one: … name = {{ {}(…) {{ … }} }};",
                        method.name
                    )),
                );
            }
        }
    }

    fn method_body(&mut self, object: &Ty, decl: &'a tree::FunctionDecl) {
        let Ty::Extern(id, class_args) = object else {
            return;
        };
        let name = &decl.prototype.name;
        let methods = self.abstract_methods(*id);
        let mut signatures = methods.iter().map(|method| &method.signature);
        let Some(method) = signatures.find(|method| method.name == name.as_str()) else {
            let shown = self.quote(object);
            let diagnostic = Diagnostic::error(
                codes::UNKNOWN_METHOD,
                name.span,
                format!("{shown} has no abstract method `{name}`"),
            );
            let others = methods.iter().map(|method| method.signature.name);
            self.report(match nearest(name.as_str(), others) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic,
            });
            return;
        };
        let vars = self.externs[*id as usize].vars.iter().copied();
        let class: Bindings = vars.zip(class_args.iter().cloned()).collect();
        self.scoped(|checker| {
            checker.declare_type_params(&decl.prototype.type_params);
            let params = checker.resolve_params(&decl.prototype.params);
            let ret = checker.resolve(&decl.prototype.return_type);
            if method.vars.is_empty() {
                checker.fits_method(method, &class, &params, &ret, decl);
            }
            let result = match &ret {
                Ty::Void | Ty::Poison => None,
                _ => checker
                    .ir_type(&ret, decl.prototype.return_type.span)
                    .map(|lowered| checker.out.var(format!("{name}.$result"), lowered)),
            };
            let statics = checker.unknown_statics(&params);
            let callable = Callable::new(CallableKind::Function(result, ret), name.to_string());
            checker.in_callable(callable, |checker| {
                checker.statics = statics;
                checker.bind_params(
                    &decl.prototype.params,
                    &params,
                    name.as_str(),
                    ir::Direction::In,
                );
                checker.block(&decl.body);
            });
        });
    }

    /// Checks that a body has the parameters and the result of its method.
    fn fits_method(
        &mut self,
        method: &Signature<'a>,
        class: &Bindings,
        params: &[Param<'a>],
        ret: &Ty,
        decl: &'a tree::FunctionDecl,
    ) {
        let mut wrong = None;
        let required = method.params.iter().filter(|param| !param.optional).count();
        if !(required..=method.params.len()).contains(&params.len()) {
            let count = method.params.len();
            wrong = Some((decl.prototype.span, format!("has {count} parameters")));
        }
        for (found, wanted) in params.iter().zip(&method.params) {
            let ty = self.types.substitute(&wanted.ty, class);
            let directions = found.direction == wanted.direction;
            let known = found.ty != Ty::Poison && ty != Ty::Poison;
            if wrong.is_none() && (!directions || known && ty != found.ty) {
                let direction = direction_word(wanted.direction);
                let must = format!("has `{direction}{}` here", self.types.show(&ty));
                wrong = Some((found.span, must));
            }
        }
        let wanted = self.types.substitute(&method.ret, class);
        if wrong.is_none() && *ret != Ty::Poison && wanted != Ty::Poison && *ret != wanted {
            let shown = self.quote(&wanted);
            wrong = Some((decl.prototype.return_type.span, format!("returns {shown}")));
        }
        if let Some((span, why)) = wrong {
            self.report(
                Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    span,
                    format!("the abstract method `{}` {why}", method.name),
                )
                .with_secondary(method.span, "declared here"),
            );
        }
    }

    /// `this` within the body of an abstract method.
    pub(crate) fn this_object(&mut self, span: Span) -> Value {
        match &self.this {
            Some(object) => Value {
                ty: object.ty.clone(),
                kind: ValueKind::Poison,
                span,
            },
            None => {
                self.report(
                    Diagnostic::error(
                        codes::NOT_A_VALUE,
                        span,
                        "`this` stands only in the methods of an extern object's declaration",
                    )
                    .with_help("use the object's name"),
                );
                Value::poison(span)
            }
        }
    }
}

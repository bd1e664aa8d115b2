//! Bodies of the abstract methods of extern objects. No extern of v1model has any, so
//! they are checked, and what they make is thrown away.

use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::types::Ty;
use crate::value::{Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::nearest;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, ObjectMember};

impl<'a> Checker<'a> {
    /// Checks the block of an extern object's declaration.
    pub(crate) fn object_members(&mut self, object: &Value, members: &'a [ObjectMember]) {
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

    fn method_body(&mut self, object: &Ty, decl: &'a tree::FunctionDecl) {
        let Ty::Extern(id, _) = object else {
            return;
        };
        let name = &decl.prototype.name;
        let methods: Vec<&'a str> = self.externs[*id as usize]
            .methods
            .iter()
            .map(|method| method.name)
            .collect();
        if !methods.contains(&name.as_str()) {
            let shown = self.quote(object);
            let diagnostic = Diagnostic::error(
                codes::UNKNOWN_METHOD,
                name.span,
                format!("{shown} has no abstract method `{name}`"),
            );
            self.report(match nearest(name.as_str(), methods) {
                Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                None => diagnostic,
            });
            return;
        }
        self.scoped(|checker| {
            checker.declare_type_params(&decl.prototype.type_params);
            let params = checker.resolve_params(&decl.prototype.params);
            let ret = checker.resolve(&decl.prototype.return_type);
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

    /// `this` within the body of an abstract method.
    pub(crate) fn this_object(&mut self, span: stateplane_diagnostics::Span) -> Value {
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

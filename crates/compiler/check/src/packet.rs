//! Methods of `packet_in` and `packet_out` (core.p4).

use crate::arguments::{CallArguments, Passed};
use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::types::Ty;
use crate::value::{Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir::{self as ir, Op};

impl<'a> Checker<'a> {
    /// Checks a call of a method of a packet.
    pub(crate) fn packet_method(
        &mut self,
        extern_name: &str,
        method: &str,
        arguments: CallArguments,
        ret: Ty,
        span: Span,
    ) -> Value {
        let fitting = match self.callable.kind {
            CallableKind::Parser => extern_name == "packet_in",
            CallableKind::Control => extern_name == "packet_out",
            _ => false,
        };
        if !fitting {
            self.report(
                Diagnostic::error(
                    codes::ONLY_IN_PARSER,
                    span,
                    format!("`{method}` of `{extern_name}` is not possible here"),
                )
                .with_help(match extern_name {
                    "packet_in" => "packets are read in the states of parsers",
                    _ => "packets are written in the `apply` blocks of deparsers",
                }),
            );
            return self.unknown_result(ret, span);
        }
        let count = arguments.passed.len();
        let argument_ty = arguments.bindings.values().next().cloned();
        match (extern_name, method, count) {
            ("packet_in", "extract", 1 | 2) => {
                if let Some(ty) = argument_ty {
                    self.check_extracted(&ty, count == 2, span);
                }
                let mut taken = self.taken(arguments.passed);
                let header = taken.place();
                let varbit_size = if count == 2 { taken.expr() } else { None };
                if let Some(header) = header {
                    self.emit(ir::Stmt::Op(Op::Extract {
                        header,
                        varbit_size,
                    }));
                }
                self.void(span)
            }
            ("packet_in", "lookahead", 0) => {
                let fixed = self.is_fixed(&ret);
                if !fixed {
                    let shown = self.quote(&ret);
                    self.report(
                        Diagnostic::error(
                            codes::WRONG_HEADER,
                            span,
                            format!("`lookahead` does not work on {shown}"),
                        )
                        .with_help(
                            "use a type whose values all have one size: no `varbit`, no union",
                        ),
                    );
                    return Value::unknown(ret, span);
                }
                let (place, value) = self.temporary_value(&ret, span);
                if let Some(result) = place {
                    self.emit(ir::Stmt::Op(Op::Lookahead { result }));
                }
                value
            }
            ("packet_in", "advance", 1) => {
                if let Some(bits) = self.taken(arguments.passed).expr() {
                    self.emit(ir::Stmt::Op(Op::Advance { bits }));
                }
                self.void(span)
            }
            ("packet_in", "length", 0) => {
                let (place, value) = self.temporary_value(&ret, span);
                if let Some(result) = place {
                    self.emit(ir::Stmt::Op(Op::PacketLength { result }));
                }
                value
            }
            ("packet_out", "emit", 1) => {
                self.emit_packet(arguments.passed, span);
                self.void(span)
            }
            _ => {
                self.report(Diagnostic::error(
                    codes::UNKNOWN_EXTERN,
                    span,
                    format!("the method `{method}` of `{extern_name}` is not one of core.p4's"),
                ));
                self.unknown_result(ret, span)
            }
        }
    }

    pub(crate) fn emit_packet(&mut self, passed: Vec<Passed>, span: Span) {
        let Some(value) = self.taken(passed).value() else {
            return;
        };
        if !self.emittable(&value.ty) {
            let shown = self.quote(&value.ty);
            self.report(
                Diagnostic::error(
                    codes::WRONG_HEADER,
                    span,
                    format!("a value of type {shown} cannot be emitted"),
                )
                .with_help("emit headers, stacks, unions, or structs of these"),
            );
            return;
        }
        // A list of headers is emitted one by one.
        let parts = match value.kind {
            ValueKind::List(parts) => parts,
            _ => vec![value],
        };
        for part in parts {
            if let Some(value) = self.materialise(part) {
                self.emit(ir::Stmt::Op(Op::Emit { value }));
            }
        }
    }

    pub(crate) fn emittable(&self, ty: &Ty) -> bool {
        use crate::types::StructKind;
        match ty {
            Ty::Var(_) | Ty::Poison | Ty::Invalid => true,
            Ty::Stack(element, _) => self.emittable(element),
            Ty::Struct(id) => {
                let info = self.types.info(*id);
                info.kind != StructKind::Struct
                    || info.fields.iter().all(|field| self.emittable(&field.ty))
            }
            Ty::Tuple(members) => members.iter().all(|member| self.emittable(member)),
            _ => false,
        }
    }

    /// True if every value of the type has the same number of bits in a packet.
    fn is_fixed(&self, ty: &Ty) -> bool {
        use crate::types::StructKind;
        match ty {
            Ty::Stack(element, _) => self.is_fixed(element),
            Ty::Tuple(members) => members.iter().all(|member| self.is_fixed(member)),
            Ty::Struct(id) => {
                let info = self.types.info(*id);
                info.kind != StructKind::Union
                    && info.fields.iter().all(|field| self.is_fixed(&field.ty))
            }
            _ => self.is_plain(ty),
        }
    }

    pub(crate) fn has_varbit(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Varbit(_) => true,
            Ty::Struct(id) => self
                .types
                .info(*id)
                .fields
                .iter()
                .any(|field| self.has_varbit(&field.ty)),
            Ty::Stack(element, _) => self.has_varbit(element),
            Ty::Tuple(members) => members.iter().any(|member| self.has_varbit(member)),
            _ => false,
        }
    }

    pub(crate) fn check_extracted(&mut self, ty: &Ty, with_size: bool, span: Span) {
        if self.types.is_open(ty) {
            return;
        }
        let shown = self.quote(ty);
        if !self.types.is_header(ty) {
            self.report(
                Diagnostic::error(
                    codes::WRONG_HEADER,
                    span,
                    format!("`extract` needs a header, not {shown}"),
                )
                .with_help("extract the headers of a struct or stack one by one"),
            );
            return;
        }
        let Ty::Struct(id) = ty else { return };
        let varbits = self
            .types
            .info(*id)
            .fields
            .iter()
            .filter(|field| matches!(field.ty, Ty::Varbit(_)))
            .count();
        match (varbits, with_size) {
            (2.., _) => self.report(
                Diagnostic::error(
                    codes::WRONG_HEADER,
                    span,
                    format!("{shown} has several `varbit` fields, which have no sizes here"),
                )
                .with_help("extract headers with one `varbit` each, and assign their fields"),
            ),
            (0, true) => self.report(
                Diagnostic::error(
                    codes::WRONG_HEADER,
                    span,
                    format!("{shown} has no `varbit` field to give a size"),
                )
                .with_help("extract it with one argument"),
            ),
            (1.., false) => self.report(
                Diagnostic::error(
                    codes::WRONG_HEADER,
                    span,
                    format!("{shown} has a `varbit` field, whose size is not given"),
                )
                .with_help("give the size in bits as second argument"),
            ),
            _ => {}
        }
    }
}

//! The extern functions and methods of core.p4 and v1model.p4, each bound to its
//! operation by the name of its declaration.

use crate::arguments::{CallArguments, Passed};
use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::scope::Signature;
use crate::types::Ty;
use crate::value::{Instance, Known, Value, ValueKind};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir::{self as ir, Op};

/// Hash algorithms by their names in `HashAlgorithm`.
const ALGORITHMS: [(&str, ir::HashAlgorithm); 8] = [
    ("crc32", ir::HashAlgorithm::Crc32),
    ("crc32_custom", ir::HashAlgorithm::Crc32Custom),
    ("crc16", ir::HashAlgorithm::Crc16),
    ("crc16_custom", ir::HashAlgorithm::Crc16Custom),
    ("random", ir::HashAlgorithm::Random),
    ("identity", ir::HashAlgorithm::Identity),
    ("csum16", ir::HashAlgorithm::Csum16),
    ("xor16", ir::HashAlgorithm::Xor16),
];

/// Arguments taken one after the other. `None` where one has an error that was
/// reported, or where the declaration is not the standard one.
struct Taken<'c, 'a> {
    checker: &'c mut Checker<'a>,
    passed: std::vec::IntoIter<Passed>,
}

impl Taken<'_, '_> {
    fn value(&mut self) -> Option<Value> {
        match self.passed.next()? {
            Passed::In(value) if !value.is_poison() => Some(value),
            _ => None,
        }
    }

    fn expr(&mut self) -> Option<ir::Expr> {
        let value = self.value()?;
        let value = if value.ty == Ty::Integer {
            self.checker.report(
                Diagnostic::error(
                    codes::UNKNOWN_WIDTH,
                    value.span,
                    "the width of this number is not known",
                )
                .with_help("give it a width, for example 32w0"),
            );
            return None;
        } else {
            value
        };
        Some(self.checker.lower(value))
    }

    fn place(&mut self) -> Option<ir::Place> {
        match self.passed.next()? {
            Passed::Out(place) | Passed::InOut(place) => place,
            _ => None,
        }
    }

    fn scalars(&mut self) -> Option<Vec<ir::Expr>> {
        let value = self.value()?;
        let mut scalars = Vec::new();
        self.checker.scalars_of(value, &mut scalars);
        Some(scalars)
    }

    fn member(&mut self, what: &str) -> Option<String> {
        let value = self.value()?;
        match (&value.ty, &value.kind) {
            (Ty::Enum(id), ValueKind::Const(Known::Index(index))) => self.checker.types.enums
                [*id as usize]
                .members
                .get(*index as usize)
                .map(|(name, _)| name.clone()),
            (_, ValueKind::Poison) => None,
            _ => {
                self.checker.not_constant(value.span, what);
                None
            }
        }
    }

    fn algorithm(&mut self) -> Option<ir::HashAlgorithm> {
        let name = self.member("the hash algorithm")?;
        ALGORITHMS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, algorithm)| *algorithm)
    }

    fn text(&mut self) -> Option<String> {
        match self.value()?.kind {
            ValueKind::Const(Known::Str(text)) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Checker<'a> {
    fn taken(&mut self, passed: Vec<Passed>) -> Taken<'_, 'a> {
        Taken {
            checker: self,
            passed: passed.into_iter(),
        }
    }

    /// Checks a call of an extern function.
    pub(crate) fn extern_function(
        &mut self,
        signature: &Signature<'a>,
        arguments: CallArguments,
        ret: Ty,
        span: Span,
    ) -> Value {
        let name = signature.name;
        if name == "static_assert" {
            return self.static_assert(arguments.passed, span);
        }
        if matches!(self.callable.kind, CallableKind::Constant) {
            return self.temporary_value(&ret, span).1;
        }
        if name == "verify" && !matches!(self.callable.kind, CallableKind::Parser) {
            self.report(
                Diagnostic::error(
                    codes::ONLY_IN_PARSER,
                    span,
                    "`verify` exists only in parsers",
                )
                .with_secondary(signature.span, "declared here"),
            );
            return self.void(span);
        }
        let data = signature
            .vars
            .first()
            .and_then(|var| arguments.bindings.get(var))
            .cloned();
        let location = self.location(span);
        let count = arguments.passed.len();
        let unsupported = match (name, count) {
            ("resubmit", _) => Some("use `resubmit_preserving_field_list`"),
            ("recirculate", _) => Some("use `recirculate_preserving_field_list`"),
            ("clone3", _) => Some("use `clone_preserving_field_list`"),
            ("mark_to_drop", 0) => Some("use `mark_to_drop(standard_metadata)`"),
            _ => None,
        };
        if let Some(help) = unsupported {
            self.unsupported(span, &format!("the deprecated `{name}`"), help);
            return self.void(span);
        }
        let mut taken = self.taken(arguments.passed);
        let op = match (name, count) {
            ("verify", 2) => verify(&mut taken),
            ("hash", 5) => hash(&mut taken),
            ("random", 3) => random(&mut taken),
            ("verify_checksum", 4) => verify_checksum(&mut taken, false),
            ("verify_checksum_with_payload", 4) => verify_checksum(&mut taken, true),
            ("update_checksum", 4) => update_checksum(&mut taken, false),
            ("update_checksum_with_payload", 4) => update_checksum(&mut taken, true),
            ("mark_to_drop", 1) => taken
                .place()
                .map(|standard_metadata| Op::MarkToDrop { standard_metadata }),
            ("clone", 2) => clone(&mut taken, false),
            ("clone_preserving_field_list", 3) => clone(&mut taken, true),
            ("resubmit_preserving_field_list", 1) => {
                taken.expr().map(|field_list| Op::Resubmit { field_list })
            }
            ("recirculate_preserving_field_list", 1) => taken
                .expr()
                .map(|field_list| Op::Recirculate { field_list }),
            ("truncate", 1) => taken.expr().map(|length| Op::Truncate { length }),
            ("digest", 2) => digest(&mut taken, data),
            ("assert" | "assume", 1) => taken.expr().map(|condition| Op::Assert {
                condition,
                location,
            }),
            ("log_msg", 1 | 2) => log_message(&mut taken, count == 2),
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::UNKNOWN_EXTERN,
                        span,
                        format!("the extern function `{name}` is not one of v1model's"),
                    )
                    .with_secondary(signature.span, "declared here")
                    .with_help("write it as a function with a body"),
                );
                return Value::unknown(ret, span);
            }
        };
        if let Some(op) = op {
            self.emit(ir::Stmt::Op(op));
        }
        match ret {
            Ty::Void => self.void(span),
            _ => Value::unknown(ret, span),
        }
    }

    fn static_assert(&mut self, passed: Vec<Passed>, span: Span) -> Value {
        let mut taken = self.taken(passed);
        let condition = taken.value();
        let message = taken.text();
        match condition
            .as_ref()
            .map(|condition| (condition.as_bool(), &condition.kind))
        {
            Some((Some(true), _)) | Some((None, ValueKind::Poison)) | None => {}
            Some((Some(false), _)) => self.report(Diagnostic::error(
                codes::STATIC_ASSERTION,
                span,
                match message {
                    Some(message) => format!("static assertion failed: {message}"),
                    None => "static assertion failed".to_owned(),
                },
            )),
            Some((None, _)) => self.not_constant(span, "a static assertion"),
        }
        Value::known(Ty::Bool, Known::Bool(true), span)
    }

    /// Checks a call of a method of an extern object.
    pub(crate) fn extern_method(
        &mut self,
        extern_name: &str,
        object: &Value,
        signature: &Signature<'a>,
        arguments: CallArguments,
        ret: Ty,
        span: Span,
    ) -> Value {
        if matches!(self.callable.kind, CallableKind::Constant) {
            return self.temporary_value(&ret, span).1;
        }
        let instance = match object.kind {
            ValueKind::Instance(instance) => instance,
            _ => return self.unknown_result(ret, span),
        };
        let method = signature.name;
        if instance == Instance::Packet {
            return self.packet_method(extern_name, method, arguments, ret, span);
        }
        let mut taken = self.taken(arguments.passed);
        let op = match (instance, method) {
            (Instance::Register(register), "read") => taken.place().and_then(|result| {
                let index = taken.expr()?;
                Some(Op::RegisterRead {
                    register,
                    index,
                    result,
                })
            }),
            (Instance::Register(register), "write") => taken.expr().and_then(|index| {
                let value = taken.expr()?;
                Some(Op::RegisterWrite {
                    register,
                    index,
                    value,
                })
            }),
            (Instance::Counter(counter), "count") => taken
                .expr()
                .map(|index| Op::CounterCount { counter, index }),
            (Instance::DirectCounter(counter), "count") => Some(Op::DirectCounterCount { counter }),
            (Instance::Meter(meter), "execute_meter") => taken.expr().and_then(|index| {
                let result = taken.place()?;
                Some(Op::MeterExecute {
                    meter,
                    index,
                    result,
                })
            }),
            (Instance::DirectMeter(meter), "read") => taken
                .place()
                .map(|result| Op::DirectMeterRead { meter, result }),
            _ => return self.foreign_method(extern_name, signature, ret, span),
        };
        if let Some(op) = op {
            self.emit(ir::Stmt::Op(op));
        }
        self.unknown_result(ret, span)
    }

    fn unknown_result(&self, ret: Ty, span: Span) -> Value {
        match ret {
            Ty::Void => self.void(span),
            _ => Value::unknown(ret, span),
        }
    }

    fn foreign_method(
        &mut self,
        extern_name: &str,
        signature: &Signature<'a>,
        ret: Ty,
        span: Span,
    ) -> Value {
        self.report(
            Diagnostic::error(
                codes::UNKNOWN_EXTERN,
                span,
                format!(
                    "the method `{}` of `{extern_name}` is not one of v1model's",
                    signature.name
                ),
            )
            .with_secondary(signature.span, "declared here"),
        );
        self.unknown_result(ret, span)
    }

    fn packet_method(
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
                let fixed =
                    self.is_plain(&ret) || (self.types.is_header(&ret) && !self.has_varbit(&ret));
                if !fixed {
                    let shown = self.quote(&ret);
                    self.report(
                        Diagnostic::error(
                            codes::WRONG_HEADER,
                            span,
                            format!("`lookahead` does not work on {shown}"),
                        )
                        .with_help("use a number, or a header or struct of numbers"),
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

    fn emit_packet(&mut self, passed: Vec<Passed>, span: Span) {
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

    fn emittable(&self, ty: &Ty) -> bool {
        use crate::types::StructKind;
        match ty {
            Ty::Var(_) | Ty::Poison | Ty::Invalid => true,
            Ty::Stack(..) => true,
            Ty::Struct(id) => {
                let info = self.types.info(*id);
                info.kind != StructKind::Struct
                    || info.fields.iter().all(|field| self.emittable(&field.ty))
            }
            Ty::Tuple(members) => members.iter().all(|member| self.emittable(member)),
            _ => false,
        }
    }

    fn has_varbit(&self, ty: &Ty) -> bool {
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

    fn check_extracted(&mut self, ty: &Ty, with_size: bool, span: Span) {
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

fn verify(taken: &mut Taken<'_, '_>) -> Option<Op> {
    let condition = taken.expr()?;
    let error = taken.expr()?;
    Some(Op::Verify { condition, error })
}

fn hash(taken: &mut Taken<'_, '_>) -> Option<Op> {
    let result = taken.place();
    let algorithm = taken.algorithm();
    let base = taken.expr();
    let data = taken.scalars();
    let max = taken.expr();
    Some(Op::Hash {
        result: result?,
        algorithm: algorithm?,
        base: base?,
        data: data?,
        max: max?,
    })
}

fn random(taken: &mut Taken<'_, '_>) -> Option<Op> {
    let result = taken.place()?;
    let lo = taken.expr()?;
    let hi = taken.expr()?;
    Some(Op::Random { result, lo, hi })
}

fn verify_checksum(taken: &mut Taken<'_, '_>, with_payload: bool) -> Option<Op> {
    let condition = taken.expr();
    let data = taken.scalars();
    let checksum = taken.expr();
    let algorithm = taken.algorithm();
    Some(Op::VerifyChecksum {
        condition: condition?,
        data: data?,
        checksum: checksum?,
        algorithm: algorithm?,
        with_payload,
    })
}

fn update_checksum(taken: &mut Taken<'_, '_>, with_payload: bool) -> Option<Op> {
    let condition = taken.expr();
    let data = taken.scalars();
    let checksum = taken.place();
    let algorithm = taken.algorithm();
    Some(Op::UpdateChecksum {
        condition: condition?,
        data: data?,
        checksum: checksum?,
        algorithm: algorithm?,
        with_payload,
    })
}

fn clone(taken: &mut Taken<'_, '_>, preserving: bool) -> Option<Op> {
    let kind = match taken.member("the kind of clone")?.as_str() {
        "I2E" => ir::CloneKind::IngressToEgress,
        "E2E" => ir::CloneKind::EgressToEgress,
        _ => return None,
    };
    let session = taken.expr()?;
    let field_list = if preserving {
        Some(taken.expr()?)
    } else {
        None
    };
    Some(Op::Clone {
        kind,
        session,
        field_list,
    })
}

fn digest(taken: &mut Taken<'_, '_>, ty: Option<Ty>) -> Option<Op> {
    let _receiver = taken.value()?;
    let name = match ty {
        Some(ty @ Ty::Struct(_)) => taken.checker.types.show(&ty),
        _ => "digest".to_owned(),
    };
    let data = taken.expr()?;
    Some(Op::Digest { name, data })
}

fn log_message(taken: &mut Taken<'_, '_>, with_values: bool) -> Option<Op> {
    let format = taken.text()?;
    let values = if with_values {
        taken.scalars()?
    } else {
        Vec::new()
    };
    Some(Op::LogMessage { format, values })
}

//! The extern functions and methods of core.p4 and v1model.p4, each bound to its
//! operation by the name of its declaration.

use crate::arguments::{CallArguments, Passed};
use crate::checker::{CallableKind, Checker};
use crate::codes;
use crate::deprecated::checksum16;
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

/// The hash algorithm of a member of `HashAlgorithm`.
pub(crate) fn algorithm_named(name: &str) -> Option<ir::HashAlgorithm> {
    ALGORITHMS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, algorithm)| *algorithm)
}

/// Requirement on the type of an argument, beyond its declaration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// `bit<W>` or `int<W>`.
    Number,
    /// A scalar or a struct of scalars.
    Plain,
    /// Scalars, perhaps in structs, headers and stacks, but no `varbit`.
    Fixed,
    /// A number, or an enum with a member for each colour of a meter.
    Colour,
}

/// Demands of generic functions and methods: name, parameter, demand.
const DEMANDS: [(&str, &str, Demand); 14] = [
    ("hash", "result", Demand::Number),
    ("hash", "base", Demand::Number),
    ("hash", "data", Demand::Fixed),
    ("hash", "max", Demand::Number),
    ("random", "result", Demand::Number),
    ("random", "lo", Demand::Number),
    ("random", "hi", Demand::Number),
    ("verify_checksum", "checksum", Demand::Number),
    ("verify_checksum_with_payload", "checksum", Demand::Number),
    ("update_checksum", "checksum", Demand::Number),
    ("update_checksum_with_payload", "checksum", Demand::Number),
    ("digest", "data", Demand::Plain),
    ("log_msg", "data", Demand::Fixed),
    ("execute_meter", "result", Demand::Colour),
];

/// Demand of `direct_meter.read`, whose name a register's method has, too.
const METER_READ: (&str, Demand) = ("result", Demand::Colour);

/// Arguments taken one after the other. `None` where one has an error that was
/// reported, or where the declaration is not the standard one.
pub(crate) struct Taken<'c, 'a> {
    checker: &'c mut Checker<'a>,
    passed: std::vec::IntoIter<Passed>,
}

impl<'a> Taken<'_, 'a> {
    /// The check that they belong to.
    pub(crate) fn checker(&mut self) -> &mut Checker<'a> {
        self.checker
    }

    pub(crate) fn value(&mut self) -> Option<Value> {
        match self.passed.next()? {
            Passed::In(value) if !value.is_poison() => Some(value),
            _ => None,
        }
    }

    pub(crate) fn expr(&mut self) -> Option<ir::Expr> {
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

    pub(crate) fn place(&mut self) -> Option<ir::Place> {
        match self.passed.next()? {
            Passed::Out(place) | Passed::InOut(place) | Passed::Kept(_, place) => place,
            _ => None,
        }
    }

    pub(crate) fn scalars(&mut self) -> Option<Vec<ir::Expr>> {
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
        algorithm_named(&self.member("the hash algorithm")?)
    }

    fn text(&mut self) -> Option<String> {
        match self.value()?.kind {
            ValueKind::Const(Known::Str(text)) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Checker<'a> {
    pub(crate) fn taken(&mut self, passed: Vec<Passed>) -> Taken<'_, 'a> {
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
            if self.foreign {
                self.known_arguments(signature, &arguments);
            }
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
        if self.foreign && name != "verify" {
            self.foreign_arguments(signature, &arguments, span);
            return self.temporary_result(ret, span);
        }
        if !self.demands_met(signature, &arguments, None, span) {
            return self.unknown_result(ret, span);
        }
        let data = signature
            .vars
            .first()
            .and_then(|var| arguments.bindings.get(var))
            .cloned();
        let location = self.location(span);
        let count = arguments.passed.len();
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
            ("mark_to_drop", 0) => taken
                .checker()
                .standard_metadata_in_scope(span)
                .map(|standard_metadata| Op::MarkToDrop { standard_metadata }),
            ("clone3", 3) => clone3(&mut taken),
            ("resubmit", 1) => taken
                .written_list()
                .map(|field_list| Op::Resubmit { field_list }),
            ("recirculate", 1) => taken
                .written_list()
                .map(|field_list| Op::Recirculate { field_list }),
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
            self.emit_op(op, span);
        }
        match ret {
            Ty::Void => self.void(span),
            _ => Value::unknown(ret, span),
        }
    }

    /// Checks that the arguments of a generic function or method have types that the operation
    /// works on; reports them if not, and returns false. `own` is a demand that only this
    /// object's method has.
    fn demands_met(
        &mut self,
        signature: &Signature<'a>,
        arguments: &CallArguments,
        own: Option<(&str, Demand)>,
        span: Span,
    ) -> bool {
        let mut met = true;
        for param in &signature.params {
            let demand = DEMANDS
                .iter()
                .find(|(name, of, _)| *name == signature.name && *of == param.name)
                .map(|(_, _, demand)| *demand)
                .or_else(|| {
                    own.filter(|(of, _)| *of == param.name)
                        .map(|(_, demand)| demand)
                });
            let Some(demand) = demand else { continue };
            let ty = self.types.substitute(&param.ty, &arguments.bindings);
            let ty = self.strip_serial(&ty);
            let fits = self.types.is_open(&ty)
                || match demand {
                    Demand::Number => ty == Ty::Integer || self.underlying_width(&ty).is_some(),
                    Demand::Plain => ty == Ty::Integer || self.is_plain(&ty),
                    Demand::Fixed => !self.has_varbit(&ty),
                    Demand::Colour => match &ty {
                        Ty::Enum(id) => self.types.enums[*id as usize].members.len() >= ir::COLOURS,
                        _ => ty == Ty::Integer || self.underlying_width(&ty).is_some(),
                    },
                };
            if !fits {
                met = false;
                let shown = self.quote(&ty);
                let help = match demand {
                    Demand::Number => "use a `bit<W>` or `int<W>`",
                    Demand::Plain => "use a number, or a struct of numbers",
                    Demand::Fixed => "leave fields of type `varbit` out",
                    Demand::Colour => {
                        "use a `bit<W>` or `int<W>`, or an enum with a member for green, yellow and red"
                    }
                };
                self.report(
                    Diagnostic::error(
                        codes::WRONG_OPERAND,
                        span,
                        format!(
                            "`{}` does not work with `{}` of type {shown}",
                            signature.name, param.name
                        ),
                    )
                    .with_secondary(param.span, "the parameter is declared here")
                    .with_help(help),
                );
            }
        }
        met
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
            _ if self.foreign => {
                self.foreign_arguments(signature, &arguments, span);
                return self.temporary_result(ret, span);
            }
            _ => return self.unknown_result(ret, span),
        };
        let method = signature.name;
        if instance == Instance::Packet {
            return self.packet_method(extern_name, method, arguments, ret, span);
        }
        let meter = matches!(instance, Instance::DirectMeter(_)).then_some(METER_READ);
        if !self.demands_met(signature, &arguments, meter, span) {
            return self.unknown_result(ret, span);
        }
        if matches!(
            instance,
            Instance::DirectCounter(_) | Instance::DirectMeter(_)
        ) {
            self.made.direct.push((instance, object.span));
        }
        if (instance, method) == (Instance::Checksum16, "get") {
            let (place, value) = self.temporary_value(&ret, span);
            let mut taken = self.taken(arguments.passed);
            if let Some(op) = place.and_then(|place| checksum16(&mut taken, place)) {
                self.emit_op(op, span);
            }
            return value;
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
            self.emit_op(op, span);
        }
        self.unknown_result(ret, span)
    }

    /// The result of an operation of another architecture.
    pub(crate) fn temporary_result(&mut self, ret: Ty, span: Span) -> Value {
        match ret {
            Ty::Void => self.void(span),
            _ => self.temporary_value(&ret, span).1,
        }
    }

    pub(crate) fn unknown_result(&self, ret: Ty, span: Span) -> Value {
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

fn clone_kind(taken: &mut Taken<'_, '_>) -> Option<ir::CloneKind> {
    match taken.member("the kind of clone")?.as_str() {
        "I2E" => Some(ir::CloneKind::IngressToEgress),
        "E2E" => Some(ir::CloneKind::EgressToEgress),
        _ => None,
    }
}

fn clone3(taken: &mut Taken<'_, '_>) -> Option<Op> {
    let kind = clone_kind(taken)?;
    let session = taken.expr()?;
    let field_list = Some(taken.written_list()?);
    Some(Op::Clone {
        kind,
        session,
        field_list,
    })
}

fn clone(taken: &mut Taken<'_, '_>, preserving: bool) -> Option<Op> {
    let kind = clone_kind(taken)?;
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
    let name = taken.checker.digest_interface(&ty?)?;
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

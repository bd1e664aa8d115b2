//! Instances of extern objects.

use crate::annotation;
use crate::architecture::algorithm_named;
use crate::checker::Checker;
use crate::codes;
use crate::scope::Signature;
use crate::types::{Bindings, Ty};
use crate::value::{Instance, Known, Value, ValueKind};
use num_traits::ToPrimitive;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self};
use std::rc::Rc;

impl<'a> Checker<'a> {
    pub(crate) fn extern_instance(
        &mut self,
        id: u32,
        type_args: Vec<Ty>,
        args: &'a [tree::Argument],
        name: Option<String>,
        annotations: &'a [tree::Annotation],
        span: Span,
    ) -> Value {
        let info = self.externs[id as usize].clone();
        let extern_name = info.decl.name.as_str();
        let candidates: Vec<(u32, Rc<Signature<'a>>)> =
            (0u32..).zip(info.constructors.iter().cloned()).collect();
        if candidates.is_empty() {
            self.not_constructible(span, &format!("`{extern_name}`"));
            return Value::poison(span);
        }
        if !type_args.is_empty() && type_args.len() != info.vars.len() {
            self.report(
                Diagnostic::error(
                    codes::TYPE_ARGUMENT_COUNT,
                    span,
                    format!(
                        "`{extern_name}` takes {} type arguments, not {}",
                        info.vars.len(),
                        type_args.len()
                    ),
                )
                .with_secondary(info.decl.name.span, "declared here"),
            );
            return Value::poison(span);
        }
        if type_args.contains(&Ty::Poison) {
            return Value::poison(span);
        }
        let Some(chosen) = self.choose(extern_name, candidates, args, span) else {
            return Value::poison(span);
        };
        let constructor = Signature {
            vars: info.vars.clone(),
            ..(*info.constructors[chosen as usize]).clone()
        };
        let bindings: Bindings = if type_args.is_empty() && !info.vars.is_empty() {
            let Some(bindings) = self.inferred_bindings(&constructor, args, span) else {
                return Value::poison(span);
            };
            if !self.all_bound(&constructor, &bindings, span) {
                return Value::poison(span);
            }
            bindings
        } else {
            let vars = info.vars.iter().copied();
            vars.zip(type_args.iter().cloned()).collect()
        };
        let type_args: Vec<Ty> = info.vars.iter().map(|var| bindings[var].clone()).collect();
        if self.foreign {
            for param in info.methods.iter().flat_map(|method| &method.params) {
                let ty = self.types.substitute(&param.ty, &bindings);
                if ty != param.ty {
                    self.value_of_packets(param.direction, &ty, span, param.span);
                }
            }
        }
        let ty = Ty::Extern(id, type_args.clone().into());
        let Some(values) = self.constructor_arguments(&constructor, &bindings, args, span) else {
            return Value::unknown(ty, span);
        };
        let name =
            name.unwrap_or_else(|| annotation::full_name(&self.callable.name, extern_name, &[]));
        let kind = self.extern_object(
            extern_name,
            &type_args,
            &values,
            name,
            annotations,
            info.decl.name.span,
            span,
        );
        Value { ty, kind, span }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one instantiation")]
    pub(crate) fn extern_object(
        &mut self,
        extern_name: &str,
        type_args: &[Ty],
        values: &[Value],
        name: String,
        annotations: &'a [tree::Annotation],
        declared: Span,
        span: Span,
    ) -> ValueKind {
        let size = |position: usize| {
            values
                .get(position)
                .map_or(Some(1), |value| match &value.kind {
                    ValueKind::Const(Known::Int(number)) => number.to_u64(),
                    _ => Some(1),
                })
                .unwrap_or(1)
        };
        let member = |checker: &Self, position: usize| {
            values
                .get(position)
                .and_then(|value| match (&value.ty, &value.kind) {
                    (Ty::Enum(id), ValueKind::Const(Known::Index(index))) => checker.types.enums
                        [*id as usize]
                        .members
                        .get(*index as usize)
                        .map(|(name, _)| name.clone()),
                    _ => None,
                })
                .unwrap_or_default()
        };
        let counted = |kind: &str| match kind {
            "bytes" => ir::CounterKind::Bytes,
            "packets_and_bytes" => ir::CounterKind::PacketsAndBytes,
            _ => ir::CounterKind::Packets,
        };
        if self.foreign {
            return ValueKind::Poison;
        }
        match extern_name {
            "register" => self.register_object(type_args.first(), size(0), name, annotations, span),
            "counter" | "direct_counter" => {
                self.claim_name("counter", &name, span);
                let direct = extern_name == "direct_counter";
                let kind = counted(&member(self, usize::from(!direct)));
                self.out.counters.push(ir::Counter {
                    name,
                    kind,
                    size: if direct { 0 } else { size(0) },
                    table: None,
                });
                let id = ir::CounterId(self.out.counters.len() as u32 - 1);
                let annotations = self.kept(annotations);
                self.out.interface.counters.insert(id, annotations);
                ValueKind::Instance(if direct {
                    Instance::DirectCounter(id)
                } else {
                    Instance::Counter(id)
                })
            }
            "meter" | "direct_meter" => {
                self.claim_name("meter", &name, span);
                let direct = extern_name == "direct_meter";
                let bytes = member(self, usize::from(!direct)) == "bytes";
                self.out.meters.push(ir::Meter {
                    name,
                    bytes,
                    size: if direct { 0 } else { size(0) },
                    table: None,
                });
                let id = ir::MeterId(self.out.meters.len() as u32 - 1);
                let annotations = self.kept(annotations);
                self.out.interface.meters.insert(id, annotations);
                ValueKind::Instance(if direct {
                    Instance::DirectMeter(id)
                } else {
                    Instance::Meter(id)
                })
            }
            "action_profile" | "action_selector" => {
                self.claim_name("action profile", &name, span);
                let selects = extern_name == "action_selector";
                let algorithm = algorithm_named(&member(self, 0));
                let selector = algorithm.filter(|_| selects).map(|algorithm| ir::Selector {
                    algorithm,
                    output_width: size(2).try_into().unwrap_or(u32::MAX),
                });
                let annotations = self.kept(annotations);
                self.out.action_profiles.push(ir::ActionProfile {
                    name,
                    size: size(usize::from(selects)),
                    selector,
                    annotations,
                });
                let id = ir::ActionProfileId(self.out.action_profiles.len() as u32 - 1);
                ValueKind::Instance(Instance::ActionProfile(id))
            }
            "Checksum16" => ValueKind::Instance(Instance::Checksum16),
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::UNKNOWN_EXTERN,
                        span,
                        format!("the extern `{extern_name}` is not one of v1model's"),
                    )
                    .with_secondary(declared, "declared here"),
                );
                ValueKind::Poison
            }
        }
    }

    fn register_object(
        &mut self,
        element: Option<&Ty>,
        size: u64,
        name: String,
        annotations: &'a [tree::Annotation],
        span: Span,
    ) -> ValueKind {
        let Some(element) = element else {
            return ValueKind::Poison;
        };
        let Some(lowered) = self.ir_type(element, span) else {
            return ValueKind::Poison;
        };
        if !self.is_plain(element) {
            let shown = self.quote(element);
            self.report(
                Diagnostic::error(
                    codes::INVALID_FIELD,
                    span,
                    format!("a register cannot hold elements of type {shown}"),
                )
                .with_help("use a number, `bool`, an enum or a struct of these"),
            );
            return ValueKind::Poison;
        }
        self.claim_name("register", &name, span);
        let kept = self.kept(annotations);
        self.register_interface(element, &kept);
        self.out.registers.push(ir::Register {
            name,
            element: lowered,
            size,
            annotations: kept,
        });
        self.register_units(annotations);
        self.register_beside(annotations);
        let id = ir::RegisterId(self.out.registers.len() as u32 - 1);
        ValueKind::Instance(Instance::Register(id))
    }
}

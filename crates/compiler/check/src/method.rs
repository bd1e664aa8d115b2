//! Built-in methods of headers, header unions and header stacks (spec §8.17 to §8.20).

use crate::checker::Checker;
use crate::codes;
use crate::types::{StructKind, Ty};
use crate::value::{Known, Value, ValueKind};
use num_bigint::BigInt;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree;

impl<'a> Checker<'a> {
    /// `value.member(args)` of a value that is not an object.
    pub(crate) fn call_builtin(
        &mut self,
        value: Value,
        member: &'a tree::Ident,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let name = member.as_str();
        let kind = self.types.struct_kind(&value.ty);
        match (name, &value.ty, kind) {
            ("push_front" | "pop_front", Ty::Stack(element, _), _)
                if self.holds_headers(element) =>
            {
                return self.move_stack(value, name == "push_front", args, span);
            }
            ("isValid", _, Some(StructKind::Header | StructKind::Union)) => {
                self.no_arguments(name, args);
                let Some(place) = self.materialise(value) else {
                    return Value::unknown(Ty::Bool, span);
                };
                let expr = ir::Expr {
                    kind: ir::ExprKind::IsValid(place),
                    ty: ir::Type::Bool,
                };
                return Value::expr(Ty::Bool, expr, span);
            }
            ("setValid" | "setInvalid", _, Some(StructKind::Header)) => {
                self.no_arguments(name, args);
                if let Some(place) = self.writable(value) {
                    self.emit(if name == "setValid" {
                        ir::Stmt::SetValid(place)
                    } else {
                        ir::Stmt::SetInvalid(place)
                    });
                }
                return self.void(span);
            }
            ("minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes", ..) => {
                self.no_arguments(name, args);
                let ty = value.ty;
                return self.size_method(&ty, member, span);
            }
            _ => {}
        }
        let shown = self.quote(&value.ty);
        let known: &[&str] = match (&value.ty, kind) {
            (_, Some(StructKind::Header)) => &["isValid", "setValid", "setInvalid"],
            (_, Some(StructKind::Union)) => &["isValid"],
            (Ty::Stack(element, _), _) if self.holds_headers(element) => {
                &["push_front", "pop_front"]
            }
            _ => &[],
        };
        self.no_method(&format!("a value of type {shown}"), member, known);
        Value::poison(span)
    }

    /// True if an array of such elements is a header stack.
    pub(crate) fn holds_headers(&self, element: &Ty) -> bool {
        matches!(
            self.types.struct_kind(element),
            Some(StructKind::Header | StructKind::Union)
        )
    }

    fn no_arguments(&mut self, name: &str, args: &'a [tree::Argument]) {
        if let Some(first) = args.first() {
            self.report(Diagnostic::error(
                codes::ARGUMENTS,
                first.span,
                format!("`{name}` takes no arguments"),
            ));
        }
    }

    fn move_stack(
        &mut self,
        value: Value,
        push: bool,
        args: &'a [tree::Argument],
        span: Span,
    ) -> Value {
        let name = if push { "push_front" } else { "pop_front" };
        let count = match args {
            [
                tree::Argument {
                    value: Some(count), ..
                },
            ] => self.constant_u32(count, "the number of elements", 0, u32::MAX),
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::ARGUMENTS,
                        span,
                        format!("`{name}` takes one argument"),
                    )
                    .with_help("give the number of elements"),
                );
                None
            }
        };
        if let (Some(place), Some(count)) = (self.writable(value), count) {
            self.emit(if push {
                ir::Stmt::PushFront(place, count)
            } else {
                ir::Stmt::PopFront(place, count)
            });
        }
        self.void(span)
    }

    /// `minSizeInBits()` and its like, of a type or a value of it.
    pub(crate) fn size_method(&mut self, ty: &Ty, member: &tree::Ident, span: Span) -> Value {
        let name = member.as_str();
        let largest = name.starts_with("max");
        if !name.ends_with("SizeInBits") && !name.ends_with("SizeInBytes") {
            let shown = self.quote(ty);
            self.no_method(
                &format!("the type {shown}"),
                member,
                &[
                    "minSizeInBits",
                    "minSizeInBytes",
                    "maxSizeInBits",
                    "maxSizeInBytes",
                ],
            );
            return Value::poison(span);
        }
        let Some(bits) = self.size_in_bits(ty, largest) else {
            let shown = self.quote(ty);
            self.report(Diagnostic::error(
                codes::UNKNOWN_METHOD,
                span,
                format!("values of type {shown} have no size"),
            ));
            return Value::poison(span);
        };
        let size = if name.ends_with("Bytes") {
            bits.div_ceil(8)
        } else {
            bits
        };
        Value::known(Ty::Integer, Known::Int(BigInt::from(size)), span)
    }

    /// Size of values of a type, the least or the greatest.
    pub(crate) fn size_in_bits(&self, ty: &Ty, largest: bool) -> Option<u64> {
        match ty {
            Ty::Bool => Some(1),
            Ty::Bits(width) | Ty::Int(width) => Some(u64::from(*width)),
            Ty::Varbit(width) => Some(if largest { u64::from(*width) } else { 0 }),
            Ty::Serial(id) => {
                self.size_in_bits(&self.types.serials[*id as usize].underlying, largest)
            }
            Ty::Newtype(id) => {
                self.size_in_bits(&self.types.newtypes[*id as usize].underlying, largest)
            }
            Ty::Struct(id) => {
                let info = self.types.info(*id);
                let mut sizes = info
                    .fields
                    .iter()
                    .map(|field| self.size_in_bits(&field.ty, largest));
                if info.kind == StructKind::Union {
                    let sizes: Vec<u64> = sizes.collect::<Option<_>>()?;
                    return if largest {
                        Some(sizes.into_iter().max().unwrap_or(0))
                    } else {
                        Some(sizes.into_iter().min().unwrap_or(0))
                    };
                }
                sizes.try_fold(0u64, |sum, size| size?.checked_add(sum))
            }
            Ty::Stack(element, count) => self
                .size_in_bits(element, largest)?
                .checked_mul(u64::from(*count)),
            Ty::Tuple(members) => members
                .iter()
                .map(|member| self.size_in_bits(member, largest))
                .try_fold(0u64, |sum, size| size?.checked_add(sum)),
            _ => None,
        }
    }

    /// The scalars in a value, in order; a header's validity is not one of them.
    pub(crate) fn scalars_of(&mut self, value: Value, into: &mut Vec<ir::Expr>) {
        let span = value.span;
        let members: Vec<Ty> = match &value.ty {
            Ty::Struct(id) => self
                .types
                .info(*id)
                .fields
                .iter()
                .map(|field| field.ty.clone())
                .collect(),
            Ty::Tuple(members) | Ty::List(members) => members.to_vec(),
            Ty::Stack(element, size) => {
                let (element, size) = ((**element).clone(), *size);
                let Some(place) = self.materialise(value) else {
                    return;
                };
                for position in 0..size {
                    let mut place = place.clone();
                    place
                        .path
                        .push(ir::Projection::Index(Box::new(crate::expr::bits(
                            position, 32,
                        ))));
                    let element = Value {
                        ty: element.clone(),
                        kind: ValueKind::Place(place, crate::value::Access::Temporary),
                        span,
                    };
                    self.scalars_of(element, into);
                }
                return;
            }
            Ty::Integer => {
                self.report(
                    Diagnostic::error(
                        codes::UNKNOWN_WIDTH,
                        span,
                        "the width of this number is not known",
                    )
                    .with_help("give it a width, for example 16w0"),
                );
                return;
            }
            _ => {
                let expr = self.lower(value);
                into.push(expr);
                return;
            }
        };
        let whole = match value.kind {
            ValueKind::List(_) | ValueKind::Place(..) | ValueKind::Poison => value,
            _ => {
                let ty = value.ty.clone();
                match self.materialise(value) {
                    Some(place) => Value {
                        ty,
                        kind: ValueKind::Place(place, crate::value::Access::Temporary),
                        span,
                    },
                    None => return,
                }
            }
        };
        for (position, ty) in members.into_iter().enumerate() {
            let member = self.part(whole.clone(), position as u32, ty, span);
            self.scalars_of(member, into);
        }
    }
}

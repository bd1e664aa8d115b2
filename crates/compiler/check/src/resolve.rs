//! Types as written to types.

use crate::checker::Checker;
use crate::codes;
use crate::scope::{Entity, Param};
use crate::types::{Ty, TypeVar};
use num_traits::ToPrimitive;
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;
use stateplane_syntax::tree::{self, TypeKind};
use std::rc::Rc;

/// Greatest width of a `bit` or `int` type.
const MAX_WIDTH: u32 = ir::MAX_WIDTH;

/// Greatest width of a `varbit` type.
const MAX_VARBIT_WIDTH: u32 = ir::MAX_VARBIT_WIDTH;

/// Greatest number of scalars in one type, which bounds what a small hostile program
/// can make the compiler and the switch allocate.
const MAX_SCALARS: u64 = 1 << 16;

impl<'a> Checker<'a> {
    /// The type that is written. Reports what is wrong with it.
    pub(crate) fn resolve(&mut self, ty: &'a tree::Type) -> Ty {
        match &ty.kind {
            TypeKind::Malformed => Ty::Poison,
            TypeKind::Bool => Ty::Bool,
            TypeKind::Error => Ty::Error,
            TypeKind::MatchKind => Ty::MatchKind,
            TypeKind::String => Ty::Str,
            TypeKind::Void => Ty::Void,
            TypeKind::Integer => Ty::Integer,
            TypeKind::DontCare => {
                self.report(
                    Diagnostic::error(
                        codes::MISPLACED_DONT_CARE,
                        ty.span,
                        "`_` cannot stand for a type here",
                    )
                    .with_help("write the type"),
                );
                Ty::Poison
            }
            TypeKind::Bit(None) => Ty::Bits(1),
            TypeKind::Bit(Some(width)) => match self.width(width, 0, MAX_WIDTH) {
                Some(width) => Ty::Bits(width),
                None => Ty::Poison,
            },
            TypeKind::Int(width) => match self.width(width, 1, MAX_WIDTH) {
                Some(width) => Ty::Int(width),
                None => Ty::Poison,
            },
            TypeKind::Varbit(width) => match self.width(width, 0, MAX_VARBIT_WIDTH) {
                Some(width) => Ty::Varbit(width),
                None => Ty::Poison,
            },
            TypeKind::Named(path) => match self.lookup(path) {
                Some(symbol) => {
                    let found = self.named(path, &symbol.entity, Vec::new(), ty.span, symbol.span);
                    self.bounded(found, ty.span)
                }
                None => Ty::Poison,
            },
            TypeKind::Specialized { base, args } => {
                let args: Vec<Ty> = args.iter().map(|arg| self.type_argument(arg)).collect();
                match self.lookup(base) {
                    Some(symbol) => {
                        let found = self.named(base, &symbol.entity, args, ty.span, symbol.span);
                        self.bounded(found, ty.span)
                    }
                    None => Ty::Poison,
                }
            }
            TypeKind::Stack { element, size } => {
                let element_ty = self.resolve(element);
                let size = self.constant_u32(size, "the size of a header stack", 1, 65_535);
                match (&element_ty, size) {
                    (Ty::Poison, _) | (_, None) => Ty::Poison,
                    (element, Some(size)) if self.stackable(element) => {
                        self.bounded(Ty::Stack(Rc::new(element_ty), size), ty.span)
                    }
                    _ => {
                        let shown = self.quote(&element_ty);
                        self.report(
                            Diagnostic::error(
                                codes::NOT_STACKABLE,
                                element.span,
                                format!("an array of {shown}"),
                            )
                            .with_label("not a header, number or struct")
                            .with_help("put it into a struct, and make an array of that"),
                        );
                        Ty::Poison
                    }
                }
            }
            TypeKind::Tuple(written) => {
                let members: Vec<Ty> = written.iter().map(|member| self.resolve(member)).collect();
                if members.contains(&Ty::Poison) {
                    return Ty::Poison;
                }
                let object = members.iter().position(|ty| {
                    matches!(
                        ty,
                        Ty::Extern(..) | Ty::Block(..) | Ty::Package(..) | Ty::Str | Ty::Void
                    )
                });
                if let Some(position) = object {
                    let shown = self.quote(&members[position]);
                    self.report(
                        Diagnostic::error(
                            codes::INVALID_FIELD,
                            written[position].span,
                            format!("a tuple cannot have a member of type {shown}"),
                        )
                        .with_help("objects are not values"),
                    );
                    return Ty::Poison;
                }
                self.bounded(Ty::Tuple(members.into()), ty.span)
            }
            TypeKind::List(element) => match self.resolve(element) {
                Ty::Poison => Ty::Poison,
                element => Ty::ListOf(Rc::new(element)),
            },
        }
    }

    /// A type argument; `_` is a type that nothing else names.
    fn type_argument(&mut self, arg: &'a tree::Type) -> Ty {
        match arg.kind {
            TypeKind::DontCare => Ty::Var(self.types.fresh_var("_")),
            _ => self.resolve(arg),
        }
    }

    /// True if the type can be that of an array's elements.
    fn stackable(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Struct(_) | Ty::Tuple(_) => true,
            _ => self.is_plain(ty),
        }
    }

    fn bounded(&mut self, ty: Ty, span: Span) -> Ty {
        if self.types.scalars(&ty) > MAX_SCALARS {
            self.report(
                Diagnostic::error(
                    codes::TYPE_TOO_LARGE,
                    span,
                    format!("the type has more than {MAX_SCALARS} fields"),
                )
                .with_help("keep large state in a register"),
            );
            return Ty::Poison;
        }
        ty
    }

    fn named(
        &mut self,
        path: &tree::Path,
        entity: &Entity,
        args: Vec<Ty>,
        span: Span,
        declared: Span,
    ) -> Ty {
        let wanted = match entity {
            Entity::Template(id) => self.types.templates[*id as usize].vars.len(),
            Entity::Extern(id) => self.externs[*id as usize].vars.len(),
            Entity::Block(id) => self.blocks[*id as usize].signature.vars.len(),
            Entity::Package(id) => self.packages[*id as usize].vars.len(),
            _ => 0,
        };
        match entity {
            Entity::Broken => return Ty::Poison,
            Entity::Type(_)
            | Entity::Template(_)
            | Entity::Extern(_)
            | Entity::Block(_)
            | Entity::Package(_) => {}
            other => {
                let noun = other.noun();
                self.report(
                    Diagnostic::error(
                        codes::NOT_A_TYPE,
                        span,
                        format!("`{path}` is {noun}, not a type"),
                    )
                    .with_secondary(declared, "declared here"),
                );
                return Ty::Poison;
            }
        }
        if args.len() != wanted {
            let count = args.len();
            self.report(
                Diagnostic::error(
                    codes::TYPE_ARGUMENT_COUNT,
                    span,
                    format!("`{path}` takes {wanted} type arguments, not {count}"),
                )
                .with_secondary(declared, "declared here"),
            );
            return Ty::Poison;
        }
        if args.contains(&Ty::Poison) {
            return Ty::Poison;
        }
        match entity {
            Entity::Type(ty) => ty.clone(),
            Entity::Template(id) => {
                let instance = self.types.instance(*id, args.into());
                let info = self.types.info(instance).clone();
                let wrong = info.fields.iter().find(|field| {
                    !self.types.is_open(&field.ty) && !self.fits_in(info.kind, &field.ty)
                });
                if let Some(field) = wrong {
                    let shown = self.quote(&field.ty);
                    self.report(
                        Diagnostic::error(
                            codes::INVALID_FIELD,
                            span,
                            format!(
                                "a {} cannot have a field of type {shown}",
                                info.kind.keyword()
                            ),
                        )
                        .with_secondary(field.span, "this field would have it"),
                    );
                    return Ty::Poison;
                }
                Ty::Struct(instance)
            }
            Entity::Extern(id) => Ty::Extern(*id, args.into()),
            Entity::Block(id) => Ty::Block(*id, args.into()),
            Entity::Package(id) => Ty::Package(*id, args.into()),
            _ => Ty::Poison,
        }
    }

    fn width(&mut self, expr: &'a tree::Expr, least: u32, greatest: u32) -> Option<u32> {
        self.constant_u32(expr, "a width", least, greatest)
    }

    /// A compile-time number within bounds, both included.
    pub(crate) fn constant_u32(
        &mut self,
        expr: &'a tree::Expr,
        what: &str,
        least: u32,
        greatest: u32,
    ) -> Option<u32> {
        let value = self.constant_int(expr, what)?;
        match value.to_u32() {
            Some(value) if (least..=greatest).contains(&value) => Some(value),
            _ => {
                self.report(
                    Diagnostic::error(
                        codes::OUT_OF_RANGE,
                        expr.span,
                        format!("{what} of {value} is out of range"),
                    )
                    .with_help(format!("it lies between {least} and {greatest}")),
                );
                None
            }
        }
    }

    /// The parameters as written, resolved in the present scope.
    pub(crate) fn resolve_params(&mut self, params: &'a [tree::Parameter]) -> Vec<Param<'a>> {
        let mut resolved: Vec<Param<'a>> = Vec::new();
        for param in params {
            let ty = self.resolve(&param.ty);
            let type_param = self.frames.last().and_then(|frame| {
                let symbol = frame.get(param.name.as_str())?;
                matches!(symbol.entity, Entity::Type(_)).then_some(symbol.span)
            });
            let previous = resolved
                .iter()
                .find(|other| other.name == param.name.as_str())
                .map(|other| other.span);
            if let Some(previous) = previous.or(type_param) {
                self.duplicate(&param.name, previous);
            }
            if ty == Ty::Void {
                self.report(Diagnostic::error(
                    codes::NOT_A_RUNTIME_TYPE,
                    param.ty.span,
                    format!("the parameter `{}` cannot be `void`", param.name),
                ));
            }
            let directed = param.direction != tree::Direction::None;
            let help = match ty {
                Ty::Extern(..) | Ty::Block(..) => Some("objects are neither copied in nor out"),
                Ty::Str | Ty::Integer => Some("its values are known at compile time"),
                _ => None,
            };
            if directed && let Some(help) = help {
                let shown = self.quote(&ty);
                self.report(
                    Diagnostic::error(
                        codes::INVALID_DIRECTION,
                        param.span,
                        format!("a parameter of type {shown} has no direction"),
                    )
                    .with_help(format!("remove the direction: {help}")),
                );
            }
            if let Some(default) = &param.default
                && matches!(
                    param.direction,
                    tree::Direction::Out | tree::Direction::InOut
                )
            {
                self.report(Diagnostic::error(
                    codes::INVALID_DIRECTION,
                    default.span,
                    "an `out` or `inout` parameter has no default value",
                ));
            }
            if let Some(default) = &param.default
                && !self.types.is_open(&ty)
                && !matches!(
                    ty,
                    Ty::Extern(..) | Ty::Block(..) | Ty::Package(..) | Ty::Void
                )
                && let Some(value) = self.constant(default, "a default argument")
            {
                self.coerce(value, &ty);
            }
            resolved.push(Param {
                name: param.name.as_str(),
                span: param.name.span,
                direction: param.direction,
                ty,
                default: param.default.as_ref(),
                optional: param
                    .annotations
                    .iter()
                    .any(|annotation| annotation.name.as_str() == "optional"),
            });
        }
        resolved
    }

    /// Declares type parameters in the innermost scope.
    pub(crate) fn declare_type_params(&mut self, names: &'a [tree::Ident]) -> Vec<TypeVar> {
        names
            .iter()
            .map(|name| {
                let var = self.types.fresh_var(name.as_str());
                self.declare(name, Entity::Type(Ty::Var(var)));
                var
            })
            .collect()
    }

    /// The IR type; reports if values of it do not exist while packets are processed.
    pub(crate) fn ir_type(&mut self, ty: &Ty, span: Span) -> Option<ir::Type> {
        let lowered = self.out.ty(&self.types, ty);
        if lowered.is_none() && !self.types.is_open(ty) {
            let shown = self.quote(ty);
            let diagnostic = Diagnostic::error(
                codes::NOT_A_RUNTIME_TYPE,
                span,
                format!("values of type {shown} do not exist while packets are processed"),
            );
            self.report(match ty {
                Ty::Integer => diagnostic.with_help("give it a width, for example `bit<32>`"),
                _ => diagnostic,
            });
        }
        lowered
    }
}

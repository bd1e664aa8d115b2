//! Declarations of the outermost scope.

use crate::checker::{Callable, CallableKind, Checker};
use crate::codes;
use crate::scope::{
    BlockInfo, BodyDecl, BodyInfo, Entity, ExternInfo, FunctionInfo, Signature, Symbol,
};
use crate::types::{EnumInfo, Field, NewtypeInfo, SerialInfo, StructKind, Template, Ty};
use crate::value::{Known, Value, ValueKind};
use num_bigint::BigInt;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{self, Declaration, ExternMember, TypedefTarget};
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// Checks the declarations in order. Packages are returned for later, when all
    /// else is known.
    pub(crate) fn declarations(
        &mut self,
        program: &'a tree::Program,
    ) -> Vec<(&'a tree::Instantiation, u32)> {
        let mut packages = Vec::new();
        for (order, declaration) in (0u32..).zip(&program.declarations) {
            self.order = order;
            self.callable = Callable::new(CallableKind::Constant, String::new());
            self.declaration_annotations(declaration);
            match declaration {
                Declaration::Const(decl) => self.constant_decl(decl),
                Declaration::Extern(decl) => self.extern_decl(decl),
                Declaration::ExternFunction(decl) => {
                    self.function(&decl.prototype, None);
                }
                Declaration::Function(decl) => self.function_decl(decl),
                Declaration::Action(decl) => self.action(decl, true),
                Declaration::Parser(decl) => self.body_decl(BodyDecl::Parser(decl)),
                Declaration::Control(decl) => self.body_decl(BodyDecl::Control(decl)),
                Declaration::ParserType(decl) => self.block_decl(decl, true),
                Declaration::ControlType(decl) => self.block_decl(decl, false),
                Declaration::Package(decl) => {
                    let signature = self.block_signature(decl);
                    self.types.package_names.push(decl.name.to_string());
                    self.packages.push(Rc::new(signature));
                    let id = self.packages.len() as u32 - 1;
                    self.declare_global(&decl.name, Entity::Package(id));
                }
                Declaration::Struct(decl) => {
                    let entity = self.struct_decl(decl);
                    self.declare_global(&decl.name, entity);
                }
                Declaration::Enum(decl) => {
                    let ty = self.enum_decl(decl);
                    self.declare_global(&decl.name, Entity::Type(ty));
                }
                Declaration::Typedef(decl) => self.typedef(decl),
                Declaration::Error(decl) => {
                    let members = self.new_members(&decl.members, |c| c.types.errors.clone());
                    self.types.errors.extend(members);
                }
                Declaration::MatchKind(decl) => {
                    let members = self.new_members(&decl.members, |c| c.types.match_kinds.clone());
                    self.types.match_kinds.extend(members);
                }
                Declaration::Instantiation(decl) => {
                    if self.is_package(&decl.ty) {
                        let found =
                            packages
                                .iter()
                                .find(|(other, _): &&(&tree::Instantiation, u32)| {
                                    other.name.name == decl.name.name
                                });
                        match found {
                            Some((first, _)) => {
                                let first = first.name.span;
                                self.duplicate(&decl.name, first);
                            }
                            None => packages.push((decl, order)),
                        }
                    } else {
                        self.global_instance(decl);
                    }
                }
            }
        }
        packages
    }

    fn new_members(
        &mut self,
        members: &'a [tree::Ident],
        known: impl Fn(&Self) -> Vec<(String, Span)>,
    ) -> Vec<(String, Span)> {
        let known = known(self);
        let mut added: Vec<(String, Span)> = Vec::new();
        for member in members {
            let previous = known
                .iter()
                .chain(&added)
                .find(|(name, _)| name == member.as_str())
                .map(|(_, span)| *span);
            match previous {
                Some(previous) => self.duplicate(member, previous),
                None => added.push((member.to_string(), member.span)),
            }
        }
        added
    }

    fn named_entity(&self, ty: &tree::Type) -> Option<&Entity> {
        let path = match &ty.kind {
            tree::TypeKind::Named(path) => path,
            tree::TypeKind::Specialized { base, .. } => base,
            _ => return None,
        };
        self.find(path).map(|symbol| &symbol.entity)
    }

    fn is_package(&self, ty: &tree::Type) -> bool {
        matches!(self.named_entity(ty), Some(Entity::Package(_)))
    }

    fn global_instance(&mut self, decl: &'a tree::Instantiation) {
        if let Some(Entity::Body(body)) = self.named_entity(&decl.ty) {
            let keyword = self.bodies[*body as usize].decl.keyword();
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_INSTANTIATION,
                    decl.span,
                    format!("a {keyword} cannot be instantiated at the top level"),
                )
                .with_help("instantiate it where it is applied, or as an argument of `main`"),
            );
            self.declare_global(&decl.name, Entity::Broken);
            return;
        }
        let value = self.named_instance(decl);
        self.declare_global(&decl.name, Entity::Value(value));
    }

    fn extern_decl(&mut self, decl: &'a tree::ExternDecl) {
        let id = self.externs.len() as u32;
        self.types.extern_names.push(decl.name.to_string());
        self.externs.push(ExternInfo {
            decl,
            vars: Vec::new(),
            constructors: Vec::new(),
            methods: Vec::new(),
        });
        self.scoped(|checker| {
            let vars = checker.declare_type_params(&decl.type_params);
            checker.externs[id as usize].vars = vars;
            for member in &decl.members {
                match member {
                    ExternMember::Constructor(constructor) => {
                        let params = checker.resolve_params(&constructor.params);
                        let signature = Signature {
                            name: constructor.name.as_str(),
                            span: constructor.name.span,
                            vars: Vec::new(),
                            params,
                            ret: Ty::Void,
                        };
                        let others = checker.externs[id as usize].constructors.clone();
                        checker.member_of_extern(&signature, &constructor.name, &others);
                        checker.externs[id as usize]
                            .constructors
                            .push(Rc::new(signature));
                    }
                    ExternMember::Method(method) => {
                        let name = &method.prototype.name;
                        if name.name == decl.name.name {
                            checker.report(
                                Diagnostic::error(
                                    codes::DUPLICATE_NAME,
                                    name.span,
                                    format!("a method has the name of its extern `{name}`"),
                                )
                                .with_secondary(decl.name.span, "the extern")
                                .with_help("a constructor has no result type: remove it"),
                            );
                        }
                        let signature = checker.prototype(&method.prototype);
                        let others = checker.externs[id as usize].methods.clone();
                        checker.member_of_extern(&signature, name, &others);
                        checker.externs[id as usize]
                            .methods
                            .push(Rc::new(signature));
                    }
                }
            }
        });
        self.declare_global(&decl.name, Entity::Extern(id));
    }

    /// Checks a constructor or method of an extern against those before it.
    fn member_of_extern(
        &mut self,
        signature: &Signature<'a>,
        name: &tree::Ident,
        others: &[Rc<Signature<'a>>],
    ) {
        let same = others
            .iter()
            .find(|other| other.name == signature.name && param_names(other, signature));
        if let Some(same) = same {
            self.duplicate(name, same.span);
        }
        for param in &signature.params {
            if let Ty::Block(..) | Ty::Body(..) = param.ty {
                let shown = self.quote(&param.ty);
                self.report(
                    Diagnostic::error(
                        codes::NOT_A_RUNTIME_TYPE,
                        param.span,
                        format!("an extern cannot have a parameter of type {shown}"),
                    )
                    .with_help("parsers and controls are arguments of each other and of packages"),
                );
            }
        }
    }

    fn prototype(&mut self, prototype: &'a tree::Prototype) -> Signature<'a> {
        self.scoped(|checker| {
            let vars = checker.declare_type_params(&prototype.type_params);
            let params = checker.resolve_params(&prototype.params);
            let ret = checker.resolve(&prototype.return_type);
            Signature {
                name: prototype.name.as_str(),
                span: prototype.name.span,
                vars,
                params,
                ret,
            }
        })
    }

    fn function(
        &mut self,
        prototype: &'a tree::Prototype,
        body: Option<&'a tree::FunctionDecl>,
    ) -> u32 {
        let signature = self.prototype(prototype);
        let same = self
            .overloads(prototype.name.as_str())
            .into_iter()
            .map(|id| self.functions[id as usize].signature.clone())
            .find(|other| param_names(other, &signature));
        if let Some(same) = same {
            self.duplicate(&prototype.name, same.span);
        }
        let id = self.functions.len() as u32;
        self.functions.push(FunctionInfo {
            signature: Rc::new(signature),
            body,
            order: self.order,
        });
        self.declare_global(&prototype.name, Entity::Function(id));
        id
    }

    fn function_decl(&mut self, decl: &'a tree::FunctionDecl) {
        let id = self.function(&decl.prototype, Some(decl));
        let signature = self.functions[id as usize].signature.clone();
        if let Some(param) = signature.params.iter().find(|param| param.optional) {
            self.report(
                Diagnostic::error(
                    codes::MISPLACED_ANNOTATION,
                    param.span,
                    "a parameter of a function with a body is not `@optional`",
                )
                .with_help("give it a default value, or declare a second function without it"),
            );
        }
        if signature.vars.is_empty() && !self.has_static(&signature.params) {
            self.function_instance(id, Vec::new(), Vec::new());
            return;
        }
        self.generic.push(id);
    }

    /// Checks a generic function once for all types.
    pub(crate) fn check_generic(&mut self, id: u32) {
        let signature = self.functions[id as usize].signature.clone();
        let statics = self.unknown_statics(&signature.params);
        let type_args = signature.vars.iter().map(|var| Ty::Var(*var)).collect();
        self.function_instance(id, type_args, statics);
    }

    fn body_decl(&mut self, decl: BodyDecl<'a>) {
        let name = &decl.signature().name;
        for param in decl.constructor_params() {
            let mut names = decl.signature().params.iter().map(|other| &other.name);
            if let Some(other) = names.find(|other| other.name == param.name.name) {
                self.duplicate(&param.name, other.span);
            }
        }
        self.types.body_names.push(name.to_string());
        self.bodies.push(BodyInfo {
            decl,
            order: self.order,
        });
        let id = self.bodies.len() as u32 - 1;
        self.declare_global(name, Entity::Body(id));
    }

    fn block_signature(&mut self, decl: &'a tree::Signature) -> Signature<'a> {
        self.scoped(|checker| {
            let vars = checker.declare_type_params(&decl.type_params);
            let params = checker.resolve_params(&decl.params);
            Signature {
                name: decl.name.as_str(),
                span: decl.name.span,
                vars,
                params,
                ret: Ty::Void,
            }
        })
    }

    fn block_decl(&mut self, decl: &'a tree::Signature, is_parser: bool) {
        let signature = self.block_signature(decl);
        self.types.block_names.push(decl.name.to_string());
        self.blocks.push(BlockInfo {
            is_parser,
            signature: Rc::new(signature),
        });
        let id = self.blocks.len() as u32 - 1;
        self.declare_global(&decl.name, Entity::Block(id));
    }

    fn struct_decl(&mut self, decl: &'a tree::StructDecl) -> Entity {
        let kind = match decl.kind {
            tree::StructKind::Struct => StructKind::Struct,
            tree::StructKind::Header => StructKind::Header,
            tree::StructKind::HeaderUnion => StructKind::Union,
        };
        let (vars, fields) = self.scoped(|checker| {
            let vars = checker.declare_type_params(&decl.type_params);
            let mut fields: Vec<Field> = Vec::new();
            for field in &decl.fields {
                let previous = fields
                    .iter()
                    .find(|other| other.name == field.name.as_str())
                    .map(|other| other.span);
                if let Some(previous) = previous {
                    checker.duplicate(&field.name, previous);
                    continue;
                }
                let ty = checker.resolve(&field.ty);
                let ty = if checker.allowed_field(kind, &ty, field, decl) {
                    ty
                } else {
                    Ty::Poison
                };
                fields.push(Field {
                    name: field.name.to_string(),
                    ty,
                    span: field.name.span,
                    annotations: checker.kept(&field.annotations),
                    field_lists: checker.field_list_numbers(&field.annotations),
                });
            }
            (vars, fields)
        });
        let generic = !vars.is_empty();
        let annotations = self.kept(&decl.annotations);
        self.types.templates.push(Template {
            kind,
            name: decl.name.to_string(),
            span: decl.name.span,
            vars,
            fields: Rc::new(fields),
            annotations,
        });
        let id = self.types.templates.len() as u32 - 1;
        if generic {
            Entity::Template(id)
        } else {
            let ty = Ty::Struct(self.types.instance(id, Rc::new([])));
            self.out.controller_header(&self.types, &ty);
            Entity::Type(ty)
        }
    }

    fn allowed_field(
        &mut self,
        kind: StructKind,
        ty: &Ty,
        field: &tree::Field,
        decl: &tree::StructDecl,
    ) -> bool {
        let never = kind == StructKind::Union && matches!(ty, Ty::Tuple(_) | Ty::List(_));
        if self.types.is_open(ty) && !never {
            return true;
        }
        let allowed = match kind {
            StructKind::Header | StructKind::Union => self.fits_in(kind, ty),
            StructKind::Struct => !matches!(
                ty,
                Ty::Void | Ty::Integer | Ty::MatchKind | Ty::Str | Ty::Extern(..) | Ty::Block(..)
            ),
        };
        if !allowed {
            let shown = self.quote(ty);
            let help = match kind {
                StructKind::Header => {
                    "fields of headers are numbers, `bool`, enums or structs of these"
                }
                StructKind::Union => "members of header unions are headers",
                StructKind::Struct => "use a type with a width",
            };
            self.report(
                Diagnostic::error(
                    codes::INVALID_FIELD,
                    field.ty.span,
                    format!("a {} cannot have a field of type {shown}", kind.keyword()),
                )
                .with_secondary(decl.name.span, format!("in `{}`", decl.name))
                .with_help(help),
            );
        }
        allowed
    }

    /// True if headers or unions may have members of the type.
    pub(crate) fn fits_in(&self, kind: StructKind, ty: &Ty) -> bool {
        match (kind, ty) {
            (StructKind::Header, Ty::Varbit(_)) => true,
            (StructKind::Header, Ty::Stack(element, _)) => self.is_plain(element),
            (StructKind::Header, Ty::Tuple(_)) => false,
            (StructKind::Header, _) => self.is_plain(ty),
            (StructKind::Union, _) => self.types.is_header(ty),
            (StructKind::Struct, _) => true,
        }
    }

    /// True if the type is a scalar or a struct of scalars.
    pub(crate) fn is_plain(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Bool | Ty::Bits(_) | Ty::Int(_) | Ty::Enum(_) | Ty::Serial(_) | Ty::Error => true,
            Ty::Newtype(id) => self.is_plain(&self.types.newtypes[*id as usize].underlying),
            Ty::Struct(id) => {
                let info = self.types.info(*id);
                info.kind == StructKind::Struct
                    && info.fields.iter().all(|field| self.is_plain(&field.ty))
            }
            Ty::Tuple(members) => members.iter().all(|member| self.is_plain(member)),
            Ty::Var(_) | Ty::Poison => true,
            _ => false,
        }
    }

    fn enum_decl(&mut self, decl: &'a tree::EnumDecl) -> Ty {
        let names: Vec<tree::Ident> = decl
            .members
            .iter()
            .map(|member| member.name.clone())
            .collect();
        let mut seen: Vec<&tree::Ident> = Vec::new();
        for name in &names {
            match seen.iter().find(|other| other.name == name.name) {
                Some(previous) => {
                    let previous = previous.span;
                    self.duplicate(name, previous);
                }
                None => seen.push(name),
            }
        }
        let annotations = self.kept(&decl.annotations);
        let Some(written) = &decl.underlying else {
            self.types.enums.push(EnumInfo {
                name: decl.name.to_string(),
                members: names
                    .iter()
                    .map(|name| (name.to_string(), name.span))
                    .collect(),
                annotations,
            });
            return Ty::Enum(self.types.enums.len() as u32 - 1);
        };
        let underlying = self.resolve(written);
        if !matches!(underlying, Ty::Bits(_) | Ty::Int(_)) {
            if underlying != Ty::Poison {
                let shown = self.quote(&underlying);
                self.report(
                    Diagnostic::error(
                        codes::ENUM_TYPE,
                        written.span,
                        format!("an enum cannot be represented by {shown}"),
                    )
                    .with_help("use `bit<W>` or `int<W>`"),
                );
            }
            return Ty::Poison;
        }
        // A member may be named in the values of those behind it.
        let members = self.scoped(|checker| {
            let numbers = decl.members.iter().map(|member| {
                let number = member
                    .value
                    .as_ref()
                    .and_then(|value| checker.constant(value, "the value of an enum's member"))
                    .map(|value| checker.coerce(value, &underlying))
                    .and_then(|value| match value.kind {
                        ValueKind::Const(Known::Int(number)) => Some(number),
                        _ => None,
                    })
                    .unwrap_or_else(|| BigInt::from(0));
                let known = Known::Int(number.clone());
                let value = Value::known(underlying.clone(), known, member.name.span);
                let symbol = Symbol {
                    entity: Entity::Value(value),
                    span: member.name.span,
                    order: checker.order,
                };
                if let Some(frame) = checker.frames.last_mut() {
                    frame.insert(member.name.to_string(), symbol);
                }
                (member.name.to_string(), number)
            });
            numbers.collect()
        });
        self.types.serials.push(SerialInfo {
            name: decl.name.to_string(),
            underlying,
            members,
            annotations,
        });
        Ty::Serial(self.types.serials.len() as u32 - 1)
    }

    fn typedef(&mut self, decl: &'a tree::TypedefDecl) {
        let entity = match &decl.target {
            TypedefTarget::Struct(target) => {
                let entity = self.struct_decl(target);
                self.declare_global(&target.name, entity.clone());
                entity
            }
            TypedefTarget::Enum(target) => {
                let ty = self.enum_decl(target);
                self.declare_global(&target.name, Entity::Type(ty.clone()));
                Entity::Type(ty)
            }
            TypedefTarget::Type(target) => Entity::Type(self.resolve(target)),
        };
        let entity = match entity {
            Entity::Type(underlying) if decl.is_new => Entity::Type(self.newtype(decl, underlying)),
            other => other,
        };
        self.declare_global(&decl.name, entity);
    }

    fn newtype(&mut self, decl: &'a tree::TypedefDecl, underlying: Ty) -> Ty {
        match underlying {
            Ty::Poison => return Ty::Poison,
            Ty::Bool | Ty::Bits(_) | Ty::Int(_) | Ty::Serial(_) | Ty::Newtype(_) => {}
            other => {
                let shown = self.quote(&other);
                self.report(
                    Diagnostic::error(
                        codes::NEWTYPE,
                        decl.span,
                        format!("`type` does not apply to {shown}"),
                    )
                    .with_help("use `typedef`, which gives another name to the same type"),
                );
                return Ty::Poison;
            }
        }
        let annotations = self.kept(&decl.annotations);
        self.types.newtypes.push(NewtypeInfo {
            name: decl.name.to_string(),
            underlying,
            annotations,
        });
        Ty::Newtype(self.types.newtypes.len() as u32 - 1)
    }
}

/// True if the parameters of both have the same names, which no call tells apart.
fn param_names(one: &Signature<'_>, other: &Signature<'_>) -> bool {
    let names = one.params.iter().map(|param| param.name);
    names.eq(other.params.iter().map(|param| param.name))
}

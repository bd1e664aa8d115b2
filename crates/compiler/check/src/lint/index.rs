//! The names of the outermost scope, as the lints need them.

use stateplane_syntax::tree::{
    Annotation, Declaration, Direction, ExternDecl, ExternMember, Ident, Parameter, Program,
    StructDecl, StructKind, Type, TypeKind, TypedefTarget,
};
use std::collections::BTreeMap;

/// Headers of one variable that are followed.
const MAX_HEADERS: usize = 256;

/// Nesting of types that is followed.
const MAX_DEPTH: u32 = 8;

/// Something that can be called.
#[derive(Clone, Copy)]
pub(super) struct Callee<'t> {
    pub name: &'t Ident,
    pub params: &'t [Parameter],
    pub annotations: &'t [Annotation],
    /// True if it is an action, whose last parameters the control plane gives.
    pub is_action: bool,
}

/// Consequence of a type for a variable of it.
pub(super) enum Shape {
    /// A number or another scalar.
    Scalar,
    /// Without a value until it gets one, at least in part.
    Struct,
    /// Headers only, which are invalid at first, or nothing that has a value.
    Other,
}

/// The declarations of the outermost scope by name.
#[derive(Default)]
pub(super) struct Index<'t> {
    structs: BTreeMap<&'t str, &'t StructDecl>,
    aliases: BTreeMap<&'t str, &'t Type>,
    enums: BTreeMap<&'t str, ()>,
    callables: BTreeMap<&'t str, Vec<Callee<'t>>>,
    externs: BTreeMap<&'t str, &'t ExternDecl>,
    bodies: BTreeMap<&'t str, Callee<'t>>,
    others: BTreeMap<&'t str, &'t [Annotation]>,
}

impl<'t> Index<'t> {
    pub(super) fn new(program: &'t Program) -> Index<'t> {
        let mut index = Index::default();
        for declaration in &program.declarations {
            index.add(declaration);
        }
        index
    }

    fn add(&mut self, declaration: &'t Declaration) {
        let callable = |name, params, annotations, is_action| Callee {
            name,
            params,
            annotations,
            is_action,
        };
        match declaration {
            Declaration::Struct(decl) => self.structure(decl),
            Declaration::Enum(decl) => {
                self.enums.insert(decl.name.as_str(), ());
                self.others.insert(decl.name.as_str(), &decl.annotations);
            }
            Declaration::Typedef(decl) => match &decl.target {
                TypedefTarget::Type(ty) => {
                    self.aliases.insert(decl.name.as_str(), ty);
                    self.others.insert(decl.name.as_str(), &decl.annotations);
                }
                TypedefTarget::Struct(inner) => {
                    self.structure(inner);
                    self.structs.insert(decl.name.as_str(), inner);
                }
                TypedefTarget::Enum(inner) => {
                    self.enums.insert(inner.name.as_str(), ());
                    self.enums.insert(decl.name.as_str(), ());
                }
            },
            Declaration::Function(decl) => self.callable(callable(
                &decl.prototype.name,
                &decl.prototype.params,
                &decl.annotations,
                false,
            )),
            Declaration::ExternFunction(decl) => self.callable(callable(
                &decl.prototype.name,
                &decl.prototype.params,
                &decl.annotations,
                false,
            )),
            Declaration::Action(decl) => {
                self.callable(callable(&decl.name, &decl.params, &decl.annotations, true));
            }
            Declaration::Extern(decl) => {
                self.externs.insert(decl.name.as_str(), decl);
                self.others.insert(decl.name.as_str(), &decl.annotations);
            }
            Declaration::Parser(decl) => self.body(&decl.signature),
            Declaration::Control(decl) => self.body(&decl.signature),
            Declaration::Const(decl) => {
                self.others.insert(decl.name.as_str(), &decl.annotations);
            }
            _ => {}
        }
    }

    fn structure(&mut self, decl: &'t StructDecl) {
        self.structs.insert(decl.name.as_str(), decl);
        self.others.insert(decl.name.as_str(), &decl.annotations);
    }

    fn callable(&mut self, callee: Callee<'t>) {
        let name = callee.name.as_str();
        self.callables.entry(name).or_default().push(callee);
    }

    fn body(&mut self, signature: &'t stateplane_syntax::tree::Signature) {
        let callee = Callee {
            name: &signature.name,
            params: &signature.params,
            annotations: &signature.annotations,
            is_action: false,
        };
        self.bodies.insert(signature.name.as_str(), callee);
    }

    /// The functions and actions called `name`.
    pub(super) fn callables(&self, name: &str) -> &[Callee<'t>] {
        self.callables.get(name).map_or(&[], Vec::as_slice)
    }

    /// The `apply` of the parser or control of that name.
    pub(super) fn body_of(&self, name: &str) -> Option<Callee<'t>> {
        self.bodies.get(name).copied()
    }

    /// The methods of that name of an extern type.
    pub(super) fn methods(&self, ty: &Type, name: &str) -> Vec<Callee<'t>> {
        let Some(decl) = self.type_name(ty).and_then(|name| self.externs.get(name)) else {
            return Vec::new();
        };
        let methods = decl.members.iter().filter_map(|member| match member {
            ExternMember::Method(method) if method.prototype.name.as_str() == name => {
                Some(Callee {
                    name: &method.prototype.name,
                    params: &method.prototype.params,
                    annotations: &method.annotations,
                    is_action: false,
                })
            }
            _ => None,
        });
        methods.collect()
    }

    /// The annotations of a type, extern or constant.
    pub(super) fn annotations(&self, name: &str) -> &'t [Annotation] {
        self.others.get(name).copied().unwrap_or_default()
    }

    /// The name that a type goes back to through `typedef` and `type`.
    pub(super) fn type_name<'a>(&self, ty: &'a Type) -> Option<&'a str>
    where
        't: 'a,
    {
        let mut ty = ty;
        for _ in 0..MAX_DEPTH {
            let name = match &ty.kind {
                TypeKind::Named(path) => path.name.as_str(),
                TypeKind::Specialized { base, .. } => base.name.as_str(),
                _ => return None,
            };
            match self.aliases.get(name) {
                Some(target) => ty = target,
                None => return Some(name),
            }
        }
        None
    }

    fn resolved<'a>(&self, ty: &'a Type) -> &'a Type
    where
        't: 'a,
    {
        let mut ty = ty;
        for _ in 0..MAX_DEPTH {
            match &ty.kind {
                TypeKind::Named(path) => match self.aliases.get(path.name.as_str()) {
                    Some(target) => ty = target,
                    None => return ty,
                },
                _ => return ty,
            }
        }
        ty
    }

    fn struct_of(&self, ty: &Type) -> Option<&'t StructDecl> {
        let decl = *self.structs.get(self.type_name(ty)?)?;
        decl.type_params.is_empty().then_some(decl)
    }

    /// Consequence of a type for a variable of it.
    pub(super) fn shape(&self, ty: &Type) -> Shape {
        self.shape_within(ty, MAX_DEPTH)
    }

    fn shape_within(&self, ty: &Type, depth: u32) -> Shape {
        let ty = self.resolved(ty);
        match &ty.kind {
            TypeKind::Bool
            | TypeKind::Error
            | TypeKind::Bit(_)
            | TypeKind::Int(_)
            | TypeKind::Varbit(_) => Shape::Scalar,
            TypeKind::Tuple(_) => Shape::Struct,
            TypeKind::Named(path) if self.enums.contains_key(path.name.as_str()) => Shape::Scalar,
            TypeKind::Named(_) if depth > 0 => match self.struct_of(ty) {
                Some(decl) if decl.kind == StructKind::Struct => {
                    let holds_values = decl.fields.iter().any(|field| {
                        !matches!(self.shape_within(&field.ty, depth - 1), Shape::Other)
                    });
                    if holds_values {
                        Shape::Struct
                    } else {
                        Shape::Other
                    }
                }
                _ => Shape::Other,
            },
            _ => Shape::Other,
        }
    }

    /// The headers in a value of the type, as paths of field names; those in stacks and
    /// unions are not among them.
    pub(super) fn headers(&self, ty: &Type) -> Vec<Vec<&'t str>> {
        let mut found = Vec::new();
        self.headers_within(ty, &mut Vec::new(), &mut found);
        found
    }

    fn headers_within(&self, ty: &Type, path: &mut Vec<&'t str>, found: &mut Vec<Vec<&'t str>>) {
        let Some(decl) = self.struct_of(ty) else {
            return;
        };
        if found.len() >= MAX_HEADERS || path.len() as u32 >= MAX_DEPTH {
            return;
        }
        match decl.kind {
            StructKind::Header => found.push(path.clone()),
            StructKind::HeaderUnion => {}
            StructKind::Struct => {
                for field in &decl.fields {
                    path.push(field.name.as_str());
                    self.headers_within(&field.ty, path, found);
                    path.pop();
                }
            }
        }
    }
}

impl Callee<'_> {
    /// True if it can take that many arguments.
    pub(super) fn takes(&self, arguments: usize) -> bool {
        let least = self
            .params
            .iter()
            .filter(|param| {
                let optional = |a: &Annotation| a.name.as_str() == "optional";
                let data = self.is_action && param.direction == Direction::None;
                param.default.is_none() && !param.annotations.iter().any(optional) && !data
            })
            .count();
        (least..=self.params.len()).contains(&arguments)
    }
}

//! The names of the outermost scope, as the lints need them.

use super::layout::{Fields, Layout, MAX_ELEMENTS, MAX_FACTS};
use num_traits::ToPrimitive;
use stateplane_syntax::tree::{
    Annotation, Declaration, Direction, Expr, ExprKind, ExternDecl, ExternMember, Ident, Parameter,
    Program, StructDecl, StructKind, Type, TypeKind, TypedefTarget,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

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
    constants: BTreeMap<&'t str, &'t Expr>,
    layouts: RefCell<BTreeMap<&'t str, Rc<Layout<'t>>>>,
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
                self.constants.insert(decl.name.as_str(), &decl.value);
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

    /// The facts about a value of the type.
    pub(super) fn layout(&self, ty: &Type) -> Rc<Layout<'t>> {
        let layout = self.layout_within(ty, MAX_DEPTH);
        if layout.size() > MAX_FACTS {
            return Rc::new(Layout::Opaque);
        }
        layout
    }

    fn layout_within(&self, ty: &Type, depth: u32) -> Rc<Layout<'t>> {
        let ty = self.resolved(ty);
        let layout = match &ty.kind {
            TypeKind::Bool
            | TypeKind::Error
            | TypeKind::Bit(_)
            | TypeKind::Int(_)
            | TypeKind::Varbit(_)
            | TypeKind::Tuple(_) => Layout::Scalar,
            TypeKind::Named(path) if self.enums.contains_key(path.name.as_str()) => Layout::Scalar,
            TypeKind::Stack { element, size } if depth > 0 => {
                let element = self.layout_within(element, depth - 1);
                match self.count(size) {
                    Some(count) if count * element.size() <= MAX_FACTS => {
                        Layout::Stack(element, count)
                    }
                    _ => Layout::Opaque,
                }
            }
            TypeKind::Named(_) if depth > 0 => return self.struct_layout(ty, depth),
            _ => Layout::Opaque,
        };
        Rc::new(layout)
    }

    fn struct_layout(&self, ty: &Type, depth: u32) -> Rc<Layout<'t>> {
        let Some(decl) = self.struct_of(ty) else {
            return Rc::new(Layout::Opaque);
        };
        let name = decl.name.as_str();
        if let Some(known) = self.layouts.borrow().get(name) {
            return known.clone();
        }
        let mut fields = Fields::default();
        for field in &decl.fields {
            let layout = self.layout_within(&field.ty, depth - 1);
            fields.push(field.name.as_str(), layout);
        }
        let layout = Rc::new(match decl.kind {
            _ if fields.size > MAX_FACTS => Layout::Opaque,
            StructKind::Struct => Layout::Struct(fields),
            StructKind::Header => Layout::Header(fields),
            StructKind::HeaderUnion => Layout::Union(fields),
        });
        self.layouts.borrow_mut().insert(name, layout.clone());
        layout
    }

    /// The number of elements of a stack, if it is one that is followed.
    fn count(&self, size: &Expr) -> Option<usize> {
        let count = self.number(size)?;
        (1..=MAX_ELEMENTS).contains(&count).then_some(count)
    }

    /// A number that is written, or that a constant has.
    pub(super) fn number(&self, expr: &Expr) -> Option<usize> {
        match &expr.kind {
            ExprKind::Number(literal) => literal.value.to_usize(),
            ExprKind::Name(path) => match &self.constants.get(path.name.as_str())?.kind {
                ExprKind::Number(literal) => literal.value.to_usize(),
                _ => None,
            },
            _ => None,
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

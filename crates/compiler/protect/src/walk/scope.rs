//! Names in scope.

use crate::origin::Value;
use stateplane_diagnostics::Span;
use stateplane_syntax::tree::{
    ActionDecl, ControlDecl, Declaration, Ident, Instantiation, Program, TableDecl, Type, TypeKind,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Entity that a name denotes.
#[derive(Clone)]
pub(crate) enum Binding<'t> {
    /// A variable, by its path from a root.
    Way(String),
    /// A value that does not change.
    Value(Value),
    /// An instance of an extern.
    Register(Span),
    /// An instance of a control.
    Control(&'t ControlDecl),
    /// Another instance.
    Other,
    Table(&'t TableDecl),
    Action(&'t ActionDecl),
}

/// The names of a block and, behind it, of those around it.
pub(crate) struct Scope<'t> {
    /// Prefix of the paths of its variables.
    prefix: String,
    names: RefCell<BTreeMap<String, Binding<'t>>>,
    outer: Option<Rc<Scope<'t>>>,
}

impl<'t> Scope<'t> {
    pub(crate) fn new(prefix: String, outer: Option<Rc<Scope<'t>>>) -> Rc<Self> {
        Rc::new(Self {
            prefix,
            names: RefCell::default(),
            outer,
        })
    }

    pub(crate) fn bind(&self, name: &Ident, binding: Binding<'t>) {
        self.names.borrow_mut().insert(name.to_string(), binding);
    }

    /// Binds a variable of this scope, and returns its path.
    pub(crate) fn variable(&self, name: &Ident) -> String {
        let way = format!("{}.{name}", self.prefix);
        self.bind(name, Binding::Way(way.clone()));
        way
    }

    pub(crate) fn find(&self, name: &str) -> Option<Binding<'t>> {
        if let Some(binding) = self.names.borrow().get(name) {
            return Some(binding.clone());
        }
        self.outer.as_ref()?.find(name)
    }
}

/// The declarations at the top level.
pub(crate) struct Declared<'t> {
    globals: Rc<Scope<'t>>,
    controls: BTreeMap<String, &'t ControlDecl>,
}

impl<'t> Declared<'t> {
    pub(crate) fn new(tree: &'t Program) -> Self {
        let globals = Scope::new("%".to_owned(), None);
        let mut controls = BTreeMap::new();
        for declaration in &tree.declarations {
            match declaration {
                Declaration::Control(control) => {
                    controls.insert(control.signature.name.to_string(), control);
                }
                Declaration::Action(action) => {
                    globals.bind(&action.name, Binding::Action(action));
                }
                _ => {}
            }
        }
        let declared = Self { globals, controls };
        for declaration in &tree.declarations {
            if let Declaration::Instantiation(instance) = declaration {
                let binding = declared.instance(instance);
                declared.globals.bind(&instance.name, binding);
            }
        }
        declared
    }

    pub(crate) fn globals(&self) -> Rc<Scope<'t>> {
        Rc::clone(&self.globals)
    }

    pub(crate) fn control(&self, name: &str) -> Option<&'t ControlDecl> {
        self.controls.get(name).copied()
    }

    /// Binding of an instance.
    pub(crate) fn instance(&self, instance: &Instantiation) -> Binding<'t> {
        match type_name(&instance.ty) {
            Some("register") => Binding::Register(instance.name.span),
            Some(name) => match self.control(name) {
                Some(control) => Binding::Control(control),
                None => Binding::Other,
            },
            None => Binding::Other,
        }
    }
}

/// The name of a type that has one.
pub fn type_name(ty: &Type) -> Option<&str> {
    match &ty.kind {
        TypeKind::Named(path) | TypeKind::Specialized { base: path, .. } => {
            Some(path.name.as_str())
        }
        _ => None,
    }
}

//! Names declared within parsers, controls, actions and functions.

use super::Lint;
use super::index::Shape;
use crate::annotation;
use crate::codes;
use stateplane_diagnostics::{Code, Diagnostic};
use stateplane_syntax::tree::{
    ActionDecl, Annotation, Direction, Ident, Parameter, TableDecl, Type,
};
use std::collections::BTreeMap;

/// Kind of the entity that a name denotes.
#[derive(Clone, Copy)]
pub(super) enum Kind<'t> {
    Variable,
    Constant,
    Parameter,
    ConstructorParameter,
    Instance,
    ValueSet,
    Action(&'t ActionDecl),
    /// A table, and how many frames its names are looked up in.
    Table(&'t TableDecl, usize),
}

/// A declared name.
pub(super) struct Local<'t> {
    pub name: &'t Ident,
    pub kind: Kind<'t>,
    pub ty: Option<&'t Type>,
    /// True if anything mentions it.
    used: bool,
    may_be_unused: bool,
    /// The fact that it has a value, at least in part.
    pub assigned: Option<usize>,
    /// The headers in it, and the facts that they are invalid.
    pub headers: Vec<(Vec<&'t str>, usize)>,
    /// Frames around its declaration.
    pub depth: usize,
}

impl<'t> Lint<'t, '_> {
    /// Declares a name in the innermost frame.
    pub(super) fn declare(
        &mut self,
        name: &'t Ident,
        kind: Kind<'t>,
        ty: Option<&'t Type>,
        annotations: &[Annotation],
    ) -> usize {
        self.annotations(annotations);
        let id = match self.known.get(&(name.span, name.as_str())) {
            Some(known) => *known,
            None => self.new_local(name, kind, ty, annotations),
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.insert(name.as_str(), id);
        }
        id
    }

    fn new_local(
        &mut self,
        name: &'t Ident,
        kind: Kind<'t>,
        ty: Option<&'t Type>,
        annotations: &[Annotation],
    ) -> usize {
        let holds_values = matches!(kind, Kind::Variable | Kind::Parameter);
        let shape = ty.map(|ty| self.index.shape(ty));
        let assigned = match shape {
            Some(Shape::Scalar | Shape::Struct) if holds_values => Some(self.fact()),
            _ => None,
        };
        let headers = match ty {
            Some(ty) if holds_values => self.index.headers(ty),
            _ => Vec::new(),
        };
        let headers = headers.into_iter().map(|path| (path, self.fact()));
        let headers: Vec<_> = headers.collect();
        if assigned.is_some() || !headers.is_empty() {
            self.with_facts.push(self.locals.len());
        }
        let quiet = annotation::find(annotations, "noWarn")
            .and_then(Annotation::string)
            .is_some_and(|what| *what == *"unused");
        self.locals.push(Local {
            name,
            kind,
            ty,
            used: false,
            may_be_unused: quiet || name.as_str().starts_with('_'),
            assigned,
            headers,
            depth: self.frames.len(),
        });
        let id = self.locals.len() - 1;
        self.known.insert((name.span, name.as_str()), id);
        id
    }

    fn fact(&mut self) -> usize {
        self.facts += 1;
        self.facts - 1
    }

    /// Declares parameters with what is known of them on entry.
    pub(super) fn parameters(&mut self, params: &'t [Parameter]) {
        for param in params {
            let kind = Kind::Parameter;
            let id = self.declare(&param.name, kind, Some(&param.ty), &param.annotations);
            self.fresh(id, param.direction != Direction::Out);
        }
    }

    /// Declares the parameters of a constructor.
    pub(super) fn constructor_parameters(&mut self, params: &'t [Parameter]) {
        for param in params {
            let kind = Kind::ConstructorParameter;
            self.declare(&param.name, kind, Some(&param.ty), &param.annotations);
        }
    }

    /// Sets what is known of a variable at its declaration: whether it has a value.
    pub(super) fn fresh(&mut self, id: usize, has_value: bool) {
        let local = &self.locals[id];
        if let Some(assigned) = local.assigned {
            self.flow.set(assigned, has_value);
        }
        for (_, invalid) in &local.headers {
            self.flow.set(*invalid, !has_value);
        }
    }

    /// Index of the entity that a name denotes within the present scopes.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let frames = self.frames.iter().rev();
        frames.filter_map(|frame| frame.get(name)).next().copied()
    }

    /// Notes that a name is mentioned.
    pub(super) fn mention(&mut self, id: usize) {
        self.locals[id].used = true;
    }

    /// Runs `f` in a new innermost scope, and warns of what nothing used in it.
    pub(super) fn scoped<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.frames.push(BTreeMap::new());
        let result = f(self);
        if let Some(frame) = self.frames.pop() {
            let mut ids: Vec<usize> = frame.into_values().collect();
            ids.sort_unstable();
            for id in ids {
                self.unused(id);
            }
        }
        result
    }

    fn unused(&mut self, id: usize) {
        let local = &self.locals[id];
        if local.used || local.may_be_unused {
            return;
        }
        let (code, what, verb): (Code, &str, &str) = match local.kind {
            Kind::Parameter => return,
            Kind::Variable => (codes::UNUSED_VARIABLE, "variable", "used"),
            Kind::Constant => (codes::UNUSED_VARIABLE, "constant", "used"),
            Kind::ConstructorParameter => {
                (codes::UNUSED_PARAMETER, "constructor parameter", "used")
            }
            Kind::Instance => (codes::UNUSED_INSTANCE, "instance", "used"),
            Kind::ValueSet => (codes::UNUSED_INSTANCE, "value set", "used"),
            Kind::Action(_) => (codes::UNUSED_ACTION, "action", "used"),
            Kind::Table(..) => (codes::UNUSED_TABLE, "table", "applied"),
        };
        let name = local.name;
        self.report(
            Diagnostic::warning(
                code,
                name.span,
                format!("the {what} `{name}` is never {verb}"),
            )
            .with_help(format!(
                "remove it, or call it `_{name}` if it is meant to stay"
            )),
        );
    }
}

//! Names declared within parsers, controls, actions and functions.

use super::Lint;
use super::layout::{Fact, Layout, MAX_FACTS};
use crate::annotation;
use crate::codes;
use stateplane_diagnostics::{Code, Diagnostic, Span};
use stateplane_syntax::tree::{
    ActionDecl, Annotation, Direction, Ident, Parameter, TableDecl, Type,
};
use std::collections::BTreeMap;
use std::rc::Rc;

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
    /// Its parts that are followed, from the fact `base` on.
    pub layout: Rc<Layout<'t>>,
    pub base: usize,
    /// True if anything gives it a value.
    pub written: bool,
    /// Place at which an action reads it first.
    pub read_in_action: Option<Span>,
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
        let layout = match ty {
            Some(ty) if holds_values => self.index.layout(ty),
            _ => Rc::new(Layout::Opaque),
        };
        let layout = match self.facts + layout.size() {
            all if all > MAX_FACTS => Rc::new(Layout::Opaque),
            _ => layout,
        };
        let base = self.facts;
        self.facts += layout.size();
        layout.each(base, &mut |fact, kind| {
            if kind == Fact::Invalid {
                self.failing.set(fact, true);
            }
        });
        let quiet = annotation::find(annotations, "noWarn")
            .and_then(Annotation::string)
            .is_some_and(|what| *what == *"unused");
        self.locals.push(Local {
            name,
            kind,
            ty,
            used: false,
            may_be_unused: quiet || name.as_str().starts_with('_'),
            layout,
            base,
            written: kind_has_value(kind),
            read_in_action: None,
            depth: self.frames.len(),
        });
        let id = self.locals.len() - 1;
        self.known.insert((name.span, name.as_str()), id);
        id
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
        let local = &mut self.locals[id];
        local.written |= has_value;
        let (base, layout) = (local.base, local.layout.clone());
        layout.each(base, &mut |fact, kind| {
            let invalid = kind == Fact::Invalid;
            self.flow.set(fact, has_value != invalid);
        });
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
                self.never_written(id);
                self.unused(id);
            }
        }
        result
    }

    /// Warns of a variable of a control that its actions read, and nothing writes.
    fn never_written(&mut self, id: usize) {
        let local = &self.locals[id];
        if local.written || !local.layout.has_scalars() {
            return;
        }
        if let (Kind::Variable, Some(span)) = (local.kind, local.read_in_action) {
            let name = local.name.as_str();
            self.no_value(id, name, span, false);
        }
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

/// True if nothing within the parser or control must give it a value.
fn kind_has_value(kind: Kind<'_>) -> bool {
    !matches!(kind, Kind::Variable)
}

//! Parsers, controls, actions and functions.

use super::Lint;
use super::flow::Flow;
use super::layout::Fact;
use super::locals::Kind;
use crate::codes;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_syntax::tree::{
    ActionDecl, Block, ControlDecl, ControlLocal, Direction, Instantiation, ObjectMember,
    Parameter, TableDecl, TablePropertyValue,
};

/// State of the walk over a callable.
#[derive(Default)]
pub(super) struct Body {
    /// Loops around the present place: the facts at their exits, and at their next round.
    pub loops: Vec<(Flow, Flow)>,
    /// `out` parameters without structure, which must have a value at the end.
    pub outs: Vec<usize>,
    /// Locals of a control outside the action being walked: those below this depth.
    pub outside: usize,
    /// Facts about locals of the control that its actions may change.
    pub touched: Flow,
}

impl<'t> Lint<'t, '_> {
    /// Walks a control.
    pub(super) fn control(&mut self, decl: &'t ControlDecl) {
        self.scoped(|lint| {
            lint.constructor_parameters(&decl.constructor_params);
            lint.parameters(&decl.signature.params);
            lint.scoped(|lint| {
                // Within the actions nothing is known of what the control did before.
                for local in &decl.locals {
                    lint.control_local(local);
                }
                lint.body.outs = lint.scalar_outs(&decl.signature.params);
                lint.block(&decl.body);
                lint.at_end(decl.body.span);
            });
        });
    }

    fn control_local(&mut self, local: &'t ControlLocal) {
        match local {
            ControlLocal::Const(decl) => self.constant(decl),
            ControlLocal::Variable(decl) => self.variable(decl),
            ControlLocal::Instantiation(decl) => self.instance(decl),
            ControlLocal::Action(decl) => self.action(decl),
            ControlLocal::Table(decl) => self.table(decl),
        }
    }

    /// Walks an instantiation, and declares the instance.
    pub(super) fn instance(&mut self, decl: &'t Instantiation) {
        self.mention_type(&decl.ty);
        for arg in decl.args.iter().filter_map(|arg| arg.value.as_ref()) {
            self.read(arg);
        }
        for member in decl.members.iter().flatten() {
            match member {
                ObjectMember::Function(function) => {
                    self.apart(|lint| lint.function(&function.prototype.params, &function.body));
                }
                ObjectMember::Instantiation(inner) => self.instance(inner),
            }
        }
        self.declare(
            &decl.name,
            Kind::Instance,
            Some(&decl.ty),
            &decl.annotations,
        );
    }

    /// Walks a function, or an action outside of controls.
    pub(super) fn function(&mut self, params: &'t [Parameter], body: &'t Block) {
        self.scoped(|lint| {
            lint.parameters(params);
            lint.body.outs = lint.scalar_outs(params);
            lint.block(body);
            lint.at_end(body.span);
        });
    }

    fn action(&mut self, decl: &'t ActionDecl) {
        let outside = self.frames.len() + 1;
        self.apart(|lint| {
            lint.body.outside = outside;
            lint.function(&decl.params, &decl.body);
        });
        self.declare(&decl.name, Kind::Action(decl), None, &decl.annotations);
    }

    /// Runs `f` for a callable within another: what it finds out about its locals is kept
    /// apart, and nothing is known of those of the other.
    fn apart(&mut self, f: impl FnOnce(&mut Self)) {
        let flow = self.flow.clone();
        let mut all = Flow::default();
        for fact in 0..self.facts {
            all.set(fact, true);
        }
        self.flow.change(&all, &self.failing);
        let inner = Body {
            touched: std::mem::take(&mut self.body.touched),
            ..Body::default()
        };
        let outer = std::mem::replace(&mut self.body, inner);
        f(self);
        let inner = std::mem::replace(&mut self.body, outer);
        self.body.touched = inner.touched;
        self.flow = flow;
    }

    fn table(&mut self, decl: &'t TableDecl) {
        let depth = self.frames.len();
        self.table_annotations(decl);
        for property in &decl.properties {
            match &property.value {
                // Read when the table is applied.
                TablePropertyValue::Key(keys) => {
                    for key in keys {
                        self.mentions(&key.expr);
                    }
                }
                TablePropertyValue::Actions(actions) => {
                    for action in actions {
                        self.mention_action(&action.path);
                        let args = action.args.iter().flatten();
                        for arg in args.filter_map(|arg| arg.value.as_ref()) {
                            self.mentions(arg);
                            self.touch(arg);
                        }
                    }
                }
                TablePropertyValue::Entries(entries) => {
                    for entry in entries {
                        self.keyset(&entry.keyset);
                        let args = entry.action.args.iter().flatten();
                        for arg in args.filter_map(|arg| arg.value.as_ref()) {
                            self.mentions(arg);
                        }
                    }
                }
                TablePropertyValue::Expr(expr) => self.mentions(expr),
            }
        }
        self.declare(
            &decl.name,
            Kind::Table(decl, depth),
            None,
            &decl.annotations,
        );
    }

    /// Applies a table: its keys are read, one of its actions runs.
    pub(super) fn apply_table(&mut self, decl: &'t TableDecl, depth: usize) {
        let inner = self.frames.split_off(depth.min(self.frames.len()));
        for property in &decl.properties {
            if let TablePropertyValue::Key(keys) = &property.value {
                for key in keys {
                    self.read(&key.expr);
                }
            }
        }
        self.frames.extend(inner);
        self.after_action();
    }

    /// Forgets what an action may have changed.
    pub(super) fn after_action(&mut self) {
        if !self.flow.is_dead() {
            self.flow.change(&self.body.touched, &self.failing);
        }
    }

    /// The `out` parameters that have scalars outside of headers.
    pub(super) fn scalar_outs(&self, params: &[Parameter]) -> Vec<usize> {
        params
            .iter()
            .filter(|param| param.direction == Direction::Out)
            .filter_map(|param| self.find(param.name.as_str()))
            .filter(|id| self.locals[*id].layout.has_scalars())
            .collect()
    }

    /// True if no scalar of a local has a value.
    fn lacks_value(&self, id: usize) -> bool {
        let local = &self.locals[id];
        let mut lacks = true;
        local.layout.each(local.base, &mut |fact, kind| {
            lacks &= kind != Fact::Assigned || !self.flow.holds(fact);
        });
        lacks
    }

    /// Warns, at an end of the callable, of `out` parameters without a value.
    pub(super) fn at_end(&mut self, span: Span) {
        if self.flow.is_dead() {
            return;
        }
        for id in self.body.outs.clone() {
            if !self.lacks_value(id) {
                continue;
            }
            let name = self.locals[id].name;
            let last = Span::new(span.file, span.end.saturating_sub(1), span.end);
            self.report(
                Diagnostic::warning(
                    codes::OUT_WITHOUT_VALUE,
                    name.span,
                    format!("the `out` parameter `{name}` may be left without a value"),
                )
                .with_secondary(last, "it may have none here")
                .with_help("assign to it on every path"),
            );
            self.fresh(id, true);
        }
    }
}

//! Warnings about what is legal but probably not meant, from the tree of a program that
//! has no errors. Names are resolved again here, lexically, and no types are inferred: where
//! that leaves a doubt, nothing is said.
//!
//! A name that begins with `_`, or a declaration with `@noWarn("unused")` as the reference
//! compiler knows it, may stay unused.

mod annotations;
mod body;
mod calls;
mod changes;
mod deprecated;
mod flow;
mod index;
mod layout;
mod locals;
mod reads;
mod statements;
mod states;

use body::Body;
use flow::Flow;
use index::Index;
use locals::Local;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_syntax::tree::{Declaration, Program};
use std::collections::{BTreeMap, BTreeSet};

/// Warns of what is doubtful in a program without errors.
pub(crate) fn lint(program: &Program, diagnostics: &mut Diagnostics) {
    let index = Index::new(program);
    for declaration in &program.declarations {
        let mut lint = Lint::new(&index, diagnostics);
        lint.declaration_annotations(declaration);
        match declaration {
            Declaration::Parser(decl) => lint.parser(decl),
            Declaration::Control(decl) => lint.control(decl),
            Declaration::Function(decl) => lint.function(&decl.prototype.params, &decl.body),
            Declaration::Action(decl) => lint.function(&decl.params, &decl.body),
            Declaration::Instantiation(decl) => lint.instance(decl),
            _ => {}
        }
    }
}

/// The walk over one declaration.
struct Lint<'t, 'x> {
    index: &'x Index<'t>,
    diagnostics: &'x mut Diagnostics,
    /// Off while a fixed point is being looked for.
    reporting: bool,
    locals: Vec<Local<'t>>,
    /// Facts that do not hold where all is well: headers that are invalid.
    failing: Flow,
    /// Parts of `out` parameters whose reading without a value was told.
    told: BTreeSet<usize>,
    /// Locals by place and name of their declaration, which may be passed more than once.
    known: BTreeMap<(Span, &'t str), usize>,
    /// Names in scope, innermost last.
    frames: Vec<BTreeMap<&'t str, usize>>,
    /// Facts numbered so far.
    facts: usize,
    flow: Flow,
    body: Body,
}

impl<'t, 'x> Lint<'t, 'x> {
    fn new(index: &'x Index<'t>, diagnostics: &'x mut Diagnostics) -> Self {
        Lint {
            index,
            diagnostics,
            reporting: true,
            locals: Vec::new(),
            failing: Flow::default(),
            told: BTreeSet::new(),
            known: BTreeMap::new(),
            frames: vec![BTreeMap::new()],
            facts: 0,
            flow: Flow::default(),
            body: Body::default(),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.reporting {
            self.diagnostics.push(diagnostic);
        }
    }
}

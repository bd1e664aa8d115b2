//! Side effects of packets that wait. A struct annotated `@side_effects_wait` among the user
//! metadata declares that packets of the program may wait for something outside the switch, and
//! perhaps be lost with it. Until then their effects must not be visible, so operations that others
//! see are refused, unless they stand in a control or function annotated `@side_effects_allowed`.

use crate::checker::Checker;
use crate::codes;
use crate::types::{StructTy, Ty};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, Callee, Op, SIDE_EFFECTS_ALLOWED, SIDE_EFFECTS_WAIT, Stmt};
use std::collections::{BTreeMap, BTreeSet};

/// An operation that is refused where packets may wait.
#[derive(Clone, Debug)]
pub(crate) struct SideEffect {
    /// Action of the packet, for messages.
    does: &'static str,
    /// True if it is refused in egress only.
    only_in_egress: bool,
    span: Span,
}

impl SideEffect {
    /// The side effect of an operation, if others than the packet itself see it.
    fn of(op: &Op, span: Span) -> Option<SideEffect> {
        let (does, only_in_egress) = match op {
            Op::Clone { .. } => ("is cloned", false),
            Op::Digest { .. } => ("sends a digest", false),
            Op::Resubmit { .. } => ("is resubmitted", false),
            Op::Recirculate { .. } => ("is recirculated", false),
            Op::RegisterWrite { .. } => ("writes a register in egress", true),
            _ => return None,
        };
        Some(SideEffect {
            does,
            only_in_egress,
            span,
        })
    }
}

impl<'a> Checker<'a> {
    /// Appends an operation and notes its side effect.
    pub(crate) fn emit_op(&mut self, op: Op, span: Span) {
        if !self.callable.side_effects_allowed {
            self.callable.side_effects.extend(SideEffect::of(&op, span));
        }
        self.emit(Stmt::Op(op));
    }

    /// Reports side effects that the pipeline may have if packets of the program may
    /// wait.
    pub(crate) fn check_side_effects(&mut self, metadata: &Ty, pipeline: &ir::Pipeline) {
        let Some(waits) = self.waiting_struct(metadata) else {
            return;
        };
        let egress = self.reached(&[
            Callee::Control(pipeline.egress),
            Callee::Control(pipeline.compute_checksum),
            Callee::Control(pipeline.deparser),
        ]);
        let before = self.reached(&[
            Callee::Parser(pipeline.parser),
            Callee::Control(pipeline.verify_checksum),
            Callee::Control(pipeline.ingress),
        ]);
        // One operation of the text may be in several instances.
        let refused: BTreeMap<Span, &'static str> = self
            .made
            .side_effects
            .iter()
            .filter(|(owner, effect)| {
                egress.contains(&vertex(*owner))
                    || (!effect.only_in_egress && before.contains(&vertex(*owner)))
            })
            .map(|(_, effect)| (effect.span, effect.does))
            .collect();
        for (span, does) in refused {
            self.report(
                Diagnostic::error(
                    codes::SIDE_EFFECT,
                    span,
                    format!("a packet that may have to wait {does}"),
                )
                .with_secondary(waits, "packets of this program may wait for their write")
                .with_help(format!(
                    "do it after the packet is released, in a control annotated @{SIDE_EFFECTS_ALLOWED}"
                )),
            );
        }
    }

    /// Position of the declaration of a struct within a type that is annotated
    /// [`SIDE_EFFECTS_WAIT`].
    fn waiting_struct(&self, ty: &Ty) -> Option<Span> {
        let mut seen: BTreeSet<StructTy> = BTreeSet::new();
        let mut open = vec![ty];
        while let Some(ty) = open.pop() {
            match ty {
                Ty::Struct(id) if seen.insert(*id) => {
                    let template = self.types.template(*id);
                    if template
                        .annotations
                        .iter()
                        .any(|kept| kept.name == SIDE_EFFECTS_WAIT)
                    {
                        return Some(template.span);
                    }
                    open.extend(self.types.info(*id).fields.iter().map(|field| &field.ty));
                }
                Ty::Stack(element, _) => open.push(element),
                Ty::Tuple(members) => open.extend(members.iter()),
                _ => {}
            }
        }
        None
    }

    /// Callables that the given ones may run, themselves included.
    fn reached(&self, from: &[Callee]) -> BTreeSet<(u8, usize)> {
        let mut seen = BTreeSet::new();
        let mut open = from.to_vec();
        while let Some(callee) = open.pop() {
            if !seen.insert(vertex(callee)) {
                continue;
            }
            match callee {
                Callee::Action(id) => self.calls(&self.out.actions[id.index()].body, &mut open),
                Callee::Function(id) => self.calls(&self.out.functions[id.index()].body, &mut open),
                Callee::Control(id) => self.calls(&self.out.controls[id.index()].body, &mut open),
                Callee::Parser(id) => {
                    let parser = &self.out.parsers[id.index()];
                    self.calls(&parser.init, &mut open);
                    for state in &parser.states {
                        self.calls(&state.body, &mut open);
                    }
                }
            }
        }
        seen
    }

    /// Adds what statements call, and the actions of the tables that they apply.
    fn calls(&self, body: &[Stmt], into: &mut Vec<Callee>) {
        for stmt in body {
            match stmt {
                Stmt::Call { callee, .. } => into.push(*callee),
                Stmt::Apply { table, .. } => {
                    let actions = &self.out.tables[table.index()].actions;
                    into.extend(actions.iter().map(|listed| Callee::Action(listed.action)));
                }
                Stmt::If {
                    then, otherwise, ..
                } => {
                    self.calls(then, into);
                    self.calls(otherwise, into);
                }
                Stmt::Switch { cases, default, .. } => {
                    for (_, body) in cases {
                        self.calls(body, into);
                    }
                    self.calls(default, into);
                }
                Stmt::Block(body) | Stmt::Atomic(body) | Stmt::Apart(body) => {
                    self.calls(body, into)
                }
                _ => {}
            }
        }
    }
}

/// A callable as a vertex of the call graph.
fn vertex(callee: Callee) -> (u8, usize) {
    match callee {
        Callee::Action(id) => (0, id.index()),
        Callee::Function(id) => (1, id.index()),
        Callee::Control(id) => (2, id.index()),
        Callee::Parser(id) => (3, id.index()),
    }
}

//! The text of the protected program: the original with its state in other places, and the
//! blocks around it.

mod blocks;
mod front;
mod snapshot;

use crate::Class;
use crate::annotation::Part;
use crate::codes;
use crate::edit::{Edits, after_comments};
use crate::edited::Input;
use crate::names::{self, Names, is_own};
use crate::partition::Fields;
use crate::pipeline::Pipeline;
use crate::snapshot::Plan;
use crate::state::{State, States};
use crate::travel::Traveller;
use crate::walk::{Access, Found};
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_syntax::tree::{ControlDecl, Declaration};
use std::collections::BTreeSet;

/// All that is known of the program.
pub(crate) struct Emit<'a> {
    pub(crate) input: &'a Input<'a>,
    pub(crate) pipeline: &'a Pipeline<'a>,
    pub(crate) states: &'a States<'a>,
    /// Fields that are kept of a flow; none in bounded-inconsistency mode.
    pub(crate) fields: &'a Fields,
    /// The arrays of which snapshots are kept, in bounded inconsistency.
    pub(crate) plan: Option<&'a Plan>,
    pub(crate) names: Names,
    pub(crate) ingress: &'a Found,
    pub(crate) egress: &'a Found,
    pub(crate) travellers: &'a [Traveller],
}

/// Names of what is added.
struct Added<'a> {
    names: &'a Names,
    /// Parameter with the state of the flow, or what tells which copies of arrays are active,
    /// and its type.
    state: String,
    state_type: String,
}

impl Emit<'_> {
    /// Bytes of state of a flow, all registers in whole bytes; or of an element of arrays.
    fn state_bytes(&self) -> u32 {
        if let Some(plan) = self.plan {
            return plan.state_bytes();
        }
        let bits: u32 = self.fields.all.iter().map(|field| field.bits).sum();
        bits.div_ceil(8)
    }

    pub(crate) fn text(&self, diagnostics: &mut Diagnostics) -> Option<(String, Class)> {
        let sources = self.input.sources;
        let names = &self.names;
        let library = names::of_library(self.states.mode);
        let mut instances = library.iter().filter(|(_, instance)| **instance);
        if let Some((name, _)) = instances.find(|(name, _)| names.has(name)) {
            diagnostics.push(
                Diagnostic::error(
                    codes::PROGRAM_FORM,
                    self.pipeline.main.name.span,
                    format!("the program has a word `{name}`, which is a register of the library"),
                )
                .with_help("give it another name"),
            );
            return None;
        }
        let renamed: Vec<&String> = library.keys().filter(|name| names.has(name)).collect();
        let (state, state_type) = match self.plan {
            None => (names.free("flow_state"), names.free("flow_state_t")),
            Some(_) => (names.free("snapshot"), names.library("snapshot_metadata_t")),
        };
        let added = Added {
            names,
            state,
            state_type,
        };
        let class = Class {
            id: self.states.keyed.class,
            state_length: self.state_bytes() as u16,
            lease_period: self.states.keyed.lease_period,
            snapshots: self.plan.map(|plan| plan.told(self.states)),
        };
        let mut edits = Edits::default();
        let main_file = self.pipeline.main.span.file;
        if let Err(span) = self.edit(&added, &mut edits) {
            diagnostics.push(by_macro(span));
            return None;
        }
        let blocks = match self.plan {
            None => self.blocks(&added),
            Some(plan) => self.snapshot_blocks(plan, &added),
        };
        edits.replace(self.pipeline.main.span, blocks);
        let first = sources
            .files()
            .next()
            .map(|(file, _)| file)
            .unwrap_or(main_file);
        let text = sources.get(first).map_or("", |file| file.text());
        let front = after_comments(text) as u32;
        edits.insert(
            Span::new(first, front, front),
            &self.front(&added, &renamed, &class),
        );
        let inline = |file| sources.get(file).is_some_and(|file| is_own(file.name()));
        match edits.apply(sources, first, &inline) {
            Ok(text) => Some((text, class)),
            Err(span) => {
                diagnostics.push(by_macro(span));
                None
            }
        }
    }

    /// Changes the blocks of the program themselves; the place of what a macro has written,
    /// which cannot be changed.
    fn edit(&self, added: &Added, edits: &mut Edits) -> Result<(), Span> {
        let sources = self.input.sources;
        for state in &self.states.all {
            let name = &state.declaration.name;
            let text = sources.snippet(state.declaration.span);
            if !text.ends_with(';') || !text.contains(name.as_str()) {
                return Err(state.declaration.span);
            }
            let array = self.plan.and_then(|plan| plan.array(name.span));
            let note = match array {
                None => format!("/* {name} is part of {}. */", added.state_type),
                Some(array) => format!(
                    "/* {name} is an array with snapshots: {} and {}. */",
                    array.read, array.write
                ),
            };
            edits.replace(state.declaration.span, note);
        }
        let mut done = BTreeSet::new();
        for access in &self.ingress.accesses {
            if done.insert(access.span) {
                self.access(access, added, edits)?;
            }
        }
        let controls: Vec<&ControlDecl> = self
            .input
            .tree
            .declarations
            .iter()
            .filter_map(|declaration| match declaration {
                Declaration::Control(control) => Some(control),
                _ => None,
            })
            .collect();
        for control in &controls {
            let name = control.signature.name.as_str();
            if self.ingress.on_the_way.contains(name) {
                let param = format!("inout {} {}", added.state_type, added.state);
                match control.signature.params.last() {
                    Some(last) => edits.insert(last.span.at_end(), &format!(", {param}")),
                    None => self.before_parenthesis(control.signature.span, &param, edits)?,
                }
            }
        }
        for apply in &self.ingress.applies {
            let bare = sources.snippet(*apply).trim_end_matches(')').trim_end();
            let comma = if bare.ends_with('(') { "" } else { ", " };
            self.before_parenthesis(*apply, &format!("{comma}{}", added.state), edits)?;
        }
        if self.plan.is_some() {
            self.vouch(&controls, edits);
        }
        // Egress runs on released packets.
        if self.egress.local.iter().any(|(_, writes)| *writes) {
            let reached = self.pipeline.egress.declaration;
            edits.insert(reached.span.at_start(), "@side_effects_allowed\n");
        }
        Ok(())
    }

    /// Vouches for the effects of controls whose packets do not wait.
    fn vouch(&self, controls: &[&ControlDecl], edits: &mut Edits) {
        for control in controls {
            let whole = control.span;
            let mut effects = self
                .ingress
                .effects
                .keys()
                .chain(self.egress.effects.keys());
            let is_egress = std::ptr::eq(*control, self.pipeline.egress.declaration);
            let vouched = is_egress && self.egress.local.iter().any(|(_, writes)| *writes);
            if !vouched
                && effects.any(|at| {
                    at.file == whole.file && at.start >= whole.start && at.end <= whole.end
                })
            {
                edits.insert(whole.at_start(), "@side_effects_allowed\n");
            }
        }
    }

    /// Turns a read or write of a register into an assignment, or into a call of the action
    /// that takes its place.
    fn access(&self, access: &Access, added: &Added, edits: &mut Edits) -> Result<(), Span> {
        let sources = self.input.sources;
        let Some(state) = self.state_of(access) else {
            return Err(access.span);
        };
        let statement = access.statement.unwrap_or(access.span);
        let written = sources.snippet(statement);
        if !written.starts_with(state.declaration.name.as_str()) || !written.ends_with(';') {
            return Err(statement);
        }
        let operand = sources.snippet(access.operand);
        if let Some(plan) = self.plan {
            let array = plan.array(access.register).ok_or(access.span)?;
            let texts = [sources.snippet(access.index_span), operand];
            let call = snapshot::access(array, access, added, texts);
            edits.replace(statement, call);
            return Ok(());
        }
        let element = self.fields.of_access.get(&access.span);
        let Some(field) = element.and_then(|&at| self.fields.all.get(at)) else {
            return Err(access.span);
        };
        let field = format!("{}.{}", added.state, field.name);
        let text = if access.writes {
            format!("{field} = {operand};")
        } else {
            format!("{operand} = {field};")
        };
        edits.replace(statement, text);
        Ok(())
    }

    fn state_of(&self, access: &Access) -> Option<&State<'_>> {
        let mut states = self.states.all.iter();
        states.find(|state| state.declaration.name.span == access.register)
    }

    /// Puts text in front of the parenthesis that ends a span.
    fn before_parenthesis(&self, span: Span, text: &str, edits: &mut Edits) -> Result<(), Span> {
        if !self.input.sources.snippet(span).ends_with(')') {
            return Err(span);
        }
        edits.insert(Span::new(span.file, span.end - 1, span.end), text);
        Ok(())
    }

    /// The parts of a key side by side, as 120 bits.
    fn concatenated(parts: &[Part]) -> String {
        let parts: Vec<String> = parts
            .iter()
            .map(|part| format!("({})", part.text))
            .collect();
        format!("(bit<120>)({})", parts.join(" ++ "))
    }
}

fn by_macro(span: Span) -> Diagnostic {
    Diagnostic::error(
        codes::PROGRAM_FORM,
        span,
        "this is written by a macro, where it cannot be rewritten",
    )
    .with_help("write it out")
}

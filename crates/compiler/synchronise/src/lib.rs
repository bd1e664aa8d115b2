//! Gives v1model programs a view of their registers at the control plane: P4 source in, P4 source
//! out in which each write of a register is seen by the sync library (`p4/lib/sync.p4`), after
//! ApproSync.
//!
//! As in `stateplane protect`, the program is not printed anew but edited: its blocks stay as
//! they are, with comments and macros, and get those of the library around them. Declarations of
//! registers go to the front, and `packets.write(…)` becomes `packets_write(…)`, a function that
//! has the element cross the last cut before the write, and queues it behind it if need be. So
//! writes in actions, functions, parsers and egress, before `exit` and of packets that are dropped
//! all count. What cannot be followed is refused with a code ([`codes`]); `docs/sync.md` is for
//! users.
//!
//! * [`mod@uses`] finds all places that name a register, [`mod@crossed`] those behind another one of the same
//!   element;
//! * [`mod@registers`] finds the registers, and what they are called;
//! * [`mod@infer`] says how their values differ, and which belong together;
//! * [`mod@emit`] writes the text.

mod annotation;
pub mod codes;
mod crossed;
mod emit;
mod infer;
mod plan;
mod registers;
mod uses;

pub use plan::{Age, Group, Kind, Member, Otherwise, Plan};
pub use registers::Selection;

use infer::Usage;
use registers::Register;
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_protect::codes::PROGRAM_FORM;
use stateplane_protect::edited::{Edited, Input, ROOTS, edit};
use stateplane_protect::pipeline;
use stateplane_syntax::tree::Declaration;
use stateplane_syntax::{FileLoader, Options};
use std::collections::BTreeMap;

/// A program that is synchronised and its groups, or why it is not.
pub type Synchronised = Edited<Plan>;

/// Synchronises the program whose main file is `main_file`. `options` have the folders of the
/// library, as for [`stateplane_check::compile`].
#[must_use]
pub fn synchronise(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    selection: Selection<'_>,
) -> Synchronised {
    let change = |input: &Input<'_>, diagnostics: &mut Diagnostics| {
        synchronised(input, selection, diagnostics)
    };
    edit(loader, main_file, options, "synchronised", change)
}

/// The reason why no register of the program can be synchronised.
fn form(input: &Input<'_>) -> Option<Diagnostic> {
    if let Some(span) = input.includes("lib/sync.p4") {
        return Some(
            Diagnostic::error(
                PROGRAM_FORM,
                span,
                "the program uses the sync library already",
            )
            .with_help("synchronise the program that this one was made of"),
        );
    }
    let externs = input.tree.declarations.iter();
    let mut externs = externs.filter_map(|declaration| match declaration {
        Declaration::Extern(it) if it.name.as_str() == "register" => Some(it),
        _ => None,
    });
    if let Some(register) = externs.find(|it| it.type_params.len() != 1) {
        return Some(
            Diagnostic::error(
                PROGRAM_FORM,
                register.name.span,
                "registers of this version of v1model have indices of any type",
            )
            .with_help("leave V1MODEL_VERSION out, or define it as 20180101"),
        );
    }
    None
}

fn synchronised(
    input: &Input<'_>,
    selection: Selection<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<(String, Plan)> {
    if let Some(complaint) = form(input) {
        diagnostics.push(complaint);
        return None;
    }
    let pipeline = match pipeline::find(input.tree) {
        Ok(pipeline) => pipeline,
        Err(diagnostic) => {
            diagnostics.push(*diagnostic);
            return None;
        }
    };
    let uses = uses::find(input.tree);
    let found = registers::find(input, &pipeline, &uses, selection, diagnostics);
    mentions(&found, &uses, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let names = found.iter().map(|it| (it.place(), it.name.clone()));
    let followed: BTreeMap<Span, String> = names.collect();
    let ingress = input.walk(pipeline.ingress.declaration, &ROOTS, &followed);
    let egress = input.walk(pipeline.egress.declaration, &ROOTS, &followed);
    let usage = Usage {
        uses: &uses,
        ingress: &ingress,
        egress: &egress,
    };
    let plan = infer::plan(&found, &usage, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    let emitted = emit::Emit::new(input, &pipeline, &found, &uses, &plan);
    match emitted.text() {
        Ok(text) => Some((text, plan)),
        Err(complaint) => {
            diagnostics.push(*complaint);
            None
        }
    }
}

/// Reports places that name a register without reading or writing it there.
fn mentions(registers: &[Register<'_>], uses: &uses::Uses<'_>, diagnostics: &mut Diagnostics) {
    for (place, span) in &uses.mentions {
        let mut of = registers.iter().filter(|it| it.place() == *place);
        if let Some(register) = of.next() {
            diagnostics.push(
                registers::refused(
                    *span,
                    format!("`{}` is handed on", register.declaration.name),
                    "call `read` and `write` of the register itself",
                )
                .with_note("who gets the register may write it where that is not seen"),
            );
        }
    }
}

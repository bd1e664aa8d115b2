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
//! * [`mod@uses`] finds all places that name a register;
//! * [`mod@registers`] finds the registers, and what they are called;
//! * [`mod@infer`] says how their values differ, and which belong together;
//! * [`mod@emit`] writes the text.

mod annotation;
pub mod codes;
mod emit;
mod infer;
mod plan;
mod registers;
mod uses;

pub use plan::{Group, Kind, Member, Plan};
pub use registers::Selection;

use infer::Usage;
use registers::Register;
use stateplane_diagnostics::{Color, Diagnostic, Diagnostics, SourceMap, Span, render_all};
use stateplane_ir as ir;
use stateplane_protect::codes::PROGRAM_FORM;
use stateplane_protect::pipeline;
use stateplane_protect::walk::{Found, Walk};
use stateplane_syntax::tree::{ControlDecl, Declaration, Program};
use stateplane_syntax::{FileLoader, LoadError, Options, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A program that is synchronised, or why it is not.
#[derive(Clone, Debug)]
pub struct Synchronised {
    /// The synchronised program, one file that includes nothing but what comes with Stateplane,
    /// and its groups; `None` if there are errors.
    pub program: Option<(String, Plan)>,
    /// Errors and warnings, those of reading and checking the program among them.
    pub diagnostics: Diagnostics,
    /// The texts read, to render diagnostics with.
    pub sources: SourceMap,
}

/// Synchronises the program whose main file is `main_file`. `options` have the folders of the
/// library, as for [`stateplane_check::compile`].
#[must_use]
pub fn synchronise(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    selection: Selection<'_>,
) -> Synchronised {
    let parsed = parse(loader, main_file, options);
    let mut diagnostics = parsed.diagnostics.clone();
    let mut program = None;
    if !diagnostics.has_errors() {
        let checked = stateplane_check::check(&parsed);
        diagnostics.append(checked.diagnostics);
        if let Some(ir) = checked.program {
            let input = Input {
                tree: &parsed.tree,
                sources: &parsed.sources,
                ir: &ir,
                interface: &checked.interface,
                main_file,
            };
            program = input.synchronise(selection, &mut diagnostics);
        }
    }
    if let Some((text, _)) = &program
        && let Err(complaints) = recompile(loader, main_file, options, text)
    {
        diagnostics.push(
            Diagnostic::error(
                PROGRAM_FORM,
                Span::default(),
                "the synchronised program would not compile",
            )
            .with_note(complaints),
        );
        program = None;
    }
    Synchronised {
        program,
        diagnostics,
        sources: parsed.sources,
    }
}

/// A file in place of another.
struct Instead<'a> {
    path: &'a str,
    text: &'a str,
    rest: &'a dyn FileLoader,
}

impl FileLoader for Instead<'_> {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        if path == self.path {
            Ok(self.text.into())
        } else {
            self.rest.load(path)
        }
    }
}

/// Compiles a synchronised program; what is wrong with it as text.
fn recompile(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    text: &str,
) -> Result<(), String> {
    let loader = Instead {
        path: main_file,
        text,
        rest: loader,
    };
    let compiled = stateplane_check::compile(&loader, main_file, options);
    match compiled.program {
        Some(_) => Ok(()),
        None => Err(render_all(
            &compiled.diagnostics,
            &compiled.sources,
            Color::Never,
        )),
    }
}

/// A checked program.
struct Input<'a> {
    tree: &'a Program,
    sources: &'a SourceMap,
    ir: &'a ir::Program,
    interface: &'a ir::Interface,
    main_file: &'a str,
}

const ROOTS: [&str; 3] = ["hdr", "meta", "standard_metadata"];

impl Input<'_> {
    /// What keeps any register of the program from being synchronised.
    fn form(&self) -> Option<Diagnostic> {
        let already = self.sources.files();
        if let Some((_, file)) = { already }.find(|(_, f)| f.name().ends_with("lib/sync.p4")) {
            let span = file.included_from().unwrap_or_default();
            return Some(
                Diagnostic::error(
                    PROGRAM_FORM,
                    span,
                    "the program uses the sync library already",
                )
                .with_help("synchronise the program that this one was made of"),
            );
        }
        let externs = self.tree.declarations.iter();
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

    fn walk<'b>(&'b self, control: &'b ControlDecl, followed: &'b BTreeMap<Span, String>) -> Found {
        let mut walk = Walk::new(self.sources, self.tree, followed);
        walk.block(control, &ROOTS);
        walk.found
    }

    fn synchronise(
        &self,
        selection: Selection<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<(String, Plan)> {
        if let Some(complaint) = self.form() {
            diagnostics.push(complaint);
            return None;
        }
        let pipeline = match pipeline::find(self.tree) {
            Ok(pipeline) => pipeline,
            Err(diagnostic) => {
                diagnostics.push(*diagnostic);
                return None;
            }
        };
        let uses = uses::find(self.tree);
        let found = registers::find(self, &pipeline, &uses, selection, diagnostics);
        self.mentions(&found, &uses, diagnostics);
        if diagnostics.has_errors() {
            return None;
        }
        let names = found.iter().map(|it| (it.place(), it.name.clone()));
        let followed: BTreeMap<Span, String> = names.collect();
        let ingress = self.walk(pipeline.ingress.declaration, &followed);
        let egress = self.walk(pipeline.egress.declaration, &followed);
        let usage = Usage {
            uses: &uses,
            ingress: &ingress,
            egress: &egress,
        };
        let plan = infer::plan(&found, &usage, diagnostics);
        if diagnostics.has_errors() {
            return None;
        }
        let emitted = emit::Emit::new(self, &pipeline, &found, &uses, &plan);
        match emitted.text() {
            Ok(text) => Some((text, plan)),
            Err(complaint) => {
                diagnostics.push(*complaint);
                None
            }
        }
    }

    /// Reports places that name a register without reading or writing it there.
    fn mentions(
        &self,
        registers: &[Register<'_>],
        uses: &uses::Uses<'_>,
        diagnostics: &mut Diagnostics,
    ) {
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
}

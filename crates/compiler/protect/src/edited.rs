//! Programs that are edited: read and checked, edited, and compiled once more.

use crate::codes::PROGRAM_FORM;
use crate::walk::{Found, Walk};
use stateplane_diagnostics::{Color, Diagnostic, Diagnostics, SourceMap, Span, render_all};
use stateplane_ir as ir;
use stateplane_syntax::tree::{ControlDecl, Program};
use stateplane_syntax::{FileLoader, LoadError, Options, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parameters of a v1model control block: headers, metadata, standard metadata.
pub const ROOTS: [&str; 3] = ["hdr", "meta", "standard_metadata"];

/// A program that was edited, or why it could not be.
#[derive(Clone, Debug)]
pub struct Edited<T> {
    /// The edited program, one file that includes nothing but what comes with Stateplane, and
    /// facts about it; `None` if there are errors.
    pub program: Option<(String, T)>,
    /// Errors and warnings, those of reading and checking the program among them.
    pub diagnostics: Diagnostics,
    /// The texts read, to render diagnostics with.
    pub sources: SourceMap,
}

/// A checked program.
pub struct Input<'a> {
    /// Its declarations.
    pub tree: &'a Program,
    /// Its texts.
    pub sources: &'a SourceMap,
    /// Its intermediate representation.
    pub ir: &'a ir::Program,
    /// Names and annotations that control planes see.
    pub interface: &'a ir::Interface,
    /// Path of its main file.
    pub main_file: &'a str,
}

impl Input<'_> {
    /// Values followed through a control block whose parameters are called `roots`, and accesses
    /// of the registers `registers`: place of the declaration, and name.
    #[must_use]
    pub fn walk<'b>(
        &'b self,
        control: &'b ControlDecl,
        roots: &[&str],
        registers: &'b BTreeMap<Span, String>,
    ) -> Found {
        let mut walk = Walk::new(self.sources, self.tree, registers);
        walk.block(control, roots);
        walk.found
    }

    /// Place of the directive that includes the library file whose path ends with `library`, if
    /// the program includes it.
    #[must_use]
    pub fn includes(&self, library: &str) -> Option<Span> {
        let mut files = self.sources.files();
        let (_, file) = files.find(|(_, file)| file.name().ends_with(library))?;
        Some(file.included_from().unwrap_or_default())
    }
}

/// Edits the program whose main file is `main_file`, by `change`, if it can be read and checked,
/// and compiles the outcome. `participle` says in diagnostics what it became: "protected".
pub fn edit<T>(
    loader: &dyn FileLoader,
    main_file: &str,
    options: &Options,
    participle: &str,
    change: impl FnOnce(&Input<'_>, &mut Diagnostics) -> Option<(String, T)>,
) -> Edited<T> {
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
            program = change(&input, &mut diagnostics);
        }
    }
    if let Some((text, _)) = &program
        && let Err(complaints) = recompile(loader, main_file, options, text)
    {
        diagnostics.push(
            Diagnostic::error(
                PROGRAM_FORM,
                Span::default(),
                format!("the {participle} program would not compile"),
            )
            .with_note(complaints),
        );
        program = None;
    }
    Edited {
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

/// Compiles an edited program; errors as text.
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

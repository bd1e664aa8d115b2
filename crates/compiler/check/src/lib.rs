//! Names, types and constants: from the syntax tree of a P4-16 program for v1model to
//! typed IR.
//!
//! Each instance of a parser or control is checked and lowered in one pass with its
//! constructor's arguments; parsers, controls and generic functions that `main` does not
//! reach are checked too, and what they make is thrown away. Nothing panics on any
//! program: what is wrong or not supported is a coded diagnostic ([`codes`]).
//!
//! Externs are bound by the names of their declarations in core.p4 and v1model.p4 to the
//! operations of the IR.

mod abstract_method;
mod annotation;
mod apply;
mod architecture;
mod arguments;
mod block;
mod build;
mod call;
mod callable;
mod checker;
mod choice;
pub mod codes;
mod computed;
mod constant;
mod convert;
mod copying;
mod declare;
mod deprecated;
mod doubt;
pub mod effects;
mod element;
mod entry;
mod expr;
mod foreign;
mod instance;
mod interface;
mod key_name;
mod keyset;
mod lint;
mod loops;
mod method;
mod object;
mod operator;
mod package;
mod packet;
mod parser;
mod priority;
mod property;
mod resolve;
mod scope;
mod side_effect;
mod specialise;
mod stmt;
mod table;
mod types;
mod units;
mod value;
mod value_set;

use checker::Checker;
use stateplane_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use stateplane_ir as ir;
use stateplane_syntax::{FileLoader, Options, Parsed};

/// The outcome of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The program; `None` if there are errors. It satisfies [`ir::verify`].
    pub program: Option<ir::Program>,
    /// Description of the program for the control plane; empty if there are errors.
    pub interface: ir::Interface,
    /// Errors and warnings of the check; those of reading the text are not among them.
    pub diagnostics: Diagnostics,
}

/// Checks a program that has been read.
#[must_use]
pub fn check(parsed: &Parsed) -> Checked {
    check_with(parsed, false)
}

/// As [`check`]; the program's statements tell their places in the source ([`ir::Stmt::At`]). It is
/// for analysis: engines run it too, and more slowly.
#[must_use]
pub fn check_with_places(parsed: &Parsed) -> Checked {
    check_with(parsed, true)
}

fn check_with(parsed: &Parsed, places: bool) -> Checked {
    let mut checker = Checker::new(&parsed.sources);
    checker.places = places;
    checker.foreign = package::is_foreign(&parsed.tree);
    let packages = checker.declarations(&parsed.tree);
    // A program for another architecture has its own mistakes told first.
    if checker.foreign {
        checker.uninstantiated();
        checker.foreign_packages(&packages);
        if !checker.diagnostics.has_errors() {
            lint::lint(&parsed.tree, &mut checker.diagnostics);
        }
    }
    let told = checker.foreign && checker.diagnostics.has_errors();
    let main = (!told).then(|| checker.main_package(&packages)).flatten();
    checker.unattached();
    if !checker.foreign {
        checker.uninstantiated();
    }
    // A program with errors may lack `main` because of them.
    if main.is_none() && !checker.diagnostics.has_errors() {
        checker.no_main();
    }
    let span = packages
        .last()
        .map_or_else(Span::default, |(decl, _)| decl.name.span);
    let errors = checker.types.numbered_errors();
    let mut out = checker.out;
    let interface = std::mem::take(&mut out.interface);
    let mut diagnostics = checker.diagnostics;
    if diagnostics.has_errors() || parsed.diagnostics.has_errors() {
        return Checked {
            program: None,
            interface: ir::Interface::default(),
            diagnostics,
        };
    }
    let program = main.map(|(pipeline, field_lists)| out.finish(errors, pipeline, field_lists));
    lint::lint(&parsed.tree, &mut diagnostics);
    let verified = program.as_ref().map(ir::verify);
    if let Some(Err(broken)) = verified {
        for error in broken {
            diagnostics.push(beyond(&error, span));
        }
        return Checked {
            program: None,
            interface: ir::Interface::default(),
            diagnostics,
        };
    }
    Checked {
        program,
        interface,
        diagnostics,
    }
}

/// Meaning, for a program's author, of a rule of the IR that it breaks: a limit, or a mistake of
/// the compiler.
fn beyond(error: &ir::VerifyError, span: Span) -> Diagnostic {
    let what = format!("{}: {}", error.place, error.message);
    match error.rule {
        2 => Diagnostic::error(codes::LIMIT, span, format!("a type is too large: {what}"))
            .with_help(format!(
                "types nest at most {} deep and have at most {} parts",
                ir::MAX_TYPE_DEPTH,
                ir::MAX_LEAVES
            )),
        9 => Diagnostic::error(
            codes::LIMIT,
            span,
            format!("the program nests too deep: {what}"),
        )
        .with_help(format!(
            "statements, expressions and the calls of a packet nest at most {} deep together",
            ir::MAX_NESTING
        )),
        _ => Diagnostic::error(
            codes::LIMIT,
            span,
            format!("the compiler cannot translate this program: {what}"),
        )
        .with_help("this is a mistake of the compiler: please report it with the program"),
    }
}

/// A program from its text.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program; `None` if there are errors.
    pub program: Option<ir::Program>,
    /// Description of the program for the control plane; empty if there are errors.
    pub interface: ir::Interface,
    /// All errors and warnings, of reading and of the check.
    pub diagnostics: Diagnostics,
    /// The texts read, to render diagnostics with.
    pub sources: SourceMap,
}

/// Reads and checks the program whose main file is `main_file`.
///
/// A program with errors in its text is not checked.
#[must_use]
pub fn compile(loader: &dyn FileLoader, main_file: &str, options: &Options) -> Compiled {
    let parsed = stateplane_syntax::parse(loader, main_file, options);
    // The checker's diagnostics of an unreadable text would mostly mislead.
    if parsed.diagnostics.has_errors() {
        return Compiled {
            program: None,
            interface: ir::Interface::default(),
            diagnostics: parsed.diagnostics,
            sources: parsed.sources,
        };
    }
    let checked = check(&parsed);
    let mut diagnostics = parsed.diagnostics;
    diagnostics.append(checked.diagnostics);
    Compiled {
        program: checked.program,
        interface: checked.interface,
        diagnostics,
        sources: parsed.sources,
    }
}

//! Reading and compiling a P4 program.

use crate::exit::{CommandError, Failure};
use crate::text_file;
use clap::Args;
use stateplane_check::Compiled;
use stateplane_compile::Source;
use stateplane_diagnostics::{
    Color, Diagnostic, Diagnostics, SourceMap, render_all, to_json_lines,
};
use stateplane_library::included_script;
use stateplane_syntax::{FileLoader, LoadError};
use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Arguments that select a program and its preprocessing.
#[derive(Args, Clone)]
pub struct ProgramArguments {
    /// P4-16 program for v1model; or, if its name ends in `.ir`, the output of `compile --emit ir`
    #[arg(value_name = "PROGRAM.p4")]
    pub program: PathBuf,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    #[command(flatten)]
    warnings: WarningArguments,
    /// Print errors and warnings as JSON, one a line
    #[arg(long)]
    diagnostics_json: bool,
}

/// Arguments of the preprocessor.
#[derive(Args, Clone)]
pub struct PreprocessArguments {
    /// Look for included files in this folder first; may be given several times
    ///
    /// core.p4, v1model.p4 and the replication library are built in.
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a macro before the first line; may be given several times
    #[arg(short = 'D', long = "define", value_name = "NAME[=BODY]")]
    define: Vec<String>,
}

/// Treatment of warnings.
#[derive(Args, Clone)]
pub struct WarningArguments {
    /// Suppress this warning; may be given several times
    #[arg(short = 'A', long = "allow", value_name = "CODE")]
    allow: Vec<String>,
    /// Treat warnings as errors, other than those allowed
    #[arg(long)]
    deny_warnings: bool,
}

impl WarningArguments {
    /// The outcome with fewer warnings, or with errors in place of them.
    pub fn applied(&self, mut compiled: Compiled) -> Compiled {
        let allowed = |id: &str| self.allow.iter().any(|code| code.eq_ignore_ascii_case(id));
        compiled.diagnostics.allow(|code| allowed(code.id()));
        if self.deny_warnings && compiled.diagnostics.warning_count() > 0 {
            let note = "a warning is an error here: --deny-warnings";
            compiled.diagnostics.deny_warnings(note);
            compiled.program = None;
        }
        compiled
    }
}

/// The text of a packet test that the one at `script` includes as `path`.
pub fn included(script: &str, path: &str) -> Option<String> {
    included_script(script, path, |path| text_file::read(path).ok())
}

/// Files of the file system.
pub struct Disk;

impl FileLoader for Disk {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match text_file::read(path) {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => LoadError::NotFound,
                _ => LoadError::Unreadable(error.to_string()),
            }),
        }
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let folder = if folder.is_empty() { "." } else { folder };
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect()
    }
}

impl PreprocessArguments {
    /// Include folders and macros as options, each behind a space.
    pub fn to_options(&self) -> String {
        let include = self.include.iter();
        let include = include.map(|folder| format!(" -I {}", folder.display()));
        let define = self.define.iter().map(|define| format!(" -D {define}"));
        include.chain(define).collect()
    }

    /// The source of `program`.
    pub fn source(&self, program: &Path) -> Source<Disk> {
        let folders = self.include.iter();
        let defines = self.define.iter().map(|text| match text.split_once('=') {
            Some((name, body)) => (name.to_owned(), body.to_owned()),
            None => (text.clone(), "1".to_owned()),
        });
        let folders = folders.map(|f| f.to_string_lossy().into_owned());
        of(program).include_dirs(folders).defines(defines)
    }
}

/// The source of `program`, compiled with macros.
pub fn source(program: &Path, macros: &[(String, String)]) -> Source<Disk> {
    of(program).defines(macros.to_vec())
}

fn of(program: &Path) -> Source<Disk> {
    Source::new(Disk, &program.to_string_lossy())
}

impl ProgramArguments {
    /// The source of the program.
    pub fn source(&self) -> Source<Disk> {
        self.preprocess.source(&self.program)
    }

    /// Defines macros, name and body, besides those of the command line.
    pub fn define(&mut self, macros: &[(String, String)]) {
        let texts = macros.iter().map(|(name, body)| format!("{name}={body}"));
        self.preprocess.define.extend(texts);
    }

    /// Compiles the program. Errors and warnings go to standard error.
    pub fn compile(&self) -> Result<stateplane_ir::Program, CommandError> {
        if self.program.extension().is_some_and(|end| end == "ir") {
            return crate::ir_file::read(&self.program);
        }
        self.compile_with_interface().map(|(program, _)| program)
    }

    /// Compiles the program; what there is to say of it is text: warnings beside the
    /// program, or errors.
    pub fn compile_to_text(&self) -> Result<(stateplane_ir::Program, String), String> {
        if self.program.extension().is_some_and(|end| end == "ir") {
            let program = crate::ir_file::read(&self.program);
            return program
                .map(|program| (program, String::new()))
                .map_err(|error| error.message().to_owned());
        }
        let compiled = self.warnings.applied(self.source().compile());
        let text = render_all(&compiled.diagnostics, &compiled.sources, Color::Never);
        match compiled.program {
            Some(program) => Ok((program, text)),
            None => Err(text),
        }
    }

    /// Compiles the program, and tells what the control plane sees of it. Errors and
    /// warnings go to standard error.
    pub fn compile_with_interface(
        &self,
    ) -> Result<(stateplane_ir::Program, stateplane_ir::Interface), CommandError> {
        if self.program.extension().is_some_and(|end| end == "ir") {
            let message = "IR text does not say what the control plane sees: name the P4 program";
            return Err(CommandError::new(Failure::Input, message));
        }
        let compiled = self.warnings.applied(self.source().compile());
        if self.diagnostics_json {
            eprint!("{}", as_json(&compiled.diagnostics, &compiled.sources));
        } else {
            print_text(&compiled.diagnostics, &compiled.sources);
            print_hint(&compiled.diagnostics);
        }
        compiled
            .program
            .map(|program| (program, compiled.interface))
            .ok_or_else(|| CommandError::explained(Failure::Program))
    }
}

/// Diagnostics as JSON, one object a line.
pub fn as_json(diagnostics: &Diagnostics, sources: &SourceMap) -> String {
    to_json_lines(diagnostics, sources).unwrap_or_default()
}

/// Prints diagnostics to standard error.
pub fn print_text(diagnostics: &Diagnostics, sources: &SourceMap) {
    let color = if std::io::stderr().is_terminal() {
        Color::Ansi
    } else {
        Color::Never
    };
    eprint!("{}", render_all(diagnostics, sources, color));
}

/// Prints to standard error where more is said about the codes of diagnostics.
pub fn print_hint<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) {
    if let Some(hint) = stateplane_explain::hint(diagnostics) {
        eprintln!("{hint}");
    }
}

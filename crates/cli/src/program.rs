//! Reading and compiling a P4 program.

use crate::exit::{CommandError, Failure};
use clap::Args;
use stateplane_diagnostics::{Color, render_all, to_json_lines};
use stateplane_library::{WithLibrary, with_library};
use stateplane_syntax::{FileLoader, LoadError, Options};
use std::io::{ErrorKind, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

/// Which program, and how it is preprocessed.
#[derive(Args)]
pub struct ProgramArguments {
    /// The P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4")]
    pub program: PathBuf,
    /// Look for included files in this folder first; may be given several times
    ///
    /// core.p4, v1model.p4 and the replication library are built in.
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Define a macro before the first line; may be given several times
    #[arg(short = 'D', long = "define", value_name = "NAME[=BODY]")]
    define: Vec<String>,
    /// Print errors and warnings as JSON, one a line
    #[arg(long)]
    diagnostics_json: bool,
}

/// Files of the file system.
struct Disk;

impl FileLoader for Disk {
    fn load(&self, path: &str) -> Result<Arc<str>, LoadError> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(text.into()),
            Err(error) => Err(match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => LoadError::NotFound,
                _ => LoadError::Unreadable(error.to_string()),
            }),
        }
    }
}

impl ProgramArguments {
    /// The loader and the options that the arguments ask for.
    pub fn source(&self) -> (WithLibrary<impl FileLoader>, String, Options) {
        let folders = self.include.iter();
        let defines = self.define.iter().map(|text| match text.split_once('=') {
            Some((name, body)) => (name.to_owned(), body.to_owned()),
            None => (text.clone(), "1".to_owned()),
        });
        let options = with_library(Options {
            include_dirs: folders.map(|f| f.to_string_lossy().into_owned()).collect(),
            defines: defines.collect(),
        });
        let main = self.program.to_string_lossy().into_owned();
        (WithLibrary(Disk), main, options)
    }

    /// Compiles the program. Errors and warnings go to standard error.
    pub fn compile(&self) -> Result<stateplane_ir::Program, CommandError> {
        let (loader, main, options) = self.source();
        let compiled = stateplane_check::compile(&loader, &main, &options);
        if !compiled.diagnostics.is_empty() {
            if self.diagnostics_json {
                let lines = to_json_lines(&compiled.diagnostics, &compiled.sources);
                eprint!("{}", lines.unwrap_or_default());
            } else {
                let color = match std::io::stderr().is_terminal() {
                    true => Color::Ansi,
                    false => Color::Never,
                };
                eprint!(
                    "{}",
                    render_all(&compiled.diagnostics, &compiled.sources, color)
                );
                if let Some(hint) = stateplane_explain::hint(compiled.diagnostics.sorted()) {
                    eprintln!("{hint}");
                }
            }
        }
        compiled
            .program
            .ok_or_else(|| CommandError::explained(Failure::Program))
    }
}

//! `stateplane protect`: a program whose state outlives its switch.

use crate::exit::{CommandError, Failure};
use crate::program::{PreprocessArguments, as_json, print_hint, print_text};
use crate::text_file;
use clap::Args;
use std::path::PathBuf;

/// Make a program fault-tolerant: keep registers annotated @replicated in the store.
///
/// Writes the protected P4 program to standard output: the text of the original, in which registers
/// are replaced by the state of the packet's flow, or, with mode = "bounded", by arrays with
/// snapshots, inside the blocks of the replication library. Its first lines list the settings for
/// store servers. docs/protect.md describes the annotation and the refused programs.
#[derive(Args)]
pub struct ProtectArguments {
    /// Annotated P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4")]
    program: PathBuf,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// Write the protected program to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print errors and warnings as JSON, one a line
    #[arg(long)]
    diagnostics_json: bool,
}

/// Runs the command.
pub fn run(arguments: &ProtectArguments) -> Result<(), CommandError> {
    let source = arguments.preprocess.source(&arguments.program);
    let protected =
        stateplane_protect::protect(source.loader(), source.main_file(), source.options());
    if arguments.diagnostics_json {
        eprint!("{}", as_json(&protected.diagnostics, &protected.sources));
    } else {
        print_text(&protected.diagnostics, &protected.sources);
        print_hint(&protected.diagnostics);
    }
    let Some((text, _)) = protected.program else {
        return Err(CommandError::explained(Failure::Program));
    };
    match &arguments.output {
        None => {
            print!("{text}");
            Ok(())
        }
        Some(path) => text_file::write(path, text),
    }
}

//! `stateplane sync`: a program whose registers the control plane sees.

use crate::exit::{CommandError, Failure};
use crate::program::{PreprocessArguments, as_json, print_hint, print_text};
use crate::text_file;
use clap::Args;
use stateplane_synchronise::{Selection, synchronise};
use std::path::PathBuf;

/// Give the control plane a view of a program's registers that says how far it is off.
///
/// Writes the instrumented P4 program to standard output: the text of the original, in which each
/// read and write of a register also tells the sync library of it, inside the blocks of that
/// library. Packets see no difference, and the program's tables, actions and registers keep their
/// names. What was instrumented goes to standard error: of each register its group, how distances
/// of its values are measured (kind), elements, bits and places in the ring of its group.
///
/// All registers are instrumented; or those annotated @synced, if some are; or those of
/// --registers. Kinds and groups that no annotation names follow from how packets use the
/// registers. docs/sync.md describes the annotation, the bounds and the refused programs.
///
///   stateplane sync counter.p4 -o synced.p4
///   stateplane sync counter.p4 -o synced.p4 --registers packets,bytes
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct SyncArguments {
    /// P4-16 program for v1model
    #[arg(value_name = "PROGRAM.p4")]
    program: PathBuf,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    /// Instrument these registers alone, by their names for control planes or the ends of these
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    registers: Vec<String>,
    /// Write the instrumented program to this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what was instrumented as JSON to standard output, for engines; needs --output
    #[arg(long, requires = "output")]
    json: bool,
    /// Print errors and warnings as JSON, one a line
    #[arg(long)]
    diagnostics_json: bool,
}

/// Runs the command.
pub fn run(arguments: &SyncArguments) -> Result<(), CommandError> {
    let source = arguments.preprocess.source(&arguments.program);
    let selection = match arguments.registers.as_slice() {
        [] => Selection::Annotated,
        names => Selection::Named(names),
    };
    let (loader, options) = (source.loader(), source.options());
    let made = synchronise(loader, source.main_file(), options, selection);
    if arguments.diagnostics_json {
        eprint!("{}", as_json(&made.diagnostics, &made.sources));
    } else {
        print_text(&made.diagnostics, &made.sources);
        print_hint(&made.diagnostics);
    }
    let Some((text, plan)) = made.program else {
        return Err(CommandError::explained(Failure::Program));
    };
    let Some(path) = &arguments.output else {
        eprintln!("{plan}");
        print!("{text}");
        return Ok(());
    };
    text_file::write(path, text)?;
    if arguments.json {
        let json = serde_json::to_string_pretty(&plan).unwrap_or_default();
        println!("{json}");
    } else {
        eprintln!("{plan}");
    }
    Ok(())
}

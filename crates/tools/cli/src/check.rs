//! `stateplane check`: what is wrong with programs, and the locks that they take.

mod locks;

use crate::exit::{CommandError, Failure};
use crate::program::{PreprocessArguments, WarningArguments, as_json, print_hint, print_text};
use clap::Args;
use std::path::PathBuf;

/// Report errors and warnings of programs, without running them.
///
/// Errors and warnings go to standard error, with the source lines concerned. Prints nothing and
/// exits with 0 if there are none; exits with 3 if any program has an error.
///
/// With --json they go to standard output, one object a line: code, severity, message, file, line
/// and column (from 1), end (line and column past the last character), label, secondary positions,
/// notes, help.
///
/// With --locks it shows what several workers (`run --workers`) that run the program lock in its
/// atomic blocks: registers and meters that have their locks together, in the order in which blocks
/// take them; a lock for each element, with the index, or one for all, with the reason; and whether
/// frames have keys by which they go to workers (`run --spread`). With --json that is an object a line
/// for each program behind those of its warnings: program, locks, key-follows-from-frame,
/// tables-of-key.
#[derive(Args)]
pub struct CheckArguments {
    /// P4-16 programs for v1model, each compiled on its own
    #[arg(value_name = "PROGRAM.p4", required = true)]
    programs: Vec<PathBuf>,
    #[command(flatten)]
    preprocess: PreprocessArguments,
    #[command(flatten)]
    warnings: WarningArguments,
    /// Show the locks of atomic blocks on several workers
    #[arg(long)]
    locks: bool,
    /// Print JSON, one object a line for each error and warning
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &CheckArguments) -> Result<(), CommandError> {
    let mut all = Vec::new();
    let mut refused = false;
    for program in &arguments.programs {
        let source = arguments.preprocess.source(program);
        let compiled = source.compile();
        let compiled = arguments.warnings.applied(compiled);
        if arguments.json {
            print!("{}", as_json(&compiled.diagnostics, &compiled.sources))
        } else {
            print_text(&compiled.diagnostics, &compiled.sources)
        }
        refused |= compiled.program.is_none();
        if arguments.locks
            && compiled.program.is_some()
            && let Ok(placed) = source.program_with_places()
        {
            locks::print(program, placed, arguments.json);
        }
        all.extend(compiled.diagnostics.sorted().into_iter().cloned());
    }
    if !arguments.json {
        print_hint(&all);
    }
    if refused {
        Err(CommandError::explained(Failure::Program))
    } else {
        Ok(())
    }
}

//! `stateplane compile`: what the compiler makes of a program.

use crate::exit::CommandError;
use crate::program::ProgramArguments;
use clap::{Args, ValueEnum};

/// Check a program, and show a stage of its compilation.
#[derive(Args)]
pub struct CompileArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Print this stage to standard output
    #[arg(long, value_enum)]
    emit: Option<Stage>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The syntax tree, printed as P4
    Tree,
    /// The typed intermediate representation
    Ir,
}

/// Runs the command.
pub fn run(arguments: &CompileArguments) -> Result<(), CommandError> {
    if arguments.emit == Some(Stage::Tree) {
        let (loader, main, options) = arguments.program.source();
        let parsed = stateplane_syntax::parse(&loader, &main, &options);
        print!("{}", stateplane_syntax::print(&parsed.tree));
    }
    let program = arguments.program.compile()?;
    if arguments.emit == Some(Stage::Ir) {
        print!("{program}");
    }
    Ok(())
}

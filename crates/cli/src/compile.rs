//! `stateplane compile`: what the compiler makes of a program.

use crate::exit::CommandError;
use crate::program::{ProgramArguments, Source};
use clap::{Args, ValueEnum};
use stateplane_diagnostics::Diagnostics;

/// Check a program, and show a stage of its compilation.
///
/// The stages, in order: the tokens that the preprocessor leaves, each with its place; the
/// syntax tree of the program with all that it includes; the intermediate representation,
/// in which every type, name and constant is resolved and every instance of a control or
/// parser stands by itself. A stage is shown as far as there is one, also if a later one
/// finds errors.
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
    /// The tokens after preprocessing
    Tokens,
    /// The syntax tree, printed as P4
    Tree,
    /// The typed intermediate representation
    Ir,
}

/// Runs the command.
pub fn run(arguments: &CompileArguments) -> Result<(), CommandError> {
    let source = arguments.program.source();
    match arguments.emit {
        Some(Stage::Tokens) => {
            // What it complains of is told once, when the program is compiled.
            let mut unheard = Diagnostics::new();
            let Source {
                loader,
                main,
                options,
            } = &source;
            let (tokens, sources) =
                stateplane_syntax::tokenize(loader, main, options, &mut unheard);
            print!("{}", stateplane_syntax::token::list(&tokens, &sources));
        }
        Some(Stage::Tree) => {
            let parsed = stateplane_syntax::parse(&source.loader, &source.main, &source.options);
            print!("{}", stateplane_syntax::print(&parsed.tree));
        }
        Some(Stage::Ir) | None => {}
    }
    let program = arguments.program.compile()?;
    if arguments.emit == Some(Stage::Ir) {
        print!("{program}");
    }
    Ok(())
}

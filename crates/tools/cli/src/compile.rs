//! `stateplane compile`: what the compiler makes of a program.

use crate::exit::{CommandError, Failure};
use crate::program::ProgramArguments;
use crate::text_file;
use clap::{Args, ValueEnum};
use stateplane_diagnostics::Diagnostics;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Compile a program, and print a stage of its compilation.
///
/// The stages, in order: the tokens after preprocessing, each with its position; the syntax tree of
/// the program and its includes; the checked program, printed like P4, in which types, names and
/// constants are resolved and each instance of a control or parser is separate; the intermediate
/// representation, before and after the passes that simplify it; the description of the program for
/// the control plane. A stage is printed as far as it exists, even if a later one finds errors.
#[derive(Args)]
pub struct CompileArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// Print this stage to standard output
    #[arg(long, value_enum)]
    emit: Option<Stage>,
    /// Write P4Info to this file: in binary form if its name ends in .bin or .pb, as text
    /// if it ends in .txt or .txtpb
    #[arg(long, value_name = "FILE")]
    p4info: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The tokens after preprocessing
    Tokens,
    /// The syntax tree, printed as P4
    Tree,
    /// The checked program, printed like P4: types resolved, constants folded, names in full
    Checked,
    /// The typed intermediate representation
    Ir,
    /// The intermediate representation after the passes that simplify it
    Optimized,
    /// Description for the control plane: P4Info in text form
    P4info,
}

/// Runs the command.
pub fn run(arguments: &CompileArguments) -> Result<(), CommandError> {
    let source = arguments.program.source();
    match arguments.emit {
        Some(Stage::Tokens) => {
            // Its diagnostics are printed once, when the program is compiled.
            let mut unheard = Diagnostics::new();
            let (loader, options) = (source.loader(), source.options());
            let main = source.main_file();
            let (tokens, sources) =
                stateplane_syntax::tokenize(loader, main, options, &mut unheard);
            print!("{}", stateplane_syntax::token::list(&tokens, &sources));
        }
        Some(Stage::Tree) => {
            let parsed =
                stateplane_syntax::parse(source.loader(), source.main_file(), source.options());
            print!("{}", stateplane_syntax::print(&parsed.tree));
        }
        Some(Stage::Checked | Stage::Ir | Stage::Optimized | Stage::P4info) | None => {}
    }
    let form = match &arguments.p4info {
        Some(file) => Some((file, Form::of(file)?)),
        None => None,
    };
    if arguments.emit != Some(Stage::P4info) && form.is_none() {
        let program = arguments.program.compile()?;
        show(&program, arguments.emit);
        return Ok(());
    }
    let (program, interface) = arguments.program.compile_with_interface()?;
    show(&program, arguments.emit);
    let info = stateplane_p4info::generate(&program, &interface)
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    let text = stateplane_p4info::text::write(&info)
        .map_err(|error| CommandError::new(Failure::Program, error))?;
    if arguments.emit == Some(Stage::P4info) {
        print!("{text}");
    }
    if let Some((file, form)) = form {
        let bytes = match form {
            Form::Text => text.into_bytes(),
            Form::Binary => stateplane_p4info::binary::write(&info),
        };
        text_file::write(file, bytes)?;
    }
    Ok(())
}

/// Prints a stage of a checked program.
fn show(program: &stateplane_ir::Program, emit: Option<Stage>) {
    match emit {
        Some(Stage::Checked) => print!("{}", stateplane_ir::p4_text(program)),
        Some(Stage::Ir) => print!("{program}"),
        Some(Stage::Optimized) => {
            let mut program = program.clone();
            stateplane_ir::passes::optimise(&mut program);
            print!("{program}");
        }
        _ => {}
    }
}

/// A form of P4Info.
enum Form {
    Text,
    Binary,
}

impl Form {
    /// The form that a file's name asks for.
    fn of(file: &Path) -> Result<Form, CommandError> {
        match file.extension().and_then(OsStr::to_str) {
            Some("txt" | "txtpb") => Ok(Form::Text),
            Some("bin" | "pb") => Ok(Form::Binary),
            _ => Err(CommandError::new(
                Failure::Input,
                format!(
                    "{} does not say in which form to write P4Info: end it in .txtpb or .txt \
                     for text, in .bin or .pb for binary",
                    file.display()
                ),
            )),
        }
    }
}

//! `stateplane test`: packet tests of a program.

use crate::app::Folder;
use crate::engine::EngineChoice;
use crate::exit::{CommandError, Failure};
use crate::program::{ProgramArguments, included};
use crate::text_file;
use clap::Args;
use serde_json::json;
use stateplane_interp::{Interp, Options};
use stateplane_native::Native;
use stateplane_stf::{Script, StfError};
use std::path::{Path, PathBuf};

/// Run packet tests (STF scripts) of a program.
///
/// Scripts have the meaning that BMv2's runner gives them: `*` is a digit that matches
/// any, bytes after an expectation's end are accepted unless it ends in `$`, order and
/// number of frames count for each port, and a port without expectations expects nothing.
/// `wait`, `remove`, `no_packet` and `check_counter` are implemented too. Time is
/// virtual.
///
/// Of an application's folder with an `app.toml`, runs the program that it names; all scripts of
/// its folder `tests`, if none is given.
///
/// A script that says `# program: FILE` of another program, by name, is skipped.
///
/// Prints a line for each script, then its failures, with the difference of frames:
///
///   stateplane test nat.p4 tests/*.stf
///   stateplane test apps/nat
///
/// Exit code 1 if a script fails or all are skipped, 2 if one cannot be read, 3 if the program has
/// errors.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct TestArguments {
    #[command(flatten)]
    program: ProgramArguments,
    /// STF scripts
    #[arg(value_name = "TEST.stf")]
    scripts: Vec<PathBuf>,
    /// Engine that runs the program
    #[arg(long, value_enum, default_value_t = EngineChoice::Interp)]
    engine: EngineChoice,
    /// Run scripts of other programs too
    #[arg(long)]
    any_program: bool,
    /// Print JSON, one object a line for each script: script, passed, failures; or script, skipped
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &TestArguments) -> Result<(), CommandError> {
    let mut program = arguments.program.clone();
    let mut paths = arguments.scripts.clone();
    if program.program.is_dir() {
        let folder = Folder::read(&program.program)?;
        program.program = folder.program();
        program.define(&folder.macros());
        if paths.is_empty() {
            paths = folder.tests();
        }
    }
    if paths.is_empty() {
        let message = "no packet test: name one behind the program, or the folder of an \
                       application with a folder `tests`";
        return Err(CommandError::new(Failure::Input, message));
    }
    let scripts = paths
        .iter()
        .map(|path| read(path))
        .collect::<Result<Vec<Script>, CommandError>>()?;
    let width = scripts.iter().map(|script| script.name.chars().count());
    let width = width.max().unwrap_or(0);
    let mut failed = Vec::new();
    let mut skipped = 0;
    for script in &scripts {
        let other = other_program(script, &program.program).filter(|_| !arguments.any_program);
        if let Some(other) = other {
            skipped += 1;
            if arguments.json {
                println!("{}", json!({ "script": script.name, "skipped": other }));
            } else {
                println!("{:width$}  skipped: it tests {other}", script.name);
            }
            continue;
        }
        let failures = outcome(&program, arguments.engine, script)?;
        if arguments.json {
            println!("{}", as_json(script, &failures));
        } else {
            let verdict = if failures.is_empty() {
                "passed"
            } else {
                "FAILED"
            };
            println!("{:width$}  {verdict}", script.name);
        }
        if !failures.is_empty() {
            failed.push((script, failures));
        }
    }
    if !arguments.json {
        for (script, failures) in &failed {
            println!();
            for failure in failures {
                println!("{}:{}: {}", script.name, failure.line, failure.cause);
            }
        }
        println!();
        let run = scripts.len() - skipped;
        let passed = run - failed.len();
        match skipped {
            0 => println!("{passed} of {run} passed"),
            _ => println!("{passed} of {run} passed, {skipped} skipped"),
        }
    }
    if skipped == scripts.len() {
        let message = "all scripts test other programs; --any-program runs them too";
        return Err(CommandError::new(Failure::Expectation, message));
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandError::explained(Failure::Expectation))
    }
}

/// The program that `script` tests, if it says so and its name is not that of `program`, which may be
/// IR.
fn other_program<'s>(script: &'s Script, program: &Path) -> Option<&'s str> {
    let tested = script.program.as_deref()?;
    let name = Path::new(tested).file_stem()?;
    (Some(name) != program.file_stem()).then_some(tested)
}

/// Runs a script; the program is compiled with the script's macros.
fn outcome(
    program: &ProgramArguments,
    engine: EngineChoice,
    script: &Script,
) -> Result<Vec<StfError>, CommandError> {
    let mut program = program.clone();
    program.define(&script.defines);
    let program = program.compile()?;
    match engine {
        EngineChoice::Native => {
            let engine = Native::new(program, Default::default())
                .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
            Ok(stateplane_stf::run_all(script, engine))
        }
        EngineChoice::Interp => {
            let engine = Interp::new(program, Options::default())
                .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
            Ok(stateplane_stf::run_all(script, engine))
        }
    }
}

fn read(path: &Path) -> Result<Script, CommandError> {
    let name = path.display().to_string();
    let text = text_file::read(path).map_err(|error| {
        CommandError::new(Failure::Input, format!("test script `{name}`: {error}"))
    })?;
    stateplane_stf::parse_with(&name, &text, &|path| included(&name, path))
        .map_err(|error| CommandError::coded(Failure::Input, error.code(), error))
}

fn as_json(script: &Script, failures: &[StfError]) -> serde_json::Value {
    let failures: Vec<_> = failures
        .iter()
        .map(|failure| {
            json!({
                "line": failure.line,
                "code": failure.code(),
                "message": failure.cause.to_string(),
            })
        })
        .collect();
    json!({
        "script": script.name,
        "passed": failures.is_empty(),
        "failures": failures,
    })
}

//! Properties of every generated program.

use crate::compare::{Outcome, compare_program};
use crate::program::{Generated, generate};
use crate::source;
use stateplane_interp::{Interp, Options as InterpOptions};
use stateplane_ir::Program;
use stateplane_syntax::{format, print};
use std::fmt;

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The property, and its failure.
    pub what: String,
    /// The program.
    pub generated: Generated,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Generated { program, session } = &self.generated;
        write!(
            f,
            "{}\n--- session ---\n{session}--- program ---\n{program}",
            self.what
        )
    }
}

impl std::error::Error for Broken {}

/// Loads the interpreter.
///
/// # Errors
///
/// Why a program cannot be loaded.
pub fn interpreter(program: Program, seed: u64) -> Result<Interp, String> {
    Interp::new(program, InterpOptions { seed }).map_err(|error| error.to_string())
}

/// Generates a program and `packets` frames from `seed`, and checks that
///
/// * an equal seed gives an equal program and session;
/// * the program is accepted without an error, and its IR keeps the IR's rules;
/// * the text form of its IR reads as equal IR;
/// * its tree printed as text and read again gives equal IR;
/// * its text formatted gives equal IR, and formatted again stays as it is;
/// * the interpreter loads it, accepts the session's writes or refuses them with a
///   coded error, does not panic, and does the same in a second run.
///
/// # Errors
///
/// The first property that does not hold.
pub fn check(seed: u64, packets: usize) -> Result<Outcome, Box<Broken>> {
    let generated = generate(seed, packets);
    let broken = |what: String| {
        Box::new(Broken {
            what,
            generated: generated.clone(),
        })
    };
    if generate(seed, packets) != generated {
        return Err(broken("an equal seed gives another program".to_owned()));
    }
    let program = source::compile(&generated.program).map_err(&broken)?;
    if let Err(errors) = stateplane_ir::verify(&program) {
        return Err(broken(format!("the IR breaks its rules: {errors:?}")));
    }
    match stateplane_ir::parse(&program.to_string()) {
        Ok(again) if again == program => {}
        Ok(again) => return Err(broken(format!("the IR's text reads as\n{again}"))),
        Err(error) => return Err(broken(format!("the IR's text: {error}\n{program}"))),
    }
    let reread = reprint(&generated.program).map_err(&broken)?;
    let reread = source::compile(&reread)
        .map_err(|refusal| broken(format!("the printed tree is refused: {refusal}\n{reread}")))?;
    if without_locations(&program) != without_locations(&reread) {
        return Err(broken("the printed tree means something else".to_owned()));
    }
    let formatted = format(&generated.program)
        .map_err(|refusal| broken(format!("the formatter refuses it: {refusal}")))?;
    if format(&formatted).as_ref() != Ok(&formatted) {
        return Err(broken(format!(
            "formatting changes what is formatted:\n{formatted}"
        )));
    }
    let again = source::compile(&formatted)
        .map_err(|refusal| broken(format!("formatted, it is refused: {refusal}\n{formatted}")))?;
    if without_locations(&program) != without_locations(&again) {
        return Err(broken(format!(
            "formatted, it means something else:\n{formatted}"
        )));
    }
    interpreter(program, 0).map_err(|error| broken(format!("not loaded: {error}")))?;
    compare_program(
        &generated.program,
        &generated.session,
        interpreter,
        interpreter,
        0,
    )
    .map_err(|mismatch| broken(mismatch.difference.to_string()))
}

/// The text printed from the tree of a program without its includes.
fn reprint(text: &str) -> Result<String, String> {
    // The architecture's declarations are printed too, so the text is complete.
    Ok(print(&source::read(text)?.tree))
}

/// The text form of IR without the source locations that assertions carry.
pub(crate) fn without_locations(program: &Program) -> String {
    let text = program.to_string();
    let lines = text.lines().map(|line| match line.find(source::MAIN_FILE) {
        Some(at) => &line[..at],
        None => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

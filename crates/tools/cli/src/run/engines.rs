//! Engines of a switch: of the program that it starts with, and of those that replace it. The engines of
//! several workers are guarded.

use crate::exit::{CommandError, Failure};
use crate::p4runtime::MakeEngine;
use stateplane_host::random::draw_registers;
use stateplane_host::switch::SwitchServerError;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::{Compiled, Native};
use stateplane_runtime::Engine;
use stateplane_setup::check_use;

/// An engine that runs machine code of `program`, and how another one is made.
///
/// # Errors
///
/// If the program cannot be loaded.
pub fn native(
    program: Program,
    workers: usize,
) -> Result<(Native, MakeEngine<Native>), CommandError> {
    let (compile, make): (fn(Program) -> _, MakeEngine<Native>) = match workers {
        1 => (Compiled::new, |program| {
            check_use(&program).map_err(|it| it.to_string())?;
            drawn(Native::new(program, Default::default()).map_err(|it| it.to_string())?)
        }),
        _ => (Compiled::guarded, |program| {
            check_use(&program).map_err(|it| it.to_string())?;
            let compiled = Compiled::guarded(program).map_err(|it| it.to_string())?;
            let engine = compiled.engine(Default::default());
            drawn(engine.map_err(|it| it.to_string())?)
        }),
    };
    let engine = compile(program)
        .and_then(|compiled| compiled.engine(Default::default()))
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    Ok((engine, make))
}

/// An interpreter of `program`, and how another one is made.
///
/// # Errors
///
/// If the program cannot be loaded.
pub fn interp(
    program: Program,
    workers: usize,
) -> Result<(Interp, MakeEngine<Interp>), CommandError> {
    let (load, make): (fn(Program, _) -> _, MakeEngine<Interp>) = match workers {
        1 => (Interp::new, |program| {
            check_use(&program).map_err(|it| it.to_string())?;
            drawn(Interp::new(program, Default::default()).map_err(|it| it.to_string())?)
        }),
        _ => (Interp::guarded, |program| {
            check_use(&program).map_err(|it| it.to_string())?;
            let engine = Interp::guarded(program, Default::default());
            drawn(engine.map_err(|it| it.to_string())?)
        }),
    };
    let engine = load(program, Default::default())
        .map_err(|error| CommandError::coded(Failure::Program, error.code(), error))?;
    Ok((engine, make))
}

/// An engine for a switch that runs, its registers `@drawn_at_start` filled.
fn drawn<E: Engine>(mut engine: E) -> Result<E, String> {
    draw_registers(engine.state_mut())
        .map_err(|error| SwitchServerError::Random(error).to_string())?;
    Ok(engine)
}

//! The reference interpreter: walks the IR as it is, statement by statement. What it
//! does to a packet is what the program means; faster engines are compared with it.
//!
//! All variables lie in one vector of words at fixed places (see
//! [`Layout`]): P4 has no recursion, so a call copies words and
//! needs no frame. Expressions of up to 128 bits are computed in machine words;
//! wider ones and composite ones go through a stack of words.
//!
//! * `code`: the program and what is worked out once when it is loaded.
//! * `machine`: variables, packet and requests of the packet at hand.
//! * `place`, `expr`, `wide`: reading, computing, writing.
//! * `stmt`, `call`, `parser`, `packet`, `ops`: statements and operations.
//! * `units`: checks of what atomic blocks say that they use, for tests.
//! * `observe`, `watch`: telling an [`Observer`] what happens.
//! * `engine`: the [`Engine`](stateplane_runtime::Engine).

mod call;
mod code;
mod engine;
mod expr;
mod machine;
mod observe;
mod ops;
mod packet;
mod parser;
mod place;
mod stmt;
mod units;
mod watch;
mod wide;

#[cfg(test)]
mod tests;

pub use machine::InFlight;
pub use observe::{Block, Datum, Event, Observer};

use code::Code;
use machine::Machine;
use stateplane_ir::passes::{Whole, guard};
use stateplane_ir::{Program, VerifyError};
#[cfg(doc)]
use stateplane_runtime::Layout;
use stateplane_runtime::{Fellow, StateError, TargetState};
use thiserror::Error;
use units::UnitCheck;

/// Settings of an interpreter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Determines `random()` and the hash algorithm `random`.
    pub seed: u64,
}

/// A program that cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The program breaks rules of the IR. The checker makes no such program, so another tool built
    /// it wrongly.
    #[error("the program breaks the IR's rules: {}", first(.0))]
    Invalid(Vec<VerifyError>),
    /// Its tables or types are beyond what the target holds.
    #[error(transparent)]
    State(#[from] StateError),
}

fn first(errors: &[VerifyError]) -> String {
    match errors {
        [] => "none".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}

impl LoadError {
    /// Stable code: `IN001`, or that of the [`StateError`].
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Invalid(_) => "IN001",
            LoadError::State(error) => error.code(),
        }
    }
}

/// A loaded program with its state. Packets go through it by [`Engine`](stateplane_runtime::Engine),
/// and an observer, if there is one, gets each step.
#[derive(Debug)]
pub struct Interp<O = ()> {
    code: Code,
    machine: Machine,
    observer: O,
}

impl Interp {
    /// Loads a program: checks it, and makes its tables, registers, counters and
    /// meters.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn new(program: Program, options: Options) -> Result<Interp, LoadError> {
        Interp::observed(program, options, ())
    }

    /// Loads a program like [`Interp::new`], for an engine that gets [fellows](Fellow).
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn guarded(mut program: Program, options: Options) -> Result<Interp, LoadError> {
        stateplane_ir::verify(&program).map_err(LoadError::Invalid)?;
        guard(&mut program, Whole::Nothing);
        let plan = stateplane_cells::locks(&program);
        let state = TargetState::guarded(&program, plan, options.seed)?;
        Interp::with_state(program, state, ())
    }

    /// Loads a program for one of so many engines: like [`Interp::guarded`] if there are several.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn for_workers(
        program: Program,
        options: Options,
        workers: usize,
    ) -> Result<Interp, LoadError> {
        match workers {
            0 | 1 => Interp::new(program, options),
            _ => Interp::guarded(program, options),
        }
    }
}

impl Interp {
    /// Loads a program like [`Interp::new`], for tests of programs whose atomic blocks name the
    /// units of registers that they use.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    ///
    /// # Panics
    ///
    /// The engine panics as soon as a block uses an element of a unit that it did not name.
    pub fn checked(mut program: Program, options: Options) -> Result<Interp, LoadError> {
        stateplane_ir::verify(&program).map_err(LoadError::Invalid)?;
        guard(&mut program, Whole::Nothing);
        let units = UnitCheck::new(&program);
        let state = TargetState::new(&program, options.seed)?;
        let mut interp = Interp::with_state(program, state, ())?;
        interp.machine.units = Some(Box::new(units));
        Ok(interp)
    }
}

impl Fellow for Interp {
    fn fellow(&mut self, seed: u64) -> Self {
        let code = self.code.clone();
        let machine = Machine::new(&code, self.machine.state.fellow(seed));
        Interp {
            code,
            machine,
            observer: (),
        }
    }
}

impl<O: Observer> Interp<O> {
    /// Loads a program like [`Interp::new`], with an observer.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn observed(
        program: Program,
        options: Options,
        observer: O,
    ) -> Result<Interp<O>, LoadError> {
        stateplane_ir::verify(&program).map_err(LoadError::Invalid)?;
        let state = TargetState::new(&program, options.seed)?;
        Interp::with_state(program, state, observer)
    }

    fn with_state(
        program: Program,
        state: TargetState,
        observer: O,
    ) -> Result<Interp<O>, LoadError> {
        let code = Code::new(program)?;
        let machine = Machine::new(&code, state);
        Ok(Interp {
            code,
            machine,
            observer,
        })
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.code.program
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
}

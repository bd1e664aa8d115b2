//! P4 programs as machine code: the IR is translated when a program is loaded, and runs
//! as an [`Engine`](stateplane_runtime::Engine) in place of the interpreter, which it
//! agrees with packet by packet.
//!
//! * `plan`: what is decided before: which variables live in registers, which headers
//!   are read where they lie in the frame, which calls become part of their callers.
//! * `codegen`: IR to Cranelift's, three functions for a program.
//! * `table`: tables as generated code looks them up.
//! * `context`, `run`: what generated code shares with the engine, and calls of it.
//! * a slice of the program, an engine of its own within the engine of several workers, tells of
//!   frames the key of the state that they lock.
//! * `machine`, `engine`: the [`Engine`](stateplane_runtime::Engine).
//!
//! Memory for code is never writable and executable at once, and is given back when the
//! engine is dropped.

mod codegen;
mod context;
mod engine;
mod in_flight;
mod machine;
mod plan;
mod run;
mod table;

pub use in_flight::InFlight;

use codegen::Code;
use context::Context;
use in_flight::Pool;
use machine::Machine;
use plan::Plan;
use stateplane_cells::{KeySlice, LockPlan, key_slice};
use stateplane_ir::passes::{Whole, guard};
use stateplane_ir::{Program, VerifyError};
use stateplane_runtime::{Color, Count, Fellow, StateError, TargetState};
use std::ops::Range;
use std::sync::Arc;
use table::{Lookup, View};
use thiserror::Error;

/// Settings of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Determines `random()` and the hash algorithm `random`.
    pub seed: u64,
    /// True if the code generator's verifier looks at the code before it becomes machine code;
    /// [`LoadError::Code`] has its objections. Loading takes longer; on by default in debug
    /// builds alone.
    pub verify: bool,
}

impl Options {
    /// Settings with `seed` and the code generator's verifier on.
    pub fn verified(seed: u64) -> Self {
        Options { seed, verify: true }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            seed: 0,
            verify: cfg!(debug_assertions),
        }
    }
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
    /// The code generator cannot make it into code for this processor.
    #[error("no machine code for this program: {0}; run it with --engine interp")]
    Code(String),
}

fn first(errors: &[VerifyError]) -> String {
    match errors {
        [] => "none".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first}, and {} more", rest.len()),
    }
}

impl LoadError {
    /// Stable code: `NA001`, `NA002`, or that of the [`StateError`].
    pub fn code(&self) -> &'static str {
        match self {
            LoadError::Invalid(_) => "NA001",
            LoadError::Code(_) => "NA002",
            LoadError::State(error) => error.code(),
        }
    }
}

/// A program as machine code, for any number of engines.
#[derive(Clone, Debug)]
pub struct Compiled(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    code: Code,
    plan: Plan,
    slice: Option<Slice>,
}

/// The slice that computes keys of frames, and its code.
#[derive(Debug)]
struct Slice {
    of: KeySlice,
    compiled: Compiled,
}

impl Compiled {
    /// Checks a program and makes code of it.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn new(program: Program) -> Result<Compiled, LoadError> {
        Compiled::with(program, false, Options::default().verify)
    }

    /// Compiles a program like [`Compiled::new`], with the code generator's verifier on.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn verified(program: Program) -> Result<Compiled, LoadError> {
        Compiled::with(program, false, true)
    }

    /// Compiles a program like [`Compiled::new`], for engines that get [fellows](Fellow).
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn guarded(program: Program) -> Result<Compiled, LoadError> {
        Compiled::with(program, true, Options::default().verify)
    }

    fn with(mut program: Program, guarded: bool, verify: bool) -> Result<Compiled, LoadError> {
        stateplane_ir::verify(&program).map_err(LoadError::Invalid)?;
        stateplane_ir::passes::optimise(&mut program);
        let locks = guarded.then(|| {
            guard(&mut program, Whole::Words);
            stateplane_cells::locks(&program)
        });
        let slice = match locks.as_ref().and_then(|it| key_slice(&program, it)) {
            Some(of) => {
                let compiled = Compiled::planned(of.program.clone(), locks.clone(), None, verify)?;
                Some(Slice { of, compiled })
            }
            None => None,
        };
        Compiled::planned(program, locks, slice, verify)
    }

    fn planned(
        program: Program,
        locks: Option<LockPlan>,
        slice: Option<Slice>,
        verify: bool,
    ) -> Result<Compiled, LoadError> {
        let plan = Plan::new(program, locks)?;
        let code = codegen::compile(&plan, verify).map_err(LoadError::Code)?;
        Ok(Compiled(Arc::new(Shared { code, plan, slice })))
    }

    /// True if all callables became part of their callers, as they do unless that makes the program too
    /// large. Otherwise packets take several times as long: split the program, or call less often.
    #[must_use]
    pub fn is_inlined(&self) -> bool {
        self.0.plan.calls.inline_all
    }

    /// An engine with tables, registers, counters and meters of its own.
    ///
    /// # Errors
    ///
    /// [`LoadError::State`].
    pub fn engine(&self, options: Options) -> Result<Native, LoadError> {
        let Plan { program, locks, .. } = &self.0.plan;
        let state = match locks {
            Some(locks) => TargetState::guarded(program, locks.plan.clone(), options.seed),
            None => TargetState::new(program, options.seed),
        };
        Ok(self.with_slice(state?))
    }

    /// An engine, and within it one that runs the slice if there is one.
    fn with_slice(&self, mut state: TargetState) -> Native {
        let slice = self.0.slice.as_ref().and_then(|slice| {
            // Tables that the program has can be made again; without a slice no key is known.
            let state = state.of_slice(&slice.of).ok()?;
            Some(Box::new(slice.compiled.with_state(state)))
        });
        Native {
            slice,
            ..self.with_state(state)
        }
    }

    fn with_state(&self, state: TargetState) -> Native {
        let Shared { code, plan, .. } = &*self.0;
        if let Some((memory, bytes)) = state.memory() {
            table::memory::prefer_huge_pages(memory, bytes);
        }
        let tables = plan.program.tables.iter().zip(state.tables());
        let lookups = tables
            .map(|(def, table)| Lookup::new(&plan.program, def, table))
            .collect();
        let bytes = state.lock_bytes();
        let machine = Machine {
            held_locks: vec![0; plan.locks_held()],
            colors: vec![Color::Green; state.meters().len()],
            state,
            sites: code.sites.clone(),
            data: Vec::new(),
            data_free: 0,
            held: Vec::new(),
            realigned: Vec::new(),
            out: Vec::new(),
            out_free: 0,
            room: code.room,
            captured: None,
            packet_words: plan.packet_words(),
        };
        Native {
            machine: Box::new(machine),
            context: Box::new(Context::new(bytes)),
            lookups,
            views: Vec::new(),
            counters: Vec::new(),
            stale: true,
            gave_up: false,
            in_burst: false,
            is_fresh: false,
            announces: false,
            packet: apart(plan.packet_words()),
            locals: apart(plan.local_words()),
            zeros: vec![0; plan.largest.max(1)],
            cleared: plan.cleared(),
            dirty: plan.dirty(),
            pool: Pool::new(plan.packet_words()),
            shared: self.0.clone(),
            slice: None,
        }
    }
}

/// Words of 0, and behind them as many without use as processors fetch together: the next thing in memory
/// may be another worker's.
fn apart(words: usize) -> Vec<u128> {
    let mut of = Vec::with_capacity(words + 8);
    of.resize(words, 0);
    of
}

/// A loaded program with its code and state. Packets go through it by
/// [`Engine`](stateplane_runtime::Engine).
#[derive(Debug)]
pub struct Native {
    shared: Arc<Shared>,
    machine: Box<Machine>,
    context: Box<Context>,
    lookups: Vec<Lookup>,
    views: Vec<View>,
    counters: Vec<*mut Count>,
    /// True if the control plane may have changed something.
    stale: bool,
    /// True if the last run gave its packet up.
    gave_up: bool,
    /// True in a burst of packets.
    in_burst: bool,
    /// True if the context says of the packet at hand that it came by a port and goes on at once.
    is_fresh: bool,
    /// True if lookups in some table are worth announcing.
    announces: bool,
    /// The packet at hand, and all other variables.
    packet: Vec<u128>,
    locals: Vec<u128>,
    zeros: Vec<u8>,
    /// Words of the packet that generated code finds in memory when it starts.
    cleared: Vec<Range<usize>>,
    /// The word that says whether any of them may be other than 0.
    dirty: usize,
    pool: Pool,
    /// Computes keys of frames ([`Engine::state_key`](stateplane_runtime::Engine::state_key)).
    slice: Option<Box<Native>>,
}

// SAFETY: its pointers lead to what it owns itself, or to the shared code.
#[allow(unsafe_code, reason = "engines move to the threads that run them")]
unsafe impl Send for Native {}

impl Fellow for Native {
    fn fellow(&mut self, seed: u64) -> Self {
        let state = self.machine.state.fellow(seed);
        Compiled(self.shared.clone()).with_slice(state)
    }
}

impl Native {
    /// Loads a program: checks it, makes code of it, and makes its tables, registers,
    /// counters and meters.
    ///
    /// # Errors
    ///
    /// [`LoadError`].
    pub fn new(program: Program, options: Options) -> Result<Native, LoadError> {
        Compiled::with(program, false, options.verify)?.engine(options)
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.shared.plan.program
    }

    /// Bytes of machine code that the program became.
    pub fn code_bytes(&self) -> usize {
        self.shared.code.bytes
    }

    /// Bytes of memory that the lookups of a table take, beside what the control plane
    /// keeps; `None` if there is no such table.
    pub fn lookup_bytes(&self, table: &str) -> Option<usize> {
        let position = self
            .machine
            .state
            .tables()
            .iter()
            .position(|known| known.name() == table)?;
        Some(self.lookups[position].bytes())
    }
}

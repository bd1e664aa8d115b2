//! Runs seeds.

use crate::chain::SHARDS;
use crate::device::{Device, Identity};
use crate::model::Model;
use crate::options::{EngineKind, Options};
use crate::p4::{P4Switch, SetupError};
use crate::program::program;
use crate::report::Report;
use crate::world::World;
use stateplane_history::judge;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use thiserror::Error;

/// Why a world cannot begin.
#[derive(Debug, Error)]
pub enum SimError {
    /// The store refuses the scenario's configuration.
    #[error("SIM001: the scenario cannot be run: {0}")]
    Store(#[from] stateplane_store::ConfigError),
    /// The program does not compile; the compiler says why.
    #[error("SIM002: the program cannot be compiled:\n{0}")]
    Compile(String),
    /// The interpreter refuses the program.
    #[error("SIM003: the program cannot be loaded: {0}")]
    Load(#[from] stateplane_interp::LoadError),
    /// No machine code can be made of the program.
    #[error("SIM005: the program cannot be loaded: {0}")]
    Native(#[from] stateplane_native::LoadError),
    /// The program lacks what a switch of the world sets up.
    #[error("SIM004: the switch cannot be set up: {0}")]
    Setup(#[from] SetupError),
}

/// What switches run.
enum Loaded {
    /// The model in Rust.
    Model,
    Interp(Box<Program>),
    Native(Compiled),
}

/// Options made ready to run any number of seeds.
pub struct Simulator {
    options: Options,
    program: Loaded,
}

impl Simulator {
    /// Compiles the program, if it is one.
    ///
    /// # Errors
    ///
    /// [`SimError::Compile`] and [`SimError::Native`].
    pub fn new(options: Options) -> Result<Self, SimError> {
        let buckets = options.scenario.buckets;
        let program =
            program(options.program, buckets, options.without).map_err(SimError::Compile)?;
        let program = match (program, options.engine) {
            (None, _) => Loaded::Model,
            (Some(program), EngineKind::Interp) => Loaded::Interp(Box::new(program)),
            (Some(program), EngineKind::Native) => Loaded::Native(Compiled::new(program)?),
        };
        Ok(Self { options, program })
    }

    /// Runs one seed.
    ///
    /// # Errors
    ///
    /// Whatever keeps the world from beginning.
    pub fn run(&self, seed: u64) -> Result<Report, SimError> {
        let make = |identity: Identity| self.device(identity);
        let remains = World::new(&self.options, &make, seed)?.run()?;
        Ok(Report {
            seed,
            options: self.options.clone(),
            violations: judge(&remains.history),
            anomalies: remains.anomalies,
            history: remains.history,
            coverage: remains.coverage,
            trace: remains.trace,
        })
    }

    fn device(&self, identity: Identity) -> Result<Box<dyn Device>, SimError> {
        let (kind, seed) = (self.options.program, u64::from(identity.incarnation));
        Ok(match &self.program {
            Loaded::Model => {
                let capacity = self.options.scenario.buckets as usize * 4;
                Box::new(Model::new(identity, SHARDS, capacity))
            }
            Loaded::Interp(program) => {
                let options = stateplane_interp::Options { seed };
                let engine = Interp::new((**program).clone(), options)?;
                Box::new(P4Switch::new(engine, kind, identity)?)
            }
            Loaded::Native(compiled) => {
                let engine = compiled.engine(stateplane_native::Options { seed })?;
                Box::new(P4Switch::new(engine, kind, identity)?)
            }
        })
    }
}

/// Runs one seed. To run several, keep a [`Simulator`].
///
/// # Errors
///
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn run(seed: u64, options: &Options) -> Result<Report, SimError> {
    Simulator::new(options.clone())?.run(seed)
}

//! Runs seeds.

use crate::device::{Device, P4Switch};
use crate::engines::{BATCH, FETCH};
use crate::options::{Options, Rule};
use crate::report::Report;
use crate::world::World;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_sync::SettingsError;
use stateplane_sync_setup::SetupError;
use stateplane_world::EngineKind;

/// Why a world cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The program does not compile; the compiler says why.
    #[error("the program cannot be compiled:\n{0}")]
    Compile(String),
    /// The interpreter refuses the program.
    #[error("the program cannot be loaded: {0}")]
    Load(#[from] stateplane_interp::LoadError),
    /// No machine code can be made of the program.
    #[error("the program cannot be loaded: {0}")]
    Native(#[from] stateplane_native::LoadError),
    /// The program lacks what the switch of the world sets up.
    #[error("the switch cannot be set up: {0}")]
    Setup(#[from] SetupError),
    /// An engine refuses its settings.
    #[error("the engine cannot start: {0}")]
    Engine(#[from] SettingsError),
}

impl SimError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SimError::Compile(_) => "SIM002",
            SimError::Load(_) => "SIM003",
            SimError::Setup(_) => "SIM004",
            SimError::Native(_) => "SIM005",
            SimError::Engine(error) => error.code(),
        }
    }
}

enum Loaded {
    Interp(Box<Program>),
    Native(Compiled),
}

/// Options made ready to run any number of seeds.
pub struct Simulator {
    options: Options,
    program: Loaded,
}

impl Simulator {
    /// Compiles the program.
    ///
    /// # Errors
    ///
    /// [`SimError::Compile`] and [`SimError::Native`].
    pub fn new(options: Options) -> Result<Self, SimError> {
        let scenario = &options.scenario;
        let mut macros = vec![
            ("SYNC_BATCH".to_owned(), BATCH.to_string()),
            ("SYNC_FETCH".to_owned(), FETCH.to_string()),
            ("SYNC_WINDOW".to_owned(), scenario.window.to_string()),
        ];
        let fault = options.without.and_then(Rule::macro_name);
        macros.extend(fault.map(|name| (name.to_owned(), "1".to_owned())));
        let program = scenario.program.compile(scenario.locations, macros);
        let program = program.map_err(SimError::Compile)?;
        let program = match options.engine {
            EngineKind::Interp => Loaded::Interp(Box::new(program)),
            EngineKind::Native if scenario.workers > 1 => {
                Loaded::Native(Compiled::guarded(program)?)
            }
            EngineKind::Native => Loaded::Native(Compiled::verified(program)?),
        };
        Ok(Self { options, program })
    }

    /// Options of the simulator.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Runs one seed.
    ///
    /// # Errors
    ///
    /// Returns the error that keeps the world from starting.
    pub fn run(&self, seed: u64) -> Result<Report, SimError> {
        stateplane_invariant::panic_in_release();
        let scenario = &self.options.scenario;
        let make = |incarnation: u32| -> Result<Box<dyn Device>, SimError> {
            let seed = u64::from(incarnation);
            let workers = scenario.workers;
            Ok(match &self.program {
                Loaded::Interp(program) => {
                    let options = stateplane_interp::Options { seed };
                    let engine = Interp::for_workers((**program).clone(), options, workers.into())?;
                    Box::new(P4Switch::new(engine, scenario, incarnation)?)
                }
                Loaded::Native(compiled) => {
                    let engine = compiled.engine(stateplane_native::Options {
                        seed,
                        ..stateplane_native::Options::default()
                    })?;
                    Box::new(P4Switch::new(engine, scenario, incarnation)?)
                }
            })
        };
        let remains = World::new(scenario, &make, self.options.without, seed)?.run()?;
        Ok(Report {
            seed,
            options: self.options.clone(),
            violations: remains.violations,
            coverage: remains.coverage,
            trace: remains.trace,
            faults: remains.faults,
        })
    }
}

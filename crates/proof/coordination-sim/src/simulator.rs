//! Runs seeds.

use crate::device::{Device, P4Switch};
use crate::options::{Options, Rule};
use crate::places::Places;
use crate::report::Report;
use crate::subscriber::SUBSCRIPTION;
use crate::world::World;
use stateplane_compile::shipped;
use stateplane_coordination_setup::SetupError;
use stateplane_history::coordination::judge;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_world::EngineKind;

/// The program of the switches.
const SWITCH: &str = "apps/coordination/coordination_switch.p4";

/// Lanes of each group.
pub(crate) const LANES: u32 = 64;

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
    /// The program lacks what a switch of the world sets up.
    #[error("the switch cannot be set up: {0}")]
    Setup(#[from] SetupError),
}

impl SimError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SimError::Compile(_) => "SIM002",
            SimError::Load(_) => "SIM003",
            SimError::Setup(_) => "SIM004",
            SimError::Native(_) => "SIM005",
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
            (
                "COORDINATION_GROUPS".to_owned(),
                scenario.groups.to_string(),
            ),
            ("COORDINATION_SLOTS".to_owned(), scenario.slots.to_string()),
            ("COORDINATION_LANES".to_owned(), LANES.to_string()),
            ("COORDINATION_RING".to_owned(), scenario.ring.to_string()),
            (
                "COORDINATION_SUBSCRIPTION_MICROSECONDS".to_owned(),
                SUBSCRIPTION.to_string(),
            ),
        ];
        let fault = options.without.and_then(Rule::macro_name);
        macros.extend(fault.map(|name| (name.to_owned(), "1".to_owned())));
        let program = shipped(SWITCH).defines(macros).program();
        let program = program.map_err(|refused| SimError::Compile(refused.to_string()))?;
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
    ///
    /// # Panics
    ///
    /// If an invariant breaks, in release builds too.
    pub fn run(&self, seed: u64) -> Result<Report, SimError> {
        self.run_in(&self.options, seed)
    }

    /// A switch that knows nothing yet.
    pub(crate) fn device(
        &self,
        places: &Places,
        place: usize,
        incarnation: u32,
    ) -> Result<Box<dyn Device>, SimError> {
        let seed = u64::from(incarnation);
        let workers = self.options.scenario.workers;
        Ok(match &self.program {
            Loaded::Interp(program) => {
                let options = stateplane_interp::Options { seed };
                let engine = Interp::for_workers((**program).clone(), options, workers.into())?;
                Box::new(P4Switch::new(engine, workers, places, place, incarnation)?)
            }
            Loaded::Native(compiled) => {
                let engine = compiled.engine(stateplane_native::Options {
                    seed,
                    ..stateplane_native::Options::default()
                })?;
                Box::new(P4Switch::new(engine, workers, places, place, incarnation)?)
            }
        })
    }

    /// Runs one seed as `options` say, which differ from its own in what the program does not
    /// depend on.
    pub(crate) fn run_in(&self, options: &Options, seed: u64) -> Result<Report, SimError> {
        stateplane_invariant::panic_in_release();
        let make = |places: &Places, place, incarnation| self.device(places, place, incarnation);
        let remains = World::new(options, &make, seed)?.run()?;
        Ok(Report {
            seed,
            options: options.clone(),
            violations: judge(&remains.history),
            history: remains.history,
            anomalies: remains.anomalies,
            coverage: remains.coverage,
            trace: remains.trace,
            faults: remains.faults,
            planned: remains.planned,
        })
    }
}

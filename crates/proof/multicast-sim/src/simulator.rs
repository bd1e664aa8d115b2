//! Runs seeds.

use crate::device::{Device, P4Switch};
use crate::options::{Options, Rule};
use crate::report::Report;
use crate::world::World;
use stateplane_compile::shipped;
use stateplane_history::multicast::judge;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_multicast_setup::SetupError;
use stateplane_native::Compiled;
use stateplane_world::EngineKind;

/// The program of the switches.
const SWITCH: &str = "apps/multicast/multicast_switch.p4";

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
        let sessions = u16::from(scenario.senders) + 1;
        let mut macros = vec![
            ("MULTICAST_GROUPS".to_owned(), scenario.groups.to_string()),
            ("MULTICAST_WINDOW".to_owned(), scenario.window.to_string()),
            ("MULTICAST_SESSIONS".to_owned(), sessions.to_string()),
            ("MULTICAST_LANES".to_owned(), scenario.lanes.to_string()),
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

    /// A switch that knows nothing yet; `founds` if its groups begin with it.
    fn device(
        &self,
        place: usize,
        incarnation: u32,
        founds: bool,
    ) -> Result<Box<dyn Device>, SimError> {
        let seed = u64::from(incarnation);
        let workers = self.options.scenario.workers;
        let scenario = &self.options.scenario;
        Ok(match &self.program {
            Loaded::Interp(program) => {
                let options = stateplane_interp::Options { seed };
                let engine = Interp::for_workers((**program).clone(), options, workers.into())?;
                Box::new(P4Switch::new(engine, scenario, place, incarnation, founds)?)
            }
            Loaded::Native(compiled) => {
                let engine = compiled.engine(stateplane_native::Options {
                    seed,
                    ..stateplane_native::Options::default()
                })?;
                Box::new(P4Switch::new(engine, scenario, place, incarnation, founds)?)
            }
        })
    }

    /// Runs one seed as `options` say, which differ from its own in what the program does not
    /// depend on.
    pub(crate) fn run_in(&self, options: &Options, seed: u64) -> Result<Report, SimError> {
        stateplane_invariant::panic_in_release();
        let make = |place, incarnation, founds| self.device(place, incarnation, founds);
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

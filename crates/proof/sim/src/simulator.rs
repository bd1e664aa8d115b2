//! Runs seeds.

use crate::chain::SHARDS;
use crate::device::{Device, Identity};
use crate::model::Model;
use crate::options::{Options, ProgramKind};
use crate::own::Own;
use crate::p4::{P4Switch, hold};
use crate::program::program;
use crate::report::Report;
use crate::world::World;
use stateplane_history::replication::judge;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_native::Compiled;
use stateplane_runtime::{Engine as _, TargetState};
use stateplane_setup::SetupError;
use stateplane_world::EngineKind;
use thiserror::Error;

/// Why a world cannot begin.
#[derive(Debug, Error)]
pub enum SimError {
    /// The store refuses the scenario's configuration.
    #[error("the scenario cannot be run: {0}")]
    Store(#[from] stateplane_store::ConfigError),
    /// The disk of a server does not begin.
    #[error("the scenario cannot be run: {0}")]
    Disk(#[from] stateplane_disk::DiskError),
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
    /// Nothing can be planned from a capture.
    #[error("the capture says nothing of what the program needs: {0}")]
    Capacity(String),
    /// A switch of the simulator cannot keep the snapshots of a program.
    #[error(
        "snapshots of {elements} elements each {period} ms are {batch} frames of the packet generator in a millisecond; a switch of the simulator keeps up with {most}: simulate smaller arrays, or a longer snapshot period and bound"
    )]
    Walk {
        /// Elements of a snapshot.
        elements: u32,
        /// Milliseconds from one snapshot to the next.
        period: u32,
        /// Frames in a millisecond.
        batch: u32,
        /// Largest number that is possible.
        most: u32,
    },
    /// A packet test cannot be read, or the program refuses what it sets up.
    #[error("the packet test cannot be used: {0}")]
    PacketTest(#[from] stateplane_stf::StfError),
}

impl SimError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            SimError::Store(_) | SimError::Disk(_) => "SIM001",
            SimError::Compile(_) => "SIM002",
            SimError::Load(_) => "SIM003",
            SimError::Setup(_) => "SIM004",
            SimError::Native(_) => "SIM005",
            SimError::PacketTest(_) => "SIM006",
            SimError::Capacity(_) => "SIM007",
            SimError::Walk { .. } => "SIM008",
        }
    }
}

/// Loaded program of the switches.
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
    own: Option<Own>,
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
        let program = match program {
            None => Loaded::Model,
            Some(program) => loaded(program, options.engine)?,
        };
        Ok(Self {
            options,
            program,
            own: None,
        })
    }

    /// Makes ready to run a program of the user's, protected.
    ///
    /// # Errors
    ///
    /// [`SimError::Compile`] and [`SimError::Native`].
    pub fn own(own: Own, options: Options) -> Result<Self, SimError> {
        let program = own.protected(options.scenario.buckets, options.without)?;
        let program = loaded(program, options.engine)?;
        let options = Options {
            program: ProgramKind::Own(own.class()),
            ..options
        };
        Ok(Self {
            options,
            program,
            own: Some(own),
        })
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

    /// Options of the simulator.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Runs one seed as `options` say, which differ from its own in what the program does
    /// not depend on.
    pub(crate) fn run_in(&self, options: &Options, seed: u64) -> Result<Report, SimError> {
        stateplane_invariant::panic_in_release();
        let make = |identity: Identity| self.device(identity);
        let own = self.own.as_ref();
        let mut remains = World::new(options, &make, own, seed)?.run()?;
        if let Some(own) = own {
            let found = own.judge(&remains.history, &remains.released);
            remains.anomalies.extend(found);
        }
        Ok(Report {
            seed,
            options: options.clone(),
            violations: judge(&remains.history),
            anomalies: remains.anomalies,
            history: remains.history,
            coverage: remains.coverage,
            trace: remains.trace,
            faults: remains.faults,
            planned: remains.planned,
        })
    }

    /// Gives a program of the user's its table entries.
    fn configure(&self, state: &mut TargetState) {
        if let Some(own) = &self.own {
            own.configure(state);
        }
    }

    fn device(&self, identity: Identity) -> Result<Box<dyn Device>, SimError> {
        let (kind, seed) = (self.options.program, u64::from(identity.incarnation));
        let brisk = self.options.scenario.brisk;
        let deaf = self.options.scenario.deaf && identity.switch == 1;
        let without = self.options.without;
        Ok(match &self.program {
            Loaded::Model => {
                let capacity = self.options.scenario.buckets as usize * 4;
                Box::new(Model::new(
                    identity,
                    SHARDS,
                    capacity,
                    hold(brisk),
                    without,
                    deaf,
                ))
            }
            Loaded::Interp(program) => {
                let options = stateplane_interp::Options { seed };
                let mut engine = Interp::checked((**program).clone(), options)?;
                self.configure(engine.state_mut());
                Box::new(P4Switch::new(engine, kind, identity, brisk)?.with(without, deaf))
            }
            Loaded::Native(compiled) => {
                let mut engine = compiled.engine(stateplane_native::Options {
                    seed,
                    ..stateplane_native::Options::default()
                })?;
                self.configure(engine.state_mut());
                Box::new(P4Switch::new(engine, kind, identity, brisk)?.with(without, deaf))
            }
        })
    }
}

/// A program made ready for an engine.
fn loaded(program: Program, engine: EngineKind) -> Result<Loaded, SimError> {
    Ok(match engine {
        EngineKind::Interp => Loaded::Interp(Box::new(program)),
        EngineKind::Native => Loaded::Native(Compiled::verified(program)?),
    })
}

/// Runs one seed. To run several, keep a [`Simulator`].
///
/// # Errors
///
/// Returns the errors of [`Simulator::new`] and [`Simulator::run`].
pub fn run(seed: u64, options: &Options) -> Result<Report, SimError> {
    Simulator::new(options.clone())?.run(seed)
}

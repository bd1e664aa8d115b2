//! Runs seeds.

use crate::chain::SHARDS;
use crate::device::{Device, Identity};
use crate::model::Model;
use crate::options::Options;
use crate::report::Report;
use crate::world::World;
use stateplane_history::judge;
use thiserror::Error;

/// Why a world cannot begin.
#[derive(Debug, Error)]
pub enum SimError {
    /// The store refuses the scenario's configuration.
    #[error("SIM001: the scenario cannot be run: {0}")]
    Store(#[from] stateplane_store::ConfigError),
}

/// Options made ready to run any number of seeds.
pub struct Simulator {
    options: Options,
}

impl Simulator {
    /// Compiles the program, if it is one.
    ///
    /// # Errors
    ///
    /// If it cannot be compiled.
    pub fn new(options: Options) -> Result<Self, SimError> {
        Ok(Self { options })
    }

    /// Runs one seed.
    ///
    /// # Errors
    ///
    /// If the scenario cannot be run.
    pub fn run(&self, seed: u64) -> Result<Report, SimError> {
        let capacity = self.options.scenario.buckets as usize * 4;
        let make = |identity: Identity| -> Box<dyn Device> {
            Box::new(Model::new(identity, SHARDS, capacity))
        };
        let remains = World::new(&self.options, &make, seed)?.run();
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
}

/// Runs one seed. To run several, keep a [`Simulator`].
///
/// # Errors
///
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn run(seed: u64, options: &Options) -> Result<Report, SimError> {
    Simulator::new(options.clone())?.run(seed)
}

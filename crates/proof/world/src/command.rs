//! The command that repeats a run.

use crate::{Chosen, EngineKind};
use std::fmt;

/// Arguments of `stateplane sim` that repeat one run. Its text is the command.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// Arguments that name the program.
    pub program: &'a str,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Settings in which the scenario differs from the one of that name, as `NAME=VALUE`.
    pub settings: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// Part of the plan that is executed.
    pub chosen: &'a Chosen,
    /// Name of the rule that is turned off.
    pub without: Option<&'a str>,
    /// Engine of the switches.
    pub engine: EngineKind,
}

impl fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            scenario,
            seed,
            ..
        } = self;
        write!(
            f,
            "stateplane sim {program} --scenario {scenario} --seed {seed}"
        )?;
        for setting in &self.settings {
            write!(f, " --set {setting}")?;
        }
        if let Some(packets) = &self.chosen.packets {
            write!(f, " --packets {packets}")?;
        }
        if let Some(faults) = &self.chosen.faults {
            write!(f, " --faults {faults}")?;
        }
        if let Some(rule) = self.without {
            write!(f, " --without {rule}")?;
        }
        if self.engine != EngineKind::default() {
            write!(f, " --engine {}", self.engine.name())?;
        }
        Ok(())
    }
}

//! Options that evaluations in the lab share, and what follows from them.

use crate::error::EvalError;
use crate::experiments::Plan;
use crate::figure::Figure;
use crate::series;
use clap::Args;
use indicatif::ProgressBar;
use std::path::PathBuf;

/// How much is measured, and the places of files.
#[derive(Clone, Debug, Args)]
pub struct LabOptions {
    /// Number of runs of each measurement, one system after the other in each turn.
    #[arg(long, default_value_t = 5)]
    pub runs: usize,
    /// One short run of few settings, to check that everything works; its figures mean little.
    #[arg(long)]
    pub quick: bool,
    /// Folder for tables and plots, one within it for each figure.
    #[arg(long, default_value = "target/eval")]
    pub output: PathBuf,
    /// The lab's folder, with eval.toml, coordination.toml and eval/p4mcast.toml.
    #[arg(long, default_value = "lab")]
    pub lab: PathBuf,
    /// Folder for the logs of every process.
    #[arg(long, default_value = "target/lab")]
    pub logs: PathBuf,
    /// Print the figures as one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// Folders in which experiments find and leave files.
#[derive(Clone, Debug)]
pub struct Place {
    /// The lab's folder.
    pub lab: PathBuf,
    /// For logs, a folder for each network.
    pub logs: PathBuf,
    /// The program that is everything.
    pub stateplane: PathBuf,
    /// Silence in ms after which the controller takes a switch for dead.
    pub detection_ms: u16,
}

impl LabOptions {
    /// Amount of measurement.
    ///
    /// # Errors
    /// `EV001` for a number of runs that is not 1 to 1000.
    pub(crate) fn plan(&self) -> Result<Plan, EvalError> {
        series::check_runs(self.runs)?;
        Ok(Plan {
            runs: if self.quick { 1 } else { self.runs },
            quick: self.quick,
        })
    }

    /// The folders from the root: processes look for them from folders of their own.
    ///
    /// # Errors
    /// `EV002` if the system does not tell them.
    pub(crate) fn place(&self, detection_ms: u16) -> Result<Place, EvalError> {
        Ok(Place {
            lab: series::absolute(&self.lab)?,
            logs: series::absolute(&self.logs.join("eval"))?,
            stateplane: series::stateplane()?,
            detection_ms,
        })
    }

    /// Makes the figures of `chosen` with `make`, as [`series::make`] does.
    ///
    /// # Errors
    /// Those of `make`, and `EV002` for files that cannot be written.
    pub(crate) fn make<E>(
        &self,
        chosen: Vec<E>,
        make: impl FnMut(E, &ProgressBar) -> Result<Figure, EvalError>,
    ) -> Result<Vec<Figure>, EvalError> {
        series::make(chosen, &self.output, self.json, make)
    }
}

/// `own`, and behind it the others of those that are named, or of `all` if none is.
pub(crate) fn beside<S: Copy + PartialEq>(own: S, named: &[S], all: &[S]) -> Vec<S> {
    let others = series::chosen(named, all);
    let others = others.into_iter().filter(|of| *of != own);
    std::iter::once(own).chain(others).collect()
}

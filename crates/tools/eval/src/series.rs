//! Figures that are made one after the other.

use crate::error::EvalError;
use crate::figure::Figure;
use indicatif::{ProgressBar, ProgressStyle};
use stateplane_lab::{LabError, interrupt};
use std::path::{Path, PathBuf};

/// The experiments that are named, or `all` if none is.
pub(crate) fn chosen<E: Clone>(named: &[E], all: &[E]) -> Vec<E> {
    if named.is_empty() { all } else { named }.to_vec()
}

/// Refuses a number of runs that is not 1 to 1000.
pub(crate) fn check_runs(runs: usize) -> Result<(), EvalError> {
    if (1..=1000).contains(&runs) {
        Ok(())
    } else {
        Err(EvalError::Options("--runs must be 1 to 1000".to_owned()))
    }
}

/// Refuses to go on after ^C.
pub(crate) fn check_interrupt() -> Result<(), EvalError> {
    if interrupt::requested() {
        return Err(LabError::Interrupted.into());
    }
    Ok(())
}

/// The path from the root: processes look for it from folders of their own.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, EvalError> {
    std::path::absolute(path).map_err(|reason| EvalError::file(path, reason))
}

/// The path of this program, which processes of the lab run too.
pub(crate) fn stateplane() -> Result<PathBuf, EvalError> {
    std::env::current_exe().map_err(|reason| EvalError::file("/proc/self/exe", reason))
}

/// Makes the figures of `chosen` with `make`, which tells its progress by the bar. Each is written
/// to the folder `output` as soon as it is done, and printed unless `json` asks for all at the end.
pub(crate) fn make<E>(
    chosen: Vec<E>,
    output: &Path,
    json: bool,
    mut make: impl FnMut(E, &ProgressBar) -> Result<Figure, EvalError>,
) -> Result<Vec<Figure>, EvalError> {
    interrupt::install();
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut figures = Vec::new();
    for experiment in chosen {
        check_interrupt()?;
        bar.reset();
        bar.set_length(0);
        let figure = make(experiment, &bar)?;
        figure.write(output)?;
        bar.suspend(|| {
            if !json {
                println!("{figure}");
            }
        });
        figures.push(figure);
    }
    bar.finish_and_clear();
    if !json {
        println!("tables and plots are in {}", output.display());
    }
    Ok(figures)
}

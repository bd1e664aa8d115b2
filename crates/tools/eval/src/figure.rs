//! Results of an experiment, and their output formats.

use crate::error::EvalError;
use crate::machine::Machine;
use crate::plot::{self, Axes, Series};
use crate::table::Table;
use serde::Serialize;
use std::fmt::{self, Write as _};
use std::path::Path;

/// Longer tables are for programs and plots.
const MOST_ROWS: usize = 60;

/// Something that was claimed, and whether it held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The claim, with the figure that was measured.
    pub claim: String,
    /// True if it held.
    pub met: bool,
}

/// A figure of the paper, measured here.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `fig8` to `fig15`, `table2`, or `reads`; those of other papers with `hazards-`, `netchain-`,
    /// `approsync-` or `p4mcast-` in front.
    pub id: &'static str,
    /// Title of the figure.
    pub title: &'static str,
    /// Result of the paper.
    pub paper: &'static str,
    /// In what this differs from the paper's experiment.
    pub differs: Vec<String>,
    /// Claims of this project about it.
    pub claims: Vec<Claim>,
    /// Smallest differences that could be told here.
    pub limits: Vec<String>,
    /// Omitted measurements, with reasons.
    pub missing: Vec<String>,
    /// Machine of the measurement.
    pub machine: Machine,
    /// Measured tables.
    pub tables: Vec<Table>,
    /// Plots as SVG, by name; not part of the JSON.
    #[serde(skip)]
    pub plots: Vec<(String, String)>,
}

impl Figure {
    /// A figure without measurements yet, on this machine.
    pub fn new(id: &'static str, title: &'static str, paper: &'static str) -> Self {
        Self {
            id,
            title,
            paper,
            differs: Vec::new(),
            claims: Vec::new(),
            limits: Vec::new(),
            missing: Vec::new(),
            machine: Machine::here(),
            tables: Vec::new(),
            plots: Vec::new(),
        }
    }

    /// Adds a difference.
    pub fn differs(&mut self, what: impl Into<String>) {
        self.differs.push(what.into());
    }

    /// Adds a claim.
    pub fn claim(&mut self, met: bool, claim: impl Into<String>) {
        let claim = claim.into();
        self.claims.push(Claim { claim, met });
    }

    /// Draws `series` as curves, under `name`.
    ///
    /// # Errors
    /// [`EvalError::Plot`], if they cannot be drawn.
    pub fn curves(
        &mut self,
        name: &str,
        axes: Axes<'_>,
        series: &[Series],
    ) -> Result<(), EvalError> {
        let drawn = plot::curves(axes, series)?;
        self.plots.push((name.to_owned(), drawn));
        Ok(())
    }

    /// Draws `series` as bars, one group beside the other, under `name`.
    ///
    /// # Errors
    /// [`EvalError::Plot`], if they cannot be drawn.
    pub fn bars(
        &mut self,
        name: &str,
        y: &str,
        groups: &[String],
        series: &[Series],
    ) -> Result<(), EvalError> {
        let drawn = plot::bars(y, groups, series)?;
        self.plots.push((name.to_owned(), drawn));
        Ok(())
    }

    /// True if all claims held.
    pub fn met(&self) -> bool {
        self.claims.iter().all(|claim| claim.met)
    }

    /// Writes `<id>/result.txt`, `result.json`, and each table (CSV) and plot (SVG) by its
    /// name into `output`.
    ///
    /// # Errors
    /// `EV002` if a file cannot be written.
    pub fn write(&self, output: &Path) -> Result<(), EvalError> {
        let folder = output.join(self.id);
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(&path, text))
                .map_err(|reason| EvalError::file(path, reason))
        };
        write("result.txt", &self.to_string())?;
        let json = serde_json::to_string_pretty(self).unwrap_or_default();
        write("result.json", &(json + "\n"))?;
        for table in &self.tables {
            write(&format!("{}.csv", table.name), &table.csv())?;
        }
        for (name, svg) in &self.plots {
            write(&format!("{name}.svg"), svg)?;
        }
        Ok(())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.id, self.title)?;
        writeln!(f, "paper: {}", self.paper)?;
        writeln!(f, "here:  {}", self.machine)?;
        for table in &self.tables {
            match table.rows.len() {
                0..=MOST_ROWS => writeln!(f, "\n{table}")?,
                rows => writeln!(f, "\n{rows} rows in {}.csv\n", table.name)?,
            }
        }
        for claim in &self.claims {
            let mark = if claim.met { "ok  " } else { "FAIL" };
            writeln!(f, "{mark}  {}", claim.claim)?;
        }
        for limit in &self.limits {
            writeln!(f, "limit: {limit}")?;
        }
        for missing in &self.missing {
            writeln!(f, "not measured: {missing}")?;
        }
        let mut list = String::new();
        for differs in &self.differs {
            let _ = write!(list, "\n  * {differs}");
        }
        writeln!(f, "differs from the paper's testbed:{list}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_written_with_all_that_belongs_to_it() {
        let mut figure = Figure::new("fig8", "round trips", "7 µs");
        figure.differs("no Tofino");
        figure.claim(false, "within 3 %: 5 %");
        figure.limits.push("equals differ by 2 %".to_owned());
        figure
            .missing
            .push("conntrackd is not installed".to_owned());
        let mut table = Table::new("rtt", &["system", "median (µs)"]);
        table.row(vec!["ours".into(), 7.0.into()]);
        figure.tables.push(table);
        figure.plots.push(("rtt".to_owned(), "<svg/>".to_owned()));
        assert!(!figure.met());
        let directory = tempfile::tempdir().unwrap();
        figure.write(directory.path()).unwrap();
        let read =
            |name: &str| std::fs::read_to_string(directory.path().join("fig8").join(name)).unwrap();
        let text = read("result.txt");
        for needed in [
            "fig8: round trips",
            "paper: 7 µs",
            "FAIL  within 3 %: 5 %",
            "limit: equals differ by 2 %",
            "not measured: conntrackd",
            "* no Tofino",
        ] {
            assert!(text.contains(needed), "{needed}");
        }
        assert_eq!(read("rtt.csv"), "system,median (µs)\nours,7\n");
        assert_eq!(read("rtt.svg"), "<svg/>");
        let json: serde_json::Value = serde_json::from_str(&read("result.json")).unwrap();
        assert_eq!(json["tables"][0]["rows"][0][1], 7.0);
        assert_eq!(json["claims"][0]["met"], false);
    }
}

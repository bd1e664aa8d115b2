//! The plot: `iperf3`'s throughput and the agents' exchanges over time, all runs.

use super::report::{DemoReport, Kind, RunReport};
use crate::error::LabError;
use crate::plot::{self, Curve, Panel, Point};
use plotters::style::RGBColor;

const WIDTH: u32 = 980;
const HEIGHT: u32 = 620;
const UPPER: u32 = 340;

fn colour(kind: Kind) -> RGBColor {
    match kind {
        Kind::NoFailure => RGBColor(120, 120, 120),
        Kind::Unprotected => RGBColor(205, 65, 50),
        Kind::Protected => RGBColor(25, 105, 180),
    }
}

/// The plot as an SVG element.
pub(super) fn svg(report: &DemoReport) -> Result<String, LabError> {
    let of_throughput = |run: &RunReport| to_the_end(run, &run.throughput_mbps, 0.2);
    let of_exchanges = |run: &RunReport| run.exchanges_per_second.clone();
    plot::svg(WIDTH, HEIGHT, |area| {
        let (upper, lower) = area.split_vertically(UPPER);
        panel(report, "the stream (Mb/s)", true, of_throughput).draw(&upper)?;
        panel(
            report,
            "connections' exchanges per second",
            false,
            of_exchanges,
        )
        .draw(&lower)
    })
}

/// A stream that broke stays at nothing until the end of the run.
fn to_the_end(run: &RunReport, points: &[Point], step: f64) -> Vec<Point> {
    let mut points = points.to_vec();
    if let (Some((last, _)), false) = (points.last().copied(), run.iperf_completed) {
        points.push((last + step, 0.0));
        points.push((run.seconds as f64 - 1.0, 0.0));
    }
    points
}

fn panel(
    report: &DemoReport,
    title: &str,
    legend: bool,
    points: impl Fn(&RunReport) -> Vec<Point>,
) -> Panel {
    let failing = report.runs.iter().rev().find(|run| run.name.fails());
    let marks = failing.map(|run| {
        [
            (run.killed_at_s, "switch fails"),
            (run.restarted_at_s, "switch returns"),
        ]
    });
    let marks = marks.into_iter().flatten();
    let curves = report.runs.iter().map(|run| Curve {
        label: run.name.title(),
        colour: colour(run.name),
        points: points(run),
    });
    Panel {
        title: title.to_owned(),
        below: if legend { "" } else { "time (s)" },
        end: report.runs.iter().map(|run| run.seconds).max().unwrap_or(1) as f64,
        curves: curves.collect(),
        marks: marks
            .filter_map(|(at, what)| Some((at?, what.to_owned())))
            .collect(),
        legend,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::expect::example;

    #[test]
    fn the_plot_shows_all_runs_and_both_marks() {
        let report = DemoReport::new(Kind::ALL.map(example).to_vec());
        let svg = svg(&report).unwrap();
        for needed in Kind::ALL.map(Kind::title) {
            assert!(svg.contains(needed), "{needed}");
        }
        assert_eq!(svg.matches("switch fails").count(), 2);
        assert_eq!(svg.matches("switch returns").count(), 2);
    }

    #[test]
    fn runs_without_points_are_drawn() {
        let mut run = example(Kind::Protected);
        run.throughput_mbps.clear();
        run.exchanges_per_second.clear();
        assert!(svg(&DemoReport::new(vec![run])).is_ok());
    }
}

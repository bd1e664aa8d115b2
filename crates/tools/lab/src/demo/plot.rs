//! The plot: `iperf3`'s throughput and the agents' exchanges over time, all runs.

use super::report::{DemoReport, Kind, Point, RunReport};
use crate::error::LabError;
use plotters::prelude::*;

const WIDTH: u32 = 980;
const HEIGHT: u32 = 620;
const UPPER: u32 = 340;

fn colour(kind: Kind) -> RGBColor {
    match kind {
        Kind::Baseline => RGBColor(120, 120, 120),
        Kind::Unprotected => RGBColor(205, 65, 50),
        Kind::Protected => RGBColor(25, 105, 180),
    }
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::Baseline => "no failure",
        Kind::Unprotected => "failure, unprotected",
        Kind::Protected => "failure, protected",
    }
}

/// The plot as an SVG element.
pub(super) fn svg(report: &DemoReport) -> Result<String, LabError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let (upper, lower) = area.split_vertically(UPPER);
        let of_throughput = |run: &RunReport| to_the_end(run, &run.throughput_mbps, 0.2);
        let of_exchanges = |run: &RunReport| run.exchanges_per_second.clone();
        panel(
            &upper,
            report,
            "iperf3 throughput (Mb/s)",
            true,
            of_throughput,
        )?;
        panel(
            &lower,
            report,
            "agents' exchanges per second",
            false,
            of_exchanges,
        )?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Plot(error.to_string())
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

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn panel(
    area: &Area<'_>,
    report: &DemoReport,
    title: &str,
    legend: bool,
    curve: impl Fn(&RunReport) -> Vec<Point>,
) -> Result<(), LabError> {
    let curves: Vec<_> = report.runs.iter().map(|run| (run, curve(run))).collect();
    let end = report.runs.iter().map(|run| run.seconds).max().unwrap_or(1) as f64;
    let top = curves
        .iter()
        .flat_map(|(_, points)| points)
        .map(|(_, value)| *value)
        .fold(1.0, f64::max)
        * 1.15;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..end, 0.0..top)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc(if legend { "" } else { "time (s)" })
        .y_desc(title)
        .label_style(("sans-serif", 13))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()
        .map_err(failed)?;
    if let Some(run) = report.runs.iter().rev().find(|run| run.name.fails()) {
        let marks = [
            (run.killed_at_s, "switch fails"),
            (run.restarted_at_s, "switch returns"),
        ];
        for (at, what) in marks {
            let Some(at) = at else { continue };
            chart
                .draw_series(DashedLineSeries::new(
                    [(at, 0.0), (at, top)],
                    6,
                    4,
                    BLACK.mix(0.6).stroke_width(1),
                ))
                .map_err(failed)?;
            let text = Text::new(what, (at + end * 0.005, top * 0.98), ("sans-serif", 13));
            chart.draw_series([text]).map_err(failed)?;
        }
    }
    for (run, points) in curves {
        let style = colour(run.name).stroke_width(2);
        let kind = run.name;
        let drawn = chart
            .draw_series(LineSeries::new(points, style))
            .map_err(failed)?;
        if legend {
            drawn.label(label(kind)).legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], colour(kind).stroke_width(3))
            });
        }
    }
    if legend {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.2))
            .label_font(("sans-serif", 13))
            .draw()
            .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::expect::example;

    #[test]
    fn the_plot_shows_all_runs_and_both_marks() {
        let report = DemoReport::new(Kind::ALL.map(example).to_vec());
        let svg = svg(&report).unwrap();
        for needed in ["no failure", "failure, unprotected", "failure, protected"] {
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

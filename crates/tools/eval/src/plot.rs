//! Plots as SVG: curves over a linear or logarithmic axis, and bars in groups.

use crate::error::EvalError;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

const SIZE: (u32, u32) = (860, 480);
const FONT: (&str, u32) = ("sans-serif", 14);
const COLOURS: [RGBColor; 8] = [
    RGBColor(25, 105, 180),
    RGBColor(205, 65, 50),
    RGBColor(70, 140, 60),
    RGBColor(150, 90, 170),
    RGBColor(120, 120, 120),
    RGBColor(220, 150, 30),
    RGBColor(60, 170, 180),
    RGBColor(120, 80, 50),
];

/// A named row of points or bars.
#[derive(Clone, Debug)]
pub struct Series {
    /// For the legend.
    pub name: String,
    /// x and y, in the order of drawing.
    pub points: Vec<(f64, f64)>,
}

/// Labels of the axes.
#[derive(Clone, Copy, Debug)]
pub struct Axes<'a> {
    /// Below, with the unit.
    pub x: &'a str,
    /// At the left, with the unit.
    pub y: &'a str,
    /// True if x is logarithmic; points at or below 0 are left out then.
    pub logarithmic: bool,
}

fn failed(error: impl std::fmt::Display) -> EvalError {
    EvalError::Plot(error.to_string())
}

/// Curves over x.
///
/// # Errors
/// `EV004` if the drawing fails.
pub fn curves(axes: Axes<'_>, series: &[Series]) -> Result<String, EvalError> {
    let visible =
        |(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && (!axes.logarithmic || *x > 0.0);
    let series: Vec<Series> = series
        .iter()
        .map(|series| Series {
            name: series.name.clone(),
            points: series.points.iter().copied().filter(visible).collect(),
        })
        .collect();
    let all = || series.iter().flat_map(|series| &series.points);
    let least = all().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
    let most = all().map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
    let top = all().map(|(_, y)| *y).fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.08 } else { 1.0 };
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    if axes.logarithmic {
        let from = if least.is_finite() { least } else { 1.0 };
        let to = most.max(from * 10.0);
        draw(&area, axes, (from..to).log_scale(), top, &series)?;
    } else {
        let from = if least.is_finite() {
            least.min(0.0)
        } else {
            0.0
        };
        let to = if most > from { most } else { from + 1.0 };
        draw(&area, axes, from..to, top, &series)?;
    }
    area.present().map_err(failed)?;
    drop(area);
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw<X>(
    area: &Area<'_>,
    axes: Axes<'_>,
    x: X,
    top: f64,
    series: &[Series],
) -> Result<(), EvalError>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(x, 0.0..top)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.08))
        .x_desc(axes.x)
        .y_desc(axes.y)
        .label_style(FONT)
        .x_label_formatter(&|x| crate::table::Cell::Number(*x).to_string())
        .y_label_formatter(&|y| crate::table::Cell::Number(*y).to_string())
        .draw()
        .map_err(failed)?;
    for (at, series) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let points = series.points.iter().copied();
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))
            .map_err(failed)?
            .label(series.name.as_str())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3)));
        if series.points.len() <= 30 {
            let marks = points.map(|point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(marks).map_err(failed)?;
        }
    }
    legend(&mut chart)
}

fn legend<'a, 'b: 'a, X: Ranged<ValueType = f64>, Y: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
) -> Result<(), EvalError> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.2))
        .label_font(FONT)
        .draw()
        .map_err(failed)
}

/// Groups of bars side by side, one bar of each series a group; a series' points are the
/// heights of its bars, in the order of `groups`, and x is not used.
///
/// # Errors
/// `EV004` if the drawing fails.
pub fn bars(y: &str, groups: &[String], series: &[Series]) -> Result<String, EvalError> {
    let heights = series.iter().flat_map(|series| &series.points);
    let top = heights.map(|(_, y)| *y).filter(|y| y.is_finite());
    let top = top.fold(0.0, f64::max);
    let top = if top > 0.0 { top * 1.25 } else { 1.0 };
    let count = groups.len().max(1) as f64;
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(14)
        .x_label_area_size(44)
        .y_label_area_size(70)
        .build_cartesian_2d(-0.5..count - 0.5, 0.0..top)
        .map_err(failed)?;
    let name = |x: &f64| {
        let near = (x - x.round()).abs() < 0.01 && *x > -0.5;
        let group = groups.get(x.round().max(0.0) as usize).filter(|_| near);
        group.cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.08))
        .y_desc(y)
        .x_labels(groups.len() * 2 + 1)
        .label_style(FONT)
        .x_label_formatter(&name)
        .y_label_formatter(&|y| crate::table::Cell::Number(*y).to_string())
        .draw()
        .map_err(failed)?;
    let width = 0.8 / series.len().max(1) as f64;
    for (at, series) in series.iter().enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let bars = series
            .points
            .iter()
            .enumerate()
            .map(|(group, (_, height))| {
                let left = group as f64 - 0.4 + at as f64 * width;
                let height = if height.is_finite() { *height } else { 0.0 };
                Rectangle::new(
                    [(left, 0.0), (left + width * 0.92, height)],
                    colour.filled(),
                )
            });
        chart
            .draw_series(bars)
            .map_err(failed)?
            .label(series.name.as_str())
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], colour.filled()));
    }
    legend(&mut chart)?;
    drop(chart);
    area.present().map_err(failed)?;
    drop(area);
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, points: &[(f64, f64)]) -> Series {
        Series {
            name: name.to_owned(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn every_series_is_drawn_and_named() {
        let two = [
            series("bare", &[(1.0, 0.1), (10.0, 0.9)]),
            series("ours", &[(2.0, 0.2), (f64::NAN, 1.0), (20.0, 1.0)]),
        ];
        for logarithmic in [false, true] {
            let axes = Axes {
                x: "round trip (µs)",
                y: "share",
                logarithmic,
            };
            let svg = curves(axes, &two).unwrap();
            assert!(svg.contains("bare") && svg.contains("ours"));
            assert!(svg.contains("round trip (µs)"));
            assert_eq!(svg.matches("<circle").count(), 4);
        }
    }

    #[test]
    fn bars_stand_for_every_group() {
        let groups = ["nat".to_owned(), "firewall".to_owned()];
        let two = [
            series("bare", &[(0.0, 3.0), (0.0, 4.0)]),
            series("ours", &[(0.0, 5.0), (0.0, f64::NAN)]),
        ];
        let svg = bars("µs", &groups, &two).unwrap();
        assert!(svg.contains("nat") && svg.contains("firewall"));
    }

    #[test]
    fn nothing_to_draw_is_drawn() {
        let axes = Axes {
            x: "x",
            y: "y",
            logarithmic: true,
        };
        assert!(curves(axes, &[]).is_ok());
        assert!(curves(axes, &[series("none", &[])]).is_ok());
        assert!(curves(axes, &[series("one", &[(-1.0, 1.0), (5.0, 1.0)])]).is_ok());
        assert!(bars("y", &[], &[]).is_ok());
    }
}

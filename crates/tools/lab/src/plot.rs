//! Curves over time, as SVG.

use crate::error::LabError;
use plotters::prelude::*;

/// A point of a curve: seconds since the traffic began, and the value.
pub type Point = (f64, f64);

/// A curve.
pub(crate) struct Curve {
    pub(crate) label: &'static str,
    pub(crate) colour: RGBColor,
    pub(crate) points: Vec<Point>,
}

/// Curves with one axis of time, and marks on it.
pub(crate) struct Panel {
    /// Description of the vertical axis.
    pub(crate) title: String,
    /// Description of the horizontal one.
    pub(crate) below: &'static str,
    /// Seconds of the horizontal axis.
    pub(crate) end: f64,
    pub(crate) curves: Vec<Curve>,
    /// Moments with their names.
    pub(crate) marks: Vec<(f64, String)>,
    /// True if the curves' labels are shown.
    pub(crate) legend: bool,
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// An SVG element of `width` times `height`, drawn by `draw`.
///
/// # Errors
/// `LAB015` if it cannot be drawn.
pub(crate) fn svg(
    width: u32,
    height: u32,
    draw: impl FnOnce(&Area<'_>) -> Result<(), LabError>,
) -> Result<String, LabError> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    Ok(svg)
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Plot(error.to_string())
}

impl Panel {
    /// Draws it.
    ///
    /// # Errors
    /// `LAB015` if it cannot be drawn.
    pub(crate) fn draw(self, area: &Area<'_>) -> Result<(), LabError> {
        let values = self.curves.iter().flat_map(|curve| &curve.points);
        let top = values.map(|(_, value)| *value).fold(1.0, f64::max) * 1.15;
        let end = self.end;
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
            .x_desc(self.below)
            .y_desc(self.title)
            .label_style(("sans-serif", 13))
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .draw()
            .map_err(failed)?;
        for (at, what) in self.marks {
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
        for curve in self.curves {
            let colour = curve.colour;
            let drawn = chart
                .draw_series(LineSeries::new(curve.points, colour.stroke_width(2)))
                .map_err(failed)?;
            if self.legend {
                drawn.label(curve.label).legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(3))
                });
            }
        }
        if self.legend {
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
}

//! The plot: accepted writes per second over time, a panel for each service.

use super::Service;
use super::report::{LocksReport, ServiceReport};
use crate::error::LabError;
use crate::plot::{self, Curve, Panel};
use plotters::style::RGBColor;

const WIDTH: u32 = 980;
/// Height of a panel.
const HEIGHT: u32 = 310;

/// The plot as an SVG element.
pub(super) fn svg(report: &LocksReport) -> Result<String, LabError> {
    let count = report.services.len().max(1);
    plot::svg(WIDTH, HEIGHT * count as u32, |area| {
        for (part, service) in area.split_evenly((count, 1)).iter().zip(&report.services) {
            panel(service).draw(part)?;
        }
        Ok(())
    })
}

fn panel(report: &ServiceReport) -> Panel {
    let (label, colour) = match report.service {
        Service::Stateplane => ("Stateplane", RGBColor(25, 105, 180)),
        Service::Etcd => ("etcd", RGBColor(205, 65, 50)),
    };
    let marks = report.faults.iter();
    Panel {
        title: format!("{label}: writes per second"),
        below: "time (s)",
        end: report.seconds,
        curves: vec![Curve {
            label,
            colour,
            points: report.writes_per_second.clone(),
        }],
        marks: marks
            .map(|fault| (fault.from_s, fault.what.clone()))
            .collect(),
        legend: false,
    }
}

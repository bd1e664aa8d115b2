//! Plots over time: small ones of all numbers, and a large one.

use super::{Paint, put, put_last};
use crate::model::{Group, Model, Sample};
use crate::number::time;
use crate::plot::Plot;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::symbols::Marker;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Sparkline};

/// Plots in a row of the grid.
const COLUMNS: u16 = 4;

/// Eighths of a line that a bar can be high.
const EIGHTHS: u16 = 8;

pub(super) fn grid(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let Some(group) = model.group() else {
        return;
    };
    let height = area.height / 2;
    for (at, plot) in (0_u16..).zip(Plot::ALL) {
        let (column, row) = (at % COLUMNS, at / COLUMNS);
        let edge = |column: u16| {
            let of_width = u32::from(column) * (u32::from(area.width) + 1) / u32::from(COLUMNS);
            area.x + of_width as u16
        };
        let (left, right) = (edge(column), edge(column + 1) - 1);
        let cell = Rect::new(left, area.y + row * height, right - left, height);
        small(frame, cell, (group, plot), plot == model.plot(), paint);
    }
}

/// The newest samples that have room, with room in front if there are fewer.
fn newest(group: &Group, room: usize) -> (usize, impl Iterator<Item = &Sample>) {
    let left_out = group.samples.len().saturating_sub(room);
    let front = room.saturating_sub(group.samples.len());
    (front, group.samples.iter().skip(left_out))
}

fn small(
    frame: &mut Frame<'_>,
    cell: Rect,
    (group, plot): (&Group, Plot),
    is_chosen: bool,
    paint: Paint,
) {
    let (front, samples) = newest(group, cell.width.into());
    let values: Vec<Option<f64>> = samples.map(|sample| sample.value(plot)).collect();
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let buffer = frame.buffer_mut();
    let name = if is_chosen {
        paint.chosen().patch(paint.bold())
    } else {
        paint.bold()
    };
    let x = put(buffer, cell, (cell.x, cell.y), plot.name(), name);
    let now = match group.value(plot) {
        Some(value) => plot.show(value),
        None => "-".to_owned(),
    };
    let x = put(buffer, cell, (x + 1, cell.y), &now, Style::new());
    if most > 0.0 {
        let text = format!("↑{}", plot.show(most));
        put_last(buffer, cell, (x, cell.y), &text, paint.faint());
    }
    let bars = Rect::new(
        cell.x,
        cell.y + 1,
        cell.width,
        cell.height.saturating_sub(2),
    );
    let steps = f64::from(bars.height * EIGHTHS);
    let share = if most > 0.0 { 1.0 / most } else { 0.0 };
    // A value of 0 is an eighth high, and none is nothing.
    let bar = |value: f64| 1 + (value * share * (steps - 1.0)).round() as u64;
    let data = values.into_iter().map(|value| value.map(bar));
    let data = std::iter::repeat_n(None, front).chain(data);
    let style = match (plot, most > 0.0) {
        (Plot::Lost, true) => paint.certain(),
        (Plot::Bound | Plot::Unsent | Plot::Threshold | Plot::Far, _) => paint.promise(),
        _ => Style::new(),
    };
    let sparkline = Sparkline::default()
        .data(data)
        .max(u64::from(bars.height * EIGHTHS))
        .style(style);
    frame.render_widget(sparkline, bars);
}

/// The chosen plot, beside E the true distance where it is known.
pub(super) fn large(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let (Some(group), plot) = (model.group(), model.plot()) else {
        return;
    };
    // A point of Braille for each sample, at most.
    let (_, samples) = newest(group, usize::from(area.width) * 2);
    let samples: Vec<&Sample> = samples.collect();
    let Some(last) = samples.last() else {
        return;
    };
    let ago = |sample: &Sample| (sample.at_us as f64 - last.at_us as f64) / 1e6;
    let of = |value: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
        let points = samples.iter().copied();
        let points = points.map(|it| Some((ago(it), value(it)?)));
        points.flatten().collect()
    };
    let told = of(&|sample: &Sample| sample.value(plot));
    let truth = match plot {
        Plot::Bound => of(&|sample: &Sample| sample.off),
        _ => Vec::new(),
    };
    let buffer = frame.buffer_mut();
    let at = (area.x, area.y);
    let x = put(
        buffer,
        area,
        at,
        plot.name(),
        paint.chosen().patch(paint.bold()),
    );
    let x = put(buffer, area, (x + 1, area.y), plot.meaning(), Style::new());
    if !truth.is_empty() {
        put(buffer, area, (x, area.y), "; • in truth", paint.truth());
    }
    let both = told.iter().chain(&truth);
    let most = both.map(|(_, value)| *value).fold(1.0, f64::max);
    let first = ago(samples[0]).min(-0.001);
    let label = |seconds: f64| format!("-{}", time(-seconds * 1e6));
    let axis = |bounds: [f64; 2], labels: Vec<String>| {
        let axis = Axis::default().bounds(bounds).labels(labels);
        axis.style(paint.faint())
    };
    let times = vec![label(first), label(first / 2.0), "now".to_owned()];
    let values = [0.0, most / 2.0, most].map(|value| plot.show(value));
    let line = Dataset::default().data(&told).marker(Marker::Braille);
    let line = line.graph_type(GraphType::Line).style(paint.promise());
    let points = Dataset::default().data(&truth).marker(Marker::Dot);
    let points = points.graph_type(GraphType::Scatter).style(paint.truth());
    let chart = Chart::new(vec![line, points])
        .x_axis(axis([first, 0.0], times))
        .y_axis(axis([0.0, most * 1.02], values.to_vec()));
    let below = Rect::new(area.x, area.y + 1, area.width, area.height - 2);
    frame.render_widget(chart, below);
}

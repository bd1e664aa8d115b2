//! The explanation.

use super::{Paint, put};
use crate::plot::Plot;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const KEYS: [(&str, &str); 6] = [
    (
        "├─●─┤",
        "interval of a count; ● certainly, ○ possibly above ┊",
    ),
    ("tab", "the next register; shift and tab: the one before it"),
    (
        "arrows",
        "choose a plot, which a larger terminal shows large",
    ),
    ("p", "stand still, while traffic goes on; again: go on"),
    ("?", "this page, and back"),
    ("q", "quit"),
];

pub(super) fn draw(buffer: &mut Buffer, area: Rect, paint: Paint) {
    let lines = (Plot::ALL.len() + KEYS.len() + 1) as u16;
    let height = (lines + 2).min(area.height);
    let width = area.width.min(76);
    let (x, y) = (
        area.x + (area.width - width) / 2,
        area.y + (area.height - height) / 2,
    );
    let inner = Rect::new(x, y, width, height);
    for row in y..inner.bottom() {
        put(
            buffer,
            inner,
            (x, row),
            &" ".repeat(width.into()),
            Style::reset(),
        );
    }
    let line = "─".repeat(usize::from(width) - 2);
    put(buffer, inner, (x, y), &format!("┌{line}┐"), Style::new());
    for row in y + 1..inner.bottom() - 1 {
        put(buffer, inner, (x, row), "│", Style::new());
        put(buffer, inner, (inner.right() - 1, row), "│", Style::new());
    }
    let last = inner.bottom() - 1;
    put(buffer, inner, (x, last), &format!("└{line}┘"), Style::new());
    let plots = Plot::ALL.map(|plot| (plot.name(), plot.meaning()));
    let entries = plots.into_iter().chain([("", "")]).chain(KEYS);
    let text = Rect::new(x + 2, y, width - 4, height);
    for (row, (name, meaning)) in (y + 1..last).zip(entries) {
        put(buffer, text, (text.x, row), name, paint.bold());
        put(buffer, text, (text.x + 8, row), meaning, Style::new());
    }
}

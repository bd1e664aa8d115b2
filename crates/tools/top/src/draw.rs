//! The picture for a terminal.

mod head;
mod help;
mod plots;
mod rows;

use crate::model::Model;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Least columns and lines of a picture.
const LEAST: (u16, u16) = (60, 16);

/// Lines of the head.
const HEAD: u16 = 4;

/// Lines that the large plot and the rows need to be shown both.
const ROOM: u16 = 22;

/// Styles of a picture. Without colours only weight and inversion tell things apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// True for a terminal with colours.
    pub colours: bool,
}

impl Paint {
    fn coloured(self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Style of promises.
    fn promise(self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// Style of certain rows, and of losses.
    fn certain(self) -> Style {
        self.coloured(Color::LightRed).patch(self.bold())
    }

    /// Style of possible rows.
    fn possible(self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// Style of true values, where they are known.
    fn truth(self) -> Style {
        self.coloured(Color::Green)
    }
}

/// Text at a place, cut at the end of the area. Gives the column behind it.
fn put(buffer: &mut Buffer, area: Rect, at: (u16, u16), text: &str, style: Style) -> u16 {
    let (x, y) = at;
    if y >= area.bottom() || x >= area.right() {
        return x;
    }
    let room = usize::from(area.right() - x);
    buffer.set_stringn(x, y, text, room, style).0
}

/// Text that ends at the end of the area, if it has room behind column `from`.
fn put_last(buffer: &mut Buffer, area: Rect, (from, y): (u16, u16), text: &str, style: Style) {
    let width = u16::try_from(text.chars().count()).unwrap_or(u16::MAX);
    if let Some(x) = area.right().checked_sub(width)
        && x > from
    {
        put(buffer, area, (x, y), text, style);
    }
}

/// Draws the model.
pub fn draw(frame: &mut Frame<'_>, model: &Model, paint: Paint) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("top needs {} columns and {} lines", LEAST.0, LEAST.1);
        put(frame.buffer_mut(), area, (0, 0), &text, Style::new());
        return;
    }
    head::draw(frame.buffer_mut(), cut(area, 0, HEAD), model, paint);
    let room = area.height - HEAD;
    let plot = (room / 4).clamp(3, 6);
    let plots = cut(area, HEAD, 2 * plot);
    plots::grid(frame, plots, model, paint);
    let mut begin = HEAD + 2 * plot;
    let left = area.height - begin;
    if left >= ROOM {
        let large = (left / 2).min(16);
        plots::large(frame, cut(area, begin, large), model, paint);
        begin += large;
    }
    let rows = cut(area, begin, area.height - begin);
    rows::draw(frame.buffer_mut(), rows, model, paint);
    if model.helps {
        help::draw(frame.buffer_mut(), area, paint);
    }
}

/// So many lines of an area, from a line on.
fn cut(area: Rect, from: u16, lines: u16) -> Rect {
    Rect::new(area.x, area.y + from, area.width, lines)
}

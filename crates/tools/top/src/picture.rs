//! Pictures for files: as text, and as SVG.

use crate::draw::{Paint, draw};
use crate::model::Model;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write;

/// Pixels of a cell.
const WIDTH: u32 = 9;
const HEIGHT: u32 = 18;

/// Pixels around the picture.
const MARGIN: u32 = 9;

/// Colours of the ground and of text.
const GROUND: &str = "#0d1117";
const TEXT: &str = "#d0d7de";

/// The model as a terminal of so many columns and lines would show it.
pub fn painted(model: &Model, (columns, lines): (u16, u16), paint: Paint) -> Buffer {
    let Ok(mut terminal) = Terminal::new(TestBackend::new(columns, lines));
    let Ok(_) = terminal.draw(|frame| draw(frame, model, paint));
    terminal.backend().buffer().clone()
}

/// A picture as text without styles and spaces at ends of lines.
pub fn text(picture: &Buffer) -> String {
    let mut text = String::new();
    for line in lines(picture) {
        let line: String = line.iter().map(Cell::symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn lines(picture: &Buffer) -> impl Iterator<Item = &[Cell]> {
    picture
        .content
        .chunks(usize::from(picture.area.width).max(1))
}

/// A picture as SVG: each letter stands at its own place, whatever font there is, and bars are
/// rectangles.
pub fn svg(picture: &Buffer) -> String {
    let width = u32::from(picture.area.width) * WIDTH + 2 * MARGIN;
    let height = u32::from(picture.area.height) * HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" \
         font-size=\"15\" shape-rendering=\"crispEdges\" role=\"img\" aria-label=\"stateplane top\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{GROUND}\"/>\n"
    );
    for (row, line) in (0_u32..).zip(lines(picture)) {
        let top = MARGIN + row * HEIGHT;
        for run in line_runs(line) {
            run.write(&mut svg, top);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Neighbouring cells of one style, that are either all blocks of one height or none.
struct Run<'a> {
    column: u32,
    cells: &'a [Cell],
}

fn line_runs(line: &[Cell]) -> impl Iterator<Item = Run<'_>> {
    let alike =
        |one: &Cell, other: &Cell| one.style() == other.style() && block(one) == block(other);
    let mut column = 0;
    line.chunk_by(alike).map(move |cells| {
        let run = Run { column, cells };
        column += cells.len() as u32;
        run
    })
}

/// Eighths of a block's height; `None` of other letters.
fn block(cell: &Cell) -> Option<u32> {
    let blocks = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    let place = blocks.iter().position(|block| *block == cell.symbol())?;
    Some(place as u32 + 1)
}

impl Run<'_> {
    fn write(&self, svg: &mut String, top: u32) {
        let Some(first) = self.cells.first() else {
            return;
        };
        let modifier = first.modifier;
        let own = colour(first.fg);
        let is_reversed = modifier.contains(Modifier::REVERSED);
        let x = MARGIN + self.column * WIDTH;
        let width = self.cells.len() as u32 * WIDTH;
        if is_reversed {
            rectangle(svg, (x, top), (width, HEIGHT), own);
        }
        let only = |given: Modifier, attribute: &'static str| {
            let is_set = modifier.contains(given);
            if is_set { attribute } else { "" }
        };
        let opacity = only(Modifier::DIM, " opacity=\"0.6\"");
        let weight = only(Modifier::BOLD, " font-weight=\"bold\"");
        if let Some(eighths) = block(first) {
            let height = HEIGHT * eighths / 8;
            rectangle(svg, (x, top + HEIGHT - height), (width, height), own);
            return;
        }
        let letters = self.cells.iter().zip(0_u32..);
        let letters = letters.filter(|(cell, _)| cell.symbol().trim() != "");
        let letters: Vec<(&str, u32)> = letters
            .map(|(cell, at)| (cell.symbol(), x + at * WIDTH))
            .collect();
        if letters.is_empty() {
            return;
        }
        let places: Vec<String> = letters.iter().map(|(_, x)| x.to_string()).collect();
        let text: String = letters.iter().map(|(letter, _)| escaped(letter)).collect();
        let fill = if is_reversed { GROUND } else { own };
        // Writing to a string does not fail.
        let _ = writeln!(
            svg,
            "<text y=\"{}\" x=\"{}\" fill=\"{fill}\"{weight}{opacity}>{text}</text>",
            top + HEIGHT - 5,
            places.join(" ")
        );
    }
}

fn rectangle(svg: &mut String, (x, y): (u32, u32), (width, height): (u32, u32), fill: &str) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
    );
}

fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Cyan => "#39c5cf",
        Color::LightRed => "#ff7b72",
        Color::Yellow => "#e3b341",
        Color::Green => "#56d364",
        _ => TEXT,
    }
}

fn escaped(letter: &str) -> &str {
    match letter {
        "&" => "&amp;",
        "<" => "&lt;",
        ">" => "&gt;",
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn letters_stand_at_their_places_and_blocks_are_rectangles() {
        let mut picture = Buffer::empty(Rect::new(0, 0, 6, 1));
        picture.set_string(0, 0, "a>b", Style::new());
        picture.set_string(4, 0, "▄▄", Style::new().fg(Color::Cyan));
        let svg = svg(&picture);
        assert!(svg.contains("x=\"9 18 27\""), "{svg}");
        assert!(svg.contains(">a&gt;b</text>"), "{svg}");
        let bar = "<rect x=\"45\" y=\"18\" width=\"18\" height=\"9\" fill=\"#39c5cf\"/>";
        assert!(svg.contains(bar), "{svg}");
        assert_eq!(text(&picture), "a>b ▄▄\n");
    }
}

//! Heavy hitters with their intervals, on a logarithmic scale.

use super::{Paint, put, put_last};
use crate::look::{GroupLook, Row};
use crate::model::Model;
use crate::number::grouped;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use stateplane_sketch::Verdict;

/// Columns from which on the ends of intervals are written too.
const WIDE: u16 = 110;

/// Columns of a name, in a narrow and in a wide picture.
const NAME: (u16, u16) = (36, 45);

/// Columns of an estimate.
const ESTIMATE: u16 = 10;

/// Columns of the ends of an interval.
const ENDS: u16 = 22;

/// A logarithmic scale over columns.
struct Scale {
    from: f64,
    to: f64,
    columns: u16,
}

impl Scale {
    /// One on which all of the rows and the threshold have a place.
    fn of(rows: &[Row], threshold: Option<u64>, columns: u16) -> Scale {
        let ends = rows.iter().flat_map(|row| [row.low, row.estimate]);
        let least = ends.chain(threshold).filter(|it| *it > 0).min();
        let ends = rows.iter().map(|row| row.high.unwrap_or(row.estimate));
        let most = ends.chain(threshold).max();
        let from = (least.unwrap_or(1) as f64).ln();
        let to = (most.unwrap_or(1).max(1) as f64).ln();
        // A decade at least.
        let lack = (10_f64.ln() - (to - from)).max(0.0) / 2.0;
        Scale {
            from: (from - lack).max(0.0),
            to: to + lack,
            columns,
        }
    }

    /// The column of a value.
    fn column(&self, value: u64) -> u16 {
        let share = ((value.max(1) as f64).ln() - self.from) / (self.to - self.from);
        let last = f64::from(self.columns.saturating_sub(1));
        (share.clamp(0.0, 1.0) * last).round() as u16
    }
}

pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, paint: Paint) {
    let Some(group) = model.group() else {
        return;
    };
    let look = &group.look;
    title(buffer, area, look, paint);
    let rows = usize::from(area.height.saturating_sub(2)).min(look.rows.len());
    let rows = &look.rows[..rows];
    if rows.is_empty() {
        let text = match (look.told, look.threshold) {
            (None, _) => "none while the view is incomplete",
            (_, Some(_)) => "none is above the threshold",
            (_, None) => "none: all that is read is 0",
        };
        put(buffer, area, (area.x, area.y + 1), text, paint.faint());
        return;
    }
    let is_wide = area.width >= WIDE;
    let name = if is_wide { NAME.1 } else { NAME.0 };
    let ends = if is_wide { ENDS } else { 0 };
    let begin = area.x + 2 + name + ESTIMATE + ends + 2;
    let bars = Rect::new(begin, area.y, area.right() - begin, area.height);
    let scale = Scale::of(rows, look.threshold, bars.width);
    let threshold = look.threshold.map(|it| scale.column(it));
    for (y, row) in (area.y + 1..).zip(rows) {
        let style = match row.verdict {
            Some(Verdict::Certainly) => paint.certain(),
            Some(_) => paint.possible(),
            None => paint.promise(),
        };
        put(buffer, area, (area.x, y), dot(row), style);
        let text = shortened(&row.name, usize::from(name));
        put(buffer, area, (area.x + 2, y), &text, Style::new());
        let estimate = format!("{:>1$}", grouped(row.estimate), usize::from(ESTIMATE));
        put(
            buffer,
            area,
            (area.x + 2 + name, y),
            &estimate,
            paint.bold(),
        );
        if is_wide {
            let high = row.high.map_or("∞".to_owned(), grouped);
            let text = format!("  {} to {high}", grouped(row.low));
            let at = (area.x + 2 + name + ESTIMATE, y);
            put(buffer, area, at, &text, paint.faint());
        }
        if let Some(column) = threshold {
            put(buffer, bars, (bars.x + column, y), "┊", paint.faint());
        }
        whiskers(buffer, bars, y, &scale, (row, threshold), style);
    }
    axis(buffer, bars, area.y + 1 + rows.len() as u16, &scale, paint);
}

/// Certainly heavy, or possibly.
fn dot(row: &Row) -> &'static str {
    match row.verdict {
        Some(Verdict::Possibly) => "○",
        _ => "●",
    }
}

fn title(buffer: &mut Buffer, area: Rect, look: &GroupLook, paint: Paint) {
    let at = (area.x, area.y);
    let x = put(buffer, area, at, look.finding.name(), paint.bold());
    let (what, counted) = look.finding.above();
    let text = match look.threshold {
        Some(threshold) => format!(": {what} above {} {counted}", grouped(threshold)),
        None => String::new(),
    };
    let x = put(buffer, area, (x, area.y), &text, Style::new());
    if look.threshold.is_some() {
        let text = "● certainly  ○ possibly";
        put_last(buffer, area, (x, area.y), text, paint.faint());
    }
}

/// The interval with its ends and the estimate.
fn whiskers(
    buffer: &mut Buffer,
    bars: Rect,
    y: u16,
    scale: &Scale,
    (row, threshold): (&Row, Option<u16>),
    style: Style,
) {
    let low = scale.column(row.low);
    let high = row
        .high
        .map_or(scale.columns - 1, |high| scale.column(high));
    let middle = scale.column(row.estimate);
    // The threshold below is faint.
    let style = style.remove_modifier(Modifier::DIM);
    for column in low..=high {
        let symbol = if column == middle {
            dot(row)
        } else if column == low {
            "├"
        } else if column == high {
            match row.high {
                Some(_) => "┤",
                None => "▸",
            }
        } else if Some(column) == threshold {
            "┼"
        } else {
            "─"
        };
        put(buffer, bars, (bars.x + column, y), symbol, style);
    }
}

/// Powers of ten.
fn axis(buffer: &mut Buffer, bars: Rect, y: u16, scale: &Scale, paint: Paint) {
    let tens = (0..20).map(|power| 10_u64.saturating_pow(power));
    let (from, to) = (scale.from - 1e-9, scale.to + 1e-9);
    let shown = tens.filter(|ten| (from..=to).contains(&(*ten as f64).ln()));
    let mut end = bars.x;
    for ten in shown {
        let number = grouped(ten);
        let place = bars.x + scale.column(ten);
        let width = number.len() as u16;
        let (x, text) = if place + width < bars.right() {
            (place, format!("╵{number}"))
        } else {
            (place.saturating_sub(width), format!("{number}╵"))
        };
        if x >= end {
            end = put(buffer, bars, (x, y), &text, paint.faint()) + 1;
        }
    }
}

/// A name that has room, without its middle if need be.
fn shortened(name: &str, room: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= room {
        return name.to_owned();
    }
    let front = room / 2;
    let back = room - front - 1;
    let front: String = letters[..front].iter().collect();
    let back: String = letters[letters.len() - back..].iter().collect();
    format!("{front}…{back}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_logarithmic_and_has_all_rows() {
        let row = |low, estimate, high| Row {
            low,
            estimate,
            high,
            ..Row::default()
        };
        let rows = [row(100, 120, Some(150)), row(900, 950, Some(10_000))];
        let scale = Scale::of(&rows, Some(1_000), 21);
        assert_eq!(scale.column(100), 0);
        assert_eq!(scale.column(1_000), 10);
        assert_eq!(scale.column(10_000), 20);
        assert_eq!((scale.column(0), scale.column(u64::MAX)), (0, 20));
        let alone = Scale::of(&[row(0, 0, None)], None, 9);
        assert!(alone.column(0) <= alone.column(9));
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("10.0.0.1", 8), "10.0.0.1");
        assert_eq!(shortened("10.0.0.1:80>10.0.0.2:81/6", 9), "10.0…81/6");
    }
}

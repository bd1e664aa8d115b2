//! The head: what is looked at, its traffic, its registers, and what is promised of one.

use super::{Paint, put, put_last};
use crate::model::{Group, Model};
use crate::number::{grouped, short, time};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// Between parts of a line.
const DOT: &str = " · ";

pub(super) fn draw(buffer: &mut Buffer, area: Rect, model: &Model, paint: Paint) {
    let title = &model.title;
    let x = put(
        buffer,
        area,
        (area.x, area.y),
        "stateplane top",
        paint.bold(),
    );
    let text = format!("  {}{DOT}{}", title.program, title.place);
    let x = put(buffer, area, (x, area.y), &text, Style::new());
    let (text, style) = if model.is_paused {
        (" PAUSED ", paint.chosen())
    } else {
        ("? help", paint.faint())
    };
    put_last(buffer, area, (x, area.y), text, style);
    put(
        buffer,
        area,
        (area.x, area.y + 1),
        &traffic(model),
        Style::new(),
    );
    registers(buffer, area, model, paint);
    promise(buffer, area, model, paint);
}

/// Packets, and where they come from.
fn traffic(model: &Model) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = model.rate {
        parts.push(format!("{} packets/s", grouped(rate.round() as u64)));
    }
    if let Some(packets) = model.packets {
        parts.push(format!("{} in all", grouped(packets)));
    }
    if let Some(speed) = model.speed.filter(|speed| *speed < 0.95) {
        parts.push(format!("at {:.0} % of real time", speed * 100.0));
    }
    if !model.title.traffic.is_empty() {
        parts.push(model.title.traffic.clone());
    }
    parts.join(DOT)
}

/// The registers, of which one is chosen, and what was lost of it.
fn registers(buffer: &mut Buffer, area: Rect, model: &Model, paint: Paint) {
    let y = area.y + 2;
    let mut x = area.x;
    for (at, group) in model.groups.iter().enumerate() {
        let name = &group.look.name;
        // Brackets for those who see no inversion.
        let (text, style) = if at == model.chosen {
            (format!("[{name}]"), paint.chosen())
        } else {
            (format!(" {name} "), Style::new())
        };
        x = put(buffer, area, (x, y), &text, style);
    }
    let Some(group) = model.group() else {
        return;
    };
    let look = &group.look;
    let ring = match look.places {
        Some(places) => format!(
            "ring {} of {}",
            grouped(look.queued.into()),
            grouped(places.into())
        ),
        None => format!("ring {}", grouped(look.queued.into())),
    };
    let lost = match look.lost {
        0 => "nothing lost".to_owned(),
        lost => format!(
            "lost {} ({:.1} %)",
            short(lost as f64),
            group.lost_percent()
        ),
    };
    let locations = format!("{} locations", grouped(look.locations.into()));
    let parts = [locations, ring, lost];
    // Parts without room are left out, from the front.
    let texts = (0..parts.len()).map(|from| parts[from..].join(DOT));
    let room = usize::from(area.right().saturating_sub(x + 1));
    let mut texts = texts.filter(|text| text.chars().count() <= room);
    if let Some(text) = texts.next() {
        put_last(buffer, area, (x, y), &text, Style::new());
    }
}

/// The sentence that the engine stands for.
fn promise(buffer: &mut Buffer, area: Rect, model: &Model, paint: Paint) {
    let at = (area.x, area.y + 3);
    if let Some(trouble) = &model.trouble {
        put(buffer, area, at, trouble, paint.certain());
        return;
    }
    let Some(group) = model.group() else {
        put(buffer, area, at, "no register group yet", paint.faint());
        return;
    };
    let x = put(buffer, area, at, &sentence(group), paint.promise());
    if let Some(off) = group.look.off.filter(|_| group.look.told.is_some()) {
        let text = format!("{DOT}in truth {}", grouped(off));
        put(buffer, area, (x, at.1), &text, paint.truth());
    }
}

fn sentence(group: &Group) -> String {
    let Some(told) = group.look.told else {
        return "the view is not complete: nothing is promised yet".to_owned();
    };
    let (far, within) = (grouped(told.all_but), grouped(told.within));
    let bound = match told.bound {
        Some(0) => "all exact".to_owned(),
        Some(bound) => {
            let bound = grouped(bound);
            format!("all within {bound}, all but {far} within {within}")
        }
        None => format!("no bound for all, all but {far} within {within}"),
    };
    format!("{bound}{DOT}{} old", time(told.age_us as f64))
}

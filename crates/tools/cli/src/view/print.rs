//! Answers of an engine, for people and as JSON.

use serde_json::{Value, json};
use stateplane_view::proto::v1;
use stateplane_view::unpack;
use std::io::Write;

/// Prints answers.
#[derive(Clone, Copy)]
pub struct Printer {
    /// As JSON.
    pub json: bool,
}

/// Prints a line.
pub(super) fn line(text: impl std::fmt::Display) {
    println!("{text}");
    // A reader of a pipe waits for it.
    let _ = std::io::stdout().flush();
}

fn told_json(told: Option<&v1::Told>) -> Value {
    told.map_or(Value::Null, |told| {
        json!({
            "bound": told.bound,
            "all_but": told.all_but,
            "within": told.within,
            "age_us": told.age_us,
            "stamp": told.stamp,
            "generation": told.generation,
            "incarnation": told.incarnation,
            "epoch": told.epoch,
            "sweep_us": told.sweep_us,
        })
    })
}

fn told_text(told: Option<&v1::Told>) -> String {
    let Some(told) = told else {
        return "the view is not complete".to_owned();
    };
    let bound = match told.bound {
        Some(bound) => format!("bound {bound}"),
        None => "unbounded".to_owned(),
    };
    let (all_but, within, age) = (told.all_but, told.within, told.age_us);
    format!("{bound}; all but {all_but} within {within}; age {age} µs")
}

/// Locations and values as an object of JSON.
fn pairs(values: impl Iterator<Item = (u32, u64)>) -> Value {
    values
        .map(|(location, value)| json!([location, value]))
        .collect()
}

impl Printer {
    /// The groups.
    pub fn groups(self, said: &v1::GroupsResponse) {
        for group in &said.groups {
            let told = group.told.as_ref();
            if self.json {
                line(json!({
                    "group": group.name,
                    "locations": group.locations,
                    "term": said.term,
                    "fenced": group.fenced,
                    "last_window": group.last_window,
                    "told": told_json(told),
                }));
                continue;
            }
            let state = if group.fenced {
                "another engine has a higher term".to_owned()
            } else {
                told_text(told)
            };
            let (name, locations) = (&group.name, group.locations);
            line(format!("{name}: {locations} locations; {state}"));
        }
    }

    /// Values of a group: those of `chosen`, or all that are not 0; as JSON all.
    pub fn values(self, group: &str, told: Option<&v1::Told>, values: &[u64], chosen: &[u32]) {
        let value = |at: u32| values.get(at as usize).copied().unwrap_or(0);
        if self.json {
            let values: Value = match chosen {
                [] => values.into(),
                _ => chosen.iter().map(|at| value(*at)).collect(),
            };
            let mut answer = json!({ "group": group, "told": told_json(told), "values": values });
            if !chosen.is_empty() {
                answer["locations"] = chosen.into();
            }
            return line(answer);
        }
        line(format!("# {}", told_text(told)));
        if chosen.is_empty() {
            let all = (0u32..).zip(values).filter(|(_, value)| **value != 0);
            return all.for_each(|(at, value)| line(format!("{at} {value}")));
        }
        for at in chosen {
            line(format!("{at} {}", value(*at)));
        }
    }

    /// Totals of a group and their discontinuities: those of `chosen`, or all that are not 0; as JSON all.
    pub fn totals(
        self,
        group: &str,
        told: Option<&v1::Told>,
        totals: &[(u64, u32)],
        chosen: &[u32],
    ) {
        let of = |at: u32| totals.get(at as usize).copied().unwrap_or_default();
        let places: Vec<u32> = match chosen {
            [] => (0..).take(totals.len()).collect(),
            _ => chosen.to_vec(),
        };
        if self.json {
            let mut answer = json!({
                "group": group,
                "told": told_json(told),
                "totals": places.iter().map(|at| of(*at).0).collect::<Vec<u64>>(),
                "discontinuities": places.iter().map(|at| of(*at).1).collect::<Vec<u32>>(),
            });
            if !chosen.is_empty() {
                answer["locations"] = chosen.into();
            }
            return line(answer);
        }
        line(format!("# {}", told_text(told)));
        let shown = places.into_iter().map(|at| (at, of(at)));
        let shown = shown.filter(|(_, of)| !chosen.is_empty() || *of != (0, 0));
        shown.for_each(|(at, (total, breaks))| line(format!("{at} {total} {breaks}")));
    }

    /// A change.
    pub fn written(self, said: &v1::WriteResponse) {
        if self.json {
            line(json!({ "done": said.done, "pieces": said.pieces }));
        }
    }

    /// A window.
    pub fn window(self, group: &str, window: &v1::Window) {
        let (number, incarnation, epoch) = (window.number, window.incarnation, window.epoch);
        let values = unpack(&window.values);
        if self.json {
            return line(json!({
                "group": group,
                "number": number,
                "incarnation": incarnation,
                "epoch": epoch,
                "values": values.collect::<Vec<u64>>(),
            }));
        }
        let kept = match number {
            0 => "not kept".to_owned(),
            number => format!("window {number}"),
        };
        line(format!(
            "# {kept}; cut {epoch} of start {incarnation:08x} of the switch"
        ));
        let values = (0u32..).zip(values).filter(|(_, value)| *value != 0);
        values.for_each(|(at, value)| line(format!("{at} {value}")));
    }

    /// A notification.
    pub fn notification(self, group: &str, said: &v1::Notification) {
        let told = said.told.as_ref();
        let (places, _) = said.locations.as_chunks::<4>();
        let places: Vec<u32> = match places {
            [] => (0..(said.values.len() / 8) as u32).collect(),
            _ => places.iter().map(|at| u32::from_le_bytes(*at)).collect(),
        };
        let changed = places.into_iter().zip(unpack(&said.values));
        if self.json {
            return line(json!({
                "group": group,
                "told": told_json(told),
                "met": said.met,
                "all": said.all,
                "values": pairs(changed),
            }));
        }
        let met = if said.met {
            ""
        } else {
            "; not within the limits"
        };
        line(format!("# {}{met}", told_text(told)));
        let shown = changed.filter(|(_, value)| !said.all || *value != 0);
        shown.for_each(|(at, value)| line(format!("{at} {value}")));
    }
}

//! Locks of a program's atomic blocks, as people and machines read them.

use serde_json::{Value, json};
use stateplane_cells::{Access, Domain, Edge, Grain, KeySlice, LockPlan, Reason};
use stateplane_ir::Program;
use stateplane_ir::passes::{Whole, guard, optimise};
use std::path::Path;

/// Prints the locks that workers take which run the program as machine code.
pub fn print(path: &Path, mut program: Program, json: bool) {
    optimise(&mut program);
    guard(&mut program, Whole::Words);
    let plan = stateplane_cells::locks(&program);
    let slice = stateplane_cells::key_slice(&program, &plan);
    if json {
        println!("{}", to_json(path, &plan, slice.as_ref()));
    } else {
        print!("{}", to_text(path, &plan, slice.as_ref()));
    }
}

fn to_text(path: &Path, plan: &LockPlan, slice: Option<&KeySlice>) -> String {
    let path = path.display();
    if plan.domains.is_empty() {
        return format!("{path}: no locks, as no atomic block uses a register or a meter\n");
    }
    let mut text =
        format!("{path}: locks of atomic blocks, in the order in which they are taken\n");
    for (at, Domain { arrays, grain }) in plan.domains.iter().enumerate() {
        let number = at + 1;
        let arrays = arrays.join(", ");
        match grain {
            Grain::Element { length, indices } => {
                let indices: Vec<&str> = indices.iter().map(String::as_str).collect();
                let indices = indices.join("; ");
                text += &format!("{number}. {arrays}: a lock for each of {length} elements\n");
                text += &format!("   index: {indices}\n");
            }
            Grain::Unit {
                elements,
                count,
                numbers,
            } => {
                let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
                let numbers = numbers.join("; ");
                text += &format!(
                    "{number}. {arrays}: a lock for each of {count} units of {elements} elements\n"
                );
                text += &format!("   units: {numbers}\n");
            }
            Grain::Whole(reasons) => {
                text += &format!("{number}. {arrays}: one lock for all elements\n");
                for reason in reasons {
                    text += &format!("   {}\n", because(reason));
                }
            }
        }
    }
    text += &match slice {
        Some(slice) if slice.applied.is_empty() => {
            "Workers tell the key of a frame (run --spread) from its bytes.\n".to_owned()
        }
        Some(slice) => format!(
            "Workers tell the key of a frame (run --spread) from its bytes and the entries of {}.\n",
            applied(slice).join(", ")
        ),
        None => "Workers tell no key of a frame (run --spread).\n".to_owned(),
    };
    text
}

/// Names of the tables on which the key depends.
fn applied(slice: &KeySlice) -> Vec<&str> {
    let tables = slice.applied.iter();
    let tables = tables.map(|id| slice.program.tables[id.index()].name.as_str());
    tables.collect()
}

fn because(reason: &Reason) -> String {
    match reason {
        Reason::TwoIndices { array, uses } => {
            let [one, two] = uses.each_ref().map(used);
            format!("one block uses {array} at two indices: {one}, and {two}")
        }
        Reason::Circle(edges) => {
            let steps: Vec<String> = edges.iter().map(later).collect();
            format!("blocks use them in a circle: {}", steps.join(", "))
        }
        Reason::Parser { array } => format!("a parser uses {array} in an atomic block"),
        Reason::NotFollowed { array } => format!("no use of {array} could be followed"),
        Reason::UnitsNotNamed {
            units,
            array,
            place,
        } => {
            let place = match place.as_str() {
                "" => String::new(),
                place => format!(" ({place})"),
            };
            format!("a block uses {array}{place} before it names units of {units}")
        }
        Reason::TooLarge => "the program is too large to be followed".to_owned(),
    }
}

fn used(access: &Access) -> String {
    match access.place.as_str() {
        "" => access.index.clone(),
        place => format!("{} ({place})", access.index),
    }
}

fn later(edge: &Edge) -> String {
    let Edge {
        first,
        later,
        place,
    } = edge;
    match place.as_str() {
        "" => format!("{later} after {first}"),
        place => format!("{later} after {first} ({place})"),
    }
}

fn to_json(path: &Path, plan: &LockPlan, slice: Option<&KeySlice>) -> Value {
    let domains = plan.domains.iter().map(|domain| match &domain.grain {
        Grain::Element { length, indices } => json!({
            "arrays": domain.arrays,
            "each": "element",
            "elements": length,
            "indices": indices,
        }),
        Grain::Unit {
            elements,
            count,
            numbers,
        } => json!({
            "arrays": domain.arrays,
            "each": "unit",
            "units": count,
            "elements": elements,
            "numbers": numbers,
        }),
        Grain::Whole(reasons) => json!({
            "arrays": domain.arrays,
            "each": "domain",
            "reasons": reasons.iter().map(reason_to_json).collect::<Vec<_>>(),
        }),
    });
    json!({
        "program": path.display().to_string(),
        "locks": domains.collect::<Vec<_>>(),
        "key-follows-from-frame": slice.is_some(),
        "tables-of-key": slice.map(applied).unwrap_or_default(),
    })
}

fn reason_to_json(reason: &Reason) -> Value {
    match reason {
        Reason::TwoIndices { array, uses } => {
            let uses = uses
                .each_ref()
                .map(|it| json!({ "index": it.index, "place": it.place }));
            json!({ "kind": "two-indices", "array": array, "uses": uses })
        }
        Reason::Circle(edges) => {
            let steps: Vec<Value> = edges
                .iter()
                .map(|it| json!({ "first": it.first, "later": it.later, "place": it.place }))
                .collect();
            json!({ "kind": "circle", "steps": steps })
        }
        Reason::Parser { array } => json!({ "kind": "parser", "array": array }),
        Reason::NotFollowed { array } => json!({ "kind": "not-followed", "array": array }),
        Reason::UnitsNotNamed {
            units,
            array,
            place,
        } => json!({ "kind": "units-not-named", "units": units, "array": array, "place": place }),
        Reason::TooLarge => json!({ "kind": "too-large" }),
    }
}

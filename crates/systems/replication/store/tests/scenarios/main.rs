//! Scenarios of the protocol as plain text.
//!
//! Each `*.txt` file beside this one is a run of one chain in virtual time: blocks
//! of commands, a line `----`, and what must come of them. `world.rs` lists the
//! commands. To write the outcomes anew after a change that is meant, and then
//! read the difference: `UPDATE_GOLDEN=1 cargo test -p stateplane-store`.

mod command;
mod world;

use std::fs;
use std::path::{Path, PathBuf};

use world::World;

/// Runs the scenario in `text` and gives it back with the outcomes that it has.
fn run(text: &str) -> String {
    let mut world = World::new();
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "----" {
            for printed in world.take_output() {
                out.push_str(&printed);
                out.push('\n');
            }
            for expected in lines.by_ref() {
                if expected.is_empty() {
                    out.push('\n');
                    break;
                }
            }
        } else if !line.is_empty() && !line.starts_with('#') {
            world.command(line);
        }
    }
    out
}

fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let path: PathBuf = folder.join(name).with_extension("txt");
    let text = fs::read_to_string(&path).unwrap();
    let outcome = run(&text);
    if outcome == text {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, outcome).unwrap();
        return;
    }
    let differs = text.lines().zip(outcome.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or(text.lines().count().min(outcome.lines().count()));
    panic!(
        "{} line {}:\n  expected: {}\n  outcome:  {}\n\nwhole outcome:\n{outcome}",
        path.display(),
        at + 1,
        text.lines().nth(at).unwrap_or("(end)"),
        outcome.lines().nth(at).unwrap_or("(end)"),
    );
}

macro_rules! scenarios {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn every_file_is_run() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|e| e == "txt") {
                    let name = path.file_stem().unwrap().to_str().unwrap();
                    assert!([$(stringify!($name)),*].contains(&name), "{name}");
                }
            }
        }
    };
}

scenarios! {
    faults
    malformed
    rule_01_promises
    rule_02_epochs
    rule_05_no_starvation
    rule_06_incarnation
    rule_08_heartbeats_renew
    rule_10_sequence
    rule_11_tail_answers
    rule_12_fencing
    rule_18_shared_leases
    rule_19_recall
    chain_cut
    chain_faults
    chain_join
    rule_20_chain
    rule_21_chain_epoch
    rule_22_idle_question
    rule_22_nat_pool
    rule_23_bounds
    rule_27_dependent_nat
    rule_28_both_records
    rule_29_ended
    services
    flow_life
    edges
}

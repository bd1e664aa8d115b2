//! Traces beside their golden texts: `golden/NAME.txt`, and `golden/small.jsonl`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p stateplane-trace --test golden` writes the files anew;
//! look at the difference before you commit it.

use stateplane_diagnostics::Color;
use stateplane_interp::{Interp, Options};
use stateplane_library::included_script;
use stateplane_stf::{Command, Script, parse_with};
use stateplane_switch::Switch;
use stateplane_trace::{Recorder, render, run_script, send, to_json};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn script(path: &str) -> Script {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let included = |file: &str| included_script(path, file, |_| None);
    parse_with(path, &text, &included).unwrap_or_else(|error| panic!("{error}"))
}

fn engine(program: &str, script: &Script) -> Interp<Recorder> {
    let path = root().join(program);
    let read = |path: &str| fs::read_to_string(path).ok();
    let source = stateplane_compile::file(&path.to_string_lossy(), read);
    let program = source.defines(script.defines.clone()).program();
    let program = program.unwrap_or_else(|refused| panic!("{refused}"));
    Interp::observed(program, Options::default(), Recorder::new()).unwrap()
}

/// All packets of a script.
fn all_packets(program: &str, path: &str) -> Switch<Interp<Recorder>> {
    let script = script(path);
    run_script(&script, true, engine(program, &script)).unwrap_or_else(|error| panic!("{error}"))
}

/// The first packet of a script.
fn first_packet(program: &str, path: &str) -> Switch<Interp<Recorder>> {
    let script = script(path);
    let mut switch = run_script(&script, false, engine(program, &script))
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(switch.engine().observer().steps().is_empty());
    let packet = script.lines.iter().find_map(|line| match &line.command {
        Command::Packet { port, frame } => Some((*port, frame)),
        _ => None,
    });
    let (port, frame) = packet.expect("a packet");
    send(&mut switch, port, frame);
    switch
}

fn compare(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, actual).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{name} differs:\n{actual}");
}

#[test]
fn a_small_program_in_every_detail() {
    let folder = "crates/engine/trace/tests/golden";
    let switch = all_packets(
        &format!("{folder}/small.p4"),
        &format!("{folder}/small.stf"),
    );
    let recorder = switch.engine().observer();
    compare("small.txt", &render(recorder, true, Color::Never));
    compare("small.jsonl", &to_json(recorder, true));
}

#[test]
fn a_connection_begins_at_the_nat() {
    let switch = first_packet("apps/nat/nat.p4", "apps/nat/tests/new_connection.stf");
    compare(
        "nat.txt",
        &render(switch.engine().observer(), false, Color::Never),
    );
}

#[test]
fn a_counted_packet_asks_for_its_lease() {
    let switch = first_packet("apps/counter/counter.p4", "apps/counter/tests/counting.stf");
    compare(
        "counter.txt",
        &render(switch.engine().observer(), false, Color::Never),
    );
}

#[test]
fn an_observer_changes_nothing() {
    let path = "apps/nat/tests/new_connection.stf";
    let script = script(path);
    let observed = run_script(&script, true, engine("apps/nat/nat.p4", &script)).unwrap();
    assert!(!observed.engine().observer().steps().is_empty());
    // The script's own expectations hold for the observed run as well.
    stateplane_stf::run(&script, engine("apps/nat/nat.p4", &script)).unwrap();
    let plain = Interp::new(observed.engine().program().clone(), Options::default()).unwrap();
    let plain = stateplane_stf::run(&script, plain).unwrap();
    assert_eq!(plain.counters(), observed.counters());
}

#[test]
fn colours_mark_words_and_nothing_else() {
    let switch = first_packet("apps/nat/nat.p4", "apps/nat/tests/new_connection.stf");
    let recorder = switch.engine().observer();
    let mut painted = render(recorder, true, Color::Ansi);
    assert!(painted.contains("\x1b["));
    while let Some(start) = painted.find('\x1b') {
        let end = start + painted[start..].find('m').unwrap();
        painted.replace_range(start..=end, "");
    }
    assert_eq!(painted, render(recorder, true, Color::Never));
}

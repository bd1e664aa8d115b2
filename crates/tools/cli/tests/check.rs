//! `stateplane check` and the stages of `stateplane compile --emit`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::process::Output;
use support::{errors, repository, stateplane};

const CABLE: &str = "docs/examples/cable.p4";

fn run(arguments: &[&str]) -> Output {
    stateplane(arguments).output().expect("the command starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn nothing_is_said_of_right_programs() {
    let output = run(&["check", CABLE, "apps/nat/nat.p4"]);
    assert!(output.status.success());
    assert_eq!((printed(&output), errors(&output)), Default::default());
}

#[test]
fn all_programs_are_checked_and_the_hint_comes_once() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.p4");
    fs::write(&wrong, "#include <v1model.p4>\nconst bit<8> n = missing;\n").unwrap();
    let empty = folder.path().join("empty.p4");
    fs::write(&empty, "#include <v1model.p4>\n").unwrap();
    let output = run(&[
        "check",
        wrong.to_str().unwrap(),
        CABLE,
        empty.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(3));
    let said = errors(&output);
    assert!(said.contains("wrong.p4:2:18"), "{said}");
    assert!(said.contains("error[E1604]"), "{said}");
    assert!(
        said.ends_with("for more: stateplane explain E1604 E1001\n")
            || said.ends_with("for more: stateplane explain E1001 E1604\n"),
        "{said}"
    );
    assert_eq!(said.matches("for more:").count(), 1);
}

#[test]
fn diagnostics_are_objects_with_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.p4");
    fs::write(
        &path,
        "#include <v1model.p4>\nconst bit<8> n = 300;\nconst bit<8> n = 1;\n",
    )
    .unwrap();
    let path = path.to_str().unwrap();
    let output = run(&["check", "--json", path]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(errors(&output), "");
    let objects: Vec<serde_json::Value> = printed(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let of = |code: &str| {
        let found = objects.iter().find(|object| object["code"] == code);
        found.unwrap_or_else(|| panic!("no {code} in {objects:?}"))
    };
    let cut = of("W1001");
    assert_eq!(cut["severity"], "warning");
    assert_eq!(cut["file"], path);
    assert_eq!((&cut["line"], &cut["column"]), (&2.into(), &18.into()));
    assert_eq!(cut["end"]["column"], 21);
    assert!(cut["help"].is_string());
    let twice = of("E1003");
    assert_eq!(twice["line"], 3);
    assert_eq!(twice["secondary"][0]["line"], 2);
}

#[test]
fn each_stage_can_be_seen() {
    for (stage, parts) in [
        (
            "tokens",
            &[
                "cable.p4:",
                " keyword  control\n",
                " symbol   {\n",
                " end\n",
            ][..],
        ),
        ("tree", &["control Cable(", "V1Switch("][..]),
        (
            "checked",
            &["control Cable(", "packets.read(Cable.count, "][..],
        ),
        ("ir", &["pipeline {\n", "register_read packets["][..]),
    ] {
        let output = run(&["compile", CABLE, "--emit", stage]);
        assert!(output.status.success(), "{}", errors(&output));
        let text = printed(&output);
        for part in parts {
            assert!(
                text.contains(part),
                "no {part:?} among the {stage}:\n{text}"
            );
        }
    }
}

#[test]
fn an_early_stage_is_shown_of_a_wrong_program_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wrong.p4");
    fs::write(&path, "const bit<8> n = missing;\n").unwrap();
    let output = run(&["compile", path.to_str().unwrap(), "--emit", "tree"]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(printed(&output), "const bit<8> n = missing;\n");
    assert!(errors(&output).contains("error[E1001]"));
}

#[test]
fn a_file_without_an_end_is_refused() {
    let output = run(&["check", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(errors(&output).contains("longer than 64 MiB"), "{output:?}");
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_command_quietly() {
    let mut command = stateplane(&["compile", "--emit", "ir", "apps/nat/nat.p4"]);
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(
        (output.status.code(), errors(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn locks_of_atomic_blocks_are_shown() {
    let output = run(&["check", "--locks", CABLE, "bench/p4/keyed.p4"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(
        printed(&output),
        "docs/examples/cable.p4: no locks, as no atomic block uses a register or a meter\n\
         bench/p4/keyed.p4: locks of atomic blocks, in the order in which they are taken\n\
         1. packets, bytes: a lock for each of 65536 elements\n\
         \x20  index: bit<32>(hdr.udp.src)\n\
         Workers tell the key of a frame (run --spread) from its bytes.\n"
    );
}

#[test]
fn of_a_replicated_program_a_lock_for_each_unit_is_shown() {
    let told = printed(&run(&["check", "--locks", "apps/nat/nat.p4"]));
    let units = "1. slot_key, slot_status, ";
    assert!(
        told.lines()
            .nth(1)
            .is_some_and(|line| line.starts_with(units)),
        "{told}"
    );
    let each = "slot_used: a lock for each of 16384 units of 4 elements\n   units: ";
    assert!(told.contains(each), "{told}");
    assert!(
        told.contains("2. replication_claims: a lock for each of 1 elements\n"),
        "{told}"
    );
    assert!(!told.contains("one lock for all elements"), "{told}");
    assert!(told.lines().all(|line| line.len() < 400), "{told}");
    let tables = "from its bytes and the entries of NatIngress.classify.interfaces, ";
    assert!(told.contains(tables), "{told}");

    let output = run(&["check", "--locks", "--json", "apps/nat/nat.p4"]);
    let object: serde_json::Value = serde_json::from_str(&printed(&output)).expect("an object");
    assert_eq!(object["locks"][0]["each"], "unit");
    assert_eq!(object["locks"][0]["units"], 16384);
    assert_eq!(object["locks"][0]["elements"], 4);
    assert_eq!(object["key-follows-from-frame"], true);
    let tables = object["tables-of-key"].as_array().expect("a list");
    assert!(tables.contains(&"NatIngress.classify.interfaces".into()));
}

#[test]
fn one_lock_for_all_elements_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("move.p4");
    let text = fs::read_to_string(repository().join("bench/p4/keyed.p4")).unwrap();
    let moved = text.replace("packets.write(flow,", "packets.write(flow + 1,");
    assert_ne!(moved, text);
    fs::write(&path, moved).unwrap();
    let path = path.to_str().unwrap();
    let told = printed(&run(&["check", "--locks", path]));
    assert!(
        told.contains("1. packets: one lock for all elements\n"),
        "{told}"
    );
    let reason = "one block uses packets at two indices: bit<32>(hdr.udp.src) (";
    assert!(told.contains(reason), "{told}");
    assert!(
        told.contains("2. bytes: a lock for each of 65536 elements\n"),
        "{told}"
    );

    let output = run(&["check", "--locks", "--json", path]);
    let object: serde_json::Value = serde_json::from_str(&printed(&output)).expect("an object");
    assert_eq!(object["program"], path);
    let locks = object["locks"].as_array().expect("locks");
    assert_eq!(locks[0]["each"], "domain");
    assert_eq!(locks[0]["arrays"], serde_json::json!(["packets"]));
    let reason = &locks[0]["reasons"][0];
    assert_eq!(reason["kind"], "two-indices");
    assert!(
        reason["uses"][1]["place"]
            .as_str()
            .is_some_and(|it| it.contains("move.p4:"))
    );
    assert_eq!(locks[1]["each"], "element");
    assert_eq!(locks[1]["elements"], 65536);
}

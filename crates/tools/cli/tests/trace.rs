//! `stateplane trace`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::fs;
use std::process::Output;
use support::{errors, stateplane};

const CABLE: &str = "docs/examples/cable.p4";
/// Ethernet with an empty payload.
const FRAME: &str = "ffffffffffff 020000000001 88b5";

fn run(arguments: &[&str]) -> Output {
    stateplane(arguments).output().expect("the command starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_packet_passes_the_cable() {
    let text = printed(&["trace", CABLE, "--packet", FRAME]);
    for part in [
        "ingress packet of 14 bytes, by port 0\n",
        "register write packets[0] = 1 (was 0)\n",
        "  transmit by port 1, 14 bytes\n      0000  ff ff ff ff ff ff 02 00 00 00 00 01 88 b5\n",
    ] {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains("  set "), "{text}");
    let back = printed(&["trace", CABLE, "--packet", FRAME, "--port", "1", "--all"]);
    assert!(
        back.contains("transmit by port 0") && back.contains("  set "),
        "{back}"
    );
}

#[test]
fn steps_are_objects() {
    let text = printed(&["trace", CABLE, "--packet", FRAME, "--json"]);
    let steps: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(steps[0]["what"], "ingress");
    let last = steps.last().unwrap();
    assert_eq!(
        (&last["what"], &last["port"]),
        (&"transmit".into(), &1.into())
    );
    assert_eq!(last["frame"], FRAME.replace(' ', ""));
}

#[test]
fn packets_come_from_captures_and_tests_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("two.pcap");
    let mut file = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65535, 1]
        .map(u32::to_be_bytes)
        .concat();
    for _ in 0..2 {
        file.extend([0_u32, 0, 14, 14].map(u32::to_be_bytes).concat());
        file.extend([2; 14]);
    }
    fs::write(&path, file).unwrap();
    let text = printed(&["trace", CABLE, "--pcap", path.to_str().unwrap()]);
    assert_eq!(text.matches("transmit by port 1").count(), 2, "{text}");
    assert!(text.contains("packets[0] = 2 (was 1)"), "{text}");

    let test = "apps/counter/tests/uncounted.stf";
    let text = printed(&["trace", "apps/counter/counter.p4", "--stf", test]);
    assert!(text.contains("ingress packet"), "{text}");
}

#[test]
fn a_switchs_file_fills_the_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("switch.toml");
    let file = "[[registers]]\nname = \"packets\"\nindex = 0\nvalue = 41\n\n\
                [[generators]]\nport = 1\nperiod_ms = 1\nframe = \"ffffffffffff02000000000188b5\"\n\n\
                [[watches]]\nregister = \"packets\"\nindex = 1\nmax_age_ms = 1\nports = [1]\n";
    fs::write(&path, file).unwrap();
    let path = path.to_str().unwrap();
    let text = printed(&["trace", CABLE, "--packet", FRAME, "--config", path]);
    assert!(text.contains("packets[0] = 0x2a (was 0x29)"), "{text}");
    // Neither does the generator add packets, nor the watch keep the port down.
    assert_eq!(text.matches("ingress packet").count(), 1, "{text}");
    assert!(text.contains("transmit by port 1"), "{text}");
    fs::write(path, "[[registers]]\nname = \"nothere\"\nvalue = 1\n").unwrap();
    let output = run(&["trace", CABLE, "--packet", FRAME, "--config", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("nothere"));
}

/// The front of a program with snapshots has the generator that they need.
#[test]
fn a_protected_programs_own_words_configure_its_switch() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (program, config) = (at("protected.p4"), at("switch.toml"));
    let original = "crates/compiler/protect/tests/programs/count_min.p4";
    printed(&["protect", original, "-o", &program]);
    let text = fs::read_to_string(&program).unwrap();
    let lines = text
        .lines()
        .skip_while(|line| !line.contains("[[generators]]"));
    let generator: Vec<&str> = lines
        .map_while(|line| line.strip_prefix("//     "))
        .collect();
    let traced = |generator: &str| {
        fs::write(&config, generator).unwrap();
        run(&["trace", &program, "--packet", FRAME, "--config", &config])
    };
    let output = traced(&generator.join("\n"));
    assert!(output.status.success(), "{}", errors(&output));
    let slow = generator
        .join("\n")
        .replace("period_ms = 1", "period_ms = 100");
    for (generator, code) in [(&*slow, "H230"), ("", "H229")] {
        let output = traced(generator);
        assert_eq!(output.status.code(), Some(2));
        assert!(errors(&output).contains(code), "{}", errors(&output));
    }
}

#[test]
fn what_is_missing_or_wrong_is_told() {
    for (arguments, code, part) in [
        (&["trace", CABLE][..], 2, "--packet, --pcap, or --stf"),
        (&["trace", CABLE, "--packet", "abc"], 2, "half a byte"),
        (&["trace", CABLE, "--pcap", CABLE], 2, "H207"),
        (
            &["trace", CABLE, "--packet", "00", "--port", "511"],
            2,
            "511",
        ),
        (&["trace", CABLE, "--stf", "missing.stf"], 2, "missing.stf"),
        (&["trace", "missing.p4", "--packet", "00"], 3, "missing.p4"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let said = errors(&output);
        assert!(said.contains(part), "no {part:?} in {said}");
    }
}

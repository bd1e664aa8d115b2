//! `stateplane sim`: what fails is made small, and the printed command runs it again.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod support;

use std::process::Output;
use support::{errors, stateplane};

fn run(command: &str) -> (Output, String) {
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = stateplane(&arguments).output().expect("the command starts");
    let text = String::from_utf8(output.stdout.clone()).expect("it prints text");
    (output, text)
}

/// The last line `run it again: …`.
fn command_in(text: &str) -> &str {
    let mut commands = text
        .lines()
        .filter_map(|line| line.strip_prefix("run it again: "));
    commands.next_back().expect("a command")
}

/// The number behind the last `trace`.
fn trace_in(text: &str) -> &str {
    let (_, trace) = text.rsplit_once("; trace ").expect("a trace");
    trace.lines().next().unwrap_or_default()
}

fn count(text: &str, begin: &str) -> usize {
    text.lines().filter(|line| line.starts_with(begin)).count()
}

#[test]
fn the_printed_command_runs_the_smaller_world_again() {
    let (output, text) = run(
        "stateplane sim --program model --scenario tug-of-war --set flows=5 --seeds 3 \
         --without lease-expiry",
    );
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    let (_, smaller) = text
        .split_once("in a smaller world:")
        .expect("a smaller world");
    let command = command_in(smaller);
    for part in ["--faults ", "--set bursts=", "--without lease-expiry"] {
        assert!(command.contains(part), "{command}");
    }
    // A person can read what is left.
    assert!(smaller.lines().count() < 60, "{smaller}");
    assert!(smaller.contains("fault: ") && smaller.contains("input switch="));
    let (output, again) = run(command);
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert_eq!(trace_in(&again), trace_in(smaller));
    let violated = |text: &str| count(text, "violated: single-owner");
    assert_eq!(violated(&again), violated(smaller));
    assert!(violated(&again) > 0, "{again}");
    // With the rule nobody objects.
    let (output, text) = run(&command.replace("--without lease-expiry", ""));
    assert_eq!(output.status.code(), Some(0), "{text}");
}

#[test]
fn settings_and_numbers_that_mean_nothing_are_refused() {
    for (command, part) in [
        ("stateplane sim --set flow=3", "flow"),
        ("stateplane sim --set flows", "NAME=VALUE"),
        ("stateplane sim --seed 3 --packets 7-3", "0-3,17"),
        ("stateplane sim --packets 7", "--seed"),
    ] {
        let (output, _) = run(command);
        assert_eq!(output.status.code(), Some(2), "{command}");
        assert!(errors(&output).contains(part), "{}", errors(&output));
    }
}

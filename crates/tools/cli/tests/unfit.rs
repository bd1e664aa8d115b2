//! Wrong configurations of a switch and its store: each is told by both sides, where both exist,
//! within two seconds of the start, and no data port comes up. Needs root and `ip`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "unfit/cases.rs"]
mod cases;
#[path = "unfit/lane.rs"]
mod lane;
mod support;

use cases::{Case, STORE, SWITCH, case, of_settings, of_the_program, of_the_way, replaced};
use lane::Lane;
use std::path::Path;
use std::time::{Duration, Instant};
use support::missing;

/// Maximum seconds from the switch's start, as its log has it, to the line.
const SOON: f64 = 2.0;

/// Time for processes to start and speak on a machine that others load.
const PATIENCE: Duration = Duration::from_secs(30);

/// Networks in which cases run at the same time.
const LANES: usize = 5;

/// Seconds from line to line of two logs; a little less than 0 if the second is older.
fn between(first: &str, second: &str) -> f64 {
    (seconds(second) - seconds(first) + 43_200.0).rem_euclid(86_400.0) - 43_200.0
}

/// Seconds of the day of a line of a log, which begins with the time.
fn seconds(line: &str) -> f64 {
    let time = line
        .split_once('T')
        .and_then(|(_, rest)| rest.split_once('Z'));
    let (time, _) = time.unwrap_or_else(|| panic!("a time in {line}"));
    let parts = time.split(':').map(|part| part.parse::<f64>().unwrap());
    parts.fold(0.0, |sum, part| sum * 60.0 + part)
}

#[test]
fn each_wrong_configuration_is_told_and_raises_no_port() {
    if let Some(reason) = missing(&["ip", "python3"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let cases: Vec<Case> = [of_settings(), of_the_way(), of_the_program()]
        .into_iter()
        .flatten()
        .collect();
    assert!(cases.len() >= 20);
    let cases = &cases;
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            scope.spawn(move || {
                let here = Lane::new(lane);
                for case in cases.iter().skip(lane).step_by(LANES) {
                    here.try_case(case);
                }
            });
        }
    });
}

#[test]
fn what_fits_is_ready_and_raises_its_port() {
    if let Some(reason) = missing(&["ip"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let lane = Lane::new(LANES);
    lane.down("s");
    let right = case("right", "", None);
    let peers = lane.peers(&right);
    let file = lane.write("switch.toml", SWITCH);
    let (_switch, log) = lane.switch("s", "switch.log", &file, None);
    let said = lane.wait("right", &log, "ready");
    assert!(said.contains("the settings of the store fit"), "{said}");
    let begin = Instant::now();
    while !lane.is_up("s") {
        assert!(begin.elapsed() < PATIENCE, "{}", lane.log(&log));
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(peers);
}

/// A switch's file whose chains a controller tells.
fn followed(servers: &[&str]) -> String {
    let servers: Vec<String> = servers
        .iter()
        .map(|host| format!("{{ address = \"10.10.0.{host}\", mac = \"02:00:00:00:0b:01\" }}"))
        .collect();
    replaced(SWITCH, "heads =", "# heads =").replace("shards = 4", "")
        + &format!(
            "[chains]\ncontrollers = [\"10.10.0.20:4795\"]\nswitch = 1\nport = 2\nmtu = 1500\n\
             servers = [{}]\n",
            servers.join(", ")
        )
}

/// Waits for the line of a log with `text`, which is the only one, of `level`, and has `values`.
fn one_line(lane: &Lane, log: &Path, level: &str, text: &str, values: &[&str]) {
    let said = lane.wait("logs", log, text);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(text)).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines[0].contains(&format!(" {level} ")), "{}", lines[0]);
    for value in values {
        assert!(lines[0].contains(value), "no {value}: {}", lines[0]);
    }
}

#[test]
fn logs_tell_of_a_dead_store_a_cut_link_a_dead_controller_and_a_dead_switch() {
    if let Some(reason) = missing(&["ip"]) {
        eprintln!("not tested: {reason}");
        return;
    }
    let lane = Lane::new(LANES + 1);
    lane.down("s");
    let decisions = lane.folder.path().join("decisions");
    let store = replaced(STORE, "chain = [\"10.10.0.11\"]", "replicas = 3")
        + &format!(
            "[controller]\naddresses = [\"10.10.0.20\"]\nlog = {decisions:?}\n\
             heartbeat_ms = 50\ndetection_ms = 500\n"
        );
    let config = lane.write("store.toml", &store).display().to_string();
    let start = |what: &str, host: &str, log: &str| {
        let own = format!("10.10.0.{host}");
        lane.start("d", log, &[what, "--config", &config, "--listen", &own])
    };
    let (mut controlling, controller) = start("controller", "20", "20.log");
    let hosts = ["11", "12", "13"];
    let mut stores = hosts.map(|host| start("store", host, &format!("{host}.log")));
    let file = lane.write("switch.toml", &followed(&hosts));
    let (mut switch, log) = lane.switch("s", "switch.log", &file, None);
    lane.wait("logs", &log, "ready");
    lane.wait_until_up("s", "logs");
    lane.wait(
        "logs",
        &controller,
        "every one of the chains is as those alive allow",
    );

    stores[1].0.signal("KILL");
    let dead = ["10.10.0.12"];
    one_line(&lane, &controller, "WARN", "store server is lost", &dead);
    let shorter = ["left=[10.10.0.12]", "members=2", "replicas=3"];
    one_line(&lane, &controller, "WARN", "chains are shorter", &shorter);
    for neighbour in [0, 2] {
        let shorter = ["length=2", "before=3"];
        let told = &stores[neighbour].1;
        one_line(&lane, told, "WARN", "chains are shorter", &shorter);
    }

    let net = lane.full("s");
    lane.net.ip(&net, &["link", "set", "eth1", "down"]);
    one_line(&lane, &log, "ERROR", "port 1=eth1: down", &[]);
    lane.store_link("down");
    lane.wait("logs", &log, "the store does not answer greetings");
    one_line(&lane, &log, "ERROR", "the port is lowered", &["port=0"]);
    lane.store_link("up");
    lane.wait("logs", &log, "the store answers greetings again");
    lane.wait("logs", &log, "the port is raised");

    controlling.signal("KILL");
    let last = ["10.10.0.20:4795"];
    one_line(&lane, &log, "WARN", "no controller answers", &last);
    let (_controlling, _) = start("controller", "20", "20-again.log");
    one_line(&lane, &log, "INFO", "a controller answers again", &last);

    switch.signal("KILL");
    let text = "a switch is silent";
    let begin = Instant::now();
    while !stores.iter().any(|(_, log)| lane.log(log).contains(text)) {
        assert!(begin.elapsed() < PATIENCE, "no store tells of the switch");
        std::thread::sleep(Duration::from_millis(100));
    }
}

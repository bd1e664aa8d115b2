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

#[test]
fn logs_tell_of_a_dead_store_a_cut_link_and_a_dead_switch() {
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
    let start = |what: &str, host: &str| {
        let own = format!("10.10.0.{host}");
        lane.start(
            "d",
            &format!("{host}.log"),
            &[what, "--config", &config, "--listen", &own],
        )
    };
    let (_controller, controller) = start("controller", "20");
    let mut stores: Vec<_> = ["11", "12", "13"].map(|host| start("store", host)).into();
    let case = "logs";
    let file = lane.write("switch.toml", &followed(&["11", "12", "13"]));
    let (mut switch, log) = lane.switch("s", "switch.log", &file, None);
    lane.wait(case, &log, "ready");
    lane.wait(
        case,
        &controller,
        "every one of the chains is as the servers alive allow",
    );

    stores[1].0.signal("KILL");
    let said = lane.wait(case, &controller, "store server is lost");
    let line = said.lines().find(|line| line.contains("is lost")).unwrap();
    assert!(
        line.contains(" WARN ") && line.contains("10.10.0.12"),
        "{line}"
    );
    let said = lane.wait(case, &controller, "chains are shorter");
    let line = said
        .lines()
        .find(|line| line.contains("are shorter"))
        .unwrap();
    assert!(
        line.contains("left=[10.10.0.12]") && line.contains("members=2"),
        "{line}"
    );
    for neighbour in [0, 2] {
        let said = lane.wait(case, &stores[neighbour].1, "the chain is shorter");
        let line = said
            .lines()
            .find(|line| line.contains("is shorter"))
            .unwrap();
        assert!(
            line.contains("length=2") && line.contains("before=3"),
            "{line}"
        );
    }

    lane.net
        .ip(&lane.full("s"), &["link", "set", "eth1", "down"]);
    let said = lane.wait(case, &log, "port 1=eth1: down");
    let line = said
        .lines()
        .find(|line| line.contains("1=eth1: down"))
        .unwrap();
    assert!(line.contains("ERROR"), "{line}");
    lane.store_link("down");
    lane.wait(case, &log, "the store does not answer greetings");
    let said = lane.wait(case, &log, "the port is lowered");
    let line = said
        .lines()
        .rfind(|line| line.contains("is lowered"))
        .unwrap();
    assert!(line.contains("port=0"), "{line}");
    lane.store_link("up");
    lane.wait(case, &log, "the store answers greetings again");

    switch.signal("KILL");
    let text = "a switch is silent";
    let begin = Instant::now();
    while !stores.iter().any(|(_, log)| lane.log(log).contains(text)) {
        assert!(begin.elapsed() < PATIENCE, "no store tells of the switch");
        std::thread::sleep(Duration::from_millis(100));
    }
}

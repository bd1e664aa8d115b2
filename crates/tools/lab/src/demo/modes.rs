//! Engine and port modes that the switches of a run report.

use crate::topology::Process;
use std::collections::BTreeMap;
use std::path::Path;

/// Default engine of `stateplane run`.
const ENGINE: &str = "native";

/// One line for each process that is a switch, from its command and the log in `folder`
/// to which it has written how its ports work.
pub(super) fn of_switches(processes: &[Process], folder: &Path) -> Vec<String> {
    let switches = processes
        .iter()
        .filter(|process| process.command.get(1).is_some_and(|word| word == "run"));
    let lines = switches.map(|process| {
        let log = std::fs::read_to_string(folder.join(format!("{}.log", process.name)));
        // A log that cannot be read tells of no port.
        let ports = ports(&log.unwrap_or_default());
        let engine = engine(&process.command);
        format!("{}: engine {engine}; {ports}", process.name)
    });
    lines.collect()
}

fn engine(command: &[String]) -> &str {
    let mut words = command.iter();
    let named = words.find(|word| *word == "--engine");
    named.and_then(|_| words.next()).map_or(ENGINE, |name| name)
}

/// The newest mode of each port in `log`, ports of one mode together.
fn ports(log: &str) -> String {
    let mut modes = BTreeMap::new();
    for line in log.lines() {
        // By itself, or behind time, level and place in the log.
        let logged = || Some(line.split_once(": port ")?.1);
        let told = line.strip_prefix("port ").or_else(logged);
        let told = told.and_then(|it| it.split_once(": "));
        if let Some((port, mode)) = told {
            let again = mode.strip_prefix("up again (");
            let again = again.and_then(|mode| mode.strip_suffix(')'));
            modes.insert(port, again.unwrap_or(mode));
        }
    }
    let mut of_mode: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (port, mode) in modes {
        of_mode.entry(mode).or_default().push(port);
    }
    let told = of_mode.into_iter();
    let told: Vec<_> = told
        .map(|(mode, ports)| format!("ports {}: {mode}", ports.join(", ")))
        .collect();
    told.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_one_mode_stand_together() {
        let log = "port 0=eth0: AF_PACKET\nport 1=eth1: AF_XDP (copy)\nnothing\n\
                   port 2=eth2: AF_PACKET\n2026-01-01T00:00:00.000000Z  INFO stateplane::run: port 0=eth0: up again (AF_XDP (copy))\n";
        assert_eq!(
            ports(log),
            "ports 2=eth2: AF_PACKET; ports 0=eth0, 1=eth1: AF_XDP (copy)"
        );
        assert_eq!(ports(""), "");
    }

    #[test]
    fn the_engine_is_the_one_asked_for() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(engine(&words("stateplane run a.p4")), "native");
        assert_eq!(
            engine(&words("stateplane run --engine interp a.p4")),
            "interp"
        );
    }
}

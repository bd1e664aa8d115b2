//! List of the scenarios: applications whose `app.toml` has a section `[lab]`.

use serde::Serialize;
pub use stateplane_apps::spec::Side;
use stateplane_apps::spec::{FILE, LabScenario};
use stateplane_apps::{APPS, Room};
use std::collections::BTreeMap;
use std::path::Path;

/// Rooms of the lab, with scenarios that the hosts of an application take part in.
static ROOMS: [Room; 1] = [Room::new("lab/apps", "count-min")];

/// Room of the scenario whose switches an engine watches, in a network of its own.
static WATCHED: Room = Room::new("lab/apps", super::view::NAME);

/// Name of the node with a host's TCP on this side.
pub(super) const fn node(of: Side) -> &'static str {
    match of {
        Side::Inside => "in1",
        Side::Outside => "out1",
    }
}

/// The other side.
pub(super) const fn other(than: Side) -> Side {
    match than {
        Side::Inside => Side::Outside,
        Side::Outside => Side::Inside,
    }
}

/// Real TCP connections of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sessions {
    /// Side that opens the connections; servers are on the other side.
    pub from: Side,
    /// The address and port to which they are opened.
    pub to: ([u8; 4], u16),
    /// Ports at which the servers listen.
    pub ports: Vec<u16>,
}

/// Sketches that switches keep in bounded-inconsistency mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sketches {
    /// First byte of their keys in the store.
    pub class: u8,
    /// Elements of a row.
    pub slots: usize,
    /// Value of the variant that says how many packets are heavy.
    pub limit: String,
    /// Value of the variant that says what ε is, in µs.
    pub bound: String,
}

/// An application under traffic.
#[derive(Clone, Debug, Serialize)]
pub struct Scenario {
    /// Its name, and of its variant in topologies with `applications`.
    pub name: &'static str,
    /// Description of the traffic, for `lab list`.
    pub about: &'static str,
    /// The application whose hosts speak, and whose checker judges the answers.
    pub hosts: Option<&'static str>,
    /// TCP connections, where the application lets them through.
    pub sessions: Option<Sessions>,
    /// Sketches that are read from the store in the end.
    pub sketches: Option<Sketches>,
    /// True if an engine follows what the switches count, and they say in packets who they are.
    #[serde(skip)]
    pub watched: bool,
    #[serde(skip)]
    room: &'static Room,
    #[serde(skip)]
    lab: &'static LabScenario,
}

impl Scenario {
    fn of(room: &'static Room) -> Option<Self> {
        let lab = room.lab.as_ref()?;
        let sessions = lab.sessions.as_ref().map(|sessions| Sessions {
            from: sessions.from,
            to: (sessions.to.ip().octets(), sessions.to.port()),
            ports: sessions.ports.clone(),
        });
        let sketches = lab.sketches.as_ref().map(|sketches| Sketches {
            class: room.class().id,
            slots: sketches.slots,
            limit: sketches.limit.clone(),
            bound: sketches.bound.clone(),
        });
        Some(Self {
            name: room.name(),
            about: &lab.about,
            hosts: Some(lab.hosts.as_deref().unwrap_or(room.name())),
            sessions,
            sketches,
            watched: std::ptr::eq(room, &WATCHED),
            room,
            lab,
        })
    }

    /// The values of its variant: room, program, the class of its records, and its own. Paths
    /// start from a folder beside that of the rooms.
    pub(crate) fn values(&self) -> BTreeMap<String, String> {
        let room = format!("../{}", self.room.folder());
        let program = self.lab.program.as_ref().unwrap_or(&self.room.program);
        let mut values = self.lab.values.clone();
        let mut set = |name: &str, value: String| values.insert(name.to_owned(), value);
        set("class", format!("{room}/{FILE}#replication"));
        let program_path = format!("${{lab}}/{room}/{program}");
        if self.room.protects {
            let stem = Path::new(program).file_stem().unwrap_or_default().display();
            set("protects", program_path);
            set("program", format!("${{run}}/{stem}.protected.p4"));
        } else {
            set("program", program_path);
        }
        set("room", room);
        values
    }
}

/// The scenario with a view, in the network of `lab/view.toml`.
pub(crate) fn watched() -> Option<Scenario> {
    Scenario::of(&WATCHED)
}

/// All scenarios of `lab/apps.toml`, in the order of their names.
pub fn scenarios() -> Vec<Scenario> {
    let rooms = APPS.into_iter().map(|app| app.room()).chain(&ROOMS);
    let mut scenarios: Vec<_> = rooms.filter_map(Scenario::of).collect();
    scenarios.sort_by_key(|scenario| scenario.name);
    scenarios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template;
    use crate::topology::Topology;

    #[test]
    fn every_scenario_has_its_files_and_its_hosts() {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab");
        let load = |name| Topology::load(lab.join(name)).expect("a topology");
        let (apps, view) = (load("apps.toml"), load("view.toml"));
        for scenario in scenarios().into_iter().chain(watched()) {
            let topology = if scenario.watched { &view } else { &apps };
            let mut values = topology.variants[scenario.name].clone();
            // A network that is for one scenario names its files itself.
            for (name, value) in scenario.values() {
                values.entry(name).or_insert(value);
            }
            for file in [&values["class"], &format!("{}/switch.toml", values["room"])] {
                template::read(&lab.join(file)).expect(file);
            }
            let program = values.get("protects").unwrap_or(&values["program"]);
            let program = program.replace("${lab}", &lab.display().to_string());
            assert!(Path::new(&program).is_file(), "{program}");
            let hosts = scenario.hosts.expect("hosts");
            assert!(stateplane_apps::app(hosts).is_some(), "{hosts}");
        }
    }
}

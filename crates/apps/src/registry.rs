//! The list of applications.

use crate::counter::Counter;
use crate::firewall::Firewall;
use crate::heavy_hitter::HeavyHitter;
use crate::key_value::KeyValue;
use crate::load_balancer::LoadBalancer;
use crate::measured::Traffic;
use crate::nat::{DependentNat, FilteringNat, Nat};
use crate::object_routing::ObjectRouting;
use crate::sequencer::Sequencer;
use crate::serving_gateway::ServingGateway;
use crate::super_spreader::SuperSpreader;
use crate::syn_defence::SynDefence;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::Application;
use stateplane_wire::replication::Key;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// All applications.
pub const APPS: [AppId; 13] = [
    AppId(&Counter),
    AppId(&Nat),
    AppId(&FilteringNat),
    AppId(&DependentNat),
    AppId(&Firewall),
    AppId(&KeyValue),
    AppId(&Sequencer),
    AppId(&ObjectRouting),
    AppId(&LoadBalancer),
    AppId(&ServingGateway),
    AppId(&SynDefence),
    AppId(&SuperSpreader),
    AppId(&HeavyHitter),
];

/// One of the applications, known by its name.
#[derive(Clone, Copy)]
pub struct AppId(&'static dyn App);

impl AppId {
    /// An application, which may come from outside this crate.
    pub const fn new(app: &'static dyn App) -> Self {
        Self(app)
    }

    /// Its name in texts.
    pub fn name(self) -> &'static str {
        self.room().name()
    }

    /// Its room, with what `app.toml` says.
    pub fn room(self) -> &'static Room {
        self.0.room()
    }

    /// Its hosts, which have said nothing yet.
    pub fn hosts(self) -> Box<dyn Hosts> {
        self.0.hosts()
    }

    /// Its judge.
    pub fn judge(self) -> Judge {
        self.0.judge()
    }

    /// Name of the flow with this key in histories.
    pub fn flow_name(self, key: &Key) -> String {
        self.0.flow_name(key)
    }

    /// Its measuring traffic, if experiments measure it.
    pub fn traffic(self) -> Option<&'static dyn Traffic> {
        self.0.traffic()
    }
}

impl PartialEq for AppId {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for AppId {}

impl PartialOrd for AppId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AppId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl Hash for AppId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AppId").field(&self.name()).finish()
    }
}

impl fmt::Display for AppId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The application of that name.
pub fn app(name: &str) -> Option<AppId> {
    APPS.into_iter().find(|app| app.name() == name)
}

/// The machines of the applications that have one.
pub fn judged() -> Vec<Application> {
    let judges = APPS.into_iter().map(AppId::judge);
    judges.filter_map(Judge::machine).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{AppFile, FILE};
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::path::{Path, PathBuf};

    /// The repository.
    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn every_application_has_a_room_and_every_room_an_application() {
        let mut rooms = BTreeSet::new();
        for app in APPS {
            let folder = app.room().folder();
            rooms.insert(folder.clone());
            let room = root().join(folder);
            for file in ["README.md", "app.toml", "switch.toml", "tests"] {
                assert!(room.join(file).exists(), "{app} has no {file}");
            }
            assert!(root().join(app.room().path()).is_file());
        }
        let folders = fs::read_dir(root().join("apps")).expect("the folder of rooms");
        let folders = folders.map(|entry| entry.expect("an entry of it"));
        let mut found = BTreeSet::new();
        for folder in folders.filter(|entry| entry.path().is_dir()) {
            let room = format!("apps/{}", folder.file_name().display());
            let path = folder.path().join(FILE);
            let text = fs::read_to_string(&path).expect("every room has an app.toml");
            match AppFile::parse(&path.display().to_string(), &text).expect("one that is right") {
                AppFile::Replicated(_) => {
                    found.insert(room);
                }
                AppFile::Other(spec) => {
                    for file in ["README.md", "tests", &spec.program] {
                        assert!(folder.path().join(file).exists(), "{room} has no {file}");
                    }
                }
            }
        }
        assert_eq!(rooms, found);
    }

    #[test]
    fn programs_have_the_classes_and_shards_that_rooms_say() {
        let mut owners = BTreeMap::new();
        for app in APPS {
            let room = app.room();
            let mut declared = BTreeSet::new();
            for file in fs::read_dir(root().join(room.folder())).expect("a room") {
                let path = file.expect("an entry of it").path();
                if path.extension().is_some_and(|ending| ending == "p4") {
                    let text = fs::read_to_string(&path).expect("a program");
                    for line in text.lines().filter(|line| line.starts_with("#define ")) {
                        if let Some((_, shards)) = line.split_once("_SHARDS ") {
                            assert_eq!(shards, room.shards.to_string(), "{line}");
                        }
                    }
                    let lines = text.lines();
                    let classes = lines.filter_map(|line| {
                        let rest = line.strip_prefix("const bit<8> CLASS_")?;
                        let (_, number) = rest.strip_suffix(';')?.split_once(" = ")?;
                        number.parse::<u8>().ok()
                    });
                    declared.extend(classes);
                }
            }
            let said: BTreeSet<u8> = room
                .replication
                .class
                .iter()
                .map(|class| class.id)
                .collect();
            // A variant may leave code out, and its classes with it.
            if app.room().is_variant() {
                assert!(said.is_subset(&declared), "classes of {app}");
            } else {
                assert_eq!(said, declared, "classes of {app}");
            }
            for class in said {
                let owner = owners.entry(class).or_insert(room.folder());
                assert_eq!(*owner, room.folder(), "class {class}");
            }
        }
    }

    #[test]
    fn names_are_unlike_and_machines_bear_them() {
        for (at, one) in APPS.into_iter().enumerate() {
            assert_eq!(app(one.name()), Some(one));
            assert!(APPS[at + 1..].iter().all(|other| *other != one));
            let machine = one.judge().machine();
            assert!(machine.is_none_or(|machine| machine.name() == one.name()));
        }
    }
}

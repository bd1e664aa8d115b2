//! The list of applications.

use crate::counter::Counter;
use crate::firewall::Firewall;
use crate::heavy_hitter::HeavyHitter;
use crate::key_value::KeyValue;
use crate::load_balancer::LoadBalancer;
use crate::nat::Nat;
use crate::object_routing::ObjectRouting;
use crate::sequencer::Sequencer;
use crate::serving_gateway::ServingGateway;
use crate::super_spreader::SuperSpreader;
use crate::syn_defence::SynDefence;
use crate::{App, Hosts};
use stateplane_history::replication::Application;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// All applications.
pub const APPS: [AppId; 11] = [
    AppId(&Counter),
    AppId(&Nat),
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

    /// Its name in texts, and that of its folder in `apps`.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Its hosts, which have said nothing yet.
    pub fn hosts(self) -> Box<dyn Hosts> {
        self.0.hosts()
    }

    /// What a flow's outputs are judged by; without, values are judged by the checker
    /// `counter`, and translations by `nat`.
    pub fn judge(self) -> Option<Application> {
        self.0.judge()
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

/// What the applications are judged by that have a machine.
pub fn judged() -> Vec<Application> {
    APPS.into_iter().filter_map(AppId::judge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_application_has_a_room_and_every_room_an_application() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../apps");
        for app in APPS {
            let room = folder.join(app.name());
            for file in ["README.md", "switch.toml", "store.toml", "tests"] {
                assert!(room.join(file).exists(), "{app} has no {file}");
            }
            let program = folder.join("..").join(app.hosts().path());
            assert!(program.starts_with(folder.join("..")) && program.is_file());
            assert!(app.hosts().path().starts_with(&format!("apps/{app}/")));
        }
    }

    #[test]
    fn names_are_unlike_and_judges_bear_them() {
        for (at, one) in APPS.into_iter().enumerate() {
            assert_eq!(app(one.name()), Some(one));
            assert!(APPS[at + 1..].iter().all(|other| *other != one));
            assert!(one.judge().is_none_or(|judge| judge.name() == one.name()));
        }
    }
}

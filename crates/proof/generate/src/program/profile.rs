//! Action profiles and selectors, and entries that run what they hold.

use super::{Callable, Maker};
use crate::session::{Change, Write};
use num_bigint::BigUint;
use stateplane_runtime::{Group, Invocation, Runs};

/// Algorithms that a selector may have.
const ALGORITHMS: [&str; 8] = [
    "crc32",
    "crc32_custom",
    "crc16",
    "crc16_custom",
    "random",
    "identity",
    "csum16",
    "xor16",
];

/// An action profile that tables of a control may have.
#[derive(Clone, Debug)]
pub(super) struct Profile {
    pub(super) name: String,
    /// Full control-plane name.
    path: String,
    /// The keys that a selector hashes; `None` of a profile without one.
    pub(super) inputs: Option<Vec<String>>,
    /// Actions that members may run.
    pub(super) actions: Vec<Callable>,
    /// Greatest number of a member that is made.
    members: u32,
    /// Greatest number of a group that is made.
    groups: u32,
}

impl Maker {
    /// Declares a profile or selector of the control at `path`, whose members run some of
    /// `actions`, with members and groups.
    pub(super) fn declare_profile(&mut self, path: &str, actions: Vec<Callable>) -> Profile {
        let size = self.c.between(3, 10);
        let (name, inputs) = if self.c.chance(70) {
            let name = self.fresh("selector");
            let algorithm = self.c.one_of(ALGORITHMS);
            self.line(format_args!(
                "action_selector(HashAlgorithm.{algorithm}, {size}, 16) {name};"
            ));
            let count = self.c.between(1, 2);
            let inputs = (0..count).map(|_| self.key_of_selector().to_string());
            (name, Some(inputs.collect()))
        } else {
            let name = self.fresh("profile");
            self.line(format_args!("action_profile({size}) {name};"));
            (name, None)
        };
        let mut profile = Profile {
            path: format!("{path}.{name}"),
            name,
            inputs,
            actions,
            members: self.c.between(1, 5),
            groups: 0,
        };
        for member in 1..=profile.members {
            let write = self.held(Change::Insert, &profile, member);
            self.writes.push(write);
        }
        if profile.inputs.is_some() {
            profile.groups = self.c.between(0, 3);
        }
        for group in 1..=profile.groups {
            let write = self.group(Change::Insert, &profile, group);
            self.writes.push(write);
        }
        for _ in 0..self.c.below(4) {
            let member = self.c.between(1, profile.members + 1);
            let group = self.c.between(1, profile.groups + 1);
            let change = self.change();
            let write = if self.c.chance(50) {
                self.held(change, &profile, member)
            } else {
                self.group(change, &profile, group)
            };
            self.updates.push(write);
        }
        profile
    }

    /// Mostly another content.
    pub(super) fn change(&mut self) -> Change {
        self.c.one_of([
            Change::Modify,
            Change::Modify,
            Change::Insert,
            Change::Delete,
        ])
    }

    fn held(&mut self, change: Change, profile: &Profile, member: u32) -> Write {
        Write::Held {
            change,
            profile: profile.path.clone(),
            member,
            action: self.invocation(&profile.actions),
        }
    }

    fn group(&mut self, change: Change, profile: &Profile, group: u32) -> Write {
        let mut members = Vec::new();
        for member in 1..=profile.members {
            if self.c.chance(60) {
                members.push((member, self.c.between(1, 4)));
            }
        }
        Write::Group {
            change,
            selector: profile.path.clone(),
            group,
            members: Group { members },
        }
    }

    /// One of some actions with data.
    pub(super) fn invocation(&mut self, actions: &[Callable]) -> Invocation {
        let action = &actions[self.c.below(actions.len())];
        let data: Vec<BigUint> = self.data(action).into_iter().map(|(_, it)| it).collect();
        Invocation {
            action: action.name.clone(),
            data,
        }
    }

    /// Target of an entry, now and then one that the profile does not have.
    pub(super) fn runs(&mut self, profile: &Profile) -> Runs {
        let most = profile.members + u32::from(self.c.chance(5));
        let member = Runs::Member(self.c.between(1, most));
        if profile.inputs.is_none() {
            return member;
        }
        match self.c.below(3) {
            0 => member,
            1 if profile.groups > 0 => Runs::Group(self.c.between(1, profile.groups)),
            _ => {
                let count = self.c.below(4);
                let actions = (0..count).map(|_| {
                    let action = self.invocation(&profile.actions);
                    (action, self.c.between(1, 3))
                });
                Runs::Set(actions.collect())
            }
        }
    }
}

//! A store server's half of greetings: it compares the settings of each switch with its own, tells
//! the switch what differs, and says it here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_seal::TRAILER_LENGTH;
use stateplane_store::{Replica, Server};
use stateplane_wire::greeting::{Greeting, Setting, SettingName};
use stateplane_wire::{Error, replication};

use super::StoreFile;
use crate::deployment::Deployment;
use crate::greeting::Difference;

/// Most switches that are remembered.
const MOST_SWITCHES: usize = 1024;

/// µs of silence after which the number of a switch is free for another.
const FREE_AFTER: u64 = 3_000_000;

/// µs after which a difference that goes on is told again.
const TELL_AGAIN: u64 = 60_000_000;

/// µs between two notices of greetings that are not read.
const REFUSE_AGAIN: u64 = 1_000_000;

/// Starts of one switch that are remembered, so that one which was replaced is known again.
const MOST_STARTS: usize = 4;

/// A switch that greeted.
#[derive(Debug)]
struct Known {
    address: Ipv4Addr,
    incarnation: u32,
    heard: u64,
    /// It was told that the switch is silent.
    silent: bool,
    /// Starts that a newer one replaced.
    replaced: Vec<u32>,
    /// Texts that were told, and when.
    told: BTreeMap<String, u64>,
}

/// Answers greetings.
#[derive(Debug)]
pub(super) struct Greeter {
    address: Ipv4Addr,
    file: String,
    settings: BTreeMap<(SettingName, u16), Setting>,
    /// Members of the chain that never changes, head first; none under a controller.
    chain: Vec<Ipv4Addr>,
    switches: BTreeMap<u32, Known>,
    answers: Vec<(SocketAddrV4, Vec<u8>)>,
    differing: BTreeSet<u32>,
    /// When the next greeting that is not read is told.
    refuse_again: u64,
}

impl Greeter {
    /// Of the server at `address` of a deployment.
    pub(super) fn new(deployment: &Deployment, file: &StoreFile, address: Ipv4Addr) -> Greeter {
        let mut greeter = Greeter {
            address,
            file: deployment.path().display().to_string(),
            settings: BTreeMap::new(),
            chain: file.chain.clone(),
            switches: BTreeMap::new(),
            answers: Vec::new(),
            differing: BTreeSet::new(),
            refuse_again: 0,
        };
        let line = |path: &str| deployment.line(&format!("replication.{path}"));
        greeter.set(SettingName::Version, 0, replication::VERSION.into(), None);
        let key = replication::KEY_LENGTH as u32;
        greeter.set(SettingName::KeyLength, 0, key, None);
        let shards = line("shards");
        greeter.set(SettingName::Shards, 0, file.shards.into(), shards);
        for (at, class) in file.class.iter().enumerate() {
            let line = |key: &str| line(&format!("class.{at}.{key}"));
            let (id, length) = (class.id.into(), class.state_length.into());
            let name = SettingName::StateLength;
            greeter.set(name, id, length, line("state_length"));
            let (name, first) = (SettingName::FirstLease, class.first_lease.number());
            greeter.set(name, id, first, line("first_lease"));
        }
        let of_chain = [
            (SettingName::Head, "chain"),
            (SettingName::ChainEpoch, "chain_epoch"),
        ];
        for (name, key) in of_chain {
            greeter.set(name, 0, 0, line(key));
        }
        greeter
    }

    fn set(&mut self, name: SettingName, index: u16, value: u32, line: Option<u32>) {
        let setting = Setting {
            name,
            index,
            value: Some(value),
            line,
        };
        self.settings.insert((name, index), setting);
    }

    /// Switches whose settings differ from this server's.
    pub(super) fn differing(&self) -> usize {
        self.differing.len()
    }

    /// Takes the greeting in `bytes`, which came from `from`.
    pub(super) fn handle(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8], server: &Server) {
        let greeting = match Greeting::parse(bytes) {
            Ok(greeting) if !greeting.answers => greeting,
            Ok(_) => return,
            Err(error) => {
                self.refuse(now, *from.ip(), &error);
                return;
            }
        };
        let id = greeting.switch_id;
        let same = self.same_switch(now, &greeting);
        let own: Vec<(Setting, Setting)> = greeting
            .settings
            .iter()
            .map(|theirs| (self.own(theirs, server, same), *theirs))
            .filter(|(here, there)| here.value != there.value)
            .collect();
        if own.is_empty() {
            if self.differing.remove(&id) {
                tracing::info!(switch = id, address = %from.ip(), "the settings of the switch fit");
            }
        } else {
            self.differing.insert(id);
        }
        for (here, there) in &own {
            let difference = Difference {
                here: *here,
                there: *there,
                file_here: self.file.clone(),
                file_there: greeting.file.clone(),
            };
            self.tell(now, id, *from.ip(), &difference);
        }
        let answer = Greeting {
            answers: true,
            address: self.address,
            settings: own.into_iter().map(|(here, _)| here).collect(),
            file: self.file.clone(),
            ..greeting
        };
        self.answers.push((from, answer.to_vec()));
    }

    /// Says why a greeting is not read, from time to time.
    fn refuse(&mut self, now: u64, from: Ipv4Addr, error: &Error) {
        if now < self.refuse_again {
            return;
        }
        self.refuse_again = now + REFUSE_AGAIN;
        match error {
            Error::TrailingBytes { extra, .. } if *extra == TRAILER_LENGTH => tracing::warn!(
                address = %from,
                "the switch does not fit: its messages are sealed, and this server has no keys; \
                 give both sides --keys, or neither"
            ),
            _ => tracing::warn!(address = %from, "a greeting is refused: {error}"),
        }
    }

    /// Tells of switches that are silent.
    pub(super) fn look(&mut self, now: u64) {
        for (switch, known) in &mut self.switches {
            let silence = now.saturating_sub(known.heard);
            if silence >= FREE_AFTER && !std::mem::replace(&mut known.silent, true) {
                let (address, silent_ms) = (known.address, silence / 1000);
                tracing::warn!(switch, %address, silent_ms, "a switch is silent");
            }
        }
    }

    /// The next answer, and where it goes.
    pub(super) fn poll_answer(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        self.answers.pop()
    }

    /// Address and start of the switch that has the number of the one that greets.
    fn same_switch(&mut self, now: u64, greeting: &Greeting) -> (Ipv4Addr, u32) {
        let (address, incarnation) = (greeting.address, greeting.incarnation);
        if !self.switches.contains_key(&greeting.switch_id) && self.switches.len() >= MOST_SWITCHES
        {
            self.switches
                .retain(|_, known| now.saturating_sub(known.heard) < FREE_AFTER);
            if self.switches.len() >= MOST_SWITCHES {
                return (address, incarnation);
            }
        }
        let known = self.switches.entry(greeting.switch_id).or_insert_with(|| {
            let switch = greeting.switch_id;
            tracing::info!(switch, %address, incarnation, "a switch greets");
            Known {
                address,
                incarnation,
                heard: now,
                silent: false,
                replaced: Vec::new(),
                told: BTreeMap::new(),
            }
        });
        let silent = now.saturating_sub(known.heard) >= FREE_AFTER;
        if known.address != address && !silent {
            return (known.address, known.incarnation);
        }
        if known.address != address || silent {
            (known.address, known.incarnation) = (address, incarnation);
            known.replaced.clear();
        } else if known.incarnation != incarnation {
            if known.replaced.contains(&incarnation) {
                return (known.address, known.incarnation);
            }
            known.replaced.insert(0, known.incarnation);
            known.replaced.truncate(MOST_STARTS);
            known.incarnation = incarnation;
        }
        if std::mem::take(&mut known.silent) {
            let (switch, incarnation) = (greeting.switch_id, known.incarnation);
            tracing::info!(switch, %address, incarnation, "a switch is back");
        }
        known.heard = now;
        (address, incarnation)
    }

    /// This server's setting beside `theirs`.
    fn own(&self, theirs: &Setting, server: &Server, same: (Ipv4Addr, u32)) -> Setting {
        let of_shard = |value: Option<u32>, name| Setting {
            value,
            line: self.settings.get(&(name, 0)).and_then(|it| it.line),
            ..*theirs
        };
        let replica = self.replica(server, theirs.index);
        match theirs.name {
            SettingName::SwitchAddress => Setting {
                value: Some(u32::from(same.0)),
                line: None,
                ..*theirs
            },
            SettingName::Incarnation => Setting {
                value: Some(same.1),
                line: None,
                ..*theirs
            },
            SettingName::Head => {
                let head = match self.chain.first() {
                    Some(head) => replica.map(|_| *head),
                    None => replica.filter(|it| it.is_head()).map(|_| self.address),
                };
                of_shard(head.map(u32::from), SettingName::Head)
            }
            SettingName::ChainEpoch => {
                let epoch = replica.map(|replica| replica.place().epoch);
                of_shard(epoch, SettingName::ChainEpoch)
            }
            name => {
                let known = self.settings.get(&(name, theirs.index)).copied();
                known.unwrap_or(Setting {
                    value: None,
                    line: None,
                    ..*theirs
                })
            }
        }
    }

    fn replica<'s>(&self, server: &'s Server, shard: u16) -> Option<&'s Replica> {
        let chain = if self.chain.is_empty() { shard } else { 0 };
        let replica = server.replica(chain)?;
        replica.config().served.contains(&shard).then_some(replica)
    }

    fn tell(&mut self, now: u64, switch: u32, from: Ipv4Addr, difference: &Difference) {
        let text = difference.to_string();
        if let Some(known) = self.switches.get_mut(&switch) {
            let told = known.told.get(&text);
            if told.is_some_and(|told| now.saturating_sub(*told) < TELL_AGAIN) {
                return;
            }
            if known.told.len() > stateplane_wire::greeting::MOST_SETTINGS {
                known.told.clear();
            }
            known.told.insert(text.clone(), now);
        }
        tracing::warn!(switch, address = %from, "the switch does not fit: {text}");
    }
}

#[cfg(test)]
mod tests;

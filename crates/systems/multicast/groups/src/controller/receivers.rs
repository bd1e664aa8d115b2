//! Lists of receivers: who is on them, and who is taken off (rule 26).

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::multicast_control::{
    Joined, LEADS, MOST_NUMBERS, Message, NO_NUMBER, Standing, joined,
};

use super::epochs::is_newer;
use super::{Controller, Group};
use crate::decision::{GroupConfig, Listed};

/// Receivers that wait for a place, and those on the list, of one group at most.
const MOST_RECEPTIONS: usize = 32;

/// A receiver, on the list or waiting for a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reception {
    address: Ipv4Addr,
    /// Time at which it was last heard.
    heard: u64,
    /// Index behind which the leader keeps all for it, and timestamp of the last committed entry,
    /// once an established leader has it on its list.
    from: Option<(u32, u64)>,
    /// It knows its number.
    knows: bool,
    /// It is to be taken off.
    leaves: bool,
    /// Index up to which it has all, as the leader says, and since when that is so while more
    /// waits for it.
    received: Option<(u32, u64)>,
}

impl Reception {
    /// A receiver of a stored list: it is taken for alive until it is silent.
    pub(super) fn since(now: u64) -> Reception {
        Reception {
            address: Ipv4Addr::UNSPECIFIED,
            heard: now,
            from: None,
            knows: false,
            leaves: false,
            received: None,
        }
    }

    pub(super) fn excuse(&mut self, now: u64, absent: u64) {
        self.heard = self.heard.saturating_add(absent).min(now);
        if let Some((_, since)) = &mut self.received {
            *since = since.saturating_add(absent).min(now);
        }
    }

    /// When it is taken off: after `ttl` of silence, or of standing still while more waits.
    fn expires(&self, ttl: u64) -> u64 {
        let stands = self.received.map_or(u64::MAX, |(_, since)| since);
        self.heard.min(stands).saturating_add(ttl)
    }
}

impl Group {
    fn listed(&self, nonce: u64) -> Option<&Listed> {
        let mut receivers = self.config.receivers.iter();
        receivers.find(|listed| listed.nonce == nonce)
    }

    /// The list with those who asked, and without those who leave or left, if it is another.
    fn next_list(&self) -> Option<GroupConfig> {
        let mut config = self.config.clone();
        let stays = |listed: &Listed| {
            let reception = self.receptions.get(&listed.nonce);
            reception.is_some_and(|reception| !reception.leaves)
        };
        config.receivers.retain(stays);
        // A number passes on only when the leader knows that its holder was taken off: it keeps how
        // far each number is.
        let taken = |number: u8, receivers: &[Listed]| {
            self.cooling.contains(&number)
                || self.config.receivers.iter().any(|it| it.number == number)
                || receivers.iter().any(|it| it.number == number)
        };
        for (nonce, reception) in &self.receptions {
            let mut numbers = 0..MOST_NUMBERS;
            if reception.leaves || self.listed(*nonce).is_some() {
                continue;
            }
            if let Some(number) = numbers.find(|it| !taken(*it, &config.receivers)) {
                config.receivers.push(Listed {
                    number,
                    address: reception.address,
                    nonce: *nonce,
                });
            }
        }
        if config.receivers == self.config.receivers {
            return None;
        }
        config.list = config.list.wrapping_add(1);
        Some(config)
    }
}

impl Controller {
    /// A receiver wants to be listed, lives, or leaves: `id` is its nonce and its group, `place` its
    /// number and its position.
    pub(super) fn join(
        &mut self,
        now: u64,
        from: SocketAddrV4,
        id: (u64, u8),
        place: (u8, u32),
        leaves: bool,
    ) {
        if self.is_behind() {
            return;
        }
        let ((nonce, number), window) = (id, self.settings.window);
        let mut answer = Joined {
            nonce,
            group: number,
            state: joined::WAITS,
            number: NO_NUMBER,
            list: 0,
            window,
            from_index: 0,
            from_time: 0,
        };
        let Some(group) = self.groups.get_mut(&number) else {
            if number >= self.settings.groups {
                answer.state = joined::NO_GROUP;
            }
            return self.send(from, Message::Joined(answer).to_vec());
        };
        answer.list = group.shown.list;
        let (listed, full) = (group.listed(nonce).copied(), group.is_full());
        match group.receptions.get_mut(&nonce) {
            Some(reception) => {
                reception.heard = now;
                reception.address = *from.ip();
                reception.leaves |= leaves;
                reception.knows |= place.0 != NO_NUMBER;
                let is_shown = group.shown.receivers.iter().any(|it| Some(*it) == listed);
                if let (Some(listed), Some((index, time))) = (listed, reception.from)
                    && is_shown
                    && !reception.leaves
                {
                    answer.state = joined::LISTED;
                    answer.number = listed.number;
                    (answer.from_index, answer.from_time) = (index, time);
                } else if listed.is_some() && reception.knows && is_shown && !reception.leaves {
                    // A new leader is being asked; the place in the list stays.
                    answer.state = joined::LISTED;
                    answer.number = place.0;
                } else if listed.is_none() && reception.leaves {
                    group.receptions.remove(&nonce);
                    answer.state = joined::TAKEN_OFF;
                }
            }
            None if leaves || place.0 != NO_NUMBER => answer.state = joined::TAKEN_OFF,
            None if full => answer.state = joined::FULL,
            None => {
                // One process of an address takes what comes to the port: an earlier one is gone.
                for reception in group.receptions.values_mut() {
                    reception.leaves |= reception.address == *from.ip();
                }
                for listed in &group.config.receivers {
                    if listed.address == *from.ip()
                        && let Some(reception) = group.receptions.get_mut(&listed.nonce)
                    {
                        reception.leaves = true;
                    }
                }
                let reception = Reception {
                    address: *from.ip(),
                    ..Reception::since(now)
                };
                group.receptions.insert(nonce, reception);
            }
        }
        self.stale.insert(number);
        self.send(from, Message::Joined(answer).to_vec());
    }

    /// Decides the next list of receivers of a group whose epoch and members may stay.
    pub(super) fn change_list(&mut self, now: u64, number: u8) {
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        let Some(config) = group.next_list() else {
            return;
        };
        let before = group.config.receivers.iter();
        let gone = before.filter(|it| !config.receivers.contains(it));
        let gone: Vec<Listed> = gone.copied().collect();
        for listed in &gone {
            group.cooling.insert(listed.number);
            // Who leaves is answered when that is stored.
            let reception = group.receptions.get(&listed.nonce);
            if reception.is_some_and(|reception| !reception.leaves) {
                group.receptions.remove(&listed.nonce);
            }
        }
        let added = config.receivers.len() + gone.len() - group.config.receivers.len();
        self.counters.listed += added as u64;
        self.decide(now, config);
    }

    /// The leader has a version of the list: who is on it learns from where.
    pub(super) fn listed_at_leader(&mut self, number: u8) {
        let Some(group) = self.groups.get_mut(&number) else {
            return;
        };
        // Before its own no-op is committed, a leader may not know of a committed entry whose
        // timestamp is that of a freed message.
        if group.led.list != Some(group.shown.list) || !group.led.established {
            return;
        }
        for listed in &group.shown.receivers {
            if let Some(reception) = group.receptions.get_mut(&listed.nonce)
                && reception.from.is_none()
            {
                reception.from = Some((group.led.base, group.led.time));
            }
        }
    }

    /// Another epoch begins: who does not know its place yet is told it anew.
    pub(super) fn ask_lists_anew(&mut self, number: u8) {
        if let Some(group) = self.groups.get_mut(&number) {
            for reception in group.receptions.values_mut() {
                if !reception.knows {
                    reception.from = None;
                }
                reception.received = None;
            }
        }
    }

    /// Takes how far a leader says that its receivers are.
    pub(super) fn note_received(&mut self, now: u64, switch: u32, standing: &Standing) {
        let Some(group) = self.groups.get_mut(&standing.group) else {
            return;
        };
        let leads = group.shown.leading().is_some_and(|it| it.switch == switch);
        let same = standing.promised == group.shown.epoch;
        if !leads || !same || standing.flags & LEADS == 0 {
            return;
        }
        let received: Vec<u32> = standing.received_by().collect();
        for listed in &group.shown.receivers {
            let Some(reception) = group.receptions.get_mut(&listed.nonce) else {
                continue;
            };
            let Some(index) = received.get(usize::from(listed.number)).copied() else {
                continue;
            };
            let waits = is_newer(standing.commit, index);
            let stands = reception.received.filter(|(before, _)| *before == index);
            reception.received = waits.then(|| (index, stands.map_or(now, |(_, since)| since)));
        }
    }

    /// Takes the silent, and those that stand still while more waits for them, off their lists.
    pub(super) fn expire_receivers(&mut self, now: u64) {
        if self.is_behind() {
            return;
        }
        let ttl = self.settings.receiver_ttl;
        for (number, group) in &mut self.groups {
            let before = group.receptions.len();
            let is_listed =
                |nonce: &u64| group.config.receivers.iter().any(|it| it.nonce == *nonce);
            let mut taken_off = 0;
            group.receptions.retain(|nonce, reception| {
                let stays = reception.expires(ttl) > now;
                taken_off += u64::from(!stays && is_listed(nonce));
                stays
            });
            self.counters.taken_off += taken_off;
            if group.receptions.len() < before {
                self.stale.insert(*number);
            }
        }
    }

    /// When [`Controller::expire_receivers`] may find one.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        let ttl = self.settings.receiver_ttl;
        let receptions = self.groups.values().flat_map(|it| it.receptions.values());
        receptions.map(|it| it.expires(ttl)).min()
    }
}

impl Group {
    /// True if nobody more can be listed, or wait for that.
    fn is_full(&self) -> bool {
        let staying = self.receptions.values().filter(|it| !it.leaves).count();
        staying >= MOST_NUMBERS.into() || self.receptions.len() >= MOST_RECEPTIONS
    }
}

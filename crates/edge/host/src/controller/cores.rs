//! The cores of a controller's systems, driven as one.

use std::net::SocketAddrV4;

use stateplane_chains::{Controller, Settings};
use stateplane_groups as groups;
use stateplane_multicast_groups as multicast;
use stateplane_wire::control::{MAGIC, Message};
use stateplane_wire::multicast::PORT as MULTICAST_PORT;
use stateplane_wire::{coordination_control, multicast_control};

use super::backend::Drainable;
use super::{ControllerError, Decided, Kept, server_number};

/// The systems that a controller makes decisions for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systems {
    /// Chains of the store.
    pub chains: Option<Settings>,
    /// Groups of coordination, at the controller's own address.
    pub groups: Option<groups::Settings>,
    /// Groups of multicast, at the controller's own address.
    pub multicast: Option<multicast::Settings>,
}

impl Systems {
    /// True if there is nothing to control.
    pub fn is_empty(&self) -> bool {
        self.chains.is_none() && self.groups.is_none() && self.multicast.is_none()
    }
}

/// The core of each system, while the controller leads.
pub(super) struct Cores {
    pub(super) chains: Option<Controller>,
    pub(super) groups: Option<groups::Controller>,
    pub(super) multicast: Option<multicast::Controller>,
}

/// The system that a message is for.
enum System {
    Chains,
    Groups,
    Multicast,
}

impl Cores {
    /// Cores of `systems` that find what is `kept`.
    ///
    /// # Errors
    ///
    /// Those of the systems' settings.
    pub(super) fn new(
        systems: &Systems,
        incarnation: u32,
        seed: groups::Seed,
        kept: Kept,
        now: u64,
    ) -> Result<Cores, ControllerError> {
        let (mut configs, mut decisions, mut ordered) = (Vec::new(), Vec::new(), Vec::new());
        for decided in kept.configs.into_values() {
            match decided {
                Decided::Chain(config) => configs.push(config),
                Decided::Coordination(decision) => decisions.push(decision),
                Decided::Multicast(decision) => ordered.push(decision),
            }
        }
        let mut cores = Cores {
            chains: None,
            groups: None,
            multicast: None,
        };
        if let Some(settings) = systems.chains.clone() {
            cores.chains = Some(Controller::new(settings, incarnation, configs, now)?);
        }
        if let Some(settings) = systems.groups.clone() {
            let controller = groups::Controller::new(settings, incarnation, seed, decisions, now)?;
            cores.groups = Some(controller);
        }
        if let Some(settings) = systems.multicast.clone() {
            let controller = multicast::Controller::new(settings, incarnation, ordered, now)?;
            cores.multicast = Some(controller);
        }
        for number in kept.drained {
            match Drainable::of(number) {
                Drainable::Server(number) => {
                    if let Some(chains) = &mut cores.chains {
                        chains.drain(now, number, true);
                    }
                }
                Drainable::Coordination(number) => {
                    if let Some(groups) = &mut cores.groups {
                        groups.drain(now, number, true);
                    }
                }
                Drainable::Multicast(number) => {
                    if let Some(multicast) = &mut cores.multicast {
                        multicast.drain(now, number, true);
                    }
                }
            }
        }
        Ok(cores)
    }

    /// The system of a message; where only one is there, its core counts what is not for it.
    fn system(&self, from: SocketAddrV4, bytes: &[u8]) -> Option<System> {
        let ordered = from.port() == MULTICAST_PORT || multicast_control::Message::is_one(bytes);
        let there = [
            self.multicast.as_ref().map(|_| System::Multicast),
            self.chains.as_ref().map(|_| System::Chains),
            self.groups.as_ref().map(|_| System::Groups),
        ];
        let [multicast, chains, groups] = there;
        match (ordered, bytes.starts_with(&MAGIC)) {
            (true, _) => multicast.or(groups).or(chains),
            (false, true) => chains.or(groups).or(multicast),
            (false, false) => groups.or(chains).or(multicast),
        }
    }

    /// Gives a message to the core of its system.
    pub(super) fn handle_message(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        match self.system(from, bytes) {
            Some(System::Chains) => {
                if let Some(chains) = &mut self.chains {
                    chains.handle_message(now, from, bytes);
                }
            }
            Some(System::Groups) => {
                if let Some(groups) = &mut self.groups {
                    groups.handle_message(now, from, bytes);
                }
            }
            Some(System::Multicast) => {
                if let Some(multicast) = &mut self.multicast {
                    multicast.handle_message(now, from, bytes);
                }
            }
            None => {}
        }
    }

    pub(super) fn handle_timeout(&mut self, now: u64) {
        if let Some(chains) = &mut self.chains {
            chains.handle_timeout(now);
        }
        if let Some(groups) = &mut self.groups {
            groups.handle_timeout(now);
        }
        if let Some(multicast) = &mut self.multicast {
            multicast.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> u64 {
        let chains = self.chains.as_ref().map(Controller::poll_timeout);
        let groups = self.groups.as_ref().map(groups::Controller::poll_timeout);
        let multicast = self.multicast.as_ref();
        let multicast = multicast.map(multicast::Controller::poll_timeout);
        let all = chains.into_iter().chain(groups).chain(multicast);
        all.min().unwrap_or(u64::MAX)
    }

    pub(super) fn poll_broken(&mut self) -> Option<stateplane_invariant::Broken> {
        let chains = self.chains.as_mut().and_then(Controller::poll_broken);
        chains
            .or_else(|| self.groups.as_mut()?.poll_broken())
            .or_else(|| self.multicast.as_mut()?.poll_broken())
    }

    pub(super) fn is_behind(&self) -> bool {
        let groups = self.groups.as_ref();
        let multicast = self.multicast.as_ref();
        self.chains.as_ref().is_some_and(Controller::is_behind)
            || groups.is_some_and(groups::Controller::is_behind)
            || multicast.is_some_and(multicast::Controller::is_behind)
    }

    pub(super) fn poll_record(&mut self) -> Option<Decided> {
        let chains = self.chains.as_mut().and_then(Controller::poll_record);
        let mut groups = || self.groups.as_mut()?.poll_record();
        let mut multicast = || self.multicast.as_mut()?.poll_record();
        chains
            .map(Decided::Chain)
            .or_else(|| groups().map(Decided::Coordination))
            .or_else(|| multicast().map(Decided::Multicast))
    }

    pub(super) fn handle_stored(&mut self, now: u64, decided: &Decided) {
        match decided {
            Decided::Chain(config) => {
                if let Some(chains) = &mut self.chains {
                    chains.handle_stored(now, config);
                }
            }
            Decided::Coordination(decision) => {
                if let Some(groups) = &mut self.groups {
                    groups.handle_stored(now, decision);
                }
            }
            Decided::Multicast(decision) => {
                if let Some(multicast) = &mut self.multicast {
                    multicast.handle_stored(now, decision);
                }
            }
        }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<(SocketAddrV4, Vec<u8>)> {
        let chains = self.chains.as_mut().and_then(Controller::poll_transmit);
        let mut groups = || self.groups.as_mut()?.poll_transmit();
        let mut multicast = || self.multicast.as_mut()?.poll_transmit();
        chains
            .map(|it| (it.to, it.bytes))
            .or_else(|| groups().map(|it| (it.to, it.bytes)))
            .or_else(|| multicast().map(|it| (it.to, it.bytes)))
    }
}

/// True if `message`, which the peer of number `peer` at `from` sealed, speaks for that peer: a
/// server is known by its address, a switch by its number, and one of coordination or multicast by
/// both.
pub(super) fn is_own(systems: &Systems, peer: u32, from: SocketAddrV4, message: &[u8]) -> bool {
    if multicast_control::Message::is_one(message) {
        return match multicast_control::Message::parse(message) {
            Ok(multicast_control::Message::Beat(beat)) => beat.switch == peer,
            // The controller counts what is not for it.
            _ => true,
        };
    }
    if from.port() == MULTICAST_PORT {
        let switches = systems.multicast.iter().flat_map(|it| &it.switches);
        let mut sender = switches.filter(|switch| switch.address == *from.ip());
        return sender.all(|switch| switch.number == peer);
    }
    if !message.starts_with(&MAGIC) && !coordination_control::Message::is_one(message) {
        let switches = systems.groups.iter().flat_map(|groups| &groups.switches);
        let mut sender = switches.filter(|switch| switch.address == *from.ip());
        return sender.all(|switch| switch.number == peer);
    }
    match Message::parse(message) {
        Ok(Message::Heartbeat(heartbeat)) => {
            let member = heartbeat.from;
            member.server == server_number(*from.ip()) && member.links == from
        }
        Ok(Message::Subscribe { switch, .. }) => switch == peer,
        _ => true,
    }
}

#[cfg(test)]
mod tests;

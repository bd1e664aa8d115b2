//! Misfortunes of nodes and links, and their end.

use super::{Happening, SwitchNode, World};
use crate::places::{Places, SWITCHES, port};
use crate::plan::Misfortune;
use crate::receiver::{ReceiverNode, receiver_number};
use crate::sender::sender_number;
use stateplane_history::multicast::{EventKind, MulticastEvent};
use stateplane_world::Clock;

impl World<'_> {
    fn lives(&self) -> Vec<Option<u32>> {
        let nodes = self.switches.iter();
        let lives = nodes.map(|node| node.device.as_ref().map(|_| node.incarnation));
        lives.collect()
    }

    pub(super) fn befall(&mut self, misfortune: Misfortune) {
        match misfortune {
            Misfortune::Deposes { draw } => self.authority.depose(draw),
            Misfortune::HidesAndDeposes { draw, until } => {
                let leads = self.authority.leads();
                if let Some(&switch) = leads.get(draw as usize % leads.len().max(1)) {
                    self.hide(switch, draw >> 8, until);
                }
                self.authority.depose(draw);
            }
            Misfortune::Exchanges { draw } => self.authority.exchange(draw),
            Misfortune::Dies {
                draw,
                leader,
                until,
            } => {
                let leads = self.authority.leads();
                let switch = match leads.get(draw as usize % leads.len().max(1)) {
                    Some(switch) if leader => *switch,
                    _ => draw as usize % SWITCHES,
                };
                self.die(switch, until);
            }
            Misfortune::Returns { switch } => self.restart(switch),
            Misfortune::Cut { from, to, until } => {
                if from != to {
                    self.net.cut(port(from), port(to), until);
                }
            }
            Misfortune::Stalls { switch, until } => self.net.stall(switch, until),
            Misfortune::SenderDies { sender } => {
                if self.senders[sender].take().is_some() {
                    self.net.die(self.places.sender(sender));
                    let node = sender_number(sender);
                    self.event(EventKind::Died { node });
                }
            }
            Misfortune::ReceiverDies { receiver } => self.receiver_dies(receiver),
            Misfortune::Evicts { draw } => {
                let receivers = &self.receivers;
                let has = |of: usize| receivers[of].as_ref().is_some_and(ReceiverNode::has_state);
                self.authority.evict(draw, &has);
            }
            Misfortune::Enlists { receiver } => {
                if self.receivers[receiver]
                    .as_ref()
                    .is_some_and(|node| !node.is_in())
                {
                    self.authority.enlist(receiver);
                }
            }
            Misfortune::Fetches { receiver, slow } => {
                if let Some(node) = &mut self.receivers[receiver] {
                    node.fetch_slowly(slow);
                }
                self.after_receiver(receiver);
            }
            Misfortune::AuthorityRestarts => self.authority.restart(),
        }
        self.after_authority();
    }

    /// Cuts a switch off from the authority, and from others as `draw` says.
    fn hide(&mut self, switch: usize, draw: u64, until: u64) {
        let others = (0..=SWITCHES).filter(|other| *other != switch);
        for other in others {
            let (to, from) = match other {
                Places::AUTHORITY => (true, true),
                _ => ((draw >> other) & 1 == 1, (draw >> (other + 8)) & 1 == 1),
            };
            if to {
                self.net.cut(port(other), port(switch), until);
            }
            if from {
                self.net.cut(port(switch), port(other), until);
            }
        }
    }

    /// A receiver dies, unless it alone has what its group delivered.
    fn receiver_dies(&mut self, receiver: usize) {
        let group = self.places.group_of(receiver);
        let mut others = self.places.receivers_of(group).filter(|of| *of != receiver);
        let remains = others.any(|of| {
            let node = self.receivers[of].as_ref();
            node.is_some_and(ReceiverNode::has_state) && self.authority.lists(of)
        });
        if remains && self.receivers[receiver].take().is_some() {
            self.net.die(Places::receiver(receiver));
            let node = receiver_number(receiver);
            self.event(EventKind::Died { node });
            self.authority.forget(receiver);
        }
    }

    /// A switch dies, if every configuration keeps a majority that remembers.
    fn die(&mut self, switch: usize, until: u64) {
        if !self.authority.may_die(switch) {
            return;
        }
        if let Some(device) = self.switches[switch].device.take() {
            self.count(&*device);
            self.coverage.deaths += 1;
            self.net.die(switch);
            self.observer.died(switch);
            self.event(EventKind::Died {
                node: switch as u32 + 1,
            });
            self.authority.sees(self.lives());
            let returns = Misfortune::Returns { switch };
            self.net.plan(until, Happening::Misfortune(returns));
        }
    }

    fn restart(&mut self, switch: usize) {
        if self.switches[switch].device.is_some() {
            return;
        }
        let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
        self.net.restart(switch, Clock::TRUE);
        match (self.make)(switch, incarnation, false) {
            Ok(device) => {
                self.switches[switch] = SwitchNode {
                    device: Some(device),
                    incarnation,
                    rows: 0,
                };
            }
            Err(error) => self.failure = Some(error),
        }
        self.authority.sees(self.lives());
        self.after_switch(switch);
    }

    pub(super) fn heal(&mut self) {
        self.net.heal();
        for switch in 0..SWITCHES {
            self.net.rouse(switch);
            self.restart(switch);
        }
        for receiver in 0..self.receivers.len() {
            if let Some(node) = &mut self.receivers[receiver] {
                node.fetch_slowly(0);
            }
            self.after_receiver(receiver);
        }
        self.note(MulticastEvent::Whole);
    }
}

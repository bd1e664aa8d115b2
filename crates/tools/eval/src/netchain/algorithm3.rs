//! NetChain's failure recovery as printed (Algorithm 3), to compare with: a controller copies the
//! records of one group after the other from a reference switch to the new one, values and numbers
//! apart, stops the group for what changed meanwhile, and lets the new switch in. It reads and
//! writes registers of the switches through agents in their nodes; the product has no part of it.

#![allow(clippy::disallowed_methods, reason = "a controller takes times")]

use super::agent::{Answer, Ask, Element};
use super::lab::{Network, Sizes};
use crate::error::EvalError;
use crate::nodes::Client;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Registers of a slot that are values, of up to 128 bytes.
const VALUES: [&str; 14] = [
    "slot_era",
    "slot_kind",
    "slot_key",
    "slot_token",
    "slot_session",
    "slot_length",
    "slot_value_0",
    "slot_value_1",
    "slot_value_2",
    "slot_value_3",
    "slot_value_4",
    "slot_value_5",
    "slot_value_6",
    "slot_value_7",
];
/// Those that are sequence numbers.
const NUMBERS: [&str; 1] = ["slot_number"];
/// Registers of a lane, by which a repeated request is known.
const LANES: [&str; 8] = [
    "lane_era",
    "lane_incarnation",
    "lane_request",
    "lane_number",
    "lane_kept_request",
    "lane_kept_number",
    "lane_kept_outcome",
    "lane_kept_token",
];
/// Registers of a group that the new switch takes over as they are.
const TAKEN_OVER: [&str; 4] = [
    "group_generation",
    "group_hash_key",
    "group_era",
    "group_applied",
];
/// A place that is none (`PLACE_NONE` of the library).
const NO_PLACE: u64 = 255;
/// Longest time for entries that are under way to reach the reference switch.
const UNDER_WAY: Duration = Duration::from_secs(2);
/// Elements that are read at once.
const AT_ONCE: u64 = 512;

/// The chain of a group before the failure, and after.
pub struct Chains {
    pub group: u16,
    /// Head first, with the failed switch.
    pub before: Vec<Ipv4Addr>,
}

/// The controller.
pub struct Recovery {
    agents: BTreeMap<Ipv4Addr, Client>,
    sizes: Sizes,
    failed: Ipv4Addr,
    new: Ipv4Addr,
}

fn address(switch: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 20, 0, switch)
}

impl Recovery {
    /// Agents of all switches but the failed one. Switches are numbered from 1 to 4.
    ///
    /// # Errors
    /// `EV005` if an agent does not begin.
    pub fn begin(
        network: &Network,
        sizes: Sizes,
        failed: u8,
        new: u8,
    ) -> Result<Recovery, EvalError> {
        let mut agents = BTreeMap::new();
        for switch in (1..=4).filter(|switch| *switch != failed) {
            let node = format!("s{switch}");
            let agent = network.start(&node, &["eval", "switch-agent"], "switch agent")?;
            agents.insert(address(switch), agent);
        }
        Ok(Recovery {
            agents,
            sizes,
            failed: address(failed),
            new: address(new),
        })
    }

    /// Puts the new switch in the failed one's place in one group; gives the time for which the
    /// group was stopped.
    ///
    /// # Errors
    /// Refusals of an agent.
    pub fn recover(&mut self, chains: &Chains) -> Result<Duration, EvalError> {
        let group = u64::from(chains.group);
        let live: Vec<Ipv4Addr> = chains
            .before
            .iter()
            .copied()
            .filter(|of| *of != self.failed)
            .collect();
        let place = chains
            .before
            .iter()
            .position(|of| *of == self.failed)
            .unwrap_or(0);
        // The failed switch's next hop, or, behind the last, its previous one (line 1).
        let reference = live.get(place).or(live.last()).copied();
        let (Some(reference), Some(head)) = (reference, live.first().copied()) else {
            return Ok(Duration::ZERO);
        };
        // Line 2: preSyncState.
        self.copy(reference, group)?;
        // Lines 3 and 4: stopForward. The first switch of the chain refuses requests.
        let stopped = Instant::now();
        let stop = vec![element("group_place", group, NO_PLACE)];
        self.write(head, stop)?;
        loop {
            let applied = self.number(reference, "group_applied", group)?;
            if applied == self.number(head, "group_applied", group)? {
                break;
            }
            if stopped.elapsed() > UNDER_WAY {
                break;
            }
        }
        // Line 5: syncState.
        self.copy(reference, group)?;
        // Line 6: activateProcess.
        let epoch = self.number(reference, "group_epoch", group)? + 1;
        let mut after = live;
        after.insert(place, self.new);
        let mut begin: Vec<Element> = Vec::new();
        let taken = TAKEN_OVER.map(str::to_owned).to_vec();
        let values = self.read(reference, taken.clone(), group, 1)?;
        for (register, value) in taken.iter().zip(values) {
            begin.push(Element {
                register: register.clone(),
                index: group,
                value,
            });
        }
        let applied = self.number(reference, "group_applied", group)?;
        begin.push(element("group_acked", group, applied));
        for register in [
            "group_joins",
            "group_progress",
            "group_asked_from",
            "group_asked_until",
            "group_leased_until",
            "group_promised_to",
            "group_promised_until",
            "group_blocked_until",
        ] {
            begin.push(element(register, group, 0));
        }
        self.write(self.new, begin)?;
        self.write(self.new, place_of(&after, self.new, group, epoch))?;
        // Lines 7 and 8: activateForward, from the last switch on, so that none is ahead of its
        // successor.
        let new = self.new;
        for member in after.iter().rev().filter(|member| **member != new) {
            self.write(*member, place_of(&after, *member, group, epoch))?;
        }
        Ok(stopped.elapsed())
    }

    /// Copies what differs: values first, then numbers, then lanes.
    fn copy(&mut self, reference: Ipv4Addr, group: u64) -> Result<(), EvalError> {
        let (slots, lanes) = (u64::from(self.sizes.slots), u64::from(self.sizes.lanes));
        self.copy_registers(reference, &VALUES, group * slots, slots)?;
        self.copy_registers(reference, &NUMBERS, group * slots, slots)?;
        self.copy_registers(reference, &LANES, group * lanes, lanes)
    }

    fn copy_registers(
        &mut self,
        reference: Ipv4Addr,
        registers: &[&str],
        first: u64,
        count: u64,
    ) -> Result<(), EvalError> {
        let names: Vec<String> = registers.iter().map(|name| (*name).to_owned()).collect();
        let mut at = 0;
        while at < count {
            let part = AT_ONCE.min(count - at);
            let there = self.read(reference, names.clone(), first + at, part)?;
            let here = self.read(self.new, names.clone(), first + at, part)?;
            let mut changed = Vec::new();
            for (place, (value, known)) in there.into_iter().zip(here).enumerate() {
                if value != known {
                    changed.push(Element {
                        register: names[place / part as usize].clone(),
                        index: first + at + place as u64 % part,
                        value,
                    });
                }
            }
            if !changed.is_empty() {
                self.write(self.new, changed)?;
            }
            at += part;
        }
        Ok(())
    }

    fn ask(&mut self, switch: Ipv4Addr, ask: &Ask) -> Result<Vec<Vec<u8>>, EvalError> {
        let refused = |reason: String| EvalError::Controller {
            whom: format!("the agent of {switch}"),
            reason,
        };
        let agent = self.agents.get_mut(&switch);
        let agent = agent.ok_or_else(|| refused("there is none".to_owned()))?;
        let answer: Answer = agent.exchange(ask)?;
        match answer.error {
            None => Ok(answer.values),
            Some(error) => Err(refused(error)),
        }
    }

    fn read(
        &mut self,
        switch: Ipv4Addr,
        registers: Vec<String>,
        first: u64,
        count: u64,
    ) -> Result<Vec<Vec<u8>>, EvalError> {
        let ask = Ask::Read {
            registers,
            first,
            count,
        };
        self.ask(switch, &ask)
    }

    fn write(&mut self, switch: Ipv4Addr, elements: Vec<Element>) -> Result<(), EvalError> {
        self.ask(switch, &Ask::Write(elements)).map(drop)
    }

    fn number(&mut self, switch: Ipv4Addr, name: &str, index: u64) -> Result<u64, EvalError> {
        let values = self.read(switch, vec![name.to_owned()], index, 1)?;
        let bytes = values.first().map_or(&[][..], Vec::as_slice);
        Ok(bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
}

/// A number as the register's element.
fn element(register: &str, index: u64, value: u64) -> Element {
    let bytes = value.to_be_bytes();
    let zeros = value.leading_zeros() as usize / 8;
    Element {
        register: register.to_owned(),
        index,
        value: bytes[zeros..].to_vec(),
    }
}

/// Place of a member in a chain, as its registers have it.
fn place_of(chain: &[Ipv4Addr], member: Ipv4Addr, group: u64, epoch: u64) -> Vec<Element> {
    let at = |place: usize| chain.get(place).map_or(0, |of| u64::from(of.to_bits()));
    let place = chain.iter().position(|of| *of == member).unwrap_or(0);
    let predecessor = place.checked_sub(1).map_or(0, at);
    let numbers = [
        ("group_epoch", epoch),
        ("group_members", chain.len() as u64),
        ("group_predecessor", predecessor),
        ("group_successor", at(place + 1)),
        ("group_chain_1", at(0)),
        ("group_chain_2", at(1)),
        ("group_chain_3", at(2)),
        ("group_chain_4", at(3)),
        ("group_place", place as u64),
    ];
    let numbers = numbers.into_iter();
    numbers
        .map(|(name, value)| element(name, group, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_knows_its_neighbours() {
        let chain = [address(1), address(4), address(3)];
        let of = place_of(&chain, address(4), 7, 300);
        let value = |name: &str| {
            let found = of.iter().find(|element| element.register == name).unwrap();
            assert_eq!(found.index, 7);
            found.value.clone()
        };
        assert_eq!(value("group_predecessor"), [10, 20, 0, 1]);
        assert_eq!(value("group_successor"), [10, 20, 0, 3]);
        assert_eq!(value("group_place"), [1]);
        assert_eq!(value("group_epoch"), [1, 44]);
        assert_eq!(value("group_chain_4"), [0_u8; 0]);
        let last = place_of(&chain, address(3), 7, 300);
        let successor = last
            .iter()
            .find(|element| element.register == "group_successor");
        assert_eq!(successor.unwrap().value, [0_u8; 0]);
    }
}

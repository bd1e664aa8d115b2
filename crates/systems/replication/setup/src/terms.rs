//! A switch's terms with the heads of its chains (rules 1 and 17 of
//! `docs/replication-protocol.md`), between the program and [`Terms`]: heartbeats as frames that the
//! program sends, terms as elements of its register.

use crate::{CHAINS_TABLE, IDENTITY_TABLE, INCARNATION};
use core::net::Ipv4Addr;
use num_bigint::BigUint;
use stateplane_runtime::{KeyMatch, StateError, TargetState, Value};
use stateplane_switch::{ETHERTYPE_GENERATED, Port};
use stateplane_term::{Faults, Term, Terms};
use stateplane_wire::{ethernet, term};
use std::collections::BTreeMap;

/// Register of the library with the term for each shard.
pub const TERM: &str = "replication_term";
/// Register of the library that says when the head of the probed shard's chain last answered a
/// heartbeat.
pub const BEAT: &str = "replication_beat";
/// Ingress port of heartbeats, which no link faces: `HEARTBEAT_PORT` of the library.
pub const HEARTBEAT_PORT: Port = 504;

/// Bits by which a deadline is shifted in an element of [`TERM`].
const DEADLINE_SHIFT: u32 = 10;
/// Bits by which the time from a term's beginning to its deadline is.
const LENGTH_SHIFT: u32 = 8;
/// Bits that this time has.
const LENGTH_BITS: u32 = 26;

/// An element of [`TERM`]: the deadline in units of 1024 µs, and in [`LENGTH_BITS`] bits for how long
/// before it the term began, in units of 256 µs. Both are rounded so that less counts: a deadline
/// down, the beginning up, also that of a term longer than these bits say. 0 says that nothing
/// counts.
pub fn element(term: Term) -> u64 {
    let deadline = (term.deadline & 0xffff_ffff_ffff) >> DEADLINE_SHIFT;
    let length = (deadline << DEADLINE_SHIFT).saturating_sub(term.since) >> LENGTH_SHIFT;
    if length == 0 {
        return 0;
    }
    deadline << LENGTH_BITS | length.min((1 << LENGTH_BITS) - 1)
}

/// The term that the program reads from an element.
pub fn term_of(element: u64) -> Term {
    let deadline = element >> LENGTH_BITS << DEADLINE_SHIFT;
    let length = element & ((1 << LENGTH_BITS) - 1);
    Term {
        since: deadline - (length << LENGTH_SHIFT).min(deadline),
        deadline,
    }
}

/// Lets no lease count until the next terms are written: the program was changed.
///
/// # Errors
///
/// [`StateError`] if the program is not replicated.
pub fn end_terms(state: &mut TargetState) -> Result<(), StateError> {
    state.register_mut(TERM)?.fill(&Value::from(0u64))
}

/// Two hours in µs.
const HELD: u64 = 7_200_000_000;

/// Gives the switch terms for all shards, from `since` until two hours of a clock that begins at 0,
/// and lets its ports be up as long: where it is measured, or shown, without heartbeats. A program
/// that is not replicated needs none.
pub fn hold_terms(state: &mut TargetState, since: u64) {
    let held = Term {
        since,
        deadline: HELD,
    };
    for (name, word) in [(TERM, element(held)), (BEAT, HELD)] {
        if let Ok(register) = state.register_mut(name) {
            // An element has 64 bits, or 48.
            let _ = register.fill(&Value::from(word));
        }
    }
}

/// A word for a register of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    register: &'static str,
    index: u64,
    value: u64,
}

impl Write {
    /// Writes it, at once for all that share the register. A program without the register is not
    /// replicated, and needs it not.
    pub fn apply(&self, state: &mut TargetState) {
        if let Ok(register) = state.register_mut(self.register) {
            // Past the end there is no shard of the program's.
            let _ = register.write(self.index, &Value::from(self.value));
        }
    }
}

/// Heartbeats of a switch, and the terms that follow from the answers.
///
/// Give the program what [`poll_write`](Self::poll_write) says before the frames of
/// [`poll_frame`](Self::poll_frame); these go through the program as if they came by
/// [`HEARTBEAT_PORT`].
#[derive(Debug)]
pub struct Heartbeats {
    switch: u32,
    incarnation: u32,
    address: Ipv4Addr,
    /// Port towards the store.
    port: Port,
    terms: Terms,
    /// Head of each shard's chain, and the chain's configuration.
    chains: BTreeMap<u16, (Ipv4Addr, u32)>,
    /// The shard whose head must answer.
    probed: u16,
    /// When it answered, if that is to be written.
    beat: Option<u64>,
}

impl Heartbeats {
    /// Those of the switch that `state` says it is, whose probes are of the shard `probed`; `None`
    /// of a program that is not replicated, or does not yet know its switch or a chain.
    pub fn of(now: u64, state: &TargetState, probed: u16) -> Option<Heartbeats> {
        let shards = state.register(TERM).ok()?.size();
        let incarnation = state.register(INCARNATION).ok()?.word(0)? as u32;
        let (_, identity) = state.table(IDENTITY_TABLE).ok()?.default_action();
        let [switch, address, ..] = &identity[..] else {
            return None;
        };
        let (switch, address) = (number(switch), Ipv4Addr::from_bits(number(address)));
        if switch == 0 || incarnation == 0 {
            return None;
        }
        let shards = u16::try_from(shards).unwrap_or(u16::MAX);
        let mut heartbeats = Heartbeats {
            switch,
            incarnation,
            address,
            port: chains(state).next()?.port,
            terms: Terms::new(switch, incarnation, shards),
            chains: BTreeMap::new(),
            probed,
            beat: None,
        };
        for chain in chains(state) {
            heartbeats.set_head(now, chain.shard, chain.head, chain.epoch);
        }
        Some(heartbeats)
    }

    /// The same with rules turned off, for tests.
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Heartbeats {
        self.terms = self.terms.with_faults(faults);
        self
    }

    /// The same where one server stands for all heads, at `head`.
    #[must_use]
    pub fn at_one_head(mut self, head: Ipv4Addr) -> Heartbeats {
        for (shard, (_, epoch)) in self.chains.clone() {
            self.set_head(0, shard, head, epoch);
        }
        self
    }

    /// Takes over the heads of the chains that `other` knows.
    pub fn adopt(&mut self, now: u64, other: &Heartbeats) {
        for (shard, (head, epoch)) in &other.chains {
            self.set_head(now, *shard, *head, *epoch);
        }
    }

    /// The chain of a shard begins at `head`, in the configuration `epoch`.
    pub fn set_head(&mut self, now: u64, shard: u16, head: Ipv4Addr, epoch: u32) {
        if self.chains.insert(shard, (head, epoch)) != Some((head, epoch)) {
            self.terms.set_head(now, shard, head, epoch);
        }
    }

    /// True if `other` is of the same start of the same switch, which the store reaches in the same
    /// way, and of a program with as many shards: its chains may be other ones.
    pub fn is_same_switch(&self, other: &Heartbeats) -> bool {
        let of = |it: &Heartbeats| (it.switch, it.incarnation, it.address, it.port);
        of(self) == of(other) && self.terms.shards() == other.terms.shards()
    }

    /// The switch's address towards the store.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Port towards the store.
    pub fn port(&self) -> Port {
        self.port
    }

    /// The next frame that is due at `now` for the program, as if it came by [`HEARTBEAT_PORT`].
    pub fn poll_frame(&mut self, now: u64) -> Option<Vec<u8>> {
        while let Some((head, datagram)) = self.terms.poll_heartbeat(now) {
            let of_head = |shard: &u16| self.chains.get(shard).is_some_and(|it| it.0 == head);
            let mut shards = [self.probed].into_iter().chain(self.chains.keys().copied());
            if let Some(shard) = shards.find(of_head) {
                return Some(frame(shard, &datagram));
            }
        }
        None
    }

    /// When the next frame is due, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.terms.poll_timeout()
    }

    /// Takes a datagram that came from the head `from` at `now`; false if it is none that answers a
    /// heartbeat of this start of the switch.
    pub fn handle_reply(&mut self, now: u64, from: Ipv4Addr, datagram: &[u8]) -> bool {
        let answers = self.terms.handle_reply(now, from, datagram);
        let probed = self.chains.get(&self.probed);
        if answers && term::is_term(datagram) && probed.is_some_and(|chain| chain.0 == from) {
            self.beat = Some(now);
        }
        answers
    }

    /// The program was changed at `now`: what was granted to it before counts no more.
    pub fn program_changed(&mut self, now: u64) {
        self.terms.program_changed(now);
    }

    /// The next word that the program is to have.
    pub fn poll_write(&mut self) -> Option<Write> {
        if let Some(beat) = self.beat.take() {
            return Some(Write {
                register: BEAT,
                index: 0,
                value: beat & 0xffff_ffff_ffff,
            });
        }
        let (shard, term) = self.terms.poll_change()?;
        Some(Write {
            register: TERM,
            index: shard.into(),
            value: element(term),
        })
    }

    /// The next head that speaks an older version of the protocol; each is given once.
    pub fn poll_older(&mut self) -> Option<Ipv4Addr> {
        self.terms.poll_older()
    }

    /// When each head was heard last; of one that never was, when it was first asked.
    pub fn heard(&self) -> impl Iterator<Item = (Ipv4Addr, u64)> {
        self.terms.heard()
    }

    /// Number of times that the term for a shard had ended before it went on.
    pub fn lapses(&self) -> u64 {
        self.terms.lapses()
    }

    /// The term for `shard`.
    pub fn term(&self, shard: u16) -> Term {
        self.terms.term(shard)
    }

    /// Shards with a chain, and the heads of these.
    pub fn chains(&self) -> impl Iterator<Item = (u16, Ipv4Addr)> {
        self.chains.iter().map(|(shard, (head, _))| (*shard, *head))
    }
}

/// A frame that the program sends to the head of `shard`'s chain, with headers of its own.
pub fn frame(shard: u16, datagram: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend_from_slice(&ETHERTYPE_GENERATED.to_be_bytes());
    debug_assert_eq!(frame.len(), ethernet::HEADER_LENGTH);
    frame.extend_from_slice(&shard.to_be_bytes());
    frame.extend_from_slice(datagram);
    frame
}

/// A chain, as the program's table has it.
struct Known {
    shard: u16,
    head: Ipv4Addr,
    port: Port,
    epoch: u32,
}

fn chains(state: &TargetState) -> impl Iterator<Item = Known> {
    let entries = state.table(CHAINS_TABLE).map(|table| table.entries());
    entries
        .unwrap_or_default()
        .into_iter()
        .filter_map(|listed| {
            let [KeyMatch::Exact(shard)] = &listed.entry.keys[..] else {
                return None;
            };
            // As `Chain::entry` has them: address, MAC address, port, epoch, MTU.
            let [address, _, port, epoch, _] = &listed.entry.data[..] else {
                return None;
            };
            Some(Known {
                shard: u16::try_from(shard).ok()?,
                head: Ipv4Addr::from_bits(number(address)),
                port: Port::try_from(port).ok()?,
                epoch: number(epoch),
            })
        })
}

fn number(value: &BigUint) -> u32 {
    u32::try_from(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;

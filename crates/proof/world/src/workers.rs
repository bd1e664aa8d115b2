//! A switch whose program several workers run, each with frames of its own.

use core::hash::Hasher;
use rustc_hash::{FxHashMap, FxHasher};
use stateplane_runtime::{Engine, Fellow, TargetState};
use stateplane_switch::{Switch, Transmit};

/// The workers of a switch, which share its registers, one after the other in virtual time.
pub struct Workers<E: Engine> {
    first: Switch<E>,
    others: Vec<Switch<E>>,
    /// Places of registers by name.
    registers: FxHashMap<String, usize>,
}

impl<E: Fellow> Workers<E> {
    /// `count` workers, at least one: `first`, which has the packet generators, and its fellows. More than
    /// one need a guarded engine ([`Fellow`]).
    pub fn new(mut first: Switch<E>, count: u8) -> Workers<E> {
        let seeds = 1..u64::from(count);
        let others = seeds.map(|seed| first.fellow(seed)).collect();
        let registers = first.engine().state().registers().iter().enumerate();
        let registers = registers.map(|(place, of)| (of.name().to_owned(), place));
        Workers {
            registers: registers.collect(),
            first,
            others,
        }
    }

    /// Lets `work` change the switch: the other workers follow the first.
    pub fn change<T>(&mut self, work: impl FnOnce(&mut Switch<E>) -> T) -> T {
        let result = work(&mut self.first);
        for other in &mut self.others {
            other.follow(&mut self.first);
        }
        result
    }
}

impl<E: Engine> Workers<E> {
    /// Gives a frame to the worker that takes it. Real ones share frames by flows; here each frame is on
    /// its own, so that a sender's messages also go through different workers, one after the other.
    pub fn handle_frame(&mut self, now: u64, port: u16, frame: &[u8]) {
        let mut hasher = FxHasher::default();
        hasher.write(frame);
        let number = (hasher.finish() >> 32) as usize % (1 + self.others.len());
        let worker = match number.checked_sub(1) {
            None => &mut self.first,
            Some(at) => &mut self.others[at],
        };
        worker.handle_frame(now, port, frame);
    }

    /// Lets all do what is due.
    pub fn handle_timeout(&mut self, now: u64) {
        for switch in self.all_mut() {
            switch.handle_timeout(now);
        }
    }

    /// The next frame that leaves.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.all_mut().find_map(Switch::poll_transmit)
    }

    /// When something is due next.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.all().filter_map(Switch::poll_timeout).min()
    }

    /// The registers, and the first worker's tables and counters.
    pub fn state(&self) -> &TargetState {
        self.first.engine().state()
    }

    /// As [`state`](Self::state), for what workers share: registers.
    pub fn state_mut(&mut self) -> &mut TargetState {
        self.first.engine_mut().state_mut()
    }

    /// Element of a register of at most 128 bits; 0 if there is none.
    pub fn word(&self, register: &str, index: u64) -> u128 {
        let place = self.registers.get(register);
        let register = place.and_then(|place| self.state().registers().get(*place));
        register.and_then(|of| of.word(index)).unwrap_or(0)
    }

    /// Packets that all workers together counted at an index of a counter; 0 if there is none.
    pub fn packets(&self, counter: &str, index: u64) -> u64 {
        let counts = self.all().map(|switch| {
            let counter = switch.engine().state().counter(counter);
            counter.and_then(|of| of.read(index))
        });
        counts.flatten().map(|count| count.packets).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Switch<E>> {
        core::iter::once(&self.first).chain(&self.others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Switch<E>> {
        core::iter::once(&mut self.first).chain(&mut self.others)
    }
}

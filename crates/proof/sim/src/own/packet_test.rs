//! A packet test of the original program, run on the protected one with a store behind it.

use super::{BUCKETS, Own};
use crate::chain::SHARDS;
use crate::device::Device as _;
use crate::frame::{HEAD_ADDRESS, STORE_PORT, message_in, message_to_switch};
use crate::p4::P4Switch;
use crate::simulator::SimError;
use core::net::SocketAddrV4;
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_stf::{Command, Pattern, START_US};
use stateplane_store::{ClassConfig, Config, FirstLease, IdleTimeouts, Recipient, Server};
use std::collections::{BTreeMap, VecDeque};

/// µs that `wait` lets pass.
const WAIT_US: u64 = 100_000;
/// µs between a switch's death and the first packet at the next: longer than a lease.
const OUTAGE_US: u64 = 10_000_000;

/// µs in which a switch has heard the store, and may use what it is granted from then on.
const TERM_US: u64 = 2_000;

/// µs until the packet generator has begun to walk.
const FIRST_WALK_US: u64 = 2_000;

/// Sent and expected frames of a port, with the line that expects them.
#[derive(Default)]
struct Account {
    sent: VecDeque<Vec<u8>>,
    wanted: VecDeque<(usize, Option<Pattern>)>,
}

/// A switch and the store beside it, without a link between.
struct Pair {
    device: P4Switch<Interp>,
    store: Server,
    now: u64,
    ports: BTreeMap<u16, Account>,
}

impl Own {
    /// Runs the packet test on the original, on the protected program, and on the protected
    /// program where before each packet the switch dies and another, which knows nothing but
    /// what the store has, takes over, or, in bounded-inconsistency mode, where a snapshot is
    /// begun between packets; what fails, each with the program that failed. Table entries of
    /// the test are all there from the start, and registers are not looked at, since the
    /// protected program has others.
    ///
    /// # Errors
    ///
    /// Returns the error that keeps the programs from being loaded.
    pub fn packet_test(&self) -> Result<Vec<String>, SimError> {
        let engine = Interp::new(self.original.clone(), stateplane_interp::Options::default())?;
        let before = stateplane_stf::run_all(&self.script, engine);
        let mut failures: Vec<String> = before
            .iter()
            .map(|failure| format!("the original: {failure}"))
            .collect();
        let program = self.protected(BUCKETS, None)?;
        let one = self.on_one_switch(&program, 0)?;
        failures.extend(one.failures("the protected"));
        match &self.snapshots {
            None => {
                let many = self.on_many_switches(&program)?;
                failures.extend(many.failures("the protected, each packet at another switch"));
            }
            Some(snapshots) => {
                let period = u64::from(snapshots.period) * 1000;
                let apart = self.on_one_switch(&program, period)?;
                failures.extend(apart.failures("the protected, with a snapshot between packets"));
            }
        }
        Ok(failures)
    }

    /// A switch beside its store.
    fn pair(&self, program: &Program) -> Result<Pair, SimError> {
        let class = self.class();
        let config = Config::new(1, 0)
            .with_shards(SHARDS)
            .with_class(ClassConfig {
                class: class.id,
                state_length: class.state_length,
                first_lease: FirstLease::Zero,
                shared_only: false,
                idle: IdleTimeouts::never(),
                quota: None,
            });
        let link = SocketAddrV4::new(HEAD_ADDRESS, stateplane_wire::chain::PORT);
        Ok(Pair {
            device: self.device(program, 1, START_US)?,
            store: Server::fixed(config, 1, vec![link])?,
            now: START_US,
            ports: BTreeMap::new(),
        })
    }

    /// Plays the test at one switch, with `pause` µs in front of each packet.
    fn on_one_switch(&self, program: &Program, pause: u64) -> Result<Pair, SimError> {
        let mut pair = self.pair(program)?;
        pair.advance(TERM_US);
        if self.is_bounded() {
            // Until the packet generator's first frame nothing is known of snapshots.
            pair.advance(FIRST_WALK_US);
        }
        for line in &self.script.lines {
            if matches!(line.command, Command::Packet { .. }) && pause > 0 {
                pair.advance(pause);
            }
            pair.play(line.number, &line.command);
        }
        Ok(pair)
    }

    fn on_many_switches(&self, program: &Program) -> Result<Pair, SimError> {
        let mut pair = self.pair(program)?;
        let mut starts = 1;
        for line in &self.script.lines {
            if matches!(line.command, Command::Packet { .. }) {
                starts += 1;
                pair.now += OUTAGE_US;
                pair.store.handle_timeout(pair.now);
                pair.device = self.device(program, starts, pair.now)?;
                pair.advance(TERM_US);
            }
            pair.play(line.number, &line.command);
        }
        Ok(pair)
    }
}

impl Pair {
    fn play(&mut self, line: usize, command: &Command) {
        match command {
            Command::Packet { port, frame } => {
                self.device.handle_frame(self.now, *port, frame);
                self.settle();
            }
            Command::Expect { port, pattern } => {
                let account = self.ports.entry(*port).or_default();
                account.wanted.push_back((line, pattern.clone()));
            }
            Command::Ignore(port) => self.ignore(*port),
            Command::Wait => self.advance(WAIT_US),
            Command::Advance(time) => self.advance(*time),
            _ => {}
        }
    }

    /// Carries messages to and fro until nothing is sent at this time.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some((port, frame)) = self.device.poll_transmit() {
                quiet = false;
                if port != STORE_PORT {
                    self.ports.entry(port).or_default().sent.push_back(frame);
                } else if let Some((from, _, message)) = message_in(&frame) {
                    self.store.handle_request(self.now, from, message);
                }
            }
            while let Some(datagram) = self.store.poll_transmit(self.now) {
                quiet = false;
                if let Recipient::Switch(to) = datagram.to {
                    let frame = message_to_switch(HEAD_ADDRESS, to, &datagram.bytes);
                    self.device.handle_frame(self.now, STORE_PORT, &frame);
                }
            }
            if self
                .device
                .poll_timeout()
                .is_some_and(|due| due <= self.now)
            {
                self.device.handle_timeout(self.now);
            } else if quiet {
                return;
            }
        }
    }

    fn advance(&mut self, time: u64) {
        let end = self.now.saturating_add(time);
        loop {
            let due = [self.device.poll_timeout(), self.store.poll_timeout()];
            let next = due.into_iter().flatten().min().filter(|due| *due < end);
            self.now = next.map_or(end, |due| due.max(self.now + 1)).min(end);
            self.device.handle_timeout(self.now);
            self.store.handle_timeout(self.now);
            self.settle();
            if self.now >= end {
                return;
            }
        }
    }

    fn ignore(&mut self, port: Option<u16>) {
        for (number, account) in &mut self.ports {
            if port.is_none_or(|port| port == *number) {
                account.sent.clear();
                account.wanted.clear();
            }
        }
    }

    /// Compares what each port sent with what it was to send.
    fn failures(self, of: &str) -> Vec<String> {
        let mut failures = Vec::new();
        for (port, mut account) in self.ports {
            while let Some((line, pattern)) = account.wanted.pop_front() {
                match account.sent.pop_front() {
                    None => {
                        failures.push(format!("{of}: line {line}: port {port} sent nothing more"))
                    }
                    Some(frame) => {
                        let differs = pattern.as_ref().and_then(|it| it.mismatch(&frame));
                        if differs.is_some() {
                            failures
                                .push(format!("{of}: line {line}: port {port} sent {frame:02x?}"));
                        }
                    }
                }
            }
            for frame in account.sent {
                failures.push(format!(
                    "{of}: port {port} sent what nobody expected: {frame:02x?}"
                ));
            }
        }
        failures
    }
}

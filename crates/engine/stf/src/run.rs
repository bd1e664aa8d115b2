//! Runs scripts.

mod entries;
mod groups;
#[cfg(test)]
mod tests;

use crate::pattern::show;
use crate::{Cause, Command, Comparison, Line, Pattern, Script, StfError};
use entries::{Handle, show_value, zero};
use groups::Groups;
use num_bigint::BigUint;
use stateplane_runtime::hash::CrcParameters;
use stateplane_runtime::{Count, DROP_PORT, Engine, TargetState, Value};
use stateplane_switch::{DropReason, Generator, Limits, Port, Switch, SwitchConfig};
use std::collections::{BTreeMap, VecDeque};

/// The time in µs at which a script begins.
pub const START_US: u64 = 1_000_000;

/// Calls of the switch at one time before a program counts as restless. Each call
/// does thousands of passes.
const PATIENCE: u32 = 100;

/// µs that `wait` lets pass.
const WAIT_US: u64 = 100_000;

/// Maximum number of due events and sent frames while the time of a script advances. A packet
/// generator does that without end.
const MOST_DUE: u64 = 200_000;

/// Failed expectations after which a script is left.
const MAX_FAILURES: usize = 20;

/// Runs `script` on a switch with all ports from 0 to 510 around `engine`, and gives
/// the switch back.
///
/// # Errors
///
/// Returns the first line whose command is refused, or whose expectation is not met; and a frame
/// that was not expected, at the line that caused it.
pub fn run<E: Engine>(script: &Script, engine: E) -> Result<Switch<E>, StfError> {
    let (switch, failures) = play(script, engine)?;
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(switch),
    }
}

/// Like [`run`], but goes on after an expectation that is not met, and tells all that
/// failed, up to 20; none if the script passes.
pub fn run_all<E: Engine>(script: &Script, engine: E) -> Vec<StfError> {
    match play(script, engine) {
        Ok((_, failures)) => failures,
        Err(failure) => vec![failure],
    }
}

fn play<E: Engine>(script: &Script, engine: E) -> Result<(Switch<E>, Vec<StfError>), StfError> {
    let config = SwitchConfig {
        ports: (0..DROP_PORT).collect(),
        limits: Limits {
            shortest_frame: script.shortest_frame,
            ..Limits::default()
        },
        ..SwitchConfig::default()
    };
    let error = |line, cause| StfError {
        script: script.name.clone(),
        line,
        cause: Box::new(cause),
    };
    let switch = Switch::new(engine, config).map_err(|cause| error(0, cause.into()))?;
    let mut run = Run {
        switch,
        now: START_US,
        sent: 0,
        due: 0,
        ports: BTreeMap::new(),
        failures: Vec::new(),
        groups: Groups::default(),
        handles: BTreeMap::new(),
    };
    for line in &script.lines {
        if let Err(cause) = run.execute(line) {
            run.failures.push((line.number, cause));
            break;
        }
        if run.failures.len() >= MAX_FAILURES {
            break;
        }
    }
    if run.failures.is_empty() {
        run.finish();
    }
    let failures = run.failures.into_iter();
    let failures = failures.map(|(line, cause)| error(line, cause)).collect();
    Ok((run.switch, failures))
}

/// A frame that was sent and not expected yet.
struct Sent {
    frame: Vec<u8>,
    /// The line that caused it.
    by: usize,
}

/// A frame that is expected and was not sent yet.
struct Wanted {
    pattern: Option<Pattern>,
    line: usize,
}

/// Frames that a port still owes and those that it sent in excess; one of the two is empty, since
/// the first frame of a port answers the first expectation, and so on.
#[derive(Default)]
struct Account {
    sent: VecDeque<Sent>,
    wanted: VecDeque<Wanted>,
}

struct Run<E: Engine> {
    switch: Switch<E>,
    now: u64,
    /// Frames that the switch has sent.
    sent: u64,
    /// Number of due events and sent frames while time advanced.
    due: u64,
    ports: BTreeMap<Port, Account>,
    failures: Vec<(usize, Cause)>,
    groups: Groups,
    /// Entries that the script gave names.
    handles: BTreeMap<String, Handle>,
}

impl<E: Engine> Run<E> {
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    fn execute(&mut self, line: &Line) -> Result<(), Cause> {
        match &line.command {
            Command::Packet { port, frame } => {
                self.switch.handle_frame(self.now, *port, frame);
                self.settle(line.number)
            }
            Command::Expect { port, pattern } => {
                let wanted = Wanted {
                    pattern: pattern.clone(),
                    line: line.number,
                };
                self.ports
                    .entry(*port)
                    .or_default()
                    .wanted
                    .push_back(wanted);
                self.compare(*port);
                Ok(())
            }
            Command::ExpectNone(port) => self.expect_none(*port),
            Command::Ignore(port) => {
                for (number, account) in &mut self.ports {
                    if port.is_none_or(|port| port == *number) {
                        account.sent.clear();
                    }
                }
                Ok(())
            }
            Command::Add {
                table,
                priority,
                keys,
                runs,
                handle,
            } => self.add(table, *priority, keys, runs, handle.as_deref()),
            Command::SetDefault { table, call } => self.set_default(table, call),
            Command::Remove(handle) => self.remove(handle.as_deref()),
            Command::Member {
                profile,
                member,
                call,
            } => self.member(profile, *member, call),
            Command::Group {
                profile,
                group,
                members,
            } => self.group(profile, *group, members),
            Command::ValueSetAdd { set, keys } => {
                let set = self.state().value_set_mut(set)?;
                let infos = set.keys().iter();
                let member: Vec<_> = infos
                    .zip(keys)
                    .map(|(key, text)| text.for_key(key))
                    .collect();
                Ok(set.insert(&member)?)
            }
            Command::RegisterWrite { name, index, value } => {
                let register = self.state().register_mut(name)?;
                Ok(register.write(*index, &Value::Bits(value.clone()))?)
            }
            Command::RegisterRead { name, index, value } => {
                self.read_register(name, *index, value.as_ref())
            }
            Command::RegisterReset(name) => {
                let register = self.state().register_mut(name)?;
                let zero = zero(register.shape());
                Ok(register.fill(&zero)?)
            }
            Command::CheckCounter {
                name,
                element,
                check,
            } => self.check_counter(name, element, *check),
            Command::CounterRead { name, element } => self.count(name, element).map(|_| ()),
            Command::CounterWrite {
                name,
                index,
                packets,
                bytes,
            } => {
                let count = Count {
                    packets: *packets,
                    bytes: *bytes,
                };
                self.set_count(name, *index, count)
            }
            Command::MeterWrite {
                name,
                element,
                config,
            } => self.set_meter(name, element.as_ref(), *config),
            Command::MeterRead { name, element } => self.meter(name, element).map(|_| ()),
            &Command::Crc {
                width,
                numbers: [polynomial, initial, final_xor],
                reflected: [reflect_data, reflect_remainder],
            } => {
                let parameters = CrcParameters {
                    polynomial,
                    initial,
                    final_xor,
                    reflect_data,
                    reflect_remainder,
                };
                let custom = &mut self.state().custom_crc;
                match width {
                    16 => custom.crc16 = Some(parameters),
                    _ => custom.crc32 = Some(parameters),
                }
                Ok(())
            }
            Command::ExpectDigest { name, numbers } => self.expect_digest(name, numbers),
            Command::ExpectLog(wanted) => {
                let actual = self.state().log.poll().unwrap_or_default();
                equal("the next message of the log", &actual, wanted)
            }
            Command::CheckDropped {
                reason,
                comparison,
                number,
            } => {
                let known = DropReason::ALL.iter().find(|known| known.name() == reason);
                let Some(known) = known else {
                    let names: Vec<_> = DropReason::ALL.iter().map(|known| known.name()).collect();
                    let (name, known) = (reason.clone(), names.join(", "));
                    return Err(Cause::UnknownReason { name, known });
                };
                let actual = self.switch.counters().dropped(*known);
                compare(
                    format!("packets dropped for {reason}"),
                    actual,
                    *comparison,
                    *number,
                )
            }
            &Command::Mirroring { session, config } => {
                Ok(self.switch.set_mirror_session(session, config)?)
            }
            &Command::MirroringDelete(session) => {
                self.switch.remove_mirror_session(session)?;
                Ok(())
            }
            &Command::MirroringGet(session) => match self.switch.mirror_session(session) {
                Some(_) => Ok(()),
                None => Err(stateplane_switch::SwitchError::UnknownMirrorSession(session).into()),
            },
            &Command::GroupCreate(group) => self.groups.create(group, &mut self.switch),
            Command::NodeCreate { rid, ports } => {
                self.groups.add_node(*rid, ports);
                Ok(())
            }
            Command::NodeUpdate { node, ports } => {
                self.groups.update(*node, ports, &mut self.switch)
            }
            &Command::NodeAssociate { group, node } => {
                self.groups.associate(group, node, &mut self.switch)
            }
            Command::Generator {
                port,
                period_us,
                frame,
            } => {
                let (port, period_us, frame) = (*port, *period_us, frame.clone());
                self.switch.add_generator(Generator {
                    port,
                    period_us,
                    batch: 1,
                    index_at: None,
                    spread: false,
                    frame,
                })?;
                self.switch.handle_timeout(self.now);
                self.settle(line.number)
            }
            Command::Advance(time) => self.advance(*time, line.number),
            Command::Wait => self.advance(WAIT_US, line.number),
        }
    }

    fn state(&mut self) -> &mut TargetState {
        self.switch.engine_mut().state_mut()
    }

    /// Lets the switch work until nothing is due, and takes what it sent.
    fn settle(&mut self, by: usize) -> Result<(), Cause> {
        for _ in 0..PATIENCE {
            while let Some(transmit) = self.switch.poll_transmit() {
                self.sent += 1;
                let account = self.ports.entry(transmit.port).or_default();
                let frame = transmit.frame;
                account.sent.push_back(Sent { frame, by });
                self.compare(transmit.port);
            }
            if self.switch.poll_timeout().is_none_or(|due| due > self.now) {
                return Ok(());
            }
            self.switch.handle_timeout(self.now);
        }
        Err(Cause::Restless(PATIENCE))
    }

    fn advance(&mut self, time: u64, by: usize) -> Result<(), Cause> {
        let end = self.now.saturating_add(time);
        while let Some(due) = self.switch.poll_timeout().filter(|due| *due <= end) {
            let before = self.sent;
            self.now = self.now.max(due);
            self.switch.handle_timeout(self.now);
            self.settle(by)?;
            self.due += 1 + self.sent - before;
            if self.due > MOST_DUE {
                return Err(Cause::TooMuchDue(MOST_DUE));
            }
        }
        self.now = end;
        self.switch.handle_timeout(end);
        self.settle(by)
    }

    /// Compares what a port sent with what it was to send, as far as there is both.
    fn compare(&mut self, port: Port) {
        let account = self.ports.entry(port).or_default();
        while !account.sent.is_empty() && !account.wanted.is_empty() {
            let pair = (account.sent.pop_front(), account.wanted.pop_front());
            let (Some(Sent { frame, by }), Some(Wanted { pattern, line })) = pair else {
                return;
            };
            let Some(pattern) = pattern else { continue };
            if let Some(marks) = pattern.mismatch(&frame) {
                let cause = Cause::Different {
                    port,
                    by,
                    expected: pattern.to_string(),
                    sent: show(&frame),
                    marks,
                };
                self.failures.push((line, cause));
            }
        }
    }

    fn expect_none(&self, port: Option<Port>) -> Result<(), Cause> {
        let is_meant = |number: Port| port.is_none_or(|port| port == number);
        let first = self
            .ports
            .iter()
            .find_map(|(port, account)| Some((*port, account.sent.front()?)))
            .filter(|(port, _)| is_meant(*port));
        match first {
            None => Ok(()),
            Some((port, Sent { frame, .. })) => Err(Cause::Unexpected {
                port,
                sent: show(frame),
            }),
        }
    }

    /// Reports missing and excess frames when the script has ended.
    fn finish(&mut self) {
        let others: Vec<Port> = self
            .ports
            .iter()
            .filter(|(_, account)| !account.sent.is_empty())
            .map(|(port, _)| *port)
            .collect();
        for (port, account) in &mut self.ports {
            for wanted in account.wanted.drain(..) {
                let (port, sent) = (*port, others.clone());
                self.failures
                    .push((wanted.line, Cause::Missing { port, sent }));
            }
        }
        for (port, account) in &mut self.ports {
            for Sent { frame, by } in account.sent.drain(..) {
                let (port, sent) = (*port, show(&frame));
                self.failures.push((by, Cause::Unexpected { port, sent }));
            }
        }
        self.failures.truncate(MAX_FAILURES);
    }

    fn read_register(
        &mut self,
        name: &str,
        index: u64,
        wanted: Option<&BigUint>,
    ) -> Result<(), Cause> {
        let actual = self.state().register(name)?.read(index)?;
        match wanted.map(|wanted| Value::Bits(wanted.clone())) {
            Some(wanted) => equal(
                &format!("register {name}[{index}]"),
                &show_value(&actual),
                &show_value(&wanted),
            ),
            None => Ok(()),
        }
    }

    fn expect_digest(&mut self, name: &str, wanted: &[BigUint]) -> Result<(), Cause> {
        let actual = match self.state().digests.poll() {
            Some(digest) => format!("{} {}", digest.name, show_value(&digest.data)),
            None => "none".to_owned(),
        };
        let wanted = match wanted {
            [single] => Value::Bits(single.clone()),
            all => Value::Struct(all.iter().cloned().map(Value::Bits).collect()),
        };
        equal(
            "the next digest",
            &actual,
            &format!("{name} {}", show_value(&wanted)),
        )
    }
}

/// Succeeds if the two texts, of what a script asks for, are the same.
fn equal(what: &str, actual: &str, wanted: &str) -> Result<(), Cause> {
    if actual == wanted {
        return Ok(());
    }
    Err(Cause::Value {
        what: what.to_owned(),
        actual: actual.to_owned(),
        comparison: "==",
        wanted: wanted.to_owned(),
    })
}

fn compare(what: String, actual: u64, comparison: Comparison, wanted: u64) -> Result<(), Cause> {
    if comparison.holds(actual, wanted) {
        return Ok(());
    }
    Err(Cause::Value {
        what,
        actual: actual.to_string(),
        comparison: comparison.sign(),
        wanted: wanted.to_string(),
    })
}

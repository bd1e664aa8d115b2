//! Runs scripts.

#[cfg(test)]
mod tests;

use crate::pattern::show;
use crate::{Call, Cause, Command, CounterUnit, Line, Pattern, Script, StfError};
use num_bigint::BigUint;
use stateplane_switch::{
    DropReason, Generator, MirrorSession, Port, Replica, Switch, SwitchConfig,
};
use stateplane_target::{
    DROP_PORT, Engine, Entry, KeyInfo, KeyMatch, Shape, Table, TargetState, Value,
};
use std::collections::VecDeque;

/// The time in µs at which a script begins.
pub const START_US: u64 = 1_000_000;

/// Calls of the switch at one time before a program counts as restless. Each call
/// does thousands of passes.
const PATIENCE: u32 = 100;

/// Runs `script` on a switch with all ports from 0 to 510 around `engine`, and gives
/// the switch back.
///
/// # Errors
///
/// The first line whose command is refused, or whose expectation is not met; and a
/// frame that nobody expected, at the line that caused it.
pub fn run<E: Engine>(script: &Script, engine: E) -> Result<Switch<E>, StfError> {
    let config = SwitchConfig {
        ports: (0..DROP_PORT).collect(),
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
        sent: VecDeque::new(),
        nodes: Vec::new(),
    };
    for line in &script.lines {
        run.execute(line)
            .map_err(|cause| error(line.number, cause))?;
    }
    match run.sent.pop_front() {
        None => Ok(run.switch),
        Some(Sent { port, frame, by }) => Err(error(
            by,
            Cause::Unexpected {
                port,
                sent: show(&frame),
            },
        )),
    }
}

/// A frame that was sent and not expected yet.
struct Sent {
    port: Port,
    frame: Vec<u8>,
    /// The line that caused it.
    by: usize,
}

struct Run<E: Engine> {
    switch: Switch<E>,
    now: u64,
    sent: VecDeque<Sent>,
    /// Multicast nodes: `egress_rid` and ports.
    nodes: Vec<(u16, Vec<Port>)>,
}

impl<E: Engine> Run<E> {
    fn execute(&mut self, line: &Line) -> Result<(), Cause> {
        match &line.command {
            Command::Packet { port, frame } => {
                self.switch.handle_frame(self.now, *port, frame);
                self.settle(line.number)
            }
            Command::Expect { port, pattern } => self.expect(*port, pattern.as_ref()),
            Command::ExpectNone(port) => self.expect_none(*port),
            Command::Ignore(port) => {
                self.sent
                    .retain(|sent| port.is_some_and(|port| sent.port != port));
                Ok(())
            }
            Command::Add {
                table,
                priority,
                keys,
                call,
            } => {
                let table = self.state().table_mut(table)?;
                let priority = priority.unwrap_or(u32::from(table.has_priority()));
                let entry = Entry {
                    keys: in_order_of_table(keys, table)?,
                    priority,
                    action: call.action.clone(),
                    data: data(call, table)?,
                };
                Ok(table.insert(&entry)?)
            }
            Command::SetDefault { table, call } => {
                let table = self.state().table_mut(table)?;
                let data = data(call, table)?;
                Ok(table.set_default(&call.action, &data)?)
            }
            Command::RemoveAll => self.remove_all(),
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
                index,
                unit,
                comparison,
                number,
            } => {
                let count = self.state().counter(name)?.read(*index)?;
                let (actual, unit) = match unit {
                    CounterUnit::Packets => (count.packets, "packets"),
                    CounterUnit::Bytes => (count.bytes, "bytes"),
                };
                let what = format!("counter {name}({index}) {unit}");
                compare(what, actual, *comparison, *number)
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
            &Command::Mirroring {
                session,
                port,
                truncate,
                hold_us,
            } => {
                let config = MirrorSession {
                    egress_port: port,
                    truncate,
                    hold_us,
                };
                Ok(self.switch.set_mirror_session(session, config)?)
            }
            &Command::GroupCreate(group) => Ok(self.switch.set_multicast_group(group, vec![])?),
            Command::NodeCreate { rid, ports } => {
                self.nodes.push((*rid, ports.clone()));
                Ok(())
            }
            &Command::NodeAssociate { group, node } => self.associate(group, node),
            Command::Generator {
                port,
                period_us,
                frame,
            } => {
                let (port, period_us, frame) = (*port, *period_us, frame.clone());
                self.switch.add_generator(Generator {
                    port,
                    period_us,
                    frame,
                })?;
                self.switch.handle_timeout(self.now);
                self.settle(line.number)
            }
            Command::Advance(time) => self.advance(*time, line.number),
            Command::Wait => Ok(()),
        }
    }

    fn state(&mut self) -> &mut TargetState {
        self.switch.engine_mut().state_mut()
    }

    /// Lets the switch work until nothing is due, and takes what it sent.
    fn settle(&mut self, by: usize) -> Result<(), Cause> {
        for _ in 0..PATIENCE {
            while let Some(transmit) = self.switch.poll_transmit() {
                self.sent.push_back(Sent {
                    port: transmit.port,
                    frame: transmit.frame,
                    by,
                });
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
            self.now = self.now.max(due);
            self.switch.handle_timeout(self.now);
            self.settle(by)?;
        }
        self.now = end;
        self.switch.handle_timeout(end);
        self.settle(by)
    }

    fn expect(&mut self, port: Port, pattern: Option<&Pattern>) -> Result<(), Cause> {
        let Some(at) = self.sent.iter().position(|sent| sent.port == port) else {
            let mut sent: Vec<Port> = self.sent.iter().map(|sent| sent.port).collect();
            sent.sort_unstable();
            sent.dedup();
            return Err(Cause::Missing { port, sent });
        };
        let Some(Sent { frame, by, .. }) = self.sent.remove(at) else {
            return Ok(());
        };
        match pattern.and_then(|pattern| Some((pattern, pattern.mismatch(&frame)?))) {
            None => Ok(()),
            Some((pattern, marks)) => {
                let (expected, sent) = (pattern.to_string(), show(&frame));
                Err(Cause::Different {
                    port,
                    by,
                    expected,
                    sent,
                    marks,
                })
            }
        }
    }

    fn expect_none(&self, port: Option<Port>) -> Result<(), Cause> {
        let is_meant = |sent: &&Sent| port.is_none_or(|port| sent.port == port);
        match self.sent.iter().find(is_meant) {
            None => Ok(()),
            Some(Sent { port, frame, .. }) => Err(Cause::Unexpected {
                port: *port,
                sent: show(frame),
            }),
        }
    }

    fn remove_all(&mut self) -> Result<(), Cause> {
        let names: Vec<String> = self
            .state()
            .tables()
            .iter()
            .map(|table| table.name().to_owned())
            .collect();
        for name in names {
            let table = self.state().table_mut(&name)?;
            // Tables that only the program fills are left as they are.
            let _ = table.clear();
        }
        Ok(())
    }

    fn read_register(
        &mut self,
        name: &str,
        index: u64,
        wanted: Option<&BigUint>,
    ) -> Result<(), Cause> {
        let actual = self.state().register(name)?.read(index)?;
        match wanted.map(|wanted| Value::Bits(wanted.clone())) {
            Some(wanted) if wanted != actual => Err(Cause::Value {
                what: format!("register {name}[{index}]"),
                actual: show_value(&actual),
                comparison: "==",
                wanted: show_value(&wanted),
            }),
            _ => Ok(()),
        }
    }

    fn associate(&mut self, group: u16, node: usize) -> Result<(), Cause> {
        let (rid, ports) = self.nodes.get(node).ok_or(Cause::UnknownNode(node))?;
        let mut replicas = match self.switch.multicast_group(group) {
            Some(replicas) => replicas.to_vec(),
            None => return Err(stateplane_switch::SwitchError::UnknownMulticastGroup(group).into()),
        };
        replicas.extend(ports.iter().map(|&port| Replica { port, rid: *rid }));
        Ok(self.switch.set_multicast_group(group, replicas)?)
    }
}

fn compare(
    what: String,
    actual: u64,
    comparison: crate::Comparison,
    wanted: u64,
) -> Result<(), Cause> {
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

/// The keys of an entry in the table's order. Keys that are not named match any
/// value, as far as their kind can.
fn in_order_of_table(named: &[(String, KeyMatch)], table: &Table) -> Result<Vec<KeyMatch>, Cause> {
    let mut keys = vec![KeyMatch::Any; table.keys().len()];
    for (name, matched) in named {
        let at = position(table.keys().iter().map(|key| key.name.as_str()), name);
        let at = at.ok_or_else(|| Cause::UnknownName {
            kind: "key",
            name: name.clone(),
            of: format!("table `{}`", table.name()),
            names: list(table.keys().iter().map(|key: &KeyInfo| key.name.as_str())),
        })?;
        keys[at] = matched.clone();
    }
    Ok(keys)
}

/// The action data of a call, in the action's order. Of an action that the table does
/// not have, the data as given: the table tells what is wrong.
fn data(call: &Call, table: &Table) -> Result<Vec<BigUint>, Cause> {
    let names = table.actions().iter().map(|action| action.name.as_str());
    let action = position(names, &call.action).map(|at| &table.actions()[at]);
    let Some(action) = action.filter(|_| call.data.iter().any(|(name, _)| name.is_some())) else {
        return Ok(call.data.iter().map(|(_, value)| value.clone()).collect());
    };
    let mut data = vec![None; action.data.len()];
    for (at, (name, value)) in call.data.iter().enumerate() {
        let parameters = action.data.iter().map(|(name, _)| name.as_str());
        let place = match name {
            Some(name) => position(parameters.clone(), name),
            None => (at < data.len()).then_some(at),
        };
        let place = place.ok_or_else(|| Cause::UnknownName {
            kind: "parameter",
            name: name.clone().unwrap_or_else(|| value.to_string()),
            of: format!("action `{}`", action.name),
            names: list(parameters),
        })?;
        data[place] = Some(value.clone());
    }
    let given = data.into_iter().zip(&action.data);
    given
        .map(|(value, (name, _))| {
            value.ok_or_else(|| Cause::MissingParameter {
                action: action.name.clone(),
                name: name.clone(),
            })
        })
        .collect()
}

/// Position of the name that is `wanted`, or else of the first that ends so from a
/// dot on.
fn position<'a>(names: impl Iterator<Item = &'a str> + Clone, wanted: &str) -> Option<usize> {
    names.clone().position(|name| name == wanted).or_else(|| {
        let ends_so = |name: &str| {
            name.strip_suffix(wanted)
                .is_some_and(|front| !wanted.is_empty() && front.ends_with('.'))
        };
        names.clone().position(ends_so)
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() {
        "none".to_owned()
    } else {
        quoted.join(", ")
    }
}

fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Bits(_) => Value::from(0),
        Shape::Struct(members) => {
            Value::Struct(members.iter().map(|(_, shape)| zero(shape)).collect())
        }
    }
}

fn show_value(value: &Value) -> String {
    match value {
        Value::Bits(value) => format!("{value:#x}"),
        Value::Struct(members) => {
            let members: Vec<String> = members.iter().map(show_value).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

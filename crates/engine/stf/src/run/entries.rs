//! Commands about entries of tables, and the counters and meters of entries.

use super::{Run, compare};
use crate::{Call, Cause, Comparison, CounterUnit, Element, Matching, Runs};
use num_bigint::BigUint;
use stateplane_runtime::{
    ActionInfo, Count, Engine, Entry, Group, Invocation, KeyInfo, KeyMatch, MeterConfig, Shape,
    Table, Value,
};

/// An entry: its table by full name, its keys and priority.
#[derive(Clone)]
pub(super) struct Handle {
    table: String,
    keys: Vec<KeyMatch>,
    priority: u32,
}

impl<E: Engine> Run<E> {
    pub(super) fn add(
        &mut self,
        table: &str,
        priority: Option<u32>,
        keys: &[(String, Matching)],
        runs: &Runs,
        handle: Option<&str>,
    ) -> Result<(), Cause> {
        let state = self.switch.engine_mut().state_mut();
        let found = state.table_mut(table)?;
        let priority = if found.has_priority() {
            // Scripts count from 0.
            priority.map_or(1, |priority| priority.saturating_add(1))
        } else {
            // As p4c's runner, which gives it to no other table.
            0
        };
        let name = found.name().to_owned();
        let keys = in_order_of_table(keys, found)?;
        match runs {
            Runs::Call(call) => found.insert(&Entry {
                keys: keys.clone(),
                priority,
                action: call.action.clone(),
                data: data(call, found.actions())?,
            })?,
            Runs::Member(member) => {
                let runs = stateplane_runtime::Runs::Member(*member);
                state.insert_indirect(&name, &keys, priority, &runs)?;
            }
            Runs::Group(group) => {
                let runs = stateplane_runtime::Runs::Group(*group);
                state.insert_indirect(&name, &keys, priority, &runs)?;
            }
        }
        if let Some(handle) = handle {
            let table = name;
            let entry = Handle {
                table,
                keys,
                priority,
            };
            self.handles.insert(handle.to_owned(), entry);
        }
        Ok(())
    }

    pub(super) fn set_default(&mut self, table: &str, call: &Call) -> Result<(), Cause> {
        let table = self.state().table_mut(table)?;
        let data = data(call, table.actions())?;
        Ok(table.set_default(&call.action, &data)?)
    }

    pub(super) fn member(&mut self, profile: &str, member: u32, call: &Call) -> Result<(), Cause> {
        let state = self.state();
        let invocation = Invocation {
            action: call.action.clone(),
            data: data(call, state.profile(profile)?.actions())?,
        };
        Ok(state.insert_member(profile, member, &invocation)?)
    }

    pub(super) fn group(
        &mut self,
        profile: &str,
        group: u32,
        members: &[(u32, u32)],
    ) -> Result<(), Cause> {
        let members = Group {
            members: members.to_vec(),
        };
        let state = self.state();
        let known = state.profile(profile)?.groups().contains_key(&group);
        if known {
            Ok(state.modify_group(profile, group, &members)?)
        } else {
            Ok(state.insert_group(profile, group, &members)?)
        }
    }

    /// Removes the entry of a handle, or all entries but those of tables that only the
    /// program fills.
    pub(super) fn remove(&mut self, handle: Option<&str>) -> Result<(), Cause> {
        if let Some(handle) = handle {
            let entry = self.handle(handle)?;
            let table = self.state().table_mut(&entry.table)?;
            return Ok(table.delete(&entry.keys, entry.priority)?);
        }
        let tables = self.state().tables().iter();
        let names: Vec<String> = tables.map(|table| table.name().to_owned()).collect();
        for name in names {
            let _ = self.state().table_mut(&name)?.clear();
        }
        Ok(())
    }

    fn handle(&self, name: &str) -> Result<Handle, Cause> {
        self.handles
            .get(name)
            .cloned()
            .ok_or_else(|| Cause::UnknownHandle(name.to_owned()))
    }

    /// The entry of a direct counter's or meter's element; `table` is its table.
    fn entry_of(&mut self, table: &str, element: &Element) -> Result<Handle, Cause> {
        let number = match element {
            Element::Entry(handle) => return self.handle(handle),
            Element::Number(number) => *number,
        };
        let table = self.state().table(table)?;
        let position = usize::try_from(number).unwrap_or(usize::MAX);
        match table.entries().into_iter().nth(position) {
            Some(listed) => Ok(Handle {
                table: table.name().to_owned(),
                keys: listed.entry.keys,
                priority: listed.entry.priority,
            }),
            None => Err(Cause::UnknownHandle(number.to_string())),
        }
    }

    pub(super) fn count(&mut self, name: &str, element: &Element) -> Result<Count, Cause> {
        let counter = self.state().counter(name)?;
        match (counter.table().map(str::to_owned), element) {
            (None, Element::Number(index)) => Ok(counter.read(*index)?),
            (None, Element::Entry(handle)) => Err(Cause::Number {
                text: handle.clone(),
                what: "element",
            }),
            (Some(table), element) => {
                let entry = self.entry_of(&table, element)?;
                let table = self.state().table(&entry.table)?;
                Ok(table.get(&entry.keys, entry.priority)?.count)
            }
        }
    }

    pub(super) fn set_count(&mut self, name: &str, index: u64, count: Count) -> Result<(), Cause> {
        let counter = self.state().counter_mut(name)?;
        let Some(table) = counter.table().map(str::to_owned) else {
            return Ok(counter.write(index, count)?);
        };
        let entry = self.entry_of(&table, &Element::Number(index))?;
        let table = self.state().table_mut(&entry.table)?;
        Ok(table.set_count(&entry.keys, entry.priority, count)?)
    }

    pub(super) fn check_counter(
        &mut self,
        name: &str,
        element: &Element,
        check: Option<(CounterUnit, Comparison, u64)>,
    ) -> Result<(), Cause> {
        let count = self.count(name, element)?;
        let Some((unit, comparison, number)) = check else {
            return Ok(());
        };
        let (actual, unit) = match unit {
            CounterUnit::Packets => (count.packets, "packets"),
            CounterUnit::Bytes => (count.bytes, "bytes"),
        };
        let element = match element {
            Element::Number(number) => number.to_string(),
            Element::Entry(handle) => handle.clone(),
        };
        let what = format!("counter {name}({element}) {unit}");
        compare(what, actual, comparison, number)
    }

    pub(super) fn meter(
        &mut self,
        name: &str,
        element: &Element,
    ) -> Result<Option<MeterConfig>, Cause> {
        let meter = self.state().meter(name)?;
        match (meter.table().map(str::to_owned), element) {
            (None, Element::Number(index)) => Ok(meter.read(*index)?),
            (None, Element::Entry(handle)) => Err(Cause::Number {
                text: handle.clone(),
                what: "element",
            }),
            (Some(table), element) => {
                let entry = self.entry_of(&table, element)?;
                let table = self.state().table(&entry.table)?;
                Ok(table.meter(&entry.keys, entry.priority)?)
            }
        }
    }

    /// Configures an element of a meter, or all.
    pub(super) fn set_meter(
        &mut self,
        name: &str,
        element: Option<&Element>,
        config: MeterConfig,
    ) -> Result<(), Cause> {
        let now = self.now;
        let meter = self.state().meter_mut(name)?;
        let Some(table) = meter.table().map(str::to_owned) else {
            let indices = match element {
                None => 0..meter.size(),
                Some(Element::Number(index)) => *index..*index + 1,
                Some(Element::Entry(handle)) => {
                    return Err(Cause::Number {
                        text: handle.clone(),
                        what: "element",
                    });
                }
            };
            for index in indices {
                meter.write(index, Some(config), now)?;
            }
            return Ok(());
        };
        let elements: Vec<Element> = match element {
            Some(element) => vec![element.clone()],
            None => {
                let count = self.state().table(&table)?.len();
                (0..count).map(Element::Number).collect()
            }
        };
        for element in elements {
            let entry = self.entry_of(&table, &element)?;
            let table = self.state().table_mut(&entry.table)?;
            table.set_meter(&entry.keys, entry.priority, Some(config), now)?;
        }
        Ok(())
    }
}

/// The keys of an entry in the table's order. Keys that are not named match any value, as
/// far as their kind can, else 0.
fn in_order_of_table(named: &[(String, Matching)], table: &Table) -> Result<Vec<KeyMatch>, Cause> {
    let mut keys: Vec<KeyMatch> = table.keys().iter().map(Matching::unnamed).collect();
    for (name, matched) in named {
        let at = key_position(table, name);
        let at = at.ok_or_else(|| Cause::UnknownName {
            kind: "key",
            name: name.clone(),
            of: format!("table `{}`", table.name()),
            names: list(table.keys().iter().map(|key: &KeyInfo| key.name.as_str())),
        })?;
        keys[at] = matched.for_key(&table.keys()[at]);
    }
    Ok(keys)
}

/// The action data of a call, in the action's order. Of an action that the table does
/// not have, the data as given: the table tells what is wrong.
fn data(call: &Call, actions: &[ActionInfo]) -> Result<Vec<BigUint>, Cause> {
    let names = actions.iter().map(|action| action.name.as_str());
    let action = position(names, &call.action).map(|at| &actions[at]);
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

/// Position of the key that a script names: its name or the end of it from a dot on.
/// `stack$0` is `stack[0]`, and `header.valid` is `header.isValid()`.
fn key_position(table: &Table, wanted: &str) -> Option<usize> {
    let names = table.keys().iter().map(|key| key.name.as_str());
    let mut wanted = indexed(wanted);
    if let Some(at) = position(names.clone(), &wanted) {
        return Some(at);
    }
    if wanted == "valid" || wanted.ends_with(".valid") {
        wanted.truncate(wanted.len() - "valid".len());
        wanted.push_str("$valid$");
    } else {
        wanted.push_str(".$valid$");
    }
    position(names, &wanted)
}

/// `name$3.rest` as `name[3].rest`.
fn indexed(name: &str) -> String {
    let mut parts = name.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (index, rest) = part.split_at(digits);
        if index.is_empty() {
            text.push('$');
        } else {
            text.push_str(&format!("[{index}]"));
        }
        text.push_str(rest);
    }
    text
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

pub(super) fn zero(shape: &Shape) -> Value {
    match shape {
        Shape::Bits(_) => Value::from(0),
        Shape::Struct(members) => {
            Value::Struct(members.iter().map(|(_, shape)| zero(shape)).collect())
        }
    }
}

pub(super) fn show_value(value: &Value) -> String {
    match value {
        Value::Bits(value) => format!("{value:#x}"),
        Value::Struct(members) => {
            let members: Vec<String> = members.iter().map(show_value).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

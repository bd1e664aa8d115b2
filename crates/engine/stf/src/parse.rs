//! Reads scripts.

#[cfg(test)]
mod tests;

use crate::pattern::parse_frame;
use crate::{
    Call, Cause, Command, Comparison, CounterUnit, Element, Line, Matching, Pattern, Runs, Script,
    StfError,
};
use num_bigint::BigUint;
use stateplane_runtime::{DROP_PORT, parse_value};
use stateplane_switch::{MirrorSession, Port};
use std::str::FromStr;

const COMMANDS: [&str; 38] = [
    "add",
    "add_indirect",
    "advance",
    "check_counter",
    "check_dropped",
    "counter_read",
    "counter_write",
    "expect",
    "expect_digest",
    "expect_log",
    "expect_none",
    "generator",
    "group",
    "ignore",
    "include",
    "mc_mgrp_create",
    "mc_node_associate",
    "mc_node_create",
    "mc_node_update",
    "member",
    "meter_array_set_rates",
    "meter_get_rates",
    "meter_set_rates",
    "mirroring_add",
    "mirroring_add_mc",
    "mirroring_delete",
    "mirroring_get",
    "no_packet",
    "packet",
    "register_read",
    "register_reset",
    "register_write",
    "remove",
    "set_crc16_parameters",
    "set_crc32_parameters",
    "setdefault",
    "value_set_add",
    "wait",
];

/// Reads the script `text`, which includes no other; `name` is for messages.
///
/// # Errors
///
/// The first line that is no command.
pub fn parse(name: &str, text: &str) -> Result<Script, StfError> {
    parse_with(name, text, &|_| None)
}

/// Reads the script `text`; `name` is for messages. `included` gives the text of a script
/// that an `include` names, if there is one.
///
/// # Errors
///
/// The first line that is no command, or includes what is not there.
pub fn parse_with(
    name: &str,
    text: &str,
    included: &dyn Fn(&str) -> Option<String>,
) -> Result<Script, StfError> {
    let mut script = Script {
        name: name.to_owned(),
        ..Script::default()
    };
    for (number, line) in joined_lines(text, &mut script) {
        let wrong = |cause| StfError {
            script: name.to_owned(),
            line: number,
            cause: Box::new(cause),
        };
        match line.strip_prefix("include ") {
            None => {
                let command = command(&line).map_err(wrong)?;
                script.lines.push(Line { number, command });
            }
            Some(rest) => {
                let (path, values) = include(rest).map_err(wrong)?;
                let found = included(path).ok_or_else(|| wrong(Cause::NoInclude(path.into())))?;
                let found = parse(path, &filled(&found, &values))?;
                script.defines.extend(found.defines);
                let lines = found.lines.into_iter();
                script
                    .lines
                    .extend(lines.map(|line| Line { number, ..line }));
            }
        }
    }
    Ok(script)
}

/// Lines without comments, trimmed, those that `\\` continues joined, empty ones left out,
/// each with the number of its first. What comments say of the test goes to `script`.
fn joined_lines(text: &str, script: &mut Script) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (at, line) in text.lines().enumerate() {
        let (command, comment) = match line.split_once('#') {
            Some((command, comment)) => (command, Some(comment)),
            None => (line, None),
        };
        if let Some(comment) = comment {
            directive(comment, script);
        }
        if !continued {
            lines.push((at + 1, String::new()));
        }
        let command = command.trim();
        let part = command.strip_suffix('\\');
        continued = part.is_some();
        if let Some((_, whole)) = lines.last_mut() {
            whole.push_str(part.unwrap_or(command));
            whole.push_str(if continued { " " } else { "" });
        }
    }
    for (_, line) in &mut lines {
        line.truncate(line.trim_end().len());
    }
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

/// Values by their names.
type Values<'a> = Vec<(&'a str, &'a str)>;

/// The path of an `include`, and the values that it gives.
fn include(rest: &str) -> Result<(&str, Values<'_>), Cause> {
    const USAGE: Cause = Cause::Usage("include \"FILE\" [NAME=VALUE …]");
    let quoted = rest.trim().strip_prefix('"').ok_or(USAGE)?;
    let (path, values) = quoted.split_once('"').ok_or(USAGE)?;
    let values = values.split_whitespace();
    let values: Option<_> = values.map(|value| value.split_once('=')).collect();
    Ok((path, values.ok_or(USAGE)?))
}

/// A text with values in place of `$NAME`.
fn filled(text: &str, values: &[(&str, &str)]) -> String {
    let mut text = text.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("${name}"), value);
    }
    text
}

fn directive(comment: &str, script: &mut Script) {
    let Some((key, value)) = comment.trim().split_once(':') else {
        return;
    };
    let value = value.trim();
    match key.trim() {
        "program" => script.program = Some(value.to_owned()),
        "define" => {
            let (name, value) = value.split_once('=').unwrap_or((value, "1"));
            script
                .defines
                .push((name.trim().to_owned(), value.trim().to_owned()));
        }
        "shortest" => script.shortest_frame = value.parse().unwrap_or(0),
        _ => {}
    }
}

#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn command(text: &str) -> Result<Command, Cause> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let words: Vec<&str> = rest.split_whitespace().collect();
    match word {
        "packet" => {
            let (port, data) = port_and_rest(rest, "packet PORT HEX")?;
            Ok(Command::Packet {
                port,
                frame: parse_frame(data)?,
            })
        }
        "expect" => {
            let (port, data) = port_and_rest(rest, "expect PORT [PATTERN]")?;
            let pattern = if data.is_empty() {
                None
            } else {
                Some(Pattern::parse(data)?)
            };
            Ok(Command::Expect { port, pattern })
        }
        "expect_none" => Ok(Command::ExpectNone(optional_port(
            &words,
            "expect_none [PORT]",
        )?)),
        "no_packet" => match words[..] {
            [] => Ok(Command::ExpectNone(None)),
            _ => Err(Cause::Usage("no_packet")),
        },
        "expect_digest" => match words[..] {
            [name, ref numbers @ ..] => Ok(Command::ExpectDigest {
                name: name.to_owned(),
                numbers: numbers
                    .iter()
                    .map(|text| parse_value(text))
                    .collect::<Result<_, _>>()?,
            }),
            [] => Err(Cause::Usage("expect_digest NAME VALUE ...")),
        },
        "expect_log" => Ok(Command::ExpectLog(rest.to_owned())),
        "ignore" => Ok(Command::Ignore(optional_port(&words, "ignore [PORT]")?)),
        "add" => add(rest),
        "add_indirect" => add_indirect(rest),
        "member" => {
            const USAGE: &str = "member PROFILE MEMBER ACTION([NAME:]VALUE, ...)";
            let (before, call, _) = call(rest, USAGE)?;
            match before[..] {
                [profile, member] => Ok(Command::Member {
                    profile: profile.to_owned(),
                    member: number(member, "number of a member")?,
                    call,
                }),
                _ => Err(Cause::Usage(USAGE)),
            }
        }
        "group" => match words[..] {
            [profile, group, ref members @ ..] => Ok(Command::Group {
                profile: profile.to_owned(),
                group: number(group, "number of a group")?,
                members: members
                    .iter()
                    .map(|text| weighted(text))
                    .collect::<Result<_, _>>()?,
            }),
            _ => Err(Cause::Usage("group PROFILE GROUP MEMBER[*WEIGHT] ...")),
        },
        "value_set_add" => match words[..] {
            [set, ref keys @ ..] if !keys.is_empty() => Ok(Command::ValueSetAdd {
                set: set.to_owned(),
                keys: keys
                    .iter()
                    .map(|text| Matching::parse(text))
                    .collect::<Result<_, _>>()?,
            }),
            _ => Err(Cause::Usage("value_set_add SET MATCH ...")),
        },
        "setdefault" => {
            const USAGE: &str = "setdefault TABLE ACTION([NAME:]VALUE, ...)";
            let (before, call, _) = call(rest, USAGE)?;
            match before[..] {
                [table] => Ok(Command::SetDefault {
                    table: table.to_owned(),
                    call,
                }),
                _ => Err(Cause::Usage(USAGE)),
            }
        }
        "remove" => match words[..] {
            ["all"] => Ok(Command::Remove(None)),
            [handle] => Ok(Command::Remove(Some(handle.to_owned()))),
            _ => Err(Cause::Usage("remove all|HANDLE")),
        },
        "register_write" => match words[..] {
            [name, index, value] => Ok(Command::RegisterWrite {
                name: name.to_owned(),
                index: number(index, "element")?,
                value: parse_value(value)?,
            }),
            _ => Err(Cause::Usage("register_write NAME INDEX VALUE")),
        },
        "register_read" => {
            let value = match words[..] {
                [_, _] => None,
                [_, _, "==", value] => Some(parse_value(value)?),
                _ => return Err(Cause::Usage("register_read NAME INDEX [== VALUE]")),
            };
            let (name, index) = (words[0].to_owned(), number(words[1], "element")?);
            Ok(Command::RegisterRead { name, index, value })
        }
        "register_reset" => match words[..] {
            [name] => Ok(Command::RegisterReset(name.to_owned())),
            _ => Err(Cause::Usage("register_reset NAME")),
        },
        "check_counter" => check_counter(rest),
        "counter_read" => match words[..] {
            [name, at] => Ok(Command::CounterRead {
                name: name.to_owned(),
                element: element(at),
            }),
            _ => Err(Cause::Usage("counter_read NAME INDEX")),
        },
        "counter_write" => match words[..] {
            [name, index, packets, bytes] => Ok(Command::CounterWrite {
                name: name.to_owned(),
                index: number(index, "element")?,
                packets: number(packets, "number of packets")?,
                bytes: number(bytes, "number of bytes")?,
            }),
            _ => Err(Cause::Usage("counter_write NAME INDEX PACKETS BYTES")),
        },
        "meter_set_rates" | "meter_array_set_rates" | "meter_get_rates" => {
            crate::meters::command(word, &words)
        }
        "set_crc16_parameters" => crc(16, &words),
        "set_crc32_parameters" => crc(32, &words),
        "check_dropped" => {
            const USAGE: &str = "check_dropped REASON OP NUMBER";
            let (reason, comparison, wanted) = comparison(rest).ok_or(Cause::Usage(USAGE))?;
            Ok(Command::CheckDropped {
                reason: reason.to_owned(),
                comparison,
                number: number(wanted, "number")?,
            })
        }
        "mirroring_add" | "mirroring_add_mc" => mirroring(&words, word == "mirroring_add_mc"),
        "mirroring_delete" | "mirroring_get" => match words[..] {
            [session] => {
                let session = number(session, "mirror session")?;
                Ok(match word {
                    "mirroring_get" => Command::MirroringGet(session),
                    _ => Command::MirroringDelete(session),
                })
            }
            _ => Err(Cause::Usage(
                "mirroring_get SESSION or mirroring_delete SESSION",
            )),
        },
        "mc_mgrp_create" => match words[..] {
            [group] => Ok(Command::GroupCreate(number(group, "multicast group")?)),
            _ => Err(Cause::Usage("mc_mgrp_create GROUP")),
        },
        "mc_node_create" => match words[..] {
            [rid, ref ports @ ..] if !ports.is_empty() => Ok(Command::NodeCreate {
                rid: number(rid, "replication number")?,
                ports: ports
                    .iter()
                    .map(|text| port(text))
                    .collect::<Result<_, _>>()?,
            }),
            _ => Err(Cause::Usage("mc_node_create RID PORT ...")),
        },
        "mc_node_update" => match words[..] {
            [node, ref ports @ ..] => Ok(Command::NodeUpdate {
                node: number(node, "multicast node")?,
                ports: ports
                    .iter()
                    .map(|text| port(text))
                    .collect::<Result<_, _>>()?,
            }),
            _ => Err(Cause::Usage("mc_node_update NODE PORT ...")),
        },
        "mc_node_associate" => match words[..] {
            [group, node] => Ok(Command::NodeAssociate {
                group: number(group, "multicast group")?,
                node: number(node, "multicast node")?,
            }),
            _ => Err(Cause::Usage("mc_node_associate GROUP NODE")),
        },
        "generator" => {
            const USAGE: &str = "generator PORT MICROSECONDS HEX";
            let (port, rest) = port_and_rest(rest, USAGE)?;
            let (period, data) = rest
                .split_once(char::is_whitespace)
                .ok_or(Cause::Usage(USAGE))?;
            let period_us = number(period, "number of microseconds")?;
            Ok(Command::Generator {
                port,
                period_us,
                frame: parse_frame(data)?,
            })
        }
        "advance" => match words[..] {
            [time] => Ok(Command::Advance(number(time, "number of microseconds")?)),
            _ => Err(Cause::Usage("advance MICROSECONDS")),
        },
        "wait" => Ok(Command::Wait),
        _ => Err(Cause::UnknownCommand {
            name: word.to_owned(),
            known: COMMANDS.join(", "),
        }),
    }
}

fn add(text: &str) -> Result<Command, Cause> {
    const USAGE: &str = "add TABLE [PRIORITY] KEY:MATCH ... ACTION([NAME:]VALUE, ...)";
    let (before, call, handle) = call(text, USAGE)?;
    let (table, priority, keys) = entry(&before, USAGE)?;
    Ok(Command::Add {
        table,
        priority,
        keys,
        runs: Runs::Call(call),
        handle,
    })
}

fn add_indirect(text: &str) -> Result<Command, Cause> {
    const USAGE: &str = "add_indirect TABLE [PRIORITY] KEY:MATCH ... member|group NUMBER";
    let (text, handle) = handle(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let [before @ .., kind, id] = &words[..] else {
        return Err(Cause::Usage(USAGE));
    };
    let runs = match *kind {
        "member" => Runs::Member(number(id, "number of a member")?),
        "group" => Runs::Group(number(id, "number of a group")?),
        _ => return Err(Cause::Usage(USAGE)),
    };
    let (table, priority, keys) = entry(before, USAGE)?;
    Ok(Command::Add {
        table,
        priority,
        keys,
        runs,
        handle,
    })
}

/// Table, priority and keys of an entry.
type Entry = (String, Option<u32>, Vec<(String, Matching)>);

fn entry(words: &[&str], usage: &'static str) -> Result<Entry, Cause> {
    let [table, rest @ ..] = words else {
        return Err(Cause::Usage(usage));
    };
    let (priority, matches) = match rest {
        [first, others @ ..] if !first.contains(':') => (Some(number(first, "priority")?), others),
        all => (None, all),
    };
    let mut keys = Vec::new();
    for word in matches {
        let (key, matched) = word.split_once(':').ok_or(Cause::Usage(usage))?;
        keys.push((key.to_owned(), Matching::parse(matched)?));
    }
    Ok((table.to_string(), priority, keys))
}

/// A member and its weight.
fn weighted(text: &str) -> Result<(u32, u32), Cause> {
    let (member, weight) = text.split_once('*').unwrap_or((text, "1"));
    Ok((
        number(member, "number of a member")?,
        number(weight, "weight")?,
    ))
}

/// Text before `= HANDLE`, and the handle.
fn handle(text: &str) -> (&str, Option<String>) {
    match text.rsplit_once('=') {
        Some((before, name)) => (before.trim(), Some(name.trim().to_owned())),
        None => (text, None),
    }
}

/// Words before a call, the call, and the handle after it.
type Calling<'a> = (Vec<&'a str>, Call, Option<String>);

fn call<'a>(text: &'a str, usage: &'static str) -> Result<Calling<'a>, Cause> {
    let (front, rest) = text.split_once('(').ok_or(Cause::Usage(usage))?;
    let (arguments, behind) = rest.split_once(')').ok_or(Cause::Usage(usage))?;
    let (nothing, handle) = handle(behind);
    if !nothing.trim().is_empty() {
        return Err(Cause::Usage(usage));
    }
    let mut words: Vec<&str> = front.split_whitespace().collect();
    let action = words.pop().ok_or(Cause::Usage(usage))?.to_owned();
    let data = arguments
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
        .map(argument)
        .collect::<Result<_, _>>()?;
    Ok((words, Call { action, data }, handle))
}

fn argument(text: &str) -> Result<(Option<String>, BigUint), Cause> {
    // An address has colons too.
    if let Ok(value) = parse_value(text) {
        return Ok((None, value));
    }
    match text.split_once(':') {
        Some((name, value)) => Ok((Some(name.trim().to_owned()), parse_value(value)?)),
        None => Ok((None, parse_value(text)?)),
    }
}

pub(crate) fn element(text: &str) -> Element {
    match text.parse() {
        Ok(number) => Element::Number(number),
        Err(_) => Element::Entry(text.to_owned()),
    }
}

fn check_counter(text: &str) -> Result<Command, Cause> {
    const USAGE: &str = "check_counter NAME(INDEX) [[packets|bytes] OP NUMBER]";
    let (counter, comparison) = match comparison(text) {
        Some((counter, comparison, wanted)) => (counter, Some((comparison, wanted))),
        None => (text, None),
    };
    let (name, rest) = counter.split_once('(').ok_or(Cause::Usage(USAGE))?;
    let (at, unit) = rest.split_once(')').ok_or(Cause::Usage(USAGE))?;
    let unit = match unit.trim() {
        "" | "packets" => CounterUnit::Packets,
        "bytes" => CounterUnit::Bytes,
        _ => return Err(Cause::Usage(USAGE)),
    };
    let check = match comparison {
        Some((comparison, wanted)) => Some((unit, comparison, number(wanted, "number")?)),
        None => None,
    };
    Ok(Command::CheckCounter {
        name: name.trim().to_owned(),
        element: element(at.trim()),
        check,
    })
}

fn crc(width: u32, words: &[&str]) -> Result<Command, Cause> {
    let [polynomial, first, last, bytes, remainder] = words else {
        return Err(Cause::Usage(
            "set_crc16_parameters POLYNOMIAL FIRST XOR REFLECT_BYTES REFLECT_REMAINDER",
        ));
    };
    let value = |text: &str| -> Result<u32, Cause> {
        let value = parse_value(text)?;
        let fits = value.bits() <= u64::from(width);
        let value = u32::try_from(value).ok().filter(|_| fits);
        value.ok_or_else(|| Cause::Number {
            text: text.to_owned(),
            what: "parameter of a CRC of this width",
        })
    };
    let flag = |text: &str| match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Cause::Number {
            text: text.to_owned(),
            what: "truth value; write true or false",
        }),
    };
    Ok(Command::Crc {
        width,
        numbers: [value(polynomial)?, value(first)?, value(last)?],
        reflected: [flag(bytes)?, flag(remainder)?],
    })
}

/// Text before a comparison sign, the comparison, and the text behind it.
fn comparison(text: &str) -> Option<(&str, Comparison, &str)> {
    let at = text.find(['=', '!', '<', '>'])?;
    let (before, rest) = text.split_at(at);
    Comparison::ALL.iter().find_map(|(comparison, sign)| {
        let behind = rest.strip_prefix(sign)?;
        Some((before.trim(), *comparison, behind.trim()))
    })
}

fn mirroring(words: &[&str], to_group: bool) -> Result<Command, Cause> {
    const USAGE: &str = "mirroring_add SESSION PORT [truncate BYTES] [hold MICROSECONDS]";
    let [session, to, options @ ..] = words else {
        return Err(Cause::Usage(USAGE));
    };
    let mut config = MirrorSession::default();
    if to_group {
        config.multicast_group = Some(number(to, "multicast group")?);
    } else {
        config.egress_port = Some(port(to)?);
    }
    for option in options.chunks(2) {
        match option {
            ["truncate", bytes] => config.truncate = Some(number(bytes, "number of bytes")?),
            ["hold", time] => config.hold_us = number(time, "number of microseconds")?,
            _ => return Err(Cause::Usage(USAGE)),
        }
    }
    Ok(Command::Mirroring {
        session: number(session, "mirror session")?,
        config,
    })
}

fn port_and_rest<'a>(text: &'a str, usage: &'static str) -> Result<(Port, &'a str), Cause> {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if first.is_empty() {
        return Err(Cause::Usage(usage));
    }
    Ok((port(first)?, rest.trim()))
}

fn optional_port(words: &[&str], usage: &'static str) -> Result<Option<Port>, Cause> {
    match words {
        [] => Ok(None),
        [text] => Ok(Some(port(text)?)),
        _ => Err(Cause::Usage(usage)),
    }
}

fn port(text: &str) -> Result<Port, Cause> {
    let port = number(text, "port")?;
    if port < DROP_PORT {
        Ok(port)
    } else {
        Err(Cause::Port(port))
    }
}

pub(crate) fn number<T: FromStr>(text: &str, what: &'static str) -> Result<T, Cause> {
    text.parse().map_err(|_| Cause::Number {
        text: text.to_owned(),
        what,
    })
}

//! Reads scripts.

#[cfg(test)]
mod tests;

use crate::pattern::parse_frame;
use crate::{Call, Cause, Command, Comparison, CounterUnit, Line, Pattern, Script, StfError};
use num_bigint::BigUint;
use stateplane_switch::Port;
use stateplane_target::{DROP_PORT, KeyMatch, parse_value};
use std::str::FromStr;

const COMMANDS: [&str; 19] = [
    "add",
    "advance",
    "check_counter",
    "check_dropped",
    "expect",
    "expect_none",
    "generator",
    "ignore",
    "mc_mgrp_create",
    "mc_node_associate",
    "mc_node_create",
    "mirroring_add",
    "packet",
    "register_read",
    "register_reset",
    "register_write",
    "remove",
    "setdefault",
    "wait",
];

/// Reads the script `text`; `name` is for messages.
///
/// # Errors
///
/// The first line that is no command.
pub fn parse(name: &str, text: &str) -> Result<Script, StfError> {
    let mut script = Script {
        name: name.to_owned(),
        ..Script::default()
    };
    // Where a continued line began, and its text so far.
    let mut begun: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let (command, comment) = match line.split_once('#') {
            Some((command, comment)) => (command, Some(comment)),
            None => (line, None),
        };
        if let Some(comment) = comment {
            directive(comment, &mut script);
        }
        let (number, mut whole) = begun.take().unwrap_or((at + 1, String::new()));
        let command = command.trim();
        if let Some(part) = command.strip_suffix('\\') {
            whole.push_str(part);
            whole.push(' ');
            begun = Some((number, whole));
            continue;
        }
        whole.push_str(command);
        push(&mut script, number, &whole)?;
    }
    if let Some((number, whole)) = begun {
        push(&mut script, number, &whole)?;
    }
    Ok(script)
}

fn push(script: &mut Script, number: usize, text: &str) -> Result<(), StfError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    let command = command(text.trim()).map_err(|cause| StfError {
        script: script.name.clone(),
        line: number,
        cause: Box::new(cause),
    })?;
    script.lines.push(Line { number, command });
    Ok(())
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
        _ => {}
    }
}

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
        "ignore" => Ok(Command::Ignore(optional_port(&words, "ignore [PORT]")?)),
        "add" => add(rest),
        "setdefault" => {
            const USAGE: &str = "setdefault TABLE ACTION([NAME:]VALUE, ...)";
            let (before, call) = call(rest, USAGE)?;
            match before[..] {
                [table] => Ok(Command::SetDefault {
                    table: table.to_owned(),
                    call,
                }),
                _ => Err(Cause::Usage(USAGE)),
            }
        }
        "remove" => match words[..] {
            ["all"] => Ok(Command::RemoveAll),
            _ => Err(Cause::Usage("remove all")),
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
        "check_dropped" => {
            const USAGE: &str = "check_dropped REASON OP NUMBER";
            let (reason, comparison, wanted) = comparison(rest).ok_or(Cause::Usage(USAGE))?;
            Ok(Command::CheckDropped {
                reason: reason.to_owned(),
                comparison,
                number: number(wanted, "number")?,
            })
        }
        "mirroring_add" => mirroring(&words),
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
    let (before, call) = call(text, USAGE)?;
    let [table, ref rest @ ..] = before[..] else {
        return Err(Cause::Usage(USAGE));
    };
    let (priority, matches) = match rest {
        [first, others @ ..] if !first.contains(':') => (Some(number(first, "priority")?), others),
        all => (None, all),
    };
    let mut keys = Vec::new();
    for word in matches {
        let (key, matched) = word.split_once(':').ok_or(Cause::Usage(USAGE))?;
        keys.push((key.to_owned(), key_match(matched)?));
    }
    Ok(Command::Add {
        table: table.to_owned(),
        priority,
        keys,
        call,
    })
}

/// Words before a call, and the call; what follows `=` is a handle that nobody uses.
fn call<'a>(text: &'a str, usage: &'static str) -> Result<(Vec<&'a str>, Call), Cause> {
    let (front, rest) = text.split_once('(').ok_or(Cause::Usage(usage))?;
    let (arguments, behind) = rest.split_once(')').ok_or(Cause::Usage(usage))?;
    if !behind.trim().is_empty() && !behind.trim_start().starts_with('=') {
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
    Ok((words, Call { action, data }))
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

fn key_match(text: &str) -> Result<KeyMatch, Cause> {
    if text == "_" {
        Ok(KeyMatch::Any)
    } else if let Some((value, mask)) = text.split_once("&&&") {
        Ok(KeyMatch::Mask {
            value: parse_value(value)?,
            mask: parse_value(mask)?,
        })
    } else if let Some((low, high)) = text.split_once("..") {
        Ok(KeyMatch::Range {
            low: parse_value(low)?,
            high: parse_value(high)?,
        })
    } else if let Some((value, length)) = text.split_once('/') {
        let length = number(length, "prefix length")?;
        Ok(KeyMatch::Prefix {
            value: parse_value(value)?,
            length,
        })
    } else if text.contains('*') {
        wildcards(text)
    } else {
        Ok(KeyMatch::Exact(parse_value(text)?))
    }
}

/// `0x1*` and `0b1*`: digits and stars.
fn wildcards(text: &str) -> Result<KeyMatch, Cause> {
    let wrong = || Cause::Number {
        text: text.to_owned(),
        what: "match; write 0x or 0b and digits",
    };
    let (stars, ones) = if text.starts_with("0x") {
        ("0", "f")
    } else {
        ("0", "1")
    };
    let (prefix, digits) = text.split_at_checked(2).ok_or_else(wrong)?;
    if prefix != "0x" && prefix != "0b" {
        return Err(wrong());
    }
    let mask: String = digits
        .chars()
        .map(|digit| if digit == '*' { "0" } else { ones })
        .collect();
    let value = parse_value(&format!("{prefix}{}", digits.replace('*', stars)))?;
    Ok(KeyMatch::Mask {
        value,
        mask: parse_value(&format!("{prefix}{mask}"))?,
    })
}

fn check_counter(text: &str) -> Result<Command, Cause> {
    const USAGE: &str = "check_counter NAME(INDEX) [packets|bytes] OP NUMBER";
    let (counter, comparison, wanted) = comparison(text).ok_or(Cause::Usage(USAGE))?;
    let (name, rest) = counter.split_once('(').ok_or(Cause::Usage(USAGE))?;
    let (index, unit) = rest.split_once(')').ok_or(Cause::Usage(USAGE))?;
    let unit = match unit.trim() {
        "" | "packets" => CounterUnit::Packets,
        "bytes" => CounterUnit::Bytes,
        _ => return Err(Cause::Usage(USAGE)),
    };
    Ok(Command::CheckCounter {
        name: name.trim().to_owned(),
        index: number(index.trim(), "element")?,
        unit,
        comparison,
        number: number(wanted, "number")?,
    })
}

/// What stands before a sign, the sign, and what stands behind it.
fn comparison(text: &str) -> Option<(&str, Comparison, &str)> {
    let at = text.find(['=', '!', '<', '>'])?;
    let (before, rest) = text.split_at(at);
    Comparison::ALL.iter().find_map(|(comparison, sign)| {
        let behind = rest.strip_prefix(sign)?;
        Some((before.trim(), *comparison, behind.trim()))
    })
}

fn mirroring(words: &[&str]) -> Result<Command, Cause> {
    const USAGE: &str = "mirroring_add SESSION PORT [truncate BYTES] [hold MICROSECONDS]";
    let [session, at, options @ ..] = words else {
        return Err(Cause::Usage(USAGE));
    };
    let (mut truncate, mut hold_us) = (None, 0);
    for option in options.chunks(2) {
        match option {
            ["truncate", bytes] => truncate = Some(number(bytes, "number of bytes")?),
            ["hold", time] => hold_us = number(time, "number of microseconds")?,
            _ => return Err(Cause::Usage(USAGE)),
        }
    }
    let session = number(session, "mirror session")?;
    Ok(Command::Mirroring {
        session,
        port: port(at)?,
        truncate,
        hold_us,
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

fn number<T: FromStr>(text: &str, what: &'static str) -> Result<T, Cause> {
    text.parse().map_err(|_| Cause::Number {
        text: text.to_owned(),
        what,
    })
}

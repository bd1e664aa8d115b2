//! Steps, and what they say.

use crate::datum::{fields, number, text};
use serde_json::{Value, json};
use stateplane_interp::{Block, Datum, Event};
use stateplane_ir::{
    Callee, CloneKind, HashAlgorithm, MatchKind, ParserId, Program, StateId, TableId, Target,
};
use stateplane_runtime::{Color, IngressInput, InstanceType, KeyMatch, Listed, SwitchEvent};

/// One step of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Nesting depth: a packet's pass through ingress or egress is 0.
    pub depth: usize,
    /// Kind of the step, in one or two words: `state`, `table`, `register read`.
    pub what: &'static str,
    /// The rest of its line.
    pub text: String,
    /// Further lines.
    pub more: Vec<String>,
    /// An assignment or a condition, of which there are many.
    pub fine: bool,
    /// The same as an object.
    pub data: Value,
}

/// A step of depth 0.
fn step(what: &'static str, text: impl Into<String>, data: Value) -> Step {
    Step {
        depth: 0,
        what,
        text: text.into(),
        more: Vec::new(),
        fine: false,
        data,
    }
}

fn fine(what: &'static str, text: String, data: Value) -> Step {
    Step {
        fine: true,
        ..step(what, text, data)
    }
}

impl Step {
    fn with_more(mut self, more: Vec<String>) -> Step {
        self.more = more;
        self
    }

    /// Step for an event; `None` for one that only structures the others.
    #[allow(clippy::too_many_lines, reason = "a table of cases")]
    pub(crate) fn of(program: &Program, event: &Event<'_>) -> Option<Step> {
        let show = |datum: &Datum| text(program, datum);
        Some(match event {
            Event::Ingress(input) => arrival("ingress", "", input),
            Event::Reparse(input) => arrival("parse again", "for a ", input),
            Event::Egress(input) => {
                let kind = instance(input.instance_type);
                step(
                    "egress",
                    format!("{kind} for port {}", input.port),
                    json!({"port": input.port, "rid": input.rid, "instance": kind}),
                )
            }
            Event::Block(block) => of_block(program, *block),
            Event::End => return None,
            Event::Call(callee, params) => call(program, *callee, params),
            Event::State(parser, state) => {
                let name = state_name(program, *parser, *state);
                step("state", name, json!({"state": name}))
            }
            Event::Transition(parser, keys, target) => transition(program, *parser, keys, *target),
            Event::ParserError(error) => {
                let name = program.errors.get(*error as usize);
                let name = name.map_or("unknown", String::as_str);
                step(
                    "parser error",
                    format!("error.{name}"),
                    json!({"error": name}),
                )
            }
            Event::Extract {
                header,
                from,
                bits,
                value,
            } => {
                let place = format!("{header}: {}", span(*from, *bits));
                let data = json!({
                    "header": header, "from_bit": from, "bits": bits, "value": tree(program, value),
                });
                step("extract", place, data).with_more(members(program, value))
            }
            Event::Lookahead(place, value) => {
                let data = json!({"place": place, "value": tree(program, value)});
                match value {
                    Datum::Members(_) => {
                        step("lookahead", place, data).with_more(members(program, value))
                    }
                    scalar => step("lookahead", format!("{place} = {}", show(scalar)), data),
                }
            }
            Event::Advance(bits) => step("advance", format!("{bits} bits"), json!({"bits": bits})),
            Event::Emit(header, value) => step(
                "emit",
                header,
                json!({"header": header, "value": tree(program, value)}),
            )
            .with_more(members(program, value)),
            Event::Apply {
                table,
                keys,
                entry,
                action,
                data,
            } => {
                let action = action.map(|action| program.actions[action.index()].name.as_str());
                apply(program, *table, keys, entry.as_ref(), action, data)
            }
            Event::Assign(place, value) => fine(
                "set",
                format!("{place} = {}", show(value)),
                json!({"place": place, "value": tree(program, value)}),
            ),
            Event::Validity(header, valid) => {
                let word = if *valid { "valid" } else { "invalid" };
                fine(
                    "header",
                    format!("{header} {word}"),
                    json!({"header": header, "valid": valid}),
                )
            }
            Event::Branch(condition, holds) => {
                let condition = program.expr_text(condition);
                fine(
                    "if",
                    format!("{condition}: {holds}"),
                    json!({"condition": condition, "holds": holds}),
                )
            }
            Event::Switch(subject, value) => {
                let subject = program.expr_text(subject);
                fine(
                    "switch",
                    format!("{subject}: {}", show(value)),
                    json!({"subject": subject, "value": tree(program, value)}),
                )
            }
            Event::RegisterRead {
                register,
                index,
                value,
                result,
            } => {
                let name = &program.registers[register.index()].name;
                let shown = value.as_ref().map_or_else(past_the_end, show);
                step(
                    "register read",
                    format!("{name}[{index}] = {shown} -> {result}"),
                    json!({
                        "register": name, "index": index, "result": result,
                        "value": value.as_ref().map(|value| tree(program, value)),
                    }),
                )
            }
            Event::RegisterWrite {
                register,
                index,
                old,
                value,
            } => {
                let name = &program.registers[register.index()].name;
                let was = old.as_ref().map_or_else(past_the_end, show);
                step(
                    "register write",
                    format!("{name}[{index}] = {} (was {was})", show(value)),
                    json!({
                        "register": name, "index": index, "value": tree(program, value),
                        "old": old.as_ref().map(|old| tree(program, old)),
                    }),
                )
            }
            Event::Count(counter, index) => {
                let name = &program.counters[counter.index()].name;
                step(
                    "count",
                    format!("{name}[{index}]"),
                    json!({"counter": name, "index": index}),
                )
            }
            Event::Meter(meter, index, color) => {
                let name = &program.meters[meter.index()].name;
                let color = color_name(*color);
                step(
                    "meter",
                    format!("{name}[{index}]: {color}"),
                    json!({"meter": name, "index": index, "color": color}),
                )
            }
            Event::DirectMeter(meter, color) => {
                let name = &program.meters[meter.index()].name;
                let color = color_name(*color);
                step(
                    "meter",
                    format!("{name}: {color}"),
                    json!({"meter": name, "color": color}),
                )
            }
            Event::Hash {
                algorithm,
                data,
                result,
                value,
            } => {
                let algorithm = algorithm_name(*algorithm);
                let bytes = hex(data);
                step(
                    "hash",
                    format!("{algorithm}({bytes}) = {} -> {result}", show(value)),
                    json!({
                        "algorithm": algorithm, "data": bytes, "result": result,
                        "value": tree(program, value),
                    }),
                )
            }
            Event::Random(place, value) => step(
                "random",
                format!("{} -> {place}", show(value)),
                json!({"result": place, "value": tree(program, value)}),
            ),
            Event::VerifyChecksum { carried, computed } => {
                let holds = carried == computed;
                let (carried, computed) = (number(&(*carried).into()), number(&(*computed).into()));
                let text = if holds {
                    format!("{carried} is right")
                } else {
                    format!("{carried} is wrong: it should be {computed}")
                };
                step(
                    "verify checksum",
                    text,
                    json!({"carried": carried, "computed": computed, "right": holds}),
                )
            }
            Event::UpdateChecksum(place, value) => step(
                "update checksum",
                format!("{place} = {}", show(value)),
                json!({"place": place, "value": tree(program, value)}),
            ),
            Event::MarkToDrop => step("mark to drop", "", json!({})),
            Event::Clone(kind, session, list) => {
                let kind = match kind {
                    CloneKind::IngressToEgress => "I2E",
                    CloneKind::EgressToEgress => "E2E",
                };
                let keeping =
                    list.map_or_else(String::new, |list| format!(", keeping field list {list}"));
                step(
                    "clone",
                    format!("{kind} to session {session}{keeping}"),
                    json!({"kind": kind, "session": session, "field_list": list}),
                )
            }
            Event::Resubmit(list) => again("resubmit", *list),
            Event::Recirculate(list) => again("recirculate", *list),
            Event::Truncate(length) => step(
                "truncate",
                format!("to {length} bytes"),
                json!({"bytes": length}),
            ),
            Event::Digest(name, value) => step(
                "digest",
                format!("{name}: {}", show(value)),
                json!({"digest": name, "value": tree(program, value)}),
            ),
            Event::AssertionFailed(place) => {
                step("assertion failed", *place, json!({"place": place}))
            }
            Event::Log(line) => step("log", line, json!({"line": line})),
            Event::Exit => step("exit", "", json!({})),
            Event::Switched(event) => switched(event),
        })
    }
}

fn past_the_end() -> String {
    "nothing, past the end".to_owned()
}

fn again(what: &'static str, list: u32) -> Step {
    step(
        what,
        format!("keeping field list {list}"),
        json!({"field_list": list}),
    )
}

fn arrival(what: &'static str, why: &str, input: &IngressInput<'_>) -> Step {
    let kind = instance(input.instance_type);
    step(
        what,
        format!(
            "{why}{kind} of {} bytes, by port {}",
            input.frame.len(),
            input.port
        ),
        json!({
            "port": input.port, "instance": kind, "time_us": input.now, "frame": hex(input.frame),
        }),
    )
    .with_more(dump(input.frame))
}

fn instance(kind: InstanceType) -> &'static str {
    match kind {
        InstanceType::Normal => "packet",
        InstanceType::IngressClone => "clone from ingress",
        InstanceType::EgressClone => "clone from egress",
        InstanceType::Recirculated => "recirculated packet",
        InstanceType::Replication => "multicast copy",
        InstanceType::Resubmitted => "resubmitted packet",
    }
}

fn of_block(program: &Program, block: Block) -> Step {
    let control = |id: stateplane_ir::ControlId| program.controls[id.index()].name.as_str();
    let (what, name) = match block {
        Block::Parser(id) => ("parser", program.parsers[id.index()].name.as_str()),
        Block::VerifyChecksum(id) => ("verify checksums in", control(id)),
        Block::Ingress(id) | Block::Egress(id) => ("control", control(id)),
        Block::ComputeChecksum(id) => ("compute checksums in", control(id)),
        Block::Deparser(id) => ("deparser", control(id)),
    };
    step(what, name, json!({"name": name}))
}

fn call(program: &Program, callee: Callee, params: &[(String, Datum)]) -> Step {
    let (what, name) = match callee {
        Callee::Action(id) => ("action", program.actions[id.index()].name.as_str()),
        Callee::Function(id) => ("function", program.functions[id.index()].name.as_str()),
        Callee::Control(id) => ("control", program.controls[id.index()].name.as_str()),
        Callee::Parser(id) => ("parser", program.parsers[id.index()].name.as_str()),
    };
    let values = fields(program, params).join(", ");
    let params = tree_of(program, params);
    step(
        what,
        format!("{name}({values})"),
        json!({"name": name, "parameters": params}),
    )
}

fn state_name(program: &Program, parser: ParserId, state: StateId) -> &str {
    &program.parsers[parser.index()].states[state.index()].name
}

fn transition(program: &Program, parser: ParserId, keys: &[Datum], target: Option<Target>) -> Step {
    let to = match target {
        Some(Target::State(state)) => state_name(program, parser, state),
        Some(Target::Accept) => "accept",
        Some(Target::Reject) => "reject",
        None => "reject: no case matches",
    };
    let keys: Vec<String> = keys.iter().map(|key| text(program, key)).collect();
    let on = if keys.is_empty() {
        String::new()
    } else {
        format!("({}) ", keys.join(", "))
    };
    step(
        "transition",
        format!("{on}to {to}"),
        json!({"keys": keys, "to": to}),
    )
}

fn apply(
    program: &Program,
    table: TableId,
    keys: &[Datum],
    entry: Option<&Listed>,
    action: Option<&str>,
    data: &[(String, Datum)],
) -> Step {
    let table = &program.tables[table.index()];
    let ran = match action {
        Some(action) => format!("{action}({})", fields(program, data).join(", ")),
        None => "no action, as the group is empty".to_owned(),
    };
    let hit = match entry {
        Some(_) => "hit",
        None => "miss",
    };
    let mut more = Vec::new();
    let mut shown = Vec::new();
    let compared = table.keys.iter();
    let compared = compared.filter(|key| key.match_kind != MatchKind::Selector);
    for (position, (key, value)) in compared.zip(keys).enumerate() {
        let kind = kind_name(key.match_kind);
        let value = text(program, value);
        let matched = entry.and_then(|listed| listed.entry.keys.get(position));
        let by = matched.map(match_text);
        more.push(match &by {
            Some(by) => format!("key {} = {value}, {kind} {by}", key.name),
            None => format!("key {} = {value}, {kind}", key.name),
        });
        shown.push(json!({"name": key.name, "kind": kind, "value": value, "entry": by}));
    }
    let priority = entry
        .map(|listed| listed.entry.priority)
        .filter(|p| *p != 0);
    if let Some(priority) = priority {
        more.push(format!("priority {priority}"));
    }
    step(
        "table",
        format!("{}: {hit}, {ran}", table.name),
        json!({
            "table": table.name, "hit": entry.is_some(), "keys": shown, "priority": priority,
            "action": action, "data": tree_of(program, data),
        }),
    )
    .with_more(more)
}

fn kind_name(kind: MatchKind) -> &'static str {
    match kind {
        MatchKind::Exact => "exact",
        MatchKind::Lpm => "lpm",
        MatchKind::Ternary => "ternary",
        MatchKind::Range => "range",
        MatchKind::Optional => "optional",
        MatchKind::Selector => "selector",
    }
}

fn match_text(key: &KeyMatch) -> String {
    match key {
        KeyMatch::Exact(value) => number(value),
        KeyMatch::Prefix { value, length } => format!("{}/{length}", number(value)),
        KeyMatch::Mask { value, mask } => format!("{} &&& {mask:#x}", number(value)),
        KeyMatch::Range { low, high } => format!("{} .. {}", number(low), number(high)),
        KeyMatch::Any => "_".to_owned(),
    }
}

fn color_name(color: Color) -> &'static str {
    match color {
        Color::Green => "green",
        Color::Yellow => "yellow",
        Color::Red => "red",
    }
}

fn algorithm_name(algorithm: HashAlgorithm) -> &'static str {
    match algorithm {
        HashAlgorithm::Crc32 => "crc32",
        HashAlgorithm::Crc32Custom => "crc32_custom",
        HashAlgorithm::Crc16 => "crc16",
        HashAlgorithm::Crc16Custom => "crc16_custom",
        HashAlgorithm::Random => "random",
        HashAlgorithm::Identity => "identity",
        HashAlgorithm::Csum16 => "csum16",
        HashAlgorithm::Xor16 => "xor16",
    }
}

fn switched(event: &SwitchEvent<'_>) -> Step {
    match *event {
        SwitchEvent::Queued { port, rid } => {
            let copy = match rid {
                0 => String::new(),
                rid => format!(", replica {rid}"),
            };
            step(
                "queue",
                format!("for port {port}{copy}"),
                json!({"port": port, "rid": rid}),
            )
        }
        SwitchEvent::Dropped { reason } => step("drop", reason, json!({"reason": reason})),
        SwitchEvent::Multicast { group, replicas } => step(
            "multicast",
            format!("to group {group}, of {replicas}"),
            json!({"group": group, "replicas": replicas}),
        ),
        SwitchEvent::Mirrored {
            session,
            group,
            port,
            hold_us,
        } => {
            let to_group = group.map_or_else(String::new, |group| format!(", group {group}"));
            let to_port = port.map_or_else(String::new, |port| format!(", port {port}"));
            let held = match hold_us {
                0 => String::new(),
                hold => format!(", held for {hold} µs"),
            };
            step(
                "mirror",
                format!("to session {session}{to_group}{to_port}{held}"),
                json!({"session": session, "group": group, "port": port, "hold_us": hold_us}),
            )
        }
        SwitchEvent::Resubmitted => step("back to ingress", "as it came", json!({"frame": null})),
        SwitchEvent::Recirculated { frame } => step(
            "back to ingress",
            format!("as deparsed, {} bytes", frame.len()),
            json!({"frame": hex(frame)}),
        ),
        SwitchEvent::Transmitted { port, frame } => step(
            "transmit",
            format!("by port {port}, {} bytes", frame.len()),
            json!({"port": port, "frame": hex(frame)}),
        )
        .with_more(dump(frame)),
    }
}

/// Position of some bits in a frame.
fn span(from: usize, bits: usize) -> String {
    let end = from + bits;
    if bits > 0 && from.is_multiple_of(8) && end.is_multiple_of(8) {
        let (first, last) = (from / 8, end / 8 - 1);
        return if first == last {
            format!("byte {first}")
        } else {
            format!("bytes {first} to {last}")
        };
    }
    format!("{bits} bits from bit {from}")
}

/// The fields of a header, several in a line.
fn members(program: &Program, value: &Datum) -> Vec<String> {
    const WIDTH: usize = 80;
    let Datum::Members(list) = value else {
        return Vec::new();
    };
    let mut lines: Vec<String> = Vec::new();
    for field in fields(program, list) {
        match lines.last_mut() {
            Some(line) if line.len() + field.len() + 2 <= WIDTH => {
                line.push_str(", ");
                line.push_str(&field);
            }
            _ => lines.push(field),
        }
    }
    lines
}

/// A value as JSON: scalars as their text, members as an object.
fn tree(program: &Program, value: &Datum) -> Value {
    match value {
        Datum::Members(list) => tree_of(program, list),
        Datum::Invalid => Value::Null,
        scalar => Value::String(text(program, scalar)),
    }
}

fn tree_of(program: &Program, list: &[(String, Datum)]) -> Value {
    let members = list
        .iter()
        .map(|(name, value)| (name.clone(), tree(program, value)));
    Value::Object(members.collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sixteen bytes a line, with the offset of the first.
fn dump(frame: &[u8]) -> Vec<String> {
    let lines = frame.chunks(16).enumerate().map(|(row, bytes)| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{:04x}  {}", row * 16, bytes.join(" "))
    });
    lines.collect()
}

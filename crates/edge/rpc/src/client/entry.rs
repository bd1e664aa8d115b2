//! Table entries as people write them: `dst=10.0.0.0/8 send port=3`.

use super::names::{self, Wrong, pick};
use super::value::{self, Style};
use crate::proto::config::{self, match_field::MatchType};
use crate::proto::v1::{self, field_match as by, field_match::FieldMatchType, table_action};
use num_bigint::BigUint;

/// Match kind of a field.
#[must_use]
pub fn kind(field: &config::MatchField) -> MatchType {
    match field.r#match {
        Some(config::match_field::Match::MatchType(number)) => {
            MatchType::try_from(number).unwrap_or(MatchType::Unspecified)
        }
        _ => MatchType::Unspecified,
    }
}

fn width(bits: i32) -> u32 {
    u32::try_from(bits).unwrap_or(0)
}

fn fitting(text: &str, width: u32, what: &str) -> Result<BigUint, Wrong> {
    let value = value::read(text)?;
    if width > 0 && value.bits() > u64::from(width) {
        Err(format!(
            "{text} does not fit {what}, which has {width} bits"
        ))
    } else {
        Ok(value)
    }
}

fn bytes(text: &str, width: u32, what: &str) -> Result<Vec<u8>, Wrong> {
    fitting(text, width, what).map(|value| value::bytes(&value))
}

/// Reads a match of a field; none for `_` or what matches everything.
///
/// # Errors
///
/// With how to write it.
pub fn read_match(field: &config::MatchField, text: &str) -> Result<Option<v1::FieldMatch>, Wrong> {
    let (name, width) = (field.name.as_str(), width(field.bitwidth));
    if text == "_" {
        return Ok(None);
    }
    let kind = match kind(field) {
        MatchType::Exact => FieldMatchType::Exact(by::Exact {
            value: bytes(text, width, name)?,
        }),
        MatchType::Optional => FieldMatchType::Optional(by::Optional {
            value: bytes(text, width, name)?,
        }),
        MatchType::Lpm => {
            let (value, length) = match text.split_once('/') {
                Some((value, length)) => {
                    let length = length.parse().ok().filter(|length| *length <= width);
                    let length = length.ok_or_else(|| {
                        format!("{text} has no prefix length of 0 to {width} after `/`")
                    })?;
                    (value, length)
                }
                None => (text, width),
            };
            if length == 0 {
                return Ok(None);
            }
            let value = fitting(value, width, name)?;
            let below = width - length;
            FieldMatchType::Lpm(by::Lpm {
                value: value::bytes(&((value >> below) << below)),
                prefix_len: i32::try_from(length).unwrap_or(i32::MAX),
            })
        }
        MatchType::Ternary => {
            let (value, mask) = match text.split_once("&&&") {
                Some((value, mask)) => (fitting(value, width, name)?, fitting(mask, width, name)?),
                None => (fitting(text, width, name)?, crate::bytes::all_ones(width)),
            };
            if mask == BigUint::default() {
                return Ok(None);
            }
            FieldMatchType::Ternary(by::Ternary {
                value: value::bytes(&(value & &mask)),
                mask: value::bytes(&mask),
            })
        }
        MatchType::Range => {
            let (low, high) = text.split_once("..").unwrap_or((text, text));
            FieldMatchType::Range(by::Range {
                low: bytes(low, width, name)?,
                high: bytes(high, width, name)?,
            })
        }
        MatchType::Unspecified => return Err(format!("{name} has a match kind of its own")),
    };
    Ok(Some(v1::FieldMatch {
        field_id: field.id,
        field_match_type: Some(kind),
    }))
}

/// Shows a match of a field as [`read_match`] reads it.
#[must_use]
pub fn show_match(field: &config::MatchField, given: &v1::FieldMatch) -> String {
    let style = Style::of(&field.name, width(field.bitwidth), &field.annotations);
    let show = |bytes: &[u8]| value::show(&BigUint::from_bytes_be(bytes), style);
    match &given.field_match_type {
        Some(FieldMatchType::Exact(exact)) => show(&exact.value),
        Some(FieldMatchType::Optional(optional)) => show(&optional.value),
        Some(FieldMatchType::Lpm(lpm)) => format!("{}/{}", show(&lpm.value), lpm.prefix_len),
        Some(FieldMatchType::Ternary(ternary)) => {
            format!("{}&&&{}", show(&ternary.value), show(&ternary.mask))
        }
        Some(FieldMatchType::Range(range)) => {
            format!("{}..{}", show(&range.low), show(&range.high))
        }
        _ => "_".to_owned(),
    }
}

/// Words `NAME=VALUE`.
fn pairs(words: &[String]) -> Result<Vec<(&str, &str)>, Wrong> {
    words
        .iter()
        .map(|word| {
            word.split_once('=')
                .ok_or_else(|| format!("{word:?} is no NAME=VALUE"))
        })
        .collect()
}

/// Reads an entry from words: matches `FIELD=VALUE`, then an action and its
/// `PARAMETER=VALUE`, or `member:N` or `group:N`. Fields may be called by the end of their
/// name after a dot.
///
/// # Errors
///
/// Returns the error, and the existing names.
pub fn read(
    info: &config::P4Info,
    table: &config::Table,
    words: &[String],
    priority: i32,
) -> Result<v1::TableEntry, Wrong> {
    let at = words.iter().position(|word| !word.contains('='));
    let (matches, action) = words.split_at(at.unwrap_or(words.len()));
    let mut entry = v1::TableEntry {
        table_id: names::id(table),
        priority,
        ..v1::TableEntry::default()
    };
    for (name, text) in pairs(matches)? {
        let fields = table
            .match_fields
            .iter()
            .map(|field| (field.name.as_str(), field));
        let field = pick(fields, name, "match field")?;
        entry.r#match.extend(read_match(field, text)?);
    }
    entry.action = match action.split_first() {
        Some((name, params)) => Some(read_action(info, table, name, &pairs(params)?)?),
        None => None,
    };
    Ok(entry)
}

fn read_action(
    info: &config::P4Info,
    table: &config::Table,
    name: &str,
    given: &[(&str, &str)],
) -> Result<v1::TableAction, Wrong> {
    let numbered = |prefix: &str| -> Option<u32> { name.strip_prefix(prefix)?.parse().ok() };
    let kind = if let Some(member) = numbered("member:") {
        table_action::Type::ActionProfileMemberId(member)
    } else if let Some(group) = numbered("group:") {
        table_action::Type::ActionProfileGroupId(group)
    } else {
        let listed = table
            .action_refs
            .iter()
            .filter_map(|listed| names::by_id(&info.actions, listed.id));
        let action = pick(listed.map(|it| (names::name(it), it)), name, "action")?;
        let mut params = Vec::new();
        for (param, text) in given {
            let known = action.params.iter().map(|it| (it.name.as_str(), it));
            let param = pick(known, param, "parameter")?;
            params.push(v1::action::Param {
                param_id: param.id,
                value: bytes(text, width(param.bitwidth), &param.name)?,
            });
        }
        let missing = action
            .params
            .iter()
            .find(|param| !params.iter().any(|it| it.param_id == param.id));
        if let Some(missing) = missing {
            return Err(format!(
                "action `{}` needs {}=VALUE",
                names::alias(action),
                missing.name
            ));
        }
        table_action::Type::Action(v1::Action {
            action_id: names::id(action),
            params,
        })
    };
    Ok(v1::TableAction { r#type: Some(kind) })
}

/// A part of an entry with its name.
pub type Shown = (String, String);

/// The matches of an entry by field, those left out as `_`.
#[must_use]
pub fn show_matches(table: &config::Table, entry: &v1::TableEntry) -> Vec<Shown> {
    let fields = table.match_fields.iter();
    fields
        .map(|field| {
            let given = entry.r#match.iter().find(|it| it.field_id == field.id);
            let text = given.map_or("_".to_owned(), |given| show_match(field, given));
            (field.name.clone(), text)
        })
        .collect()
}

/// The action of an entry: its name and its parameters.
#[must_use]
pub fn show_action(
    info: &config::P4Info,
    action: Option<&v1::TableAction>,
) -> (String, Vec<Shown>) {
    let one = |action: &v1::Action| match names::by_id(&info.actions, action.action_id) {
        Some(known) => {
            let params = action.params.iter().map(|param| {
                let spec = known.params.iter().find(|it| it.id == param.param_id);
                let (name, style) = match spec {
                    Some(spec) => (
                        spec.name.clone(),
                        Style::of(&spec.name, width(spec.bitwidth), &spec.annotations),
                    ),
                    None => (param.param_id.to_string(), Style::Number),
                };
                (
                    name,
                    value::show(&BigUint::from_bytes_be(&param.value), style),
                )
            });
            (names::alias(known).to_owned(), params.collect())
        }
        None => (format!("action {}", action.action_id), Vec::new()),
    };
    match action.and_then(|action| action.r#type.as_ref()) {
        Some(table_action::Type::Action(action)) => one(action),
        Some(table_action::Type::ActionProfileMemberId(member)) => {
            (format!("member:{member}"), Vec::new())
        }
        Some(table_action::Type::ActionProfileGroupId(group)) => {
            (format!("group:{group}"), Vec::new())
        }
        Some(table_action::Type::ActionProfileActionSet(set)) => {
            let actions = set.action_profile_actions.iter();
            let shown = actions.filter_map(|it| {
                let (name, params) = one(it.action.as_ref()?);
                let params: Vec<String> = params
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect();
                Some((format!("{name} x{}", it.weight), params.join(" ")))
            });
            ("one of".to_owned(), shown.collect())
        }
        None => ("none".to_owned(), Vec::new()),
    }
}

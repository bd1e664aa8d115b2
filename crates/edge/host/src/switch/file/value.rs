//! Values, keys and parameters in the file.

use super::SwitchFileCause;
use num_bigint::BigUint;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use stateplane_ir::MatchKind;
use stateplane_runtime::{KeyMatch, Table, Value, parse_value};
use std::fmt;

/// A value as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A number.
    Number(u64),
    /// `true` or `false`.
    Flag(bool),
    /// A text: a number, an address, a key.
    Text(String),
    /// Values of a struct's members.
    List(Vec<Setting>),
}

/// Keys or parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// In the program's order.
    Ordered(Vec<Setting>),
    /// With their names.
    Named(Vec<(String, Setting)>),
}

impl Default for Arguments {
    fn default() -> Self {
        Arguments::Ordered(Vec::new())
    }
}

impl Setting {
    fn number(&self, of: &str) -> Result<BigUint, SwitchFileCause> {
        match self {
            Setting::Number(number) => Ok(BigUint::from(*number)),
            Setting::Flag(flag) => Ok(BigUint::from(u32::from(*flag))),
            Setting::Text(text) => Ok(parse_value(text)?),
            Setting::List(_) => Err(SwitchFileCause::List(of.to_owned())),
        }
    }

    /// The value for a register.
    pub(super) fn value(&self) -> Result<Value, SwitchFileCause> {
        match self {
            Setting::List(members) => {
                let members = members
                    .iter()
                    .map(Setting::value)
                    .collect::<Result<_, _>>()?;
                Ok(Value::Struct(members))
            }
            scalar => Ok(Value::Bits(scalar.number("a register")?)),
        }
    }

    fn key(&self) -> Result<KeyMatch, SwitchFileCause> {
        match self {
            Setting::Text(text) => key_match(text),
            other => Ok(KeyMatch::Exact(other.number("a key")?)),
        }
    }
}

/// A key from its text.
fn key_match(text: &str) -> Result<KeyMatch, SwitchFileCause> {
    let wrong = |reason: String| SwitchFileCause::Key {
        text: text.chars().take(80).collect(),
        reason,
    };
    let value = |part: &str| parse_value(part).map_err(|error| wrong(error.to_string()));
    if text.trim() == "_" {
        Ok(KeyMatch::Any)
    } else if let Some((bits, mask)) = text.split_once("&&&") {
        Ok(KeyMatch::Mask {
            value: value(bits)?,
            mask: value(mask)?,
        })
    } else if let Some((low, high)) = text.split_once("..") {
        Ok(KeyMatch::Range {
            low: value(low)?,
            high: value(high)?,
        })
    } else if let Some((bits, length)) = text.split_once('/') {
        let length = length.trim().parse().map_err(|_| {
            wrong(format!(
                "`{length}` is no prefix length; write a number of bits"
            ))
        })?;
        Ok(KeyMatch::Prefix {
            value: value(bits)?,
            length,
        })
    } else {
        Ok(KeyMatch::Exact(value(text)?))
    }
}

/// Bytes from pairs of hexadecimal digits.
pub(super) fn hexadecimal(text: &str) -> Result<Vec<u8>, SwitchFileCause> {
    let wrong = || SwitchFileCause::Frame(text.chars().take(80).collect());
    let digits: Vec<u8> = text
        .chars()
        .filter(|character| !character.is_whitespace() && *character != ':')
        .map(|digit| {
            digit
                .to_digit(16)
                .map(|digit| digit as u8)
                .ok_or_else(wrong)
        })
        .collect::<Result<_, _>>()?;
    if digits.len() % 2 == 1 {
        return Err(wrong());
    }
    Ok(digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect())
}

impl Arguments {
    /// The keys of an entry of `table`, in the table's order.
    pub(super) fn keys(&self, table: &Table) -> Result<Vec<KeyMatch>, SwitchFileCause> {
        let named = match self {
            Arguments::Ordered(settings) => return settings.iter().map(Setting::key).collect(),
            Arguments::Named(named) => named,
        };
        let names: Vec<String> = table.keys().iter().map(|key| key.name.clone()).collect();
        let of = format!("table `{}`", table.name());
        let settings = in_order(named, &names, "key", &of)?;
        let mut keys = Vec::new();
        for (setting, info) in settings.into_iter().zip(table.keys()) {
            keys.push(match setting {
                Some(setting) => setting.key()?,
                None if info.kind == MatchKind::Exact => {
                    let name = info.name.clone();
                    return Err(SwitchFileCause::MissingName {
                        kind: "key",
                        name,
                        of,
                    });
                }
                None => KeyMatch::Any,
            });
        }
        Ok(keys)
    }

    /// The data of `action` of `table`, in the action's order. Of an action that the
    /// table does not have, the data as it stands: the table tells what is wrong.
    pub(super) fn data(
        &self,
        table: &Table,
        action: &str,
    ) -> Result<Vec<BigUint>, SwitchFileCause> {
        let named = match self {
            Arguments::Ordered(settings) => {
                return settings
                    .iter()
                    .map(|setting| setting.number("a parameter"))
                    .collect();
            }
            Arguments::Named(named) => named,
        };
        let info = table
            .actions()
            .iter()
            .find(|info| is_named(&info.name, action));
        let Some(info) = info else {
            return Ok(Vec::new());
        };
        let names: Vec<String> = info.data.iter().map(|(name, _)| name.clone()).collect();
        let of = format!("action `{}`", info.name);
        in_order(named, &names, "parameter", &of)?
            .into_iter()
            .zip(&names)
            .map(|(setting, name)| match setting {
                Some(setting) => setting.number("a parameter"),
                None => {
                    let (name, of) = (name.clone(), of.clone());
                    Err(SwitchFileCause::MissingName {
                        kind: "parameter",
                        name,
                        of,
                    })
                }
            })
            .collect()
    }
}

/// The settings of `names`, in their order; `None` for those that are not given.
fn in_order<'a>(
    named: &'a [(String, Setting)],
    names: &[String],
    kind: &'static str,
    of: &str,
) -> Result<Vec<Option<&'a Setting>>, SwitchFileCause> {
    let mut settings = vec![None; names.len()];
    for (name, setting) in named {
        let place = names
            .iter()
            .position(|full| full == name)
            .or_else(|| names.iter().position(|full| is_named(full, name)));
        match place {
            Some(place) => settings[place] = Some(setting),
            None => {
                let (name, of, names) = (name.clone(), of.to_owned(), names.to_vec());
                return Err(SwitchFileCause::UnknownName {
                    kind,
                    name,
                    of,
                    names,
                });
            }
        }
    }
    Ok(settings)
}

/// True if `name` is `full` or its end from a dot on.
fn is_named(full: &str, name: &str) -> bool {
    full.strip_suffix(name)
        .is_some_and(|front| !name.is_empty() && (front.is_empty() || front.ends_with('.')))
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Settings;

        impl<'de> Visitor<'de> for Settings {
            type Value = Setting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 0, true or false, or a text")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Setting, E> {
                u64::try_from(number)
                    .map(Setting::Number)
                    .map_err(|_| E::custom(format!("{number} is negative; values are from 0")))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Setting, E> {
                Ok(Setting::Number(number))
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<Setting, E> {
                Ok(Setting::Flag(flag))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Setting, E> {
                Ok(Setting::Text(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Setting, A::Error> {
                let mut settings = Vec::new();
                while let Some(setting) = list.next_element()? {
                    settings.push(setting);
                }
                Ok(Setting::List(settings))
            }
        }

        deserializer.deserialize_any(Settings)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrTable;

        impl<'de> Visitor<'de> for ListOrTable {
            type Value = Arguments;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of values in order, or a table of names and values")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Arguments, A::Error> {
                let mut settings = Vec::new();
                while let Some(setting) = list.next_element()? {
                    settings.push(setting);
                }
                Ok(Arguments::Ordered(settings))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Arguments, A::Error> {
                let mut settings = Vec::new();
                while let Some(setting) = table.next_entry()? {
                    settings.push(setting);
                }
                Ok(Arguments::Named(settings))
            }
        }

        deserializer.deserialize_any(ListOrTable)
    }
}

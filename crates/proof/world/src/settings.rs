//! Settings of scenarios as text: `NAME=VALUE`, a dot between the names of parts within parts.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use toml::Value;

/// Why a setting means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The setting does not have the form.
    #[error("{0} is no setting: write NAME=VALUE, such as flows=8 or chain_link.loss=0")]
    Form(String),
    /// There is no such setting, or it takes other values.
    #[error("the settings {settings} make no scenario: {cause}")]
    Value {
        /// The settings.
        settings: String,
        /// Description of the error.
        cause: String,
    },
}

/// Value of a part that a scenario does not have.
pub const NONE: &str = "none";

/// Puts the leaves of `value` into `leaves`, by their paths.
fn flatten(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match value {
        Value::Table(table) => {
            for (name, value) in table {
                flatten(&below(name), value, leaves);
            }
        }
        Value::Array(values) => {
            for (place, value) in values.iter().enumerate() {
                flatten(&below(&place.to_string()), value, leaves);
            }
        }
        leaf => _ = leaves.insert(path.to_owned(), leaf.to_string()),
    }
}

/// Puts `leaf` at `path` below `value`.
fn put(value: &mut Value, path: &[&str], leaf: Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    let below = match value {
        Value::Table(table) => {
            if rest.is_empty() {
                table.insert((*name).to_owned(), leaf);
                return Some(());
            }
            let empty = match rest[0].parse::<usize>() {
                Ok(_) => Value::Array(Vec::new()),
                Err(_) => Value::Table(toml::Table::new()),
            };
            table.entry(*name).or_insert(empty)
        }
        Value::Array(values) => {
            let place: usize = name.parse().ok()?;
            if place == values.len() {
                values.push(Value::Integer(0));
            }
            values.get_mut(place)?
        }
        _ => return None,
    };
    match rest {
        [] => *below = leaf,
        _ => put(below, rest, leaf)?,
    }
    Some(())
}

/// Settings as a tree. They are numbers and truth values only, all of which fit.
fn tree<T: Serialize>(settings: &T) -> Value {
    Value::try_from(settings).unwrap_or(Value::Table(toml::Table::new()))
}

/// Settings that turn `base` into `own`, as [`changed`] takes them. Parts that only `base` has are
/// none of them.
pub fn differences<T: Serialize>(base: &T, own: &T) -> Vec<String> {
    let (mut of_base, mut leaves) = (BTreeMap::new(), BTreeMap::new());
    flatten("", &tree(base), &mut of_base);
    flatten("", &tree(own), &mut leaves);
    let differ = leaves
        .iter()
        .filter(|(path, value)| of_base.get(*path) != Some(*value));
    differ
        .map(|(path, value)| format!("{path}={value}"))
        .collect()
}

/// `base` with changed `settings`, each in the form `NAME=VALUE`. What it does not serialise is as
/// by default.
///
/// # Errors
///
/// [`SettingError`].
pub fn changed<T: Serialize + DeserializeOwned>(
    base: &T,
    settings: &[String],
) -> Result<T, SettingError> {
    let mut value = tree(base);
    for setting in settings {
        let form = || SettingError::Form(setting.clone());
        let (path, text) = setting.split_once('=').ok_or_else(form)?;
        if text == NONE {
            value
                .as_table_mut()
                .and_then(|table| table.remove(path))
                .ok_or_else(form)?;
            continue;
        }
        let leaf = match (text.parse::<i64>(), text.parse::<bool>()) {
            (Ok(number), _) => Value::Integer(number),
            (_, Ok(truth)) => Value::Boolean(truth),
            _ => return Err(form()),
        };
        let path: Vec<&str> = path.split('.').collect();
        put(&mut value, &path, leaf).ok_or_else(form)?;
    }
    let made: Result<T, toml::de::Error> = value.try_into();
    made.map_err(|error| SettingError::Value {
        settings: settings.join(" "),
        cause: error.message().to_owned(),
    })
}

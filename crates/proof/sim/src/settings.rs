//! Scenarios as text: what one sets otherwise than the one whose name it bears.

use crate::scenario::Scenario;
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
const NONE: &str = "none";

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

impl Scenario {
    fn value(&self) -> Value {
        // It has numbers and truth values only, all of which fit.
        Value::try_from(self).unwrap_or(Value::Table(toml::Table::new()))
    }

    /// Settings that turn the scenario of this name into this one, as [`Scenario::with_settings`]
    /// takes them; none if it is that scenario.
    pub fn settings(&self) -> Vec<String> {
        let base = Scenario::from_name(self.name).unwrap_or(Scenario::mixed());
        let (mut of_base, mut own) = (BTreeMap::new(), BTreeMap::new());
        flatten("", &base.value(), &mut of_base);
        flatten("", &self.value(), &mut own);
        let mut settings = Vec::new();
        if base.cluster.is_some() && self.cluster.is_none() {
            settings.push(format!("cluster={NONE}"));
        }
        if base.disks.is_some() && self.disks.is_none() {
            settings.push(format!("disks={NONE}"));
        }
        let differ = own
            .iter()
            .filter(|(path, value)| of_base.get(*path) != Some(*value));
        settings.extend(differ.map(|(path, value)| format!("{path}={value}")));
        settings
    }

    /// The scenario with changed `settings`, each in the form `NAME=VALUE`.
    ///
    /// # Errors
    ///
    /// [`SettingError`].
    pub fn with_settings(&self, settings: &[String]) -> Result<Scenario, SettingError> {
        if settings.is_empty() {
            return Ok(self.clone());
        }
        let mut value = self.value();
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
        let scenario: Result<Scenario, _> = value.try_into();
        let refused = |cause: &str| SettingError::Value {
            settings: settings.join(" "),
            cause: cause.to_owned(),
        };
        let scenario = scenario.map_err(|error| refused(error.message()))?;
        let stores = scenario.cluster.map_or(scenario.replicas, |c| c.stores);
        for (count, name) in [
            (scenario.switches, "switches"),
            (scenario.replicas, "replicas"),
            (stores, "cluster.stores"),
        ] {
            if count == 0 {
                return Err(refused(&format!("{name} is at least 1")));
            }
        }
        Ok(Scenario {
            name: self.name,
            ..scenario
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Cluster, Disks};
    use stateplane_world::LinkQuality;

    /// Scenario that the settings of `scenario` make from the one with its name.
    fn again(scenario: &Scenario) -> Scenario {
        let base = Scenario::from_name(scenario.name).unwrap();
        base.with_settings(&scenario.settings()).unwrap()
    }

    #[test]
    fn a_scenario_with_a_name_has_no_settings() {
        for scenario in Scenario::ALL {
            assert_eq!(scenario.settings(), [""; 0]);
            assert_eq!(again(&scenario), scenario);
        }
    }

    #[test]
    fn every_change_can_be_set() {
        let changed = Scenario {
            flows: 3,
            recall: false,
            outage: (7, 9),
            chain_link: LinkQuality::whole(5),
            ..Scenario::mixed()
        };
        let settings = changed.settings();
        assert!(settings.contains(&"outage.1=9".to_owned()), "{settings:?}");
        assert_eq!(again(&changed), changed);
        let clustered = Scenario {
            cluster: Some(Cluster::failing()),
            ..changed
        };
        assert_eq!(again(&clustered), clustered);
        let disks = Scenario::power_cuts().disks;
        for (cluster, disks) in [(None, None), (None, disks), (Some(Cluster::calm(5)), None)] {
            let scenario = Scenario {
                cluster,
                disks: disks.map(|disks| Disks { deaths: 0, ..disks }),
                ..Scenario::cluster_power_cuts()
            };
            assert_eq!(again(&scenario), scenario);
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in [
            "flows",
            "flows=many",
            "flows=-1",
            "flow=1",
            "outage.7=1",
            "cluster=none",
            "chain_link=3",
            "cluster.stores=3",
            "switches=0",
            "replicas=0",
        ] {
            let set = Scenario::mixed().with_settings(&[text.to_owned()]);
            assert!(set.is_err(), "{text}");
        }
        let set = Scenario::failing_stores().with_settings(&["cluster.stores=0".to_owned()]);
        assert!(set.is_err());
    }
}

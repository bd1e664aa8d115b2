//! Scenarios as text: what one sets otherwise than the one whose name it bears.

use crate::scenario::Scenario;
use stateplane_world::{NONE, SettingError, changed, differences};

impl Scenario {
    /// Settings that turn the scenario of this name into this one, as [`Scenario::with_settings`]
    /// takes them; none if it is that scenario.
    pub fn settings(&self) -> Vec<String> {
        let base = Scenario::from_name(self.name).unwrap_or(Scenario::mixed());
        let mut settings = Vec::new();
        if base.cluster.is_some() && self.cluster.is_none() {
            settings.push(format!("cluster={NONE}"));
        }
        if base.disks.is_some() && self.disks.is_none() {
            settings.push(format!("disks={NONE}"));
        }
        settings.extend(differences(&base, self));
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
        let scenario = changed(self, settings)?;
        let refused = |cause: &str| SettingError::Value {
            settings: settings.join(" "),
            cause: cause.to_owned(),
        };
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

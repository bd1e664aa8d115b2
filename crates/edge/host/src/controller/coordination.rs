//! The section `[coordination]` of a deployment.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use stateplane_groups::{Settings, Switch};

use super::ControllerError;
use super::backend::SWITCHES_END;

/// The section `[coordination]` of a deployment file: the switches of the service, and the chains
/// that the controllers make of them.
///
/// ```
/// let file = r#"
///     [controller]
///     addresses = ["10.0.0.20"]
///
///     [coordination]
///     groups = 64                         # as many as the switches' program has
///     replicas = 3                        # switches of each group: one more than may fail
///
///     [[coordination.switch]]
///     number = 1
///     address = "10.0.0.1"
///     domain = "rack 1"                   # may fail together with others of this domain
///
///     [[coordination.switch]]
///     number = 2
///     address = "10.0.0.2"
///     domain = "rack 2"
///
///     [[coordination.switch]]
///     number = 3
///     address = "10.0.0.3"
///     domain = "rack 3"
/// "#;
/// let deployment =
///     stateplane_host::deployment::Deployment::parse("deployment.toml".as_ref(), file)?;
/// let settings = deployment.coordination()?.settings("10.0.0.20:4795".parse()?)?;
/// assert_eq!((settings.groups, settings.switches.len()), (64, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoordinationFile {
    /// Virtual groups, as many as the switches' program has; 64 unless set.
    #[serde(default = "sixty_four")]
    pub groups: u16,
    /// Members of each group's chain, one more than the failures that it outlives; at most 3, which
    /// it is unless set.
    #[serde(default = "three")]
    pub replicas: u8,
    /// Lanes of each group, as many as the switches' program has; 1,024 unless set.
    #[serde(default = "thousand")]
    pub lanes: u16,
    /// Slots of each group, as many as the switches' program has; 1,024 unless set.
    #[serde(default = "thousand")]
    pub slots: u16,
    /// Failed switches that the others redirect requests from at once, as many as the switches'
    /// program has places; 4 unless set.
    #[serde(default = "four")]
    pub redirects: u16,
    /// ms between the questions whether a switch lives; 20 unless set.
    #[serde(default = "twenty")]
    pub ping_ms: u32,
    /// ms of silence after which a switch is taken for dead; 100 unless set.
    #[serde(default = "hundred")]
    pub detection_ms: u32,
    /// ms after which the groups of a dead switch get another one; 1,000 unless set.
    #[serde(default = "second")]
    pub replace_after_ms: u32,
    /// ms after which a switch that joins a group and is not done leaves its place to another;
    /// 30,000 unless set.
    #[serde(default = "thirty_seconds")]
    pub join_timeout_ms: u32,
    /// ms for which nothing passes between two members that live, after which one of them is left
    /// out; at least 200, 0 for never; 2,000 unless set.
    #[serde(default = "two_seconds")]
    pub standstill_ms: u32,
    /// ms without a keepalive after which a session may be ended; 10,000 unless set.
    #[serde(default = "ten_seconds")]
    pub session_ttl_ms: u32,
    /// The switches.
    pub switch: Vec<CoordinationSwitchFile>,
}

/// A switch, in the sections `[[coordination.switch]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoordinationSwitchFile {
    /// Its number, which no other switch has or had.
    pub number: u32,
    /// Its own address, from which its program sends.
    pub address: Ipv4Addr,
    /// Name of its failure domain, such as its rack or host; one of its own unless set.
    pub domain: Option<String>,
}

fn two_seconds() -> u32 {
    2_000
}

fn sixty_four() -> u16 {
    64
}

fn three() -> u8 {
    3
}

fn thousand() -> u16 {
    1024
}

fn four() -> u16 {
    4
}

fn twenty() -> u32 {
    20
}

fn hundred() -> u32 {
    100
}

fn second() -> u32 {
    1000
}

fn thirty_seconds() -> u32 {
    30_000
}

fn ten_seconds() -> u32 {
    10_000
}

fn microseconds(ms: u32) -> u64 {
    u64::from(ms) * 1000
}

impl CoordinationFile {
    /// Settings of the controller that listens at `address`.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Groups`]; [`ControllerError::TooLong`] for a number of a switch that is
    /// too great.
    pub fn settings(&self, address: SocketAddrV4) -> Result<Settings, ControllerError> {
        let mut domains = BTreeMap::new();
        let mut switches = Vec::new();
        for (place, switch) in (0..).zip(&self.switch) {
            if switch.number >= SWITCHES_END {
                return Err(ControllerError::TooLong {
                    name: "number",
                    value: switch.number.into(),
                    most: u64::from(SWITCHES_END) - 1,
                });
            }
            // A domain has the place of its first switch as number.
            let domain = match &switch.domain {
                Some(name) => *domains.entry(name.as_str()).or_insert(place),
                None => place,
            };
            switches.push(Switch {
                number: switch.number,
                address: switch.address,
                domain,
            });
        }
        let settings = Settings {
            lanes: self.lanes,
            slots: self.slots,
            redirects: self.redirects,
            ping: microseconds(self.ping_ms),
            detection: microseconds(self.detection_ms),
            replace_after: microseconds(self.replace_after_ms),
            join_timeout: microseconds(self.join_timeout_ms),
            standstill: microseconds(self.standstill_ms),
            session_ttl: microseconds(self.session_ttl_ms),
            ..Settings::new(address, switches, self.groups, self.replicas)
        };
        settings.check()?;
        Ok(settings)
    }

    /// Number of the switch at `address`.
    pub fn number_of(&self, address: Ipv4Addr) -> Option<u32> {
        let found = self.switch.iter().find(|switch| switch.address == address);
        found.map(|switch| switch.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 20), 4795);

    fn switch(number: u32, domain: Option<&str>) -> CoordinationSwitchFile {
        CoordinationSwitchFile {
            number,
            address: Ipv4Addr::from(0x0a00_0000 + number % 256),
            domain: domain.map(str::to_owned),
        }
    }

    fn file(switch: Vec<CoordinationSwitchFile>) -> CoordinationFile {
        let text = "switch = []\nreplicas = 2";
        let file: CoordinationFile = toml::from_str(text).unwrap();
        CoordinationFile { switch, ..file }
    }

    #[test]
    fn switches_of_one_domain_have_one_number_and_those_without_their_own() {
        let file = file(vec![
            switch(7, Some("a")),
            switch(8, None),
            switch(9, Some("b")),
            switch(10, Some("a")),
            switch(11, None),
        ]);
        let settings = file.settings(ADDRESS).unwrap();
        let domains: Vec<u32> = settings.switches.iter().map(|it| it.domain).collect();
        assert_eq!(domains, [0, 1, 2, 0, 4]);
        assert_eq!((settings.ping, settings.detection), (20_000, 100_000));
        assert_eq!(settings.address, ADDRESS);
        assert_eq!(file.number_of(Ipv4Addr::new(10, 0, 0, 9)), Some(9));
        assert_eq!(file.number_of(Ipv4Addr::new(10, 0, 0, 99)), None);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |file: &CoordinationFile| file.settings(ADDRESS).unwrap_err().code();
        let good = file(vec![switch(1, None), switch(2, None)]);
        assert_eq!(refused(&file(vec![switch(1, None)])), "K106");
        assert_eq!(
            refused(&file(vec![switch(1, None), switch(1, None)])),
            "K104"
        );
        let great = file(vec![switch(1, None), switch(SWITCHES_END, None)]);
        assert_eq!(refused(&great), "H402");
        let detection_ms = 39;
        let late = CoordinationFile {
            detection_ms,
            ..good
        };
        assert_eq!(refused(&late), "K103");
    }
}

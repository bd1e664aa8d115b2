//! The section `[multicast]` of a deployment.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::Deserialize;
use stateplane_multicast_groups::{Settings, Switch};

use super::ControllerError;
use super::backend::SWITCHES_END;
use crate::sealing::longest_payload;

/// The section `[multicast]` of a deployment file: the switches of multicast, and the groups that
/// the controllers make of them.
///
/// ```
/// let file = r#"
///     [controller]
///     addresses = ["10.0.0.20"]
///
///     [multicast]
///     groups = 2                          # at most as many as the switches' program has
///     replicas = 3                        # switches of each group: 3 or 5
///
///     [[multicast.switch]]
///     number = 1
///     address = "10.0.0.1"
///     domain = "rack 1"                   # may fail together with others of this domain
///
///     [[multicast.switch]]
///     number = 2
///     address = "10.0.0.2"
///
///     [[multicast.switch]]
///     number = 3
///     address = "10.0.0.3"
/// "#;
/// let deployment =
///     stateplane_host::deployment::Deployment::parse("deployment.toml".as_ref(), file)?;
/// let settings = deployment.multicast()?.settings("10.0.0.20:4795".parse()?, false)?;
/// assert_eq!((settings.groups, settings.switches.len()), (2, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastFile {
    /// Groups, numbered from 0; at most 32, and at most as many as the switches' program has.
    pub groups: u8,
    /// Members of each group, 2f + 1 for f failures: 3, which it is unless set, or 5.
    #[serde(default = "three")]
    pub replicas: u8,
    /// Entries of each group's window, as the switches' program has it; 1,024 unless set.
    #[serde(default = "thousand")]
    pub window: u32,
    /// Slots of sessions, as the switches' program has them; 64 unless set.
    #[serde(default = "sixty_four")]
    pub slots: u16,
    /// Lanes of a session, as the switches' program has them; 8 unless set. All sessions together
    /// have at most a quarter of the window.
    #[serde(default = "eight")]
    pub lanes: u8,
    /// Bytes of the longest payload: the MTU of the paths less 100, and less 48 more with `--keys`;
    /// 1,400 unless set, with `--keys` 1,352.
    pub longest: Option<u16>,
    /// ms of silence after which a switch is taken for dead; 100 unless set.
    #[serde(default = "hundred")]
    pub detection_ms: u32,
    /// ms after which the groups of a dead switch get another one; 1,000 unless set.
    #[serde(default = "second")]
    pub replace_after_ms: u32,
    /// ms after which a switch that learns and is not done leaves its place to another; 30,000
    /// unless set.
    #[serde(default = "thirty_seconds")]
    pub join_timeout_ms: u32,
    /// ms of silence after which a session is ended; 10,000 unless set.
    #[serde(default = "ten_seconds")]
    pub session_ttl_ms: u32,
    /// ms of silence, or without a step while more waits for it, after which a receiver is taken
    /// off its list; 2,000 unless set.
    #[serde(default = "two_seconds")]
    pub receiver_ttl_ms: u32,
    /// The switches.
    pub switch: Vec<MulticastSwitchFile>,
}

/// A switch, in the sections `[[multicast.switch]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastSwitchFile {
    /// Its number, which no other switch has or had.
    pub number: u32,
    /// Its own address, from which its program sends.
    pub address: Ipv4Addr,
    /// Name of its failure domain, such as its rack or host; one of its own unless set.
    pub domain: Option<String>,
}

fn three() -> u8 {
    3
}

fn thousand() -> u32 {
    1024
}

fn sixty_four() -> u16 {
    64
}

fn eight() -> u8 {
    8
}

fn hundred() -> u32 {
    100
}

fn second() -> u32 {
    1000
}

fn two_seconds() -> u32 {
    2_000
}

fn ten_seconds() -> u32 {
    10_000
}

fn thirty_seconds() -> u32 {
    30_000
}

fn microseconds(ms: u32) -> u64 {
    u64::from(ms) * 1000
}

/// Questions to a leader within the time of detection.
const QUESTIONS: u64 = 5;

impl MulticastFile {
    /// Settings of the controller that listens at `address`; `sealed` says that messages are sealed.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Multicast`]; [`ControllerError::TooLong`] for a number of a switch that is
    /// too great.
    pub fn settings(
        &self,
        address: SocketAddrV4,
        sealed: bool,
    ) -> Result<Settings, ControllerError> {
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
        let detection = microseconds(self.detection_ms);
        let settings = Settings {
            window: self.window,
            slots: self.slots,
            lanes: self.lanes,
            longest: self.longest.unwrap_or_else(|| longest_payload(sealed)),
            detection,
            watch: (detection / QUESTIONS).max(1),
            replace_after: microseconds(self.replace_after_ms),
            join_timeout: microseconds(self.join_timeout_ms),
            session_ttl: microseconds(self.session_ttl_ms),
            receiver_ttl: microseconds(self.receiver_ttl_ms),
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

    fn file(switches: &[(u32, Option<&str>)]) -> MulticastFile {
        let file: MulticastFile = toml::from_str("groups = 2\nswitch = []").unwrap();
        let switch = switches.iter().map(|(number, domain)| MulticastSwitchFile {
            number: *number,
            address: Ipv4Addr::from(0x0a00_0000 + number % 256),
            domain: domain.map(str::to_owned),
        });
        MulticastFile {
            switch: switch.collect(),
            ..file
        }
    }

    #[test]
    fn switches_of_one_domain_have_one_number_and_those_without_their_own() {
        let file = file(&[(7, Some("a")), (8, None), (9, Some("b")), (10, Some("a"))]);
        let settings = file.settings(ADDRESS, false).unwrap();
        let domains: Vec<u32> = settings.switches.iter().map(|it| it.domain).collect();
        assert_eq!(domains, [0, 1, 2, 0]);
        assert_eq!((settings.watch, settings.detection), (20_000, 100_000));
        assert_eq!(settings.address, ADDRESS);
        assert_eq!(file.number_of(Ipv4Addr::new(10, 0, 0, 9)), Some(9));
        assert_eq!(file.number_of(Ipv4Addr::new(10, 0, 0, 99)), None);
    }

    #[test]
    fn payloads_leave_room_for_seals_unless_the_file_says_their_length() {
        let file = file(&[(1, None), (2, None), (3, None)]);
        let longest =
            |file: &MulticastFile, sealed| file.settings(ADDRESS, sealed).unwrap().longest;
        assert_eq!(
            [false, true].map(|sealed| longest(&file, sealed)),
            [1400, 1352]
        );
        let set = MulticastFile {
            longest: Some(8900),
            ..file
        };
        assert_eq!(
            [false, true].map(|sealed| longest(&set, sealed)),
            [8900, 8900]
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let refused = |file: &MulticastFile| file.settings(ADDRESS, false).unwrap_err().code();
        assert_eq!(refused(&file(&[(1, None), (2, None)])), "K129");
        assert_eq!(refused(&file(&[(1, None), (1, None), (2, None)])), "K127");
        assert_eq!(
            refused(&file(&[(1, None), (2, None), (SWITCHES_END, None)])),
            "H402"
        );
        let good = file(&[(1, None), (2, None), (3, None)]);
        let wide = MulticastFile { groups: 33, ..good };
        assert_eq!(refused(&wide), "K122");
    }
}

//! The section `[multicast]`: what the multicast library needs of this switch.

use serde::Deserialize;
use stateplane_multicast_setup::{Hold, Multicast};
use stateplane_switch::Port;
use std::net::Ipv4Addr;

/// This switch's part in multicast ([`Multicast`]). Mirror sessions follow from it; groups, leaders
/// and sessions are the controller's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastFile {
    /// IPv4 address at which hosts, controller and other switches reach it.
    pub address: Ipv4Addr,
    /// Port whose egress held copies pass; 0 unless set.
    #[serde(default)]
    pub port: Port,
    /// µs before the first return of a held copy, at least 1; 2,000 unless set.
    pub hold_us: Option<u64>,
    /// Longest time between two returns of a held copy, in µs; 16 times `hold_us` unless set.
    pub longest_hold_us: Option<u64>,
}

/// Longest time between two returns unless set, in first ones.
const LONGEST: u64 = 16;

impl MulticastFile {
    /// The section's contents.
    pub(super) fn multicast(&self) -> Multicast {
        let first_us = self.hold_us.unwrap_or(Hold::default().first_us).max(1);
        let longest_us = self.longest_hold_us;
        let longest_us = longest_us.unwrap_or(first_us.saturating_mul(LONGEST));
        Multicast {
            address: self.address,
            port: self.port,
            hold: Hold {
                first_us,
                longest_us: longest_us.max(first_us),
            },
        }
    }
}

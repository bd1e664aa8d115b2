//! The section `[multicast]`: what the multicast library needs of this switch.

use super::SwitchFileCause;
use crate::sealing::longest_payload;
use crate::switch::Following;
use serde::Deserialize;
use stateplane_multicast_setup::{Hold, Multicast};
use stateplane_switch::Port;
use std::net::{Ipv4Addr, SocketAddrV4};

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
    /// Longest time between two returns of a held copy, in µs; 8 times `hold_us` unless set.
    pub longest_hold_us: Option<u64>,
    /// Addresses and UDP ports of the controllers that say which groups, leaders and sessions there
    /// are; they are reached by the machine's own network, not by the switch's ports. None unless
    /// set.
    #[serde(default)]
    pub controllers: Vec<SocketAddrV4>,
    /// Number by which the controllers know the switch, from 1.
    #[serde(default)]
    pub switch: u32,
    /// Bytes of the longest payload: the MTU of the paths less 100, and less 48 more with `--keys`;
    /// 1,400 unless set, with `--keys` 1,352.
    pub longest: Option<u16>,
    /// ms between two signs of life for the controllers, at least 1; 20 unless set.
    pub beat_ms: Option<u32>,
}

/// ms between two signs of life unless set.
const BEAT_MS: u32 = 20;

/// Longest time between two returns unless set, in first ones.
const LONGEST: u64 = 8;

impl MulticastFile {
    /// How the switch follows the controllers, if there are any; `sealed` says that messages are
    /// sealed.
    pub fn following(&self, sealed: bool) -> Option<Following> {
        (!self.controllers.is_empty()).then(|| Following {
            controllers: self.controllers.clone(),
            switch: self.switch,
            longest: self.longest.unwrap_or_else(|| longest_payload(sealed)),
            beat_us: u64::from(self.beat_ms.unwrap_or(BEAT_MS)) * 1000,
            sealed,
        })
    }

    /// Refuses a switch that follows controllers and has no number.
    pub(super) fn check(&self) -> Result<(), SwitchFileCause> {
        if self.switch == 0 && !self.controllers.is_empty() {
            return Err(SwitchFileCause::SwitchZero);
        }
        Ok(())
    }

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

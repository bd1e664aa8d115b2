//! The section `[coordination]`: what the coordination library needs of this switch.

use super::SwitchFileCause;
use serde::Deserialize;
use stateplane_coordination_setup::Coordination;
use stateplane_switch::Port;
use std::net::Ipv4Addr;

/// This switch's part in coordination ([`Coordination`]). Mirror session and generators follow
/// from it; its chains are the controller's.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoordinationFile {
    /// Number of the switch, from 1, which no other switch of the service has.
    pub switch: u32,
    /// IPv4 address at which clients, controller and other switches reach it.
    pub address: Ipv4Addr,
    /// Port whose egress the copies pass that become further messages; 0 unless set.
    #[serde(default)]
    pub port: Port,
}

impl CoordinationFile {
    /// The section's contents, checked.
    pub(super) fn coordination(&self) -> Result<Coordination, SwitchFileCause> {
        if self.switch == 0 {
            return Err(SwitchFileCause::SwitchZero);
        }
        Ok(Coordination {
            switch: self.switch,
            address: self.address,
            port: self.port,
        })
    }
}

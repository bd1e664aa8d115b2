//! The section `[sync]`: what the sync library needs of this switch.

use super::SwitchFileCause;
use serde::Deserialize;
use stateplane_switch::Port;
use stateplane_sync_setup::{CONTROL_PORT, Rates, Sync};
use std::net::Ipv4Addr;
use std::num::NonZeroU64;

/// `byte_time` of a megabit a second: 8 µs for each byte, in 2⁻¹⁶ µs.
const MEGABIT: u32 = 8 << 16;

/// This switch's part in sync ([`Sync`]). The packet generator follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncFile {
    /// Number of the switch, from 1.
    pub switch: u32,
    /// IPv4 address at which the engine reaches it.
    pub address: Ipv4Addr,
    /// µs between two turns of a group's carrier, at least 1; 64 to that of the next group's
    /// unless set.
    pub turn_us: Option<NonZeroU64>,
    /// Port towards the engine, as the program has it (SYNC_CONTROL_PORT); 500 unless set.
    #[serde(default = "usual_control_port")]
    pub control_port: Port,
    /// Writes and cuts are taken although messages at that port are not sealed: whoever reaches it
    /// may change registers (rule 32). False unless set.
    #[serde(default)]
    pub unsealed_writes: bool,
    /// Rates of groups that do not have the usual ones.
    #[serde(default)]
    pub groups: Vec<SyncGroupFile>,
}

/// Rates of one group (rules 13, 14 of `docs/sync-protocol.md`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyncGroupFile {
    /// Number of the group.
    pub group: u16,
    /// Budget of the group's messages in Mb/s, framing included, 1 to 524,288; 1,000 unless set.
    pub budget_mbps: Option<u32>,
    /// Budget that losses leave at least, in Mb/s; an eighth of the budget unless set.
    pub least_mbps: Option<u32>,
    /// µs of a window w, at least 1; 1,000 unless set.
    pub window_us: Option<u64>,
    /// Least t; 0 unless set.
    pub finest: Option<u64>,
    /// Greatest t; 0 for a view that is exact when the ring is empty; any unless set.
    pub coarsest: Option<u64>,
}

impl SyncGroupFile {
    fn rates(&self) -> Result<Rates, SwitchFileCause> {
        let usual = Rates::default();
        let byte_time = |mbps: u32| match mbps {
            1..=MEGABIT => Ok(MEGABIT / mbps),
            _ => Err(SwitchFileCause::SyncRate { group: self.group }),
        };
        let budget = self.budget_mbps.map(byte_time).transpose()?;
        let least = self.least_mbps.map(byte_time).transpose()?;
        let rates = Rates {
            byte_time: budget.unwrap_or(usual.byte_time),
            slowest_byte_time: match (least, budget) {
                (Some(least), _) => least,
                (None, Some(budget)) => budget.saturating_mul(8),
                (None, None) => usual.slowest_byte_time,
            },
            window_us: self.window_us.unwrap_or(usual.window_us),
            finest: self.finest.unwrap_or(usual.finest),
            coarsest: self.coarsest.unwrap_or(usual.coarsest),
        };
        let ordered = rates.byte_time <= rates.slowest_byte_time && rates.finest <= rates.coarsest;
        if !ordered || rates.window_us == 0 {
            return Err(SwitchFileCause::SyncRate { group: self.group });
        }
        Ok(rates)
    }
}

/// [`CONTROL_PORT`], for a file that does not say it.
fn usual_control_port() -> Port {
    CONTROL_PORT
}

impl SyncFile {
    /// The section's contents, checked, for a switch that takes sealed messages alone at
    /// `sealed_ports`.
    pub(super) fn sync(&self, sealed_ports: &[Port]) -> Result<Sync, SwitchFileCause> {
        if self.switch == 0 {
            return Err(SwitchFileCause::SwitchZero);
        }
        let rates = self.groups.iter();
        let rates = rates.map(|group| Ok((group.group, group.rates()?)));
        Ok(Sync {
            switch: self.switch,
            address: self.address,
            turn_us: self.turn_us.map(NonZeroU64::get),
            rates: rates.collect::<Result<_, SwitchFileCause>>()?,
            read_only: !self.unsealed_writes && !sealed_ports.contains(&self.control_port),
        })
    }
}

//! The comparison of settings of a switch and a store server, and its words.

use std::fmt;
use std::net::Ipv4Addr;

use stateplane_wire::greeting::{PROGRAM, Setting, SettingName};

/// Names of what a first lease gives, by their numbers in a greeting.
const FIRST_LEASES: [&str; 5] = ["zero", "nat-outbound", "none", "server", "nat-dependent"];

/// A setting that one side has otherwise than the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Of the side that tells it.
    pub here: Setting,
    /// Of the other side.
    pub there: Setting,
    /// File of the side that tells it.
    pub file_here: String,
    /// File of the other side.
    pub file_there: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.here.index;
        match self.here.name {
            SettingName::Version => f.write_str("version of the replication message")?,
            SettingName::KeyLength => f.write_str("bytes of a flow's key")?,
            SettingName::Shards => f.write_str("shards")?,
            SettingName::Head => write!(f, "head of the chain of shard {index}")?,
            SettingName::ChainEpoch => write!(f, "chain_epoch of shard {index}")?,
            SettingName::StateLength => write!(f, "state_length of class {index}")?,
            SettingName::FirstLease => write!(f, "first_lease of class {index}")?,
            SettingName::SwitchAddress => {
                f.write_str("address of the switch that has this number")?;
            }
            SettingName::Incarnation => {
                f.write_str("start of the switch that has this number and address")?;
            }
        }
        f.write_str(": here ")?;
        side(f, &self.here, &self.file_here)?;
        f.write_str("; there ")?;
        side(f, &self.there, &self.file_there)
    }
}

fn side(f: &mut fmt::Formatter<'_>, setting: &Setting, file: &str) -> fmt::Result {
    match (setting.value, setting.name) {
        (None, SettingName::StateLength | SettingName::FirstLease) => f.write_str("no such class"),
        (None, SettingName::Head | SettingName::ChainEpoch) => f.write_str("no such shard"),
        (None, _) => f.write_str("none"),
        (Some(value), SettingName::Head | SettingName::SwitchAddress) => {
            write!(f, "{}", Ipv4Addr::from(value))
        }
        (Some(value), SettingName::FirstLease) => match FIRST_LEASES.get(value as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "{value}"),
        },
        (Some(value), _) => write!(f, "{value}"),
    }?;
    match setting.line {
        Some(PROGRAM) => f.write_str(" (its program)"),
        Some(line) => write!(f, " ({file}:{line})"),
        None if setting.name == SettingName::Incarnation => Ok(()),
        None => write!(f, " ({file})"),
    }
}

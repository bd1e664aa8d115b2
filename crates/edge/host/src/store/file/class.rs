//! Flow classes in the configuration file.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use stateplane_store::{
    ClassConfig, FirstLease, IdleTimeouts, Quota, ServiceAt, StateTimeout, TCP_TRANSITORY,
};
use stateplane_wire::ipv4;

use super::StoreError;

/// Seconds that still fit as µs, with room for the time since boot.
const MOST_SECONDS: u64 = 1 << 40;

/// One flow class.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassFile {
    /// Byte 0 of the class's keys.
    pub id: u8,
    /// Bytes of state.
    pub state_length: u16,
    /// Source of the state that a flow's first lease request gets.
    pub first_lease: FirstLeaseFile,
    /// With `server`: where the key names the service; bytes 6 to 9 and 12 to 13 unless
    /// set.
    pub service_at: Option<ServiceAtFile>,
    /// With `nat-outbound` and `nat-dependent`: the class of the inbound keys.
    pub inbound_class: Option<u8>,
    /// With `nat-dependent`: seconds without activity after which a TCP connection that is not open,
    /// or has ended, is forgotten; 240 unless set. An open one has the idle timeout of TCP.
    pub tcp_transitory_s: Option<u64>,
    /// True if all leases are shared; `false` unless set.
    #[serde(default)]
    pub shared_only: bool,
    /// Idle timeouts of records. Unless set: for ever with `first_lease = "zero"`, otherwise TCP
    /// 7440 s and everything else 300 s.
    pub idle_timeout_s: Option<IdleFile>,
    /// Idle timeouts of records with certain states; the first that matches takes precedence over
    /// `idle_timeout_s`.
    #[serde(default)]
    pub idle_in_state: Vec<IdleInStateFile>,
    /// Maximum number of records of each tenant; unlimited unless set.
    pub quota: Option<QuotaFile>,
}

/// Maximum number of records of each tenant of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaFile {
    /// Maximum number of records of a tenant.
    pub records: usize,
    /// First byte of the key that names a tenant; 1 unless set.
    #[serde(default = "first_byte")]
    pub tenant_first: u8,
    /// Number of key bytes that name the tenant. Unless set, the class is one tenant.
    #[serde(default)]
    pub tenant_length: u8,
}

impl QuotaFile {
    fn quota(self) -> Quota {
        Quota {
            records: self.records,
            first: self.tenant_first,
            length: self.tenant_length,
        }
    }
}

/// Source of the state that a flow's first lease request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstLeaseFile {
    /// A record of zero state is made.
    Zero,
    /// A public port is taken, and both records of the mapping are made.
    NatOutbound,
    /// The same, for one remote endpoint alone, which both keys name: a port serves many at once.
    NatDependent,
    /// The flow is given to a server of the service that its key names; a service that is
    /// not configured leaves that to the program.
    Server,
    /// The request is refused.
    None,
}

impl FirstLeaseFile {
    /// Its number in greetings ([`SettingName::FirstLease`]).
    ///
    /// [`SettingName::FirstLease`]: stateplane_wire::greeting::SettingName::FirstLease
    pub(crate) fn number(self) -> u32 {
        match self {
            FirstLeaseFile::Zero => 0,
            FirstLeaseFile::NatOutbound => 1,
            FirstLeaseFile::None => 2,
            FirstLeaseFile::Server => 3,
            FirstLeaseFile::NatDependent => 4,
        }
    }
}

/// Position of the service's endpoint in the keys of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceAtFile {
    /// First byte of its address.
    pub address: u8,
    /// First byte of its port.
    pub port: u8,
}

/// Idle timeout of records with certain states.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleInStateFile {
    /// IP protocol of the records; any unless set.
    pub protocol: Option<ProtocolFile>,
    /// Index of the state's byte that is compared, from 0; 0 unless set.
    #[serde(default)]
    pub byte: u16,
    /// The values that it has then.
    pub values: BTreeSet<u8>,
    /// Seconds of idleness.
    pub timeout_s: u64,
}

/// An IP protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolFile {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP.
    Icmp,
}

impl ProtocolFile {
    pub(super) fn number(self) -> u8 {
        match self {
            ProtocolFile::Tcp => ipv4::PROTOCOL_TCP,
            ProtocolFile::Udp => ipv4::PROTOCOL_UDP,
            ProtocolFile::Icmp => ipv4::PROTOCOL_ICMP,
        }
    }
}

/// Idle timeouts in seconds, by IP protocol (byte 1 of the key).
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleFile {
    /// Of protocols not named; for ever unless set.
    pub default: Option<u64>,
    /// Of TCP.
    pub tcp: Option<u64>,
    /// Of UDP.
    pub udp: Option<u64>,
    /// Of ICMP.
    pub icmp: Option<u64>,
}

fn first_byte() -> u8 {
    1
}

impl ClassFile {
    pub(super) fn config(&self) -> Result<ClassConfig, StoreError> {
        let first_lease = match (self.first_lease, self.inbound_class) {
            (FirstLeaseFile::Zero, _) => FirstLease::Zero,
            (FirstLeaseFile::None, _) => FirstLease::None,
            (FirstLeaseFile::Server, _) => {
                let at = self.service_at.unwrap_or(ServiceAtFile {
                    address: 6,
                    port: 12,
                });
                let service_at = ServiceAt {
                    address: at.address,
                    port: at.port,
                };
                FirstLease::Server { service_at }
            }
            (FirstLeaseFile::NatOutbound, Some(inbound_class)) => {
                FirstLease::NatOutbound { inbound_class }
            }
            (FirstLeaseFile::NatDependent, Some(inbound_class)) => {
                let seconds = self.tcp_transitory_s;
                let transitory = seconds.map(|seconds| micros("tcp_transitory_s", seconds));
                FirstLease::NatDependent {
                    inbound_class,
                    tcp_transitory: transitory.transpose()?.unwrap_or(TCP_TRANSITORY),
                }
            }
            (FirstLeaseFile::NatOutbound | FirstLeaseFile::NatDependent, None) => {
                return Err(StoreError::NoInboundClass { class: self.id });
            }
        };
        let mut idle = match (&self.idle_timeout_s, first_lease) {
            (Some(idle), _) => idle.timeouts()?,
            (None, FirstLease::Zero) => IdleTimeouts::never(),
            (None, _) => IdleTimeouts::nat(),
        };
        for of in &self.idle_in_state {
            idle.in_state.push(StateTimeout {
                protocol: of.protocol.map(ProtocolFile::number),
                byte: of.byte,
                values: of.values.clone(),
                timeout: micros("idle_in_state", of.timeout_s)?,
            });
        }
        Ok(ClassConfig {
            class: self.id,
            state_length: self.state_length,
            first_lease,
            shared_only: self.shared_only,
            idle,
            quota: self.quota.map(QuotaFile::quota),
        })
    }
}

impl IdleFile {
    fn timeouts(&self) -> Result<IdleTimeouts, StoreError> {
        let micros = |seconds| micros("idle_timeout_s", seconds);
        let mut by_protocol = BTreeMap::new();
        for (protocol, seconds) in [
            (ipv4::PROTOCOL_TCP, self.tcp),
            (ipv4::PROTOCOL_UDP, self.udp),
            (ipv4::PROTOCOL_ICMP, self.icmp),
        ] {
            if let Some(seconds) = seconds {
                by_protocol.insert(protocol, micros(seconds)?);
            }
        }
        Ok(IdleTimeouts {
            default: self.default.map(micros).transpose()?,
            by_protocol,
            in_state: Vec::new(),
        })
    }
}

/// `seconds` of the setting `name` in µs.
fn micros(name: &'static str, seconds: u64) -> Result<u64, StoreError> {
    if seconds > MOST_SECONDS {
        return Err(StoreError::TooLong {
            name,
            value: seconds,
            most: MOST_SECONDS,
        });
    }
    Ok(seconds * 1_000_000)
}

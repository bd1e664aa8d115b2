//! Mappings to public ports for one remote endpoint each (rule 27): the outbound record with the
//! public endpoint, and the inbound one with the inside endpoint; the keys of both name the remote
//! endpoint.

use core::net::SocketAddrV4;

use stateplane_wire::chain::Creation;
use stateplane_wire::replication::Key;

use super::ports::{PortPool, check_mappings, endpoint_in, payload};
use super::{Creator, Made, Setting};
use crate::config::{ClassConfig, Config, ConfigError, FirstLease, NAT_DEPENDENT_STATE_LENGTH};
use crate::record::State;
use crate::remote_ports::RemotePorts;
use crate::shard::{ConnectionKey, NatKey, Shard};

pub(super) struct ConnectionPorts;

fn inbound_class(class: &ClassConfig) -> Option<u8> {
    match class.first_lease {
        FirstLease::NatDependent { inbound_class, .. } => Some(inbound_class),
        _ => None,
    }
}

/// Refuses a class whose records are not endpoints and flags that switches write.
fn check_state(class: &ClassConfig) -> Result<(), ConfigError> {
    if class.state_length != NAT_DEPENDENT_STATE_LENGTH {
        return Err(ConfigError::NatDependentStateLength {
            class: class.class,
            length: class.state_length,
        });
    }
    if class.shared_only {
        return Err(ConfigError::NatDependentShared { class: class.class });
    }
    Ok(())
}

/// The endpoint, and flags that say nothing of a connection.
fn fresh(endpoint: &NatKey) -> State {
    let mut state = State::from_slice(&endpoint.state());
    state.push(0);
    state
}

/// The endpoint that a state begins with.
fn endpoint_of(state: &[u8]) -> Option<SocketAddrV4> {
    let [a, b, c, d, high, low, ..] = *state else {
        return None;
    };
    let port = u16::from_be_bytes([high, low]);
    Some(SocketAddrV4::new([a, b, c, d].into(), port))
}

impl Creator for ConnectionPorts {
    fn kind(&self) -> u8 {
        PortPool.kind()
    }

    fn records(&self) -> usize {
        PortPool.records()
    }

    fn fingerprint(&self, class: &ClassConfig) -> [u8; 3] {
        [4, inbound_class(class).unwrap_or_default(), 0]
    }

    fn check(&self, config: &Config, class: &ClassConfig) -> Result<(), ConfigError> {
        let Some(inbound_class) = inbound_class(class) else {
            return Ok(());
        };
        let independent =
            |of: &&ClassConfig| matches!(of.first_lease, FirstLease::NatOutbound { .. });
        if let Some(other) = config.classes.iter().find(independent) {
            return Err(ConfigError::MixedNat {
                class: class.class,
                other: other.class,
            });
        }
        check_mappings(config, class, inbound_class, check_state)
    }

    fn prepare(&self, config: &Config, number: u16, shard: &mut Shard) {
        let pool = config.nat.as_ref();
        shard.remote_ports = pool.and_then(|pool| RemotePorts::new(number, config.shards, pool));
    }

    fn choose(&self, setting: &Setting<'_>, _: &ClassConfig, key: &Key) -> Option<Creation> {
        let ConnectionKey { own, remote } = ConnectionKey::of(key);
        let ports = setting.shard.remote_ports.as_ref()?;
        let inside = SocketAddrV4::new(own.address, own.port);
        // Each grant moves the epoch on, so a port rests.
        let start = setting.shard.epoch;
        let (address, port) = ports.next(own.protocol, inside, remote, start)?;
        Some(Creation {
            kind: self.kind(),
            payload: payload(address, port),
        })
    }

    fn create(
        &self,
        shard: &mut Shard,
        class: &ClassConfig,
        key: &Key,
        payload: [u8; 6],
    ) -> Option<Made> {
        let outbound = ConnectionKey::of(key);
        let (address, port) = endpoint_in(payload);
        let inbound = ConnectionKey {
            own: NatKey {
                class: inbound_class(class)?,
                address,
                port,
                ..outbound.own
            },
            ..outbound
        };
        let public = SocketAddrV4::new(address, port);
        let ports = shard.remote_ports.as_ref()?;
        if !ports.is_free(outbound.own.protocol, public, outbound.remote) {
            return None;
        }
        Some(Made {
            state: fresh(&inbound.own),
            other: Some((inbound.key(), fresh(&outbound.own))),
        })
    }

    fn is_low(&self, setting: &Setting<'_>, key: &Key, creation: &Creation) -> bool {
        let (address, _) = endpoint_in(creation.payload);
        let ConnectionKey { own, remote } = ConnectionKey::of(key);
        setting.shard.remote_ports.as_ref().is_some_and(|ports| {
            let free = ports.free(own.protocol, address, remote);
            free * 100 < ports.size() * usize::from(setting.config.limits.pool_low)
        })
    }

    /// The taken ports follow from the records alone, also from those of a snapshot.
    fn count(&self, shard: &mut Shard, _: &ClassConfig, key: &Key, state: &[u8], made: bool) {
        let ConnectionKey { own, remote } = ConnectionKey::of(key);
        if let Some(ports) = &mut shard.remote_ports
            && let Some(public) = endpoint_of(state)
        {
            if made {
                ports.take(own.protocol, public, remote);
            } else {
                ports.give(own.protocol, public, remote);
            }
        }
    }
}

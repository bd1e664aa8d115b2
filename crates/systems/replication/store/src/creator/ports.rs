//! Mappings to public ports: the outbound record with the public endpoint, and the inbound
//! one with the inside endpoint (rule 22).

use core::net::Ipv4Addr;

use stateplane_wire::chain::Creation;
use stateplane_wire::replication::Key;

use super::{Creator, Made, Setting};
use crate::config::{ClassConfig, Config, ConfigError, FirstLease, NAT_STATE_LENGTH};
use crate::pool::Pools;
use crate::record::State;
use crate::shard::{NatKey, Shard};

pub(super) struct PortPool;

/// Port, then address.
pub(super) fn payload(address: Ipv4Addr, port: u16) -> [u8; 6] {
    let ([high, low], [a, b, c, d]) = (port.to_be_bytes(), address.octets());
    [high, low, a, b, c, d]
}

pub(super) fn endpoint_in([high, low, a, b, c, d]: [u8; 6]) -> (Ipv4Addr, u16) {
    (Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
}

/// Refuses a class whose records are not endpoints that switches only read.
fn check_endpoint(class: &ClassConfig) -> Result<(), ConfigError> {
    if class.state_length != NAT_STATE_LENGTH {
        return Err(ConfigError::NatStateLength {
            class: class.class,
            length: class.state_length,
        });
    }
    if !class.shared_only {
        return Err(ConfigError::NatWritable { class: class.class });
    }
    Ok(())
}

/// Refuses an outbound class without an inbound class or a pool. `check_state` looks at the records
/// of both classes.
pub(super) fn check_mappings(
    config: &Config,
    class: &ClassConfig,
    inbound_class: u8,
    check_state: fn(&ClassConfig) -> Result<(), ConfigError>,
) -> Result<(), ConfigError> {
    check_state(class)?;
    let mut classes = config.classes.iter();
    let inbound = classes.find(|of| of.class == inbound_class);
    match inbound.filter(|inbound| inbound.first_lease == FirstLease::None) {
        Some(inbound) => check_state(inbound)?,
        None => {
            return Err(ConfigError::InboundClass {
                class: class.class,
                inbound_class,
            });
        }
    }
    match config.nat {
        Some(_) => Ok(()),
        None => Err(ConfigError::NoPool { class: class.class }),
    }
}

fn inbound_class(class: &ClassConfig) -> Option<u8> {
    match class.first_lease {
        FirstLease::NatOutbound { inbound_class } => Some(inbound_class),
        _ => None,
    }
}

impl Creator for PortPool {
    fn kind(&self) -> u8 {
        4
    }

    fn records(&self) -> usize {
        2
    }

    fn fingerprint(&self, class: &ClassConfig) -> [u8; 3] {
        [1, inbound_class(class).unwrap_or_default(), 0]
    }

    fn check(&self, config: &Config, class: &ClassConfig) -> Result<(), ConfigError> {
        let Some(inbound_class) = inbound_class(class) else {
            return Ok(());
        };
        check_mappings(config, class, inbound_class, check_endpoint)
    }

    fn prepare(&self, config: &Config, number: u16, shard: &mut Shard) {
        let pool = config.nat.as_ref();
        shard.pools = pool.and_then(|pool| Pools::new(number, config.shards, pool));
    }

    fn choose(&self, setting: &Setting<'_>, _: &ClassConfig, key: &Key) -> Option<Creation> {
        let inside = NatKey::of(key);
        let pools = setting.shard.pools.as_ref()?;
        let (address, port) = pools.next(inside.protocol, inside.address, inside.port)?;
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
        let inside = NatKey::of(key);
        let (address, port) = endpoint_in(payload);
        let public = NatKey {
            class: inbound_class(class)?,
            address,
            port,
            ..inside
        };
        let pools = shard.pools.as_mut()?;
        if !pools.take(inside.protocol, address, port) {
            return None;
        }
        let state = State::from_slice(&public.state());
        let inbound = State::from_slice(&inside.state());
        Some(Made {
            state,
            other: Some((public.key(), inbound)),
        })
    }

    fn is_low(&self, setting: &Setting<'_>, key: &Key, creation: &Creation) -> bool {
        let (address, _) = endpoint_in(creation.payload);
        setting.shard.pools.as_ref().is_some_and(|pools| {
            let free = pools.free(NatKey::of(key).protocol, address);
            free * 100 < pools.size() * usize::from(setting.config.limits.pool_low)
        })
    }

    fn forget(&self, shard: &mut Shard, state: &[u8], other: Option<&Key>) {
        if let Some(inbound) = other
            && let Some(pools) = &mut shard.pools
            && state.len() == usize::from(NAT_STATE_LENGTH)
        {
            let public = NatKey::of(inbound);
            pools.give(public.protocol, public.address, public.port);
        }
    }
}

//! Flows given to servers: records whose state begins with a server of the service that
//! the key names.

use std::collections::BTreeSet;

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::chain::Creation;
use stateplane_wire::replication::Key;

use super::{Creator, Made, Setting, zero};
use crate::config::{ClassConfig, Config, ConfigError, FirstLease};
use crate::service::{SERVER_STATE_LENGTH, ServiceAt, server_in, server_state};
use crate::shard::Shard;

pub(super) struct ServerChoice;

fn service_at(class: &ClassConfig) -> Option<ServiceAt> {
    match class.first_lease {
        FirstLease::Server { service_at } => Some(service_at),
        _ => None,
    }
}

impl Creator for ServerChoice {
    fn kind(&self) -> u8 {
        16
    }

    fn fingerprint(&self, class: &ClassConfig) -> [u8; 3] {
        service_at(class).map_or([3, 0, 0], |at| [3, at.address, at.port])
    }

    fn check(&self, config: &Config, class: &ClassConfig) -> Result<(), ConfigError> {
        let Some(service_at) = service_at(class) else {
            return Ok(());
        };
        if class.state_length < SERVER_STATE_LENGTH {
            return Err(ConfigError::ServerStateLength {
                class: class.class,
                length: class.state_length,
            });
        }
        if !service_at.is_valid() {
            return Err(ConfigError::ServiceAt {
                class: class.class,
                address: service_at.address,
                port: service_at.port,
            });
        }
        if config.services.is_empty() {
            return Err(ConfigError::NoServices { class: class.class });
        }
        let mut services = BTreeSet::new();
        for service in &config.services {
            if !services.insert(service.id) {
                return Err(ConfigError::DuplicateService {
                    service: service.id,
                });
            }
            let mut servers = BTreeSet::new();
            for server in &service.servers {
                if !servers.insert(server.endpoint) {
                    return Err(ConfigError::DuplicateServer {
                        service: service.id,
                        server: server.endpoint,
                    });
                }
            }
        }
        Ok(())
    }

    fn choose(&self, setting: &Setting<'_>, class: &ClassConfig, key: &Key) -> Option<Creation> {
        let named = service_at(class)?.service(key);
        let mut services = setting.config.services.iter();
        let Some(service) = services.find(|service| Some(service.id) == named) else {
            return Some(zero::CREATION);
        };
        let place = (setting.number, setting.config.shards);
        let server = setting
            .shard
            .loads
            .choose(service, setting.unhealthy, place)?;
        let ([high, low], [a, b, c, d]) = (server.port().to_be_bytes(), server.ip().octets());
        Some(Creation {
            kind: self.kind(),
            payload: [high, low, a, b, c, d],
        })
    }

    fn create(
        &self,
        _: &mut Shard,
        class: &ClassConfig,
        _: &Key,
        [high, low, a, b, c, d]: [u8; 6],
    ) -> Option<Made> {
        let port = u16::from_be_bytes([high, low]);
        let server = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port);
        Some(Made {
            state: server_state(server, class.state_length.into()),
            other: None,
        })
    }

    fn follows_state(&self) -> bool {
        true
    }

    fn count(&self, shard: &mut Shard, class: &ClassConfig, key: &Key, state: &[u8], made: bool) {
        if let Some(service_at) = service_at(class)
            && let (Some(service), Some(server)) = (service_at.service(key), server_in(state))
        {
            if made {
                shard.loads.add(service, server);
            } else {
                shard.loads.remove(service, server);
            }
        }
    }
}

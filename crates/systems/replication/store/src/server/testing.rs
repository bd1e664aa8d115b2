//! Parts that the tests of servers share.

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::control::{ChainConfig, Heartbeat, Member, Message};
use stateplane_wire::replication::{Key, MessageType, Repr};

use super::{Recipient, Recovery, Server, Setup};
use crate::config::{ClassConfig, Config, FirstLease, IdleTimeouts};
use crate::saved::RecoveryError;

pub(super) const SWITCH: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4793);

pub(super) fn member(server: u32, incarnation: u32) -> Member {
    let address = Ipv4Addr::new(10, 0, 1, server as u8);
    Member {
        server,
        incarnation,
        requests: SocketAddrV4::new(address, 4793),
        links: SocketAddrV4::new(address, 4794),
    }
}

/// Of a server with a disk, and one class.
pub(super) fn template(chain_length: u8, position: u8) -> Config {
    let config = Config::new(chain_length, position).with_class(ClassConfig {
        class: 1,
        state_length: 4,
        first_lease: FirstLease::Zero,
        shared_only: false,
        idle: IdleTimeouts::never(),
        quota: None,
    });
    Config {
        durable: true,
        ..config
    }
}

/// The start `incarnation` of the server at `position` of a fixed chain. Server 1 is the head.
pub(super) fn fixed(chain_length: u8, position: u8, incarnation: u32) -> Setup {
    let servers = 1..=u32::from(chain_length);
    Setup::Fixed {
        config: template(chain_length, position),
        incarnation,
        links: servers.map(|server| member(server, 0).links).collect(),
    }
}

/// A server under a controller, with one shard beside that of chain 1 and `period` µs between
/// heartbeats.
pub(super) fn managed(identity: Member, period: u64) -> Setup {
    Setup::Managed {
        template: template(1, 0).with_shards(2),
        identity,
        period,
    }
}

/// The server that `setup` makes, of a chain that just begins.
pub(super) fn started(setup: &Setup) -> Server {
    let mut server = setup.server(1).unwrap();
    server.with_replica(0, |replica| replica.starts(1, false));
    server
}

/// Asks `server` for a lease of `flow`, in configuration `epoch` of the chain of `shard`.
pub(super) fn ask(server: &mut Server, shard: u16, flow: u8, epoch: u32) {
    let mut key = [0; 16];
    key[..2].copy_from_slice(&[1, flow]);
    let request = Repr {
        shard,
        chain_epoch: epoch,
        switch_id: 1,
        incarnation: 1,
        claim: flow.into(),
        request: 1,
        ..Repr::new(MessageType::LeaseRequest, Key(key))
    };
    server.handle_request(1, SWITCH, &request.to_vec().unwrap());
}

pub(super) fn configure(server: &mut Server, config: &ChainConfig) {
    let message = Message::Configure {
        controller: 1,
        config: config.clone(),
    };
    server.handle_control(1, &message.to_vec());
}

/// Lets everything be saved behind `records`.
pub(super) fn save(server: &mut Server, records: &mut Vec<Vec<u8>>) {
    records.extend(core::iter::from_fn(|| server.poll_record()));
    server.handle_saved();
}

/// The server that `records` make, once it has saved that it came back.
pub(super) fn recovered(setup: Setup, records: &[Vec<u8>]) -> Result<Server, RecoveryError> {
    let mut recovery = Recovery::new(setup);
    for record in records {
        recovery.take(9, record)?;
    }
    let mut server = recovery.finish()?;
    save(&mut server, &mut Vec::new());
    Ok(server)
}

/// Datagrams that `server` sends at `now`.
pub(super) fn sent(server: &mut Server, now: u64) -> Vec<(Recipient, Vec<u8>)> {
    server.handle_timeout(now);
    let sent = core::iter::from_fn(|| server.poll_transmit(now));
    sent.map(|datagram| (datagram.to, datagram.bytes.to_vec()))
        .collect()
}

/// The heartbeats among what `server` sends at `now`.
pub(super) fn heartbeats(server: &mut Server, now: u64) -> Vec<Heartbeat> {
    let sent = sent(server, now).into_iter();
    sent.filter_map(|(_, bytes)| match Message::parse(&bytes) {
        Ok(Message::Heartbeat(heartbeat)) => Some(heartbeat),
        _ => None,
    })
    .collect()
}

//! Endpoints in the keys and states of mappings, and names of flows.

use crate::options::ProgramKind;
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_apps::AppId;
use stateplane_history::replication::{Endpoint, Flow, Protocol};
use stateplane_wire::replication::Key;

/// An endpoint in the histories' terms; protocols that these do not know count as UDP.
fn endpoint(protocol: u8, socket: SocketAddrV4) -> Endpoint {
    Endpoint {
        address: *socket.ip(),
        port: socket.port(),
        protocol: Protocol::from_number(protocol).unwrap_or(Protocol::Udp),
    }
}

/// The endpoint that a mapping's key names.
pub(crate) fn endpoint_of(key: &Key) -> Endpoint {
    let [_, protocol, a, b, c, d, high, low, ..] = key.0;
    let socket = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    endpoint(protocol, socket)
}

/// The remote endpoint in the key of a mapping that serves it alone.
pub(crate) fn remote_of(key: &Key) -> Endpoint {
    let [_, protocol, .., a, b, c, d, high, low, _, _] = key.0;
    let socket = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    endpoint(protocol, socket)
}

/// The endpoint that a mapping's state begins with; the protocol is its key's.
pub(crate) fn endpoint_in(state: &[u8], protocol: u8) -> Option<Endpoint> {
    let &[a, b, c, d, high, low, ..] = state else {
        return None;
    };
    let port = u16::from_be_bytes([high, low]);
    Some(endpoint(
        protocol,
        SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port),
    ))
}

/// Name of the flow with this key.
pub(crate) fn flow_name(program: ProgramKind, key: &Key) -> Flow {
    let app = program.app();
    Flow::new(&app.map_or_else(|| key.to_string(), |app: AppId| app.flow_name(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_wire::replication::KEY_LENGTH;

    #[test]
    fn keys_and_states_name_endpoints() {
        let mut key = [0; KEY_LENGTH];
        key[..8].copy_from_slice(&[2, 6, 10, 0, 0, 1, 0x0f, 0xa0]);
        let inside = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000);
        assert_eq!(endpoint_of(&Key(key)), endpoint(6, inside));
        assert_eq!(endpoint_in(&key[2..8], 6), Some(endpoint(6, inside)));
    }
}

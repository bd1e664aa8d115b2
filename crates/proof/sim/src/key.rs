//! Flow keys as the programs make them, and their names in histories.

use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_history::replication::{Endpoint, Flow, Protocol};
use stateplane_wire::replication::{KEY_LENGTH, Key};

/// `CLASS_COUNTER` of the counter.
pub(crate) const CLASS_COUNTER: u8 = 1;
/// `CLASS_NAT_OUTBOUND` of the NAT.
pub(crate) const CLASS_NAT_OUTBOUND: u8 = 2;
/// `CLASS_NAT_INBOUND` of the NAT.
pub(crate) const CLASS_NAT_INBOUND: u8 = 3;

/// `CLASS_NAT_SESSION` of the NAT.
pub(crate) const CLASS_NAT_SESSION: u8 = 14;

/// The counter's key of a packet.
pub(crate) fn counter_key(protocol: u8, source: SocketAddrV4, destination: SocketAddrV4) -> Key {
    let mut key = [0; KEY_LENGTH];
    key[0] = CLASS_COUNTER;
    key[1] = protocol;
    key[2..6].copy_from_slice(&source.ip().octets());
    key[6..10].copy_from_slice(&destination.ip().octets());
    key[10..12].copy_from_slice(&source.port().to_be_bytes());
    key[12..14].copy_from_slice(&destination.port().to_be_bytes());
    Key(key)
}

/// The NAT's key of an endpoint.
pub(crate) fn nat_key(class: u8, protocol: u8, endpoint: SocketAddrV4) -> Key {
    let mut key = [0; KEY_LENGTH];
    key[0] = class;
    key[1] = protocol;
    key[2..6].copy_from_slice(&endpoint.ip().octets());
    key[6..8].copy_from_slice(&endpoint.port().to_be_bytes());
    Key(key)
}

/// An endpoint in the histories' terms; protocols that these do not know count as UDP.
pub(crate) fn endpoint(protocol: u8, socket: SocketAddrV4) -> Endpoint {
    Endpoint {
        address: *socket.ip(),
        port: socket.port(),
        protocol: Protocol::from_number(protocol).unwrap_or(Protocol::Udp),
    }
}

/// The endpoint that a NAT key names.
pub(crate) fn endpoint_of(key: &Key) -> Endpoint {
    let [_, protocol, a, b, c, d, high, low, ..] = key.0;
    let socket = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]));
    endpoint(protocol, socket)
}

/// The endpoint that a NAT record's state holds; the protocol is its key's.
pub(crate) fn endpoint_in(state: &[u8], protocol: u8) -> Option<Endpoint> {
    let &[a, b, c, d, high, low] = state else {
        return None;
    };
    let port = u16::from_be_bytes([high, low]);
    Some(endpoint(
        protocol,
        SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port),
    ))
}

/// Name of the flow with this key.
pub(crate) fn flow_name(key: &Key) -> Flow {
    let number = |at: usize| u16::from_be_bytes([key.0[at], key.0[at + 1]]);
    let address = |at: usize| Ipv4Addr::new(key.0[at], key.0[at + 1], key.0[at + 2], key.0[at + 3]);
    let name = match key.class() {
        CLASS_COUNTER => format!(
            "{}:{}>{}:{}",
            address(2),
            number(10),
            address(6),
            number(12)
        ),
        CLASS_NAT_OUTBOUND => format!("inside-{}", endpoint_of(key)),
        CLASS_NAT_INBOUND => format!("public-{}", endpoint_of(key)),
        _ => key.to_string(),
    };
    Flow::new(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_laid_out_and_named() {
        let inside = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 4000);
        let outside = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 9), 5000);
        let key = counter_key(17, inside, outside);
        assert_eq!(
            key.0,
            [
                1, 17, 10, 0, 0, 1, 198, 51, 100, 9, 0x0f, 0xa0, 0x13, 0x88, 0, 0
            ]
        );
        assert_eq!(
            flow_name(&key).to_string(),
            "10.0.0.1:4000>198.51.100.9:5000"
        );
        let key = nat_key(CLASS_NAT_OUTBOUND, 6, inside);
        assert_eq!(flow_name(&key).to_string(), "inside-10.0.0.1:4000/tcp");
        assert_eq!(endpoint_of(&key), endpoint(6, inside));
        assert_eq!(
            endpoint_in(&[10, 0, 0, 1, 0x0f, 0xa0], 6),
            Some(endpoint(6, inside))
        );
    }
}

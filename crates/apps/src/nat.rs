//! `apps/nat`. Hosts outside answer to the public endpoints that they see; the checker `nat`
//! judges which endpoint inside belongs to which.

mod connections;
mod hosts;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_wire::replication::Key;

static ROOM: Room = Room::new("apps", "nat");
static FILTERING_ROOM: Room = Room::variant("apps/nat", "filtering-nat");
static DEPENDENT_ROOM: Room = Room::variant("apps/nat", "dependent-nat");

pub(crate) struct Nat;

/// The NAT, with packets from outside filtered by address and port.
pub(crate) struct FilteringNat;

/// The NAT whose mappings name the remote endpoint too.
pub(crate) struct DependentNat;

/// The key of a mapping between an endpoint, inside or public, and a remote one.
fn flow_key(class: u8, protocol: u8, own: SocketAddrV4, remote: SocketAddrV4) -> Key {
    let mut key = hosts::endpoint_key(class, protocol, own);
    key.0[8..12].copy_from_slice(&remote.ip().octets());
    key.0[12..14].copy_from_slice(&remote.port().to_be_bytes());
    key
}

/// The class of keys with an endpoint inside.
fn inside_class() -> u8 {
    ROOM.class().id
}

/// The class of keys with a public endpoint.
fn public_class() -> Option<u8> {
    ROOM.class_made("none").map(|class| class.id)
}

/// Name of the flow whose key names an endpoint.
fn flow_name(key: &Key) -> String {
    let side = match key.class() {
        class if class == inside_class() => "inside",
        class if Some(class) == public_class() => "public",
        _ => return key.to_string(),
    };
    let [_, protocol, ends @ ..] = key.0;
    let socket = |at: usize| {
        let [a, b, c, d, high, low] = core::array::from_fn(|byte| ends[at + byte]);
        SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))
    };
    let end = hosts::endpoint(protocol, socket(0));
    match socket(6) {
        remote if remote.ip().is_unspecified() => format!("{side}-{end}"),
        remote => format!("{side}-{end}-with-{remote}"),
    }
}

impl App for Nat {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::Nat>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Translations
    }

    fn flow_name(&self, key: &Key) -> String {
        flow_name(key)
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Connections)
    }
}

impl App for FilteringNat {
    fn room(&self) -> &'static Room {
        &FILTERING_ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Nat::filtering())
    }

    fn judge(&self) -> Judge {
        Judge::Translations
    }

    fn flow_name(&self, key: &Key) -> String {
        flow_name(key)
    }
}

impl App for DependentNat {
    fn room(&self) -> &'static Room {
        &DEPENDENT_ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<connections::Connections>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Translations
    }

    fn flow_name(&self, key: &Key) -> String {
        flow_name(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_named_by_the_endpoint_of_their_key() {
        let socket = "10.0.0.1:4000".parse().expect("an endpoint");
        let key = hosts::endpoint_key(inside_class(), 6, socket);
        assert_eq!(key.0[..8], [2, 6, 10, 0, 0, 1, 0x0f, 0xa0]);
        assert_eq!(flow_name(&key), "inside-10.0.0.1:4000/tcp");
        let public = public_class().expect("a class of public endpoints");
        let key = hosts::endpoint_key(public, 6, socket);
        assert_eq!(flow_name(&key), "public-10.0.0.1:4000/tcp");
        let remote = "198.51.100.1:80".parse().expect("an endpoint");
        let key = flow_key(inside_class(), 6, socket, remote);
        assert_eq!(key.0[8..], [198, 51, 100, 1, 0, 80, 0, 0]);
        let name = "inside-10.0.0.1:4000/tcp-with-198.51.100.1:80";
        assert_eq!(flow_name(&key), name);
    }
}

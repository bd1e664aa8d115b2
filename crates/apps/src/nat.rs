//! `apps/nat`. Hosts outside answer to the public endpoints that they see; the checker `nat`
//! judges which endpoint inside belongs to which.

mod hosts;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use core::net::{Ipv4Addr, SocketAddrV4};
use stateplane_wire::replication::Key;

static ROOM: Room = Room::new("apps", "nat");
static FILTERING_ROOM: Room = Room::variant("apps/nat", "filtering-nat");

pub(crate) struct Nat;

/// The NAT, with packets from outside filtered by address and port.
pub(crate) struct FilteringNat;

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
    let [_, protocol, a, b, c, d, high, low, ..] = key.0;
    let port = u16::from_be_bytes([high, low]);
    let socket = SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port);
    format!("{side}-{}", hosts::endpoint(protocol, socket))
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
    }
}

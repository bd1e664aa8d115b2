//! `apps/counter`, whose outputs the checker `counter` judges.

mod hosts;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use core::net::Ipv4Addr;
use stateplane_wire::replication::Key;

static ROOM: Room = Room::new("apps", "counter");

pub(crate) struct Counter;

impl App for Counter {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Counter)
    }

    fn flow_name(&self, key: &Key) -> String {
        let half = |at: usize| u16::from_be_bytes([key.0[at], key.0[at + 1]]);
        let address = |at: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|byte| key.0[at + byte]);
            Ipv4Addr::new(a, b, c, d)
        };
        let (source, destination) = (address(2), address(6));
        format!("{source}:{}>{destination}:{}", half(10), half(12))
    }

    fn judge(&self) -> Judge {
        Judge::Count
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection_key;

    #[test]
    fn flows_are_named_by_their_ends() {
        let source = "10.0.0.1:4000".parse().expect("an endpoint");
        let destination = "198.51.100.9:5000".parse().expect("an endpoint");
        let key = connection_key(1, 17, source, destination);
        let bytes = [
            1, 17, 10, 0, 0, 1, 198, 51, 100, 9, 0x0f, 0xa0, 0x13, 0x88, 0, 0,
        ];
        assert_eq!(key.0, bytes);
        assert_eq!(Counter.flow_name(&key), "10.0.0.1:4000>198.51.100.9:5000");
    }
}

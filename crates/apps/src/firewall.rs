//! `apps/firewall`. A request has the TCP control bits (RFC 9293 3.1) in its
//! lowest byte, bit 8 if the packet comes from outside, bit 9 if it is UDP. The
//! output is 1: the packet passed.

mod hosts;
mod machine;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "firewall");

pub(crate) struct Firewall;

impl App for Firewall {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::Firewall>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &Firewall))
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Connections)
    }
}

impl Machine for Firewall {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

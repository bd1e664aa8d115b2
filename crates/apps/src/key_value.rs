//! `apps/key-value`. The two highest bits of a request are the operation (1
//! read, 2 update, 3 delete), the others the value. The output is the value, with
//! the highest bit set if there is one.

mod hosts;
mod machine;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "key-value");

pub(crate) struct KeyValue;

impl App for KeyValue {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::KeyValue)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &KeyValue))
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Clients)
    }
}

impl Machine for KeyValue {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

//! `apps/object-routing`. The two highest bits of a request are the operation
//! (1 read, 2 write, 3 held); bits 40 to 47 are the server that has the object from
//! the start, of a read; bits 32 to 39 the server and bits 0 to 31 the version that
//! it has, of what a server says. The output is the server in bits 32 to 39 and the
//! version below. There are eight servers.

mod hosts;
mod machine;

use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "object-routing");

pub(crate) struct ObjectRouting;

impl App for ObjectRouting {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::ObjectRouting>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &ObjectRouting))
    }
}

impl Machine for ObjectRouting {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        machine::steps(state, request)
    }
}

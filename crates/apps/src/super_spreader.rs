//! `apps/super-spreader`. A request is the hash of the destination, below 64;
//! the output is 1 for packets of sources with more than four of them, else 0.

mod hosts;
mod machine;

use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "super-spreader");

pub(crate) struct SuperSpreader;

impl App for SuperSpreader {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::SuperSpreader)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &SuperSpreader))
    }
}

impl Machine for SuperSpreader {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

//! `apps/syn-defence`. A request is 1 for a SYN, 2 for an acknowledgement that
//! shows the cookie, 0 for other packets. The output is 1 for what passed, 2 for
//! an answer with a cookie, 3 for a reset.

mod hosts;
mod machine;

use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "syn-defence");

pub(crate) struct SynDefence;

impl App for SynDefence {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::SynDefence)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &SynDefence))
    }
}

impl Machine for SynDefence {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        machine::steps(state, request)
    }
}

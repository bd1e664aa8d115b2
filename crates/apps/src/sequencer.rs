//! `apps/sequencer`. Requests say nothing; the output is the number.

mod hosts;

use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "sequencer");

pub(crate) struct Sequencer;

impl App for Sequencer {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Sequencer)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &Sequencer))
    }
}

impl Machine for Sequencer {
    fn steps(&self, state: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some((state + 1) as u64), state + 1)]
    }
}

//! `apps/serving-gateway`. The three highest bits of a request are 1 to create a
//! session, 2 to move it, 3 to delete it, 4 for data from a base station and 5 for
//! data to one; of the tunnels that are signalled, that to the base station is in
//! bits 28 to 55, the other one below. The output of signalling is its status; that
//! of data the tunnel, with bit 32 set.

mod hosts;
mod machine;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "serving-gateway");

pub(crate) struct ServingGateway;

impl App for ServingGateway {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::ServingGateway)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &ServingGateway))
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Session)
    }
}

impl Machine for ServingGateway {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

//! `apps/load-balancer`. A request is 1 if it opens a connection, else 0. The
//! output is the number of the server, from 1 to 8; those above 4 drain at one of
//! the switches.

mod hosts;
mod machine;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "load-balancer");

pub(crate) struct LoadBalancer;

impl App for LoadBalancer {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::LoadBalancer)
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &LoadBalancer))
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Clients)
    }
}

impl Machine for LoadBalancer {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        machine::steps(state, request)
    }
}

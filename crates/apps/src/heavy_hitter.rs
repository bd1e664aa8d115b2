//! `apps/heavy-hitter`, whose packets neither wait nor read what is replicated:
//! the output is 1. A request names the flow, by its tenant in the upper half and the
//! CRC-32 of its five-tuple in the lower. What is recovered is not judged here.

mod hosts;
mod traffic;

pub use hosts::{Elements, TENANTS, elements, named};

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};
use stateplane_history::replication::{Application, Machine};

static ROOM: Room = Room::new("apps", "heavy-hitter");

pub(crate) struct HeavyHitter;

impl App for HeavyHitter {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::HeavyHitter>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Machine(Application::new(ROOM.name(), &HeavyHitter))
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Tenant)
    }
}

impl Machine for HeavyHitter {
    fn steps(&self, _: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some(1), 0)]
    }
}

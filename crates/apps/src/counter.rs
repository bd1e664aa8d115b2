//! `apps/counter`, whose outputs the checker `counter` judges.

mod hosts;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};

static ROOM: Room = Room::new("apps", "counter");

pub(crate) struct Counter;

impl App for Counter {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Counter)
    }

    fn judge(&self) -> Judge {
        Judge::Count
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Numbers)
    }
}

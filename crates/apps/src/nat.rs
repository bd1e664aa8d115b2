//! `apps/nat`. Hosts outside answer to the public endpoints that they see; the checker `nat`
//! judges which endpoint inside belongs to which.

mod hosts;
mod traffic;

use crate::measured::Traffic;
use crate::{App, Hosts, Judge, Room};

static ROOM: Room = Room::new("apps", "nat");

pub(crate) struct Nat;

impl App for Nat {
    fn room(&self) -> &'static Room {
        &ROOM
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::Nat>::default()
    }

    fn judge(&self) -> Judge {
        Judge::Translations
    }

    fn traffic(&self) -> Option<&'static dyn Traffic> {
        Some(&traffic::Connections)
    }
}

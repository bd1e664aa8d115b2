//! `apps/nat`. Hosts outside answer to the public endpoints that they see; the checker `nat`
//! judges which endpoint inside belongs to which.

mod hosts;

use crate::{App, Hosts};

pub(crate) struct Nat;

impl App for Nat {
    fn name(&self) -> &'static str {
        "nat"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::Nat>::default()
    }
}

//! `apps/firewall`. A request has the TCP control bits (RFC 9293 3.1) in its
//! lowest byte, bit 8 if the packet comes from outside, bit 9 if it is UDP. The
//! output is 1: the packet passed.

mod hosts;
mod machine;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct Firewall;

impl App for Firewall {
    fn name(&self) -> &'static str {
        "firewall"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::Firewall>::default()
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("firewall", &Firewall))
    }
}

impl Machine for Firewall {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

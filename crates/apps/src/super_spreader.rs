//! `apps/super-spreader`. A request is the hash of the destination, below 64;
//! the output is 1 for packets of sources with more than four of them, else 0.

mod hosts;
mod machine;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct SuperSpreader;

impl App for SuperSpreader {
    fn name(&self) -> &'static str {
        "super-spreader"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::SuperSpreader)
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("super-spreader", &SuperSpreader))
    }
}

impl Machine for SuperSpreader {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

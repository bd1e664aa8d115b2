//! `apps/syn-defence`. A request is 1 for a SYN, 2 for an acknowledgement that
//! shows the cookie, 0 for other packets. The output is 1 for what passed, 2 for
//! an answer with a cookie, 3 for a reset.

mod hosts;
mod machine;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct SynDefence;

impl App for SynDefence {
    fn name(&self) -> &'static str {
        "syn-defence"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::SynDefence)
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("syn-defence", &SynDefence))
    }
}

impl Machine for SynDefence {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        machine::steps(state, request)
    }
}

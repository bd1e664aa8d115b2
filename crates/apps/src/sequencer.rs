//! `apps/sequencer`. Requests say nothing; the output is the number.

mod hosts;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct Sequencer;

impl App for Sequencer {
    fn name(&self) -> &'static str {
        "sequencer"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Sequencer)
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("sequencer", &Sequencer))
    }
}

impl Machine for Sequencer {
    fn steps(&self, state: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some((state + 1) as u64), state + 1)]
    }
}

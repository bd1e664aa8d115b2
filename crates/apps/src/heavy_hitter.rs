//! `apps/heavy-hitter`, whose packets neither wait nor read what is replicated:
//! the output is 1. A request names the flow, by its tenant in the upper half and the
//! CRC-32 of its five-tuple in the lower. What is recovered is not judged here.

mod hosts;

pub use hosts::{CLASS, Elements, TENANTS, elements, named};

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct HeavyHitter;

impl App for HeavyHitter {
    fn name(&self) -> &'static str {
        "heavy-hitter"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::<hosts::HeavyHitter>::default()
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("heavy-hitter", &HeavyHitter))
    }
}

impl Machine for HeavyHitter {
    fn steps(&self, _: u128, _: u64) -> Vec<(Option<u64>, u128)> {
        vec![(Some(1), 0)]
    }
}

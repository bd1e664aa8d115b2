//! `apps/load-balancer`. A request is 1 if it opens a connection, else 0. The
//! output is the number of the server, from 1 to 8; those above 4 drain at one of
//! the switches.

mod hosts;
mod machine;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct LoadBalancer;

impl App for LoadBalancer {
    fn name(&self) -> &'static str {
        "load-balancer"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::LoadBalancer)
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("load-balancer", &LoadBalancer))
    }
}

impl Machine for LoadBalancer {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        machine::steps(state, request)
    }
}

//! `apps/key-value`. The two highest bits of a request are the operation (1
//! read, 2 update, 3 delete), the others the value. The output is the value, with
//! the highest bit set if there is one.

mod hosts;
mod machine;

use crate::{App, Hosts};
use stateplane_history::replication::{Application, Machine};

pub(crate) struct KeyValue;

impl App for KeyValue {
    fn name(&self) -> &'static str {
        "key-value"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::KeyValue)
    }

    fn judge(&self) -> Option<Application> {
        Some(Application::new("key-value", &KeyValue))
    }
}

impl Machine for KeyValue {
    fn steps(&self, state: u128, request: u64) -> Vec<(Option<u64>, u128)> {
        vec![machine::step(state, request)]
    }
}

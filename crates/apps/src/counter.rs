//! `apps/counter`, whose outputs the checker `counter` judges.

mod hosts;

use crate::{App, Hosts};

pub(crate) struct Counter;

impl App for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn hosts(&self) -> Box<dyn Hosts> {
        Box::new(hosts::Counter)
    }
}

//! What the host gives the workers' program: frames of its own, and words of registers.

use super::Workers;
use crate::clock::boot_time_us;
use crate::switch::forwarding::Passing;
use stateplane_runtime::Engine;
use stateplane_setup::Write;
use stateplane_switch::Port;

impl<E: Engine> Workers<E> {
    /// Lets the first worker take a frame that the host made, as if it came by `port`.
    pub(in crate::switch) fn handle_made(&mut self, port: Port, frame: Vec<u8>) {
        // Nobody waits for it.
        drop(self.call(0, move |worker| {
            worker.switch.handle_made(boot_time_us(), port, &frame);
            worker.collect();
            worker.send();
        }));
    }

    /// Lets the first worker write words of registers, which all share, and each pass a point
    /// between two bursts.
    pub(in crate::switch) fn write(&mut self, writes: Vec<Write>) -> Passing {
        let mut passing = vec![self.call(0, move |worker| {
            let state = worker.switch.engine_mut().state_mut();
            writes.iter().for_each(|write| write.apply(state));
        })];
        for number in 1..self.len() {
            passing.push(self.call(number, |_| ()));
        }
        Passing::of(passing)
    }
}

//! Another program at run time.

use super::Switch;
use crate::counters::DropReason;
use stateplane_runtime::{Adopted, Engine};

impl<E: Engine> Switch<E> {
    /// Lets all frames from here on run the program of `engine`, and returns the engine
    /// before. Packets that wait for egress pass that of the program which began them;
    /// frames that were sent back to ingress run the new one. Copies that are held, and
    /// packets beyond the work of one call, are dropped and counted
    /// ([`DropReason::ProgramReplaced`]): no other program can understand them.
    ///
    /// Ports, mirror sessions, multicast groups and generators stay. A watch whose
    /// register the new program does not have keeps its ports down.
    pub fn replace_engine(&mut self, engine: E) -> E {
        self.exchange(engine, |_, _| ()).0
    }

    /// Like [`replace_engine`](Self::replace_engine), and the new program goes on with the
    /// state of the one before where names and types agree
    /// ([`TargetState::adopt`](stateplane_runtime::TargetState::adopt)).
    pub fn replace_engine_keeping_state(&mut self, engine: E) -> (E, Adopted) {
        let now = self.now;
        self.exchange(engine, |new, before| {
            new.state_mut().adopt(before.state(), now)
        })
    }

    fn exchange<T>(&mut self, engine: E, adopt: impl FnOnce(&mut E, &E) -> T) -> (E, T) {
        self.finish_egress();
        let mut dropped = 0;
        while self.egress.pop().is_some() {
            dropped += 1;
        }
        while self.held.pop(&mut self.invariants).is_some() {
            dropped += 1;
        }
        for _ in 0..dropped {
            self.counters.drop(DropReason::ProgramReplaced);
        }
        self.egress_share = 0;
        self.lock_waits += self.engine.state().lock_waits();
        self.program += 1;
        let before = std::mem::replace(&mut self.engine, engine);
        let adopted = adopt(&mut self.engine, &before);
        self.watches.rebind(self.engine.state());
        self.watches
            .check(self.now, self.engine.state(), &mut self.ports);
        (before, adopted)
    }
}

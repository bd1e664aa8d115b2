//! A switch beside another one, on another core, with the same program and configuration.

use super::Switch;
use stateplane_runtime::{Engine, Fellow};

impl<E: Fellow> Switch<E> {
    /// Another switch with the same ports, program, entries, mirror sessions, multicast groups and
    /// watches. It has no packet generators, and leaves the report of idle entries to this one.
    /// `seed` determines its pseudo-random numbers.
    pub fn fellow(&mut self, seed: u64) -> Switch<E> {
        let engine = self.engine.fellow(seed);
        Switch {
            seed,
            sessions: self.sessions.clone(),
            groups: self.groups.clone(),
            watches: self.watches.fellow(),
            now: self.now,
            next_sweep: None,
            program: self.program,
            setting: self.setting,
            ..Switch::idle(engine, self.limits, self.ports.fellow())
        }
    }

    /// Makes program, entries, mirror sessions and multicast groups as those of `first`, whose
    /// fellow the switch is. Returns the engine before if the program is another one: copies that
    /// were held for it are dropped, as [`replace_engine`](Switch::replace_engine) says.
    pub fn follow(&mut self, first: &mut Switch<E>) -> Option<E> {
        if self.setting != first.setting {
            self.sessions.clone_from(&first.sessions);
            self.groups.clone_from(&first.groups);
            self.setting = first.setting;
        }
        if self.program == first.program {
            let state = self.engine.state_mut();
            state.follow(first.engine.state());
            return None;
        }
        let engine = first.engine.fellow(self.seed);
        let before = self.replace_engine(engine);
        self.program = first.program;
        Some(before)
    }
}

impl<E: Engine> Switch<E> {
    /// Number of programs that the switch has had before the present one.
    pub fn program(&self) -> u64 {
        self.program
    }

    /// Leaves the report of idle entries to the caller: when packets hit them at other switches,
    /// the caller alone knows.
    pub fn leave_sweeps(&mut self) {
        self.next_sweep = None;
    }

    /// Locks of atomic blocks and of direct meters that another switch's packets held when packets
    /// of this one came to them.
    pub fn lock_waits(&self) -> u64 {
        self.lock_waits + self.engine.state().lock_waits()
    }

    /// Lets packets that wait for egress pass it, as far as the work of one call goes.
    pub fn finish_egress(&mut self) {
        let mut work = self.limits.work.max(1);
        while self.egress.len() > 0 && work > 0 {
            self.run_egress(&mut work);
        }
    }
}

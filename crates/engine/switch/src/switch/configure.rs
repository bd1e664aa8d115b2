//! Mirror sessions, multicast groups, generators and watches, at run time.

use super::{ActiveGenerator, Switch};
use crate::config::{
    Generator, MAX_BATCH, MAX_FRAME, MAX_HOLD_US, MIN_FRAME, MirrorSession, Replica, Watch,
};
use crate::error::SwitchError;
use crate::ports::check_range;
use stateplane_runtime::Engine;

/// Bytes of a frame's place in its batch.
const INDEX_BYTES: usize = 4;

impl<E: Engine> Switch<E> {
    /// Makes or replaces mirror session `number`. Copies that are held keep the
    /// session's earlier port and time.
    ///
    /// # Errors
    ///
    /// Returns an error if a value is out of range or there are too many sessions.
    pub fn set_mirror_session(
        &mut self,
        number: u32,
        session: MirrorSession,
    ) -> Result<(), SwitchError> {
        if let Some(port) = session.egress_port {
            check_range(port)?;
        }
        if session.multicast_group == Some(0) {
            return Err(SwitchError::GroupZero);
        }
        if let Some(bytes) = session
            .truncate
            .filter(|&bytes| (bytes as usize) < MIN_FRAME)
        {
            return Err(SwitchError::TruncateTooShort {
                session: number,
                bytes,
            });
        }
        check_time("a mirror session's hold", session.hold_us, 0)?;
        if !self.sessions.contains_key(&number) {
            check_room(
                "mirror session",
                self.sessions.len(),
                self.limits.mirror_sessions,
            )?;
        }
        self.setting += 1;
        self.sessions.insert(number, session);
        Ok(())
    }

    /// Removes mirror session `number`.
    ///
    /// # Errors
    ///
    /// Returns an error if the session does not exist.
    pub fn remove_mirror_session(&mut self, number: u32) -> Result<MirrorSession, SwitchError> {
        self.setting += 1;
        self.sessions
            .remove(&number)
            .ok_or(SwitchError::UnknownMirrorSession(number))
    }

    /// Mirror session `number`.
    pub fn mirror_session(&self, number: u32) -> Option<MirrorSession> {
        self.sessions.get(&number).copied()
    }

    /// Makes or replaces multicast group `number`. A group without replicas drops
    /// what is sent to it.
    ///
    /// # Errors
    ///
    /// If `number` is 0, a port is out of range, or a limit is passed.
    pub fn set_multicast_group(
        &mut self,
        number: u16,
        replicas: Vec<Replica>,
    ) -> Result<(), SwitchError> {
        if number == 0 {
            return Err(SwitchError::GroupZero);
        }
        if replicas.len() > self.limits.replicas as usize {
            return Err(SwitchError::TooMany {
                what: "replica",
                limit: self.limits.replicas,
            });
        }
        for replica in &replicas {
            check_range(replica.port)?;
        }
        if !self.groups.contains_key(&number) {
            check_room(
                "multicast group",
                self.groups.len(),
                self.limits.multicast_groups,
            )?;
        }
        self.setting += 1;
        self.groups.insert(number, replicas);
        Ok(())
    }

    /// Removes multicast group `number`.
    ///
    /// # Errors
    ///
    /// Returns an error if the group does not exist.
    pub fn remove_multicast_group(&mut self, number: u16) -> Result<Vec<Replica>, SwitchError> {
        self.setting += 1;
        self.groups
            .remove(&number)
            .ok_or(SwitchError::UnknownMulticastGroup(number))
    }

    /// Replicas of multicast group `number`.
    pub fn multicast_group(&self, number: u16) -> Option<&[Replica]> {
        self.groups.get(&number).map(Vec::as_slice)
    }

    /// Starts a packet generator.
    ///
    /// # Errors
    ///
    /// Returns an error if its port, period, batch, index or frame is out of range.
    pub fn add_generator(&mut self, generator: Generator) -> Result<(), SwitchError> {
        check_range(generator.port)?;
        check_time("a generator's period", generator.period_us, 1)?;
        if !(MIN_FRAME..=MAX_FRAME).contains(&generator.frame.len()) {
            return Err(SwitchError::GeneratorFrame(generator.frame.len()));
        }
        if !(1..=MAX_BATCH).contains(&generator.batch) {
            return Err(SwitchError::GeneratorBatch(generator.batch));
        }
        let within = |at: usize| generator.frame.len().checked_sub(at) >= Some(INDEX_BYTES);
        if let Some(at) = generator.index_at.filter(|&at| !within(at)) {
            let length = generator.frame.len();
            return Err(SwitchError::GeneratorIndex { at, length });
        }
        check_room("generator", self.generators.len(), self.limits.generators)?;
        self.generators.push(ActiveGenerator {
            generator,
            due: None,
            sent: 0,
        });
        Ok(())
    }

    /// Starts a watch.
    ///
    /// # Errors
    ///
    /// If its register does not exist or cannot hold a time, the element or the age
    /// is out of range, or a port is not one of the switch.
    pub fn add_watch(&mut self, watch: Watch) -> Result<(), SwitchError> {
        check_time("a watch's greatest age", watch.max_age_us, 1)?;
        for &port in &watch.ports {
            self.ports.require(port)?;
        }
        check_room("watch", self.watches.len(), self.limits.watches)?;
        self.watches.add(watch, self.engine.state())
    }
}

fn check_time(what: &'static str, value: u64, least: u64) -> Result<(), SwitchError> {
    if (least..=MAX_HOLD_US).contains(&value) {
        Ok(())
    } else {
        Err(SwitchError::TimeOutOfRange { what, value, least })
    }
}

fn check_room(what: &'static str, count: usize, limit: u32) -> Result<(), SwitchError> {
    if count < limit as usize {
        Ok(())
    } else {
        Err(SwitchError::TooMany { what, limit })
    }
}

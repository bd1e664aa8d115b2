//! The proof that the session lives, which a group that was founded anew asks for (rule 19).
//!
//! The founding forgets which lanes ended. A reaper marks the session's record first and moves the
//! lanes on then, in each group: so a record that is read unmarked after the founding was known shows
//! that the lanes end in the new founding, too, if they end.

use std::collections::BTreeSet;

use stateplane_wire::coordination::{MessageType, Operation, Outcome, Repr};

use super::Agent;
use super::flight::Purpose;
use crate::SessionRecord;

/// The record of the lanes' session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Record {
    /// The lanes are of no session that has a record.
    #[default]
    None,
    /// It is being made.
    Opening,
    /// It was made.
    Made,
}

/// Groups to which nothing numbered is sent before the session is seen to live.
#[derive(Debug, Default)]
pub(super) struct Proof {
    record: Record,
    wanted: BTreeSet<u16>,
    /// The request that reads the record, and the groups that were wanted when it was made.
    reading: Option<(u64, BTreeSet<u16>)>,
}

impl Proof {
    /// True of a group to which nothing numbered is to be sent.
    pub fn is_wanted(&self, group: u16) -> bool {
        self.wanted.contains(&group)
    }

    /// The request ended without an answer.
    pub fn is_lost(&mut self) {
        self.reading = None;
    }
}

impl Agent {
    /// The lanes' session makes its record.
    pub(crate) fn session_opens(&mut self) {
        self.proof.record = Record::Opening;
    }

    /// The session's record was made.
    pub(crate) fn session_is_open(&mut self, now: u64) {
        if self.proof.record == Record::Opening {
            self.proof.record = Record::Made;
            self.prove(now);
        }
    }

    /// A group was founded, perhaps after the session's lanes had ended in it.
    pub(super) fn doubt(&mut self, group: u16) {
        let Some(lanes) = self.lanes() else {
            return;
        };
        match self.proof.record {
            Record::None => {}
            // The record would be made in a founding of which nobody knows whether it is late.
            Record::Opening if group == self.home(lanes.session) => self.lanes_are_over(),
            Record::Opening | Record::Made => _ = self.proof.wanted.insert(group),
        }
    }

    /// Reads the session's record, if a group asks for it.
    pub(super) fn prove(&mut self, now: u64) {
        let proof = &self.proof;
        if proof.record != Record::Made || proof.wanted.is_empty() || proof.reading.is_some() {
            return;
        }
        let Some(lanes) = self.lanes() else {
            return;
        };
        let mut message = Repr::new(MessageType::Request);
        message.operation = Operation::Read as u8;
        message.key = SessionRecord::key(lanes.session);
        let group = self.home(lanes.session);
        let flight = self.reading(Purpose::Proof, group, message, Vec::new());
        let id = self.launch(now, flight);
        self.proof.reading = Some((id, self.proof.wanted.clone()));
    }

    /// The group of a session's record.
    fn home(&self, session: u32) -> u16 {
        self.group(&SessionRecord::place(session))
    }

    /// The session's record was read.
    pub(super) fn proved(&mut self, now: u64, reply: &Repr<'_>, outcome: Outcome) {
        let Some((_, groups)) = self.proof.reading.take() else {
            return;
        };
        let record = SessionRecord::parse(reply.value).filter(|_| outcome == Outcome::Done);
        let lives = record.is_some_and(|it| Some(it.lanes) == self.lanes && !it.ending);
        if !lives {
            return self.lanes_are_over();
        }
        for group in groups {
            self.proof.wanted.remove(&group);
            self.ask_again(now, group);
        }
        self.prove(now);
    }

    /// Nothing is to be proved of lanes that ended.
    pub(super) fn drop_proof(&mut self) {
        let proof = core::mem::take(&mut self.proof);
        if let Some((id, _)) = proof.reading {
            self.end_flight(id);
        }
    }
}

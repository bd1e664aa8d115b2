//! Changes of flows: lease, write, release (rule 30).

use stateplane_wire::replication::{Key, MessageType, RefusalCode, Repr};

use crate::settings::Settings;

/// Most µs between two repeats, in multiples of the first.
const LONGEST_RETRY: u64 = 8;

/// A change of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The flow's key.
    pub key: Key,
    /// Its shard; that of the flow in the view unless set.
    pub shard: Option<u16>,
    /// The change.
    pub operation: Operation,
    /// Time in µs at which it is given up.
    pub end: u64,
}

/// How a state changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It becomes this.
    Set(Vec<u8>),
    /// It becomes `state`, if it is `expected`.
    SetIfEqual {
        /// The state that has to be there.
        expected: Vec<u8>,
        /// The new one.
        state: Vec<u8>,
    },
    /// A number in it grows, modulo its width.
    Add {
        /// Its first byte.
        at: u16,
        /// Its bytes, big-endian, 1 to 8.
        length: u8,
        /// By how much.
        amount: u64,
    },
}

/// Why a change does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The view does not have the flow.
    #[error("the store has no such flow")]
    UnknownFlow,
    /// Several shards have a flow of that key.
    #[error("shards {0:?} have a flow of that key")]
    SeveralShards(Vec<u16>),
    /// The view is not complete, so that the flow's shard is not known.
    #[error("the view is not complete")]
    Incomplete,
    /// As many changes wait as may.
    #[error("{0} changes wait")]
    Busy(usize),
}

/// End of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was applied once, and is in the view, unless its time was over before.
    Done {
        /// Epoch of the lease.
        epoch: u32,
        /// Number of the state.
        sequence: u32,
        /// The new state.
        state: Vec<u8>,
    },
    /// [`Operation::SetIfEqual`] found another state. Nothing was written.
    Mismatch {
        /// The state that is there.
        state: Vec<u8>,
    },
    /// The store refused. Nothing was written.
    Refused(RefusalCode),
    /// The flow's state has another length, or the number to add to does not lie within it. Nothing was
    /// written.
    BadState {
        /// Bytes of the state.
        length: u16,
    },
    /// No lease came in time. Nothing was written.
    TimedOut,
    /// The write was sent and not answered, or refused after a repeat: it was applied once or never.
    Unknown,
}

impl Operation {
    /// The state after the change of `present`.
    fn apply(&self, present: &[u8]) -> Result<Vec<u8>, Outcome> {
        let length = present.len();
        let bad = || Outcome::BadState {
            length: u16::try_from(length).unwrap_or(u16::MAX),
        };
        let fits = |state: &Vec<u8>| {
            let fits = state.len() == length;
            if fits { Ok(state.clone()) } else { Err(bad()) }
        };
        match self {
            Operation::Set(state) => fits(state),
            Operation::SetIfEqual { expected, state } => {
                let state = fits(state)?;
                if expected != present {
                    return Err(Outcome::Mismatch {
                        state: present.to_vec(),
                    });
                }
                Ok(state)
            }
            Operation::Add { at, length, amount } => {
                let mut state = present.to_vec();
                let (at, length) = (usize::from(*at), usize::from(*length));
                let number = state.get_mut(at..at + length);
                let number = number.filter(|number| (1..=8).contains(&number.len()));
                let number = number.ok_or_else(bad)?;
                let mut carried = *amount;
                let mut carry = 0u64;
                for byte in number.iter_mut().rev() {
                    let sum = u64::from(*byte) + (carried & 0xff) + carry;
                    (*byte, carry) = (sum as u8, sum >> 8);
                    carried >>= 8;
                }
                Ok(state)
            }
        }
    }
}

/// How far a change has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// It waits for earlier changes of the flow.
    Waiting,
    /// It asks for the lease.
    Leasing,
    /// It writes under the lease of this epoch.
    Writing {
        epoch: u32,
        sequence: u32,
        state: Vec<u8>,
    },
    /// It was written, as was heard at this time.
    Settling { since: u64, outcome: Outcome },
}

/// Effect of an answer of the store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    None,
    /// The next request is to be sent at once.
    Send,
    /// The change has ended, and its lease, if it has one, is to be given up.
    Ended(Outcome),
    /// It was written, and the lease is to be given up.
    Written,
}

/// A change under way.
#[derive(Debug, Clone)]
pub(crate) struct Changing {
    pub(crate) shard: u16,
    pub(crate) key: Key,
    pub(crate) end: u64,
    pub(crate) claim: u32,
    operation: Operation,
    phase: Phase,
    /// Transmissions of the present request.
    attempts: u16,
    due: u64,
    /// Epoch of the lease that it has, and number of the state that it wrote or found.
    held: Option<(u32, u32)>,
}

impl Changing {
    pub(crate) fn new(shard: u16, change: Change, claim: u32) -> Changing {
        Changing {
            shard,
            key: change.key,
            end: change.end,
            claim,
            operation: change.operation,
            phase: Phase::Waiting,
            attempts: 0,
            due: u64::MAX,
            held: None,
        }
    }

    /// Its turn has come.
    pub(crate) fn start(&mut self, now: u64) {
        self.phase = Phase::Leasing;
        (self.attempts, self.due) = (0, now);
    }

    pub(crate) fn waits(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// When it has something to do.
    pub(crate) fn due(&self) -> u64 {
        match self.phase {
            Phase::Leasing | Phase::Writing { .. } => self.due.min(self.end),
            Phase::Waiting | Phase::Settling { .. } => self.end,
        }
    }

    /// The outcome if its time is over at `now`, or the view has what was written: all writes of before
    /// `as_of`.
    pub(crate) fn ends(&self, now: u64, as_of: Option<u64>) -> Option<Outcome> {
        match &self.phase {
            Phase::Settling { since, outcome } => {
                let is_seen = as_of.is_some_and(|as_of| as_of >= *since);
                (is_seen || now >= self.end).then(|| outcome.clone())
            }
            _ if now < self.end => None,
            Phase::Waiting | Phase::Leasing => Some(Outcome::TimedOut),
            Phase::Writing { .. } => Some(Outcome::Unknown),
        }
    }

    /// Request that is due at `now`, under configuration `chain_epoch`.
    pub(crate) fn next(
        &mut self,
        now: u64,
        chain_epoch: u32,
        settings: &Settings,
    ) -> Option<Vec<u8>> {
        if now < self.due {
            return None;
        }
        let request = Repr {
            shard: self.shard,
            chain_epoch,
            switch_id: settings.switch,
            incarnation: settings.incarnation,
            claim: self.claim,
            request: 1,
            attempt: self.attempts,
            ..Repr::new(MessageType::LeaseRequest, self.key)
        };
        let request = match &self.phase {
            Phase::Leasing => request,
            Phase::Writing {
                epoch,
                sequence,
                state,
            } => Repr {
                message_type: MessageType::WriteRequest,
                lease_epoch: *epoch,
                sequence: *sequence,
                state,
                ..request
            },
            Phase::Waiting | Phase::Settling { .. } => return None,
        };
        let bytes = request.to_vec().ok();
        let times = (1u64 << self.attempts.min(8)).min(LONGEST_RETRY);
        self.attempts = self.attempts.saturating_add(1);
        self.due = now.saturating_add(settings.retry_us.saturating_mul(times));
        bytes
    }

    /// The request that gives its lease up, if it has one.
    pub(crate) fn release(&self, chain_epoch: u32, settings: &Settings) -> Option<Vec<u8>> {
        let (lease_epoch, sequence) = self.held?;
        let release = Repr {
            shard: self.shard,
            chain_epoch,
            switch_id: settings.switch,
            incarnation: settings.incarnation,
            claim: self.claim,
            request: 1,
            lease_epoch,
            sequence,
            ..Repr::new(MessageType::ReleaseRequest, self.key)
        };
        release.to_vec().ok()
    }

    /// Sends the present request again at once.
    pub(crate) fn hasten(&mut self, now: u64) {
        self.due = now;
    }

    /// Takes an answer of the store that came at `now`.
    pub(crate) fn answered(&mut self, now: u64, reply: &Repr<'_>, settings: &Settings) -> Step {
        match (&self.phase, reply.message_type) {
            (Phase::Leasing, MessageType::LeaseReply) if !reply.shared => {
                self.held = Some((reply.lease_epoch, reply.sequence));
                let state = match self.operation.apply(reply.state) {
                    Ok(state) => state,
                    Err(outcome) => return Step::Ended(outcome),
                };
                self.phase = Phase::Writing {
                    epoch: reply.lease_epoch,
                    sequence: reply.sequence.wrapping_add(1),
                    state,
                };
                (self.attempts, self.due) = (0, now);
                Step::Send
            }
            (
                Phase::Writing {
                    epoch,
                    sequence,
                    state,
                },
                MessageType::WriteReply,
            ) if reply.lease_epoch == *epoch => {
                self.held = Some((*epoch, *sequence));
                let outcome = Outcome::Done {
                    epoch: *epoch,
                    sequence: *sequence,
                    state: state.clone(),
                };
                self.phase = Phase::Settling {
                    since: now,
                    outcome,
                };
                Step::Written
            }
            (_, MessageType::Refusal) => self.refused(now, reply, settings),
            _ => Step::None,
        }
    }

    fn refused(&mut self, now: u64, reply: &Repr<'_>, settings: &Settings) -> Step {
        let Some(code) = RefusalCode::from_u8(reply.code) else {
            return Step::None;
        };
        let is_first = reply.attempt == 0 && self.attempts == 1;
        match (&self.phase, code) {
            (Phase::Waiting | Phase::Settling { .. }, _) => Step::None,
            (_, RefusalCode::WrongServer | RefusalCode::WrongChainEpoch) => Step::Send,
            (_, RefusalCode::ParkingFull) => {
                self.due = now.saturating_add(settings.retry_us);
                Step::None
            }
            (Phase::Leasing, RefusalCode::Fenced) => Step::None,
            (Phase::Leasing, code) => Step::Ended(Outcome::Refused(code)),
            // A refusal of the first transmission says that none was applied.
            (Phase::Writing { .. }, code) if is_first || settings.faults.write_again => {
                self.held = None;
                if code != RefusalCode::Fenced {
                    return Step::Ended(Outcome::Refused(code));
                }
                self.phase = Phase::Leasing;
                (self.attempts, self.due) = (0, now);
                Step::Send
            }
            (Phase::Writing { .. }, _) => {
                self.held = None;
                Step::Ended(Outcome::Unknown)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_modulo_their_width_and_within_the_state() {
        let add = |at, length, amount| Operation::Add { at, length, amount };
        let present = [9, 0, 255, 255, 9];
        assert_eq!(add(1, 3, 1).apply(&present), Ok(vec![9, 1, 0, 0, 9]));
        assert_eq!(add(2, 2, 2).apply(&present), Ok(vec![9, 0, 0, 1, 9]));
        let less = add(1, 3, u64::MAX).apply(&present);
        assert_eq!(less, Ok(vec![9, 0, 255, 254, 9]));
        let wide = add(0, 8, u64::MAX).apply(&[0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(wide, Ok(vec![0; 8]));
        for (at, length) in [(3, 3), (0, 0), (u16::MAX, 8), (0, 9)] {
            let refused = add(at, length, 1).apply(&present);
            assert_eq!(refused, Err(Outcome::BadState { length: 5 }));
        }
    }

    #[test]
    fn states_are_set_whole_and_if_they_are_as_expected() {
        let set = Operation::Set(vec![1, 2]);
        assert_eq!(set.apply(&[3, 4]), Ok(vec![1, 2]));
        assert_eq!(set.apply(&[3]), Err(Outcome::BadState { length: 1 }));
        let conditional = Operation::SetIfEqual {
            expected: vec![3, 4],
            state: vec![1, 2],
        };
        assert_eq!(conditional.apply(&[3, 4]), Ok(vec![1, 2]));
        let state = vec![3, 5];
        assert_eq!(
            conditional.apply(&state),
            Err(Outcome::Mismatch { state: vec![3, 5] })
        );
    }
}

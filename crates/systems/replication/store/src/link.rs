//! Numbered messages between neighbours: in order, without gaps, resent until
//! acknowledged, bounded. [`Sender`] carries the parts of a snapshot; updates are
//! sent from the [`crate::log::Log`]. [`Receiver`] takes both.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of entries in one resend, the oldest first.
const RESEND_BURST: usize = 32;

/// The end that sends.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    window: usize,
    resend_first: u64,
    resend_bound: u64,
    /// Number of the oldest entry in `unacknowledged`.
    oldest: u64,
    unacknowledged: VecDeque<Arc<Vec<u8>>>,
    wait: u64,
    resend_at: Option<u64>,
}

impl Sender {
    pub(crate) fn new(window: usize, resend_first: u64, resend_bound: u64) -> Sender {
        Sender {
            window,
            resend_first,
            resend_bound,
            oldest: 1,
            unacknowledged: VecDeque::new(),
            wait: resend_first,
            resend_at: None,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.unacknowledged.len() >= self.window
    }

    pub(crate) fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// The number of the next message.
    pub(crate) fn next_number(&self) -> u64 {
        self.oldest + self.unacknowledged.len() as u64
    }

    /// Keeps `message`, which bears [`Sender::next_number`], until it is
    /// acknowledged.
    pub(crate) fn sent(&mut self, now: u64, message: Arc<Vec<u8>>) {
        self.unacknowledged.push_back(message);
        if self.resend_at.is_none() {
            self.resend_at = Some(now.saturating_add(self.wait));
        }
    }

    /// Forgets what the receiver has up to `number`; `false` if that was never
    /// sent.
    pub(crate) fn acknowledged(&mut self, now: u64, number: u64) -> bool {
        if number >= self.next_number() {
            return false;
        }
        if number >= self.oldest {
            let count = (number - self.oldest + 1) as usize;
            self.unacknowledged.drain(..count);
            self.oldest = number + 1;
            self.wait = self.resend_first;
            self.resend_at =
                (!self.unacknowledged.is_empty()).then(|| now.saturating_add(self.wait));
        }
        true
    }

    pub(crate) fn next_due(&self) -> Option<u64> {
        self.resend_at
    }

    /// The messages to send again at `now`; the time to the next resend doubles.
    pub(crate) fn resend(&mut self, now: u64) -> impl Iterator<Item = Arc<Vec<u8>>> {
        let due = self.resend_at.is_some_and(|at| at <= now);
        if due {
            self.wait = self.wait.saturating_mul(2).min(self.resend_bound);
            self.resend_at = Some(now.saturating_add(self.wait));
        }
        let count = if due { RESEND_BURST } else { 0 };
        self.unacknowledged.iter().take(count).cloned()
    }
}

/// Result of the arrival of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The update is the next one.
    Next,
    /// An earlier update is missing.
    Early,
    /// The update was applied already.
    Duplicate,
    /// The update is farther ahead than the window.
    TooFar,
    /// The link has not begun, and this is not the next.
    NotBegun,
    /// The update is of another incarnation than the link began with.
    WrongIncarnation,
}

/// The end that receives updates.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    window: usize,
    incarnation: Option<u32>,
    applied: u64,
    early: BTreeMap<u64, Vec<u8>>,
    acknowledgement_due: bool,
}

impl Receiver {
    /// A link whose next message follows number `applied`.
    pub(crate) fn new(window: usize, applied: u64) -> Receiver {
        Receiver {
            window,
            incarnation: None,
            applied,
            early: BTreeMap::new(),
            acknowledgement_due: false,
        }
    }

    /// A link that goes on with the incarnation that it began with, if it did.
    pub(crate) fn resumed(window: usize, applied: u64, incarnation: Option<u32>) -> Receiver {
        Receiver {
            incarnation,
            acknowledgement_due: true,
            ..Receiver::new(window, applied)
        }
    }

    /// The incarnation that the link began with.
    pub(crate) fn incarnation(&self) -> Option<u32> {
        self.incarnation
    }

    /// Judges an update by its incarnation and number; changes nothing but
    /// whether an acknowledgement is due.
    pub(crate) fn judge(&mut self, incarnation: u32, number: u64) -> Arrival {
        match self.incarnation {
            None if number > self.applied + 1 => return Arrival::NotBegun,
            Some(accepted) if accepted != incarnation => return Arrival::WrongIncarnation,
            _ => {}
        }
        if number <= self.applied {
            self.acknowledgement_due = true;
            Arrival::Duplicate
        } else if number == self.applied + 1 {
            Arrival::Next
        } else if number - self.applied <= self.window as u64 {
            Arrival::Early
        } else {
            Arrival::TooFar
        }
    }

    /// Keeps an early update's body.
    pub(crate) fn keep(&mut self, number: u64, body: &[u8]) {
        self.early.entry(number).or_insert_with(|| body.to_vec());
    }

    /// Number of updates kept that came early.
    pub(crate) fn early(&self) -> usize {
        self.early.len()
    }

    /// Forgets the updates that came early: their sender restarted, and may give their numbers to
    /// others.
    pub(crate) fn forget_early(&mut self) {
        self.early.clear();
    }

    /// Notes that the next update was applied; it begins the link if it is the
    /// first.
    pub(crate) fn has_applied(&mut self, incarnation: u32) {
        self.incarnation = Some(incarnation);
        self.applied += 1;
    }

    /// Notes that everything up to `number` is there, unless the link began with another
    /// incarnation.
    pub(crate) fn has_all(&mut self, incarnation: u32, number: u64) {
        if *self.incarnation.get_or_insert(incarnation) == incarnation {
            self.applied = self.applied.max(number);
        }
    }

    /// Lets the next [`Receiver::take_acknowledgement`] give one.
    pub(crate) fn owe_acknowledgement(&mut self) {
        self.acknowledgement_due = true;
    }

    /// Takes out the next update, if it was kept, with its incarnation.
    pub(crate) fn take_next(&mut self) -> Option<(u32, Vec<u8>)> {
        let incarnation = self.incarnation?;
        let body = self.early.remove(&(self.applied + 1))?;
        Some((incarnation, body))
    }

    /// The incarnation and number to acknowledge, if that is owed; incarnation 0 if
    /// the other end has not been heard yet.
    pub(crate) fn take_acknowledgement(&mut self) -> Option<(u32, u64)> {
        core::mem::take(&mut self.acknowledgement_due)
            .then_some((self.incarnation.unwrap_or(0), self.applied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(byte: u8) -> Arc<Vec<u8>> {
        Arc::new(vec![byte])
    }

    #[test]
    fn resends_double_to_the_bound_and_start_again_after_progress() {
        let mut sender = Sender::new(8, 10, 30);
        sender.sent(0, message(1));
        sender.sent(5, message(2));
        assert_eq!(sender.next_due(), Some(10));
        assert_eq!(sender.resend(9).count(), 0);
        for (at, next) in [(10, 30), (30, 60), (60, 90)] {
            assert_eq!(sender.resend(at).count(), 2);
            assert_eq!(sender.next_due(), Some(next));
        }
        assert!(sender.acknowledged(70, 1));
        assert_eq!(sender.next_due(), Some(80));
        assert!(sender.acknowledged(71, 2));
        assert_eq!(sender.next_due(), None);
    }

    #[test]
    fn acknowledgements_of_the_future_and_the_past_change_nothing() {
        let mut sender = Sender::new(2, 10, 30);
        assert!(!sender.acknowledged(0, 1));
        sender.sent(0, message(1));
        sender.sent(0, message(2));
        assert!(sender.is_full());
        assert!(!sender.acknowledged(0, 3));
        assert!(sender.acknowledged(0, 0));
        assert_eq!(sender.unacknowledged(), 2);
        assert!(sender.acknowledged(0, 2));
        assert_eq!(sender.next_number(), 3);
    }

    #[test]
    fn a_link_begins_with_the_next_number_and_keeps_its_incarnation() {
        let mut receiver = Receiver::new(4, 0);
        assert_eq!(receiver.judge(7, 2), Arrival::NotBegun);
        assert_eq!(receiver.judge(7, 1), Arrival::Next);
        receiver.has_applied(7);
        assert_eq!(receiver.judge(8, 1), Arrival::WrongIncarnation);
        assert_eq!(receiver.judge(7, 1), Arrival::Duplicate);
        assert_eq!(receiver.judge(7, 3), Arrival::Early);
        assert_eq!(receiver.judge(7, 6), Arrival::TooFar);
        receiver.owe_acknowledgement();
        assert_eq!(receiver.take_acknowledgement(), Some((7, 1)));
        assert_eq!(receiver.take_acknowledgement(), None);
    }

    #[test]
    fn early_updates_wait_for_their_turn() {
        let mut receiver = Receiver::new(4, 0);
        receiver.judge(7, 1);
        receiver.has_applied(7);
        receiver.keep(3, &[3]);
        assert_eq!(receiver.take_next(), None);
        receiver.has_applied(7);
        assert_eq!(receiver.take_next(), Some((7, vec![3])));
    }
}

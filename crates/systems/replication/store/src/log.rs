//! The entries that a replica keeps because another may still need them.
//!
//! All replicas of a chain give an entry the number that the head counted for it.
//! A replica keeps an entry until every replica behind it has it: when its
//! successor is cut out, the next one may lack any of them, and a new tail has to
//! answer them.

use std::collections::VecDeque;
use std::sync::Arc;

use stateplane_wire::chain::ENTRY_PREFIX;

/// Maximum number of entries in one resend, the oldest first.
const RESEND_BURST: u64 = 32;

/// Datagrams that may be lost before a neighbour is suspected.
const SUSPECT_AFTER: u32 = 3;

/// Entries in the order of their numbers, and what the successor has of them.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    /// Number of the last entry before those kept.
    before: u64,
    entries: VecDeque<Arc<[u8]>>,
    /// The successor has applied up to here, as it said.
    acknowledged: u64,
    /// Sent up to here.
    sent: u64,
    resend_first: u64,
    resend_bound: u64,
    wait: u64,
    resend_at: Option<u64>,
    /// When the first of `unanswered` was sent.
    silent_since: u64,
    /// Datagrams sent since the successor was heard last.
    unanswered: u32,
}

/// Entries packed for one datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Number of the first entry.
    pub(crate) number: u64,
    /// Number of entries.
    pub(crate) count: u64,
    /// The entries behind their lengths.
    pub(crate) body: Vec<u8>,
}

impl Log {
    pub(crate) fn new(resend_first: u64, resend_bound: u64) -> Log {
        Log {
            before: 0,
            entries: VecDeque::new(),
            acknowledged: 0,
            sent: 0,
            resend_first,
            resend_bound,
            wait: resend_first,
            resend_at: None,
            silent_since: 0,
            unanswered: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of the last entry before those kept.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Number of the last entry kept, or of the one before if none is.
    pub(crate) fn last(&self) -> u64 {
        self.before + self.entries.len() as u64
    }

    /// Last entry that the successor has acknowledged as applied.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Forgets all entries; the next one follows number `before`.
    pub(crate) fn clear(&mut self, before: u64) {
        self.entries.clear();
        self.before = before;
    }

    /// Keeps the entry after the last.
    pub(crate) fn push(&mut self, entry: Arc<[u8]>) {
        self.entries.push_back(entry);
    }

    /// The first entry kept follows number `before`.
    pub(crate) fn restore(&mut self, before: u64) {
        self.before = before;
    }

    /// Forgets the entries up to `number`.
    pub(crate) fn trim(&mut self, number: u64) {
        let count = number.saturating_sub(self.before).min(self.len() as u64);
        self.entries.drain(..count as usize);
        self.before += count;
        if self.sent <= self.before {
            self.resend_at = None;
        }
    }

    /// The entries from number `from` up to `to`, as far as they are kept.
    pub(crate) fn range(&self, from: u64, to: u64) -> impl Iterator<Item = &Arc<[u8]>> {
        let skipped = from.saturating_sub(self.before + 1);
        let count = to.saturating_sub(self.before + skipped);
        self.entries
            .iter()
            .skip(skipped as usize)
            .take(count as usize)
    }

    /// Begins a link to a successor that has everything up to the first entry kept,
    /// and perhaps more.
    pub(crate) fn begin_link(&mut self) {
        self.acknowledged = self.before;
        self.sent = self.before;
        self.wait = self.resend_first;
        self.resend_at = None;
        self.unanswered = 0;
    }

    /// The successor says that it has applied up to `number`; `false` if that was
    /// never sent.
    pub(crate) fn acknowledge(&mut self, now: u64, number: u64) -> bool {
        if number > self.last() {
            return false;
        }
        if number > self.acknowledged {
            self.acknowledged = number;
            self.sent = self.sent.max(number);
            self.wait = self.resend_first;
            self.resend_at = (self.sent > self.before).then(|| now.saturating_add(self.wait));
        }
        self.unanswered = 0;
        true
    }

    /// True if the successor has sent nothing for `time` although several datagrams asked for an
    /// acknowledgement.
    pub(crate) fn is_silent(&self, now: u64, time: u64) -> bool {
        self.unanswered >= SUSPECT_AFTER && now.saturating_sub(self.silent_since) >= time
    }

    /// The successor has said something.
    pub(crate) fn heard(&mut self) {
        self.unanswered = 0;
    }

    /// A datagram that the successor is to answer is sent.
    pub(crate) fn asks(&mut self, now: u64) {
        if self.unanswered == 0 {
            self.silent_since = now;
        }
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// When [`Log::resend`] has something next.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.resend_at
    }

    /// The next entries that were never sent, at most `most` bytes or one entry, if at most
    /// `window` are in flight then.
    pub(crate) fn next_batch(&mut self, now: u64, most: usize, window: u64) -> Option<Batch> {
        let room = window.saturating_sub(self.sent - self.acknowledged);
        let batch = self.pack(self.sent + 1, room, most)?;
        self.sent += batch.count;
        if self.resend_at.is_none() {
            self.resend_at = Some(now.saturating_add(self.wait));
        }
        self.asks(now);
        Some(batch)
    }

    /// Entries to resend at `now`; the time to the next resend doubles. If the successor has all
    /// entries and replicas behind it do not, the last entry: its acknowledgement reports what they
    /// have.
    pub(crate) fn resend(&mut self, now: u64, most: usize) -> Vec<Batch> {
        if self.resend_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        self.wait = self.wait.saturating_mul(2).min(self.resend_bound);
        self.resend_at = Some(now.saturating_add(self.wait));
        let mut batches = Vec::new();
        let mut number = self.sent.min(self.acknowledged + 1);
        let end = self.sent.min(self.acknowledged + RESEND_BURST).max(number);
        while number <= end
            && let Some(batch) = self.pack(number, end + 1 - number, most)
        {
            number += batch.count;
            self.asks(now);
            batches.push(batch);
        }
        batches
    }

    fn pack(&self, number: u64, limit: u64, most: usize) -> Option<Batch> {
        let mut body = Vec::new();
        let mut count = 0;
        for entry in self.range(number, number.saturating_add(limit).saturating_sub(1)) {
            if count > 0 && body.len() + ENTRY_PREFIX + entry.len() > most {
                break;
            }
            body.extend_from_slice(&(entry.len() as u16).to_be_bytes());
            body.extend_from_slice(entry);
            count += 1;
        }
        (count > 0 && number > self.before).then_some(Batch {
            number,
            count,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(entries: u8) -> Log {
        let mut log = Log::new(10, 30);
        for byte in 1..=entries {
            log.push(vec![byte].into());
        }
        log
    }

    #[test]
    fn entries_share_a_datagram_up_to_its_length() {
        let mut log = log(5);
        let batch = log.next_batch(0, 7, 100).unwrap();
        assert_eq!(
            (batch.number, batch.body),
            (1, vec![0, 1, 1, 0, 1, 2].clone())
        );
        assert_eq!(log.next_batch(0, 1, 100).unwrap().count, 1);
        assert_eq!(log.next_batch(0, 100, 3), None);
        assert_eq!(log.next_batch(0, 100, 4).unwrap().number, 4);
        assert_eq!(log.next_batch(0, 100, 100).unwrap().number, 5);
        assert_eq!(log.next_batch(0, 100, 100), None);
    }

    #[test]
    fn resends_double_to_the_bound_and_start_again_after_progress() {
        let mut log = log(2);
        log.next_batch(0, 3, 10);
        log.next_batch(5, 3, 10);
        for (at, next) in [(10, 30), (30, 60), (60, 90)] {
            assert_eq!(log.next_due(), Some(at));
            assert!(log.resend(at - 1, 3).is_empty());
            assert_eq!(log.resend(at, 3).len(), 2);
            assert_eq!(log.next_due(), Some(next));
        }
        assert!(log.acknowledge(70, 1));
        assert_eq!(log.next_due(), Some(80));
        assert!(log.acknowledge(71, 2));
        assert_eq!(log.next_due(), Some(81));
        assert!(!log.acknowledge(72, 3));
    }

    #[test]
    fn what_is_trimmed_is_not_sent_to_a_new_successor() {
        let mut log = log(4);
        log.next_batch(0, 100, 10);
        log.trim(2);
        log.begin_link();
        let batch = log.next_batch(0, 100, 10).unwrap();
        assert_eq!((batch.number, batch.count), (3, 2));
        assert!(log.acknowledge(1, 4));
        assert_eq!(log.range(1, 3).count(), 1);
        log.trim(9);
        assert_eq!(log.len(), 0);
        log.push(vec![5].into());
        assert_eq!(log.next_batch(2, 100, 10).unwrap().number, 5);
    }

    #[test]
    fn silence_is_several_datagrams_without_any_word() {
        let mut log = log(2);
        assert!(!log.is_silent(100, 10));
        log.next_batch(100, 1, 10);
        log.next_batch(100, 1, 10);
        assert!(!log.is_silent(200, 10));
        assert!(!log.resend(110, 100).is_empty());
        assert!(!log.is_silent(110, 11));
        assert!(log.is_silent(111, 11));
        assert!(log.acknowledge(112, 0));
        assert!(!log.is_silent(500, 10));
    }

    #[test]
    fn the_last_entry_is_repeated_until_all_behind_the_successor_have_it() {
        let mut log = log(2);
        log.next_batch(0, 100, 10);
        assert!(log.acknowledge(5, 2));
        assert_eq!(log.next_due(), Some(15));
        let batches = log.resend(15, 100);
        assert_eq!(
            batches
                .iter()
                .map(|b| (b.number, b.count))
                .collect::<Vec<_>>(),
            [(2, 1)]
        );
        log.trim(1);
        assert!(log.next_due().is_some());
        log.trim(2);
        assert_eq!(log.next_due(), None);
        assert_eq!(log.resend(1000, 100), []);
    }
}

//! A replica's place in its chain, and what changes with it.

use super::feed::Feed;
use super::install::Install;
use super::reclaim::Reclaims;
use super::{Replica, empty_shards};
use crate::link::Receiver;
use crate::parking::Parking;
use crate::quota::Tenants;

/// Position of a replica in one configuration of its chain (rule 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Configuration number.
    pub epoch: u32,
    /// Number of members of the chain, from 1.
    pub length: u8,
    /// The replica's own position, 0 is the head; `length` if it joins behind the
    /// tail and is not a member yet.
    pub position: u8,
    /// True if a replica joins behind the tail.
    pub feeds: bool,
}

impl Replica {
    /// Its present place.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Takes a new place at `now`. One whose epoch is not newer changes nothing.
    ///
    /// A member keeps its state: it is a beginning of what its new predecessor has,
    /// and goes at least as far as any entry that was answered. Its predecessor
    /// sends what it lacks, a new tail answers what was not. A replica that joins
    /// forgets everything and takes a snapshot.
    pub fn reconfigure(&mut self, now: u64, place: Place) {
        if self.is_silenced() {
            return;
        }
        if place.epoch <= self.place.epoch {
            return;
        }
        let was_head = self.is_head() && self.place.epoch > 0;
        let had_joined = self.install.as_ref().is_none_or(Install::is_done);
        self.place = place;
        self.counters.reconfigured += 1;
        if place.position >= place.length {
            self.begin_install();
            return;
        }
        if had_joined {
            self.install = None;
        }
        let window = self.config.limits.link_window;
        self.predecessor = Receiver::new(window, self.applied);
        self.predecessor.owe_acknowledgement();
        if was_head && !self.is_head() {
            self.stop_deciding();
        }
        self.placed = now;
        if !was_head && self.is_head() {
            self.became_head(now);
        }
        self.feed = None;
        self.compare_anew(now);
        if self.is_tail() {
            self.answer_kept(self.applied);
            self.base = self.applied;
            self.log.clear(self.applied);
            if place.feeds {
                self.feed = Some(Feed::new(self));
            }
        }
        self.log.begin_link();
        self.run_due(now);
    }

    /// Forgets everything, to be filled by a snapshot.
    pub(super) fn begin_install(&mut self) {
        let limits = &self.config.limits;
        self.shards = empty_shards(&self.config, self.incarnation);
        self.record_count = 0;
        self.tenants = Tenants::default();
        self.expiry_due.clear();
        (self.applied, self.base, self.answered) = (0, 0, 0);
        self.log.clear(0);
        self.log.begin_link();
        self.predecessor = Receiver::new(limits.link_window, 0);
        self.feed = None;
        self.changes = None;
        self.comparing = None;
        self.install = Some(Install::new(limits.link_window));
        self.stop_deciding();
    }

    /// Forgets what it noted as head.
    fn stop_deciding(&mut self) {
        self.parking = Parking::new(&self.config.limits);
        self.reclaims = Reclaims::default();
        self.questions.clear();
        for shard in self.shards.keys() {
            self.promises.let_go_all(*shard);
        }
    }

    /// Rule 1c: it outwaits nobody for as long as a promise of the head before it may last,
    /// which may rest on a backing that has nearly ended.
    fn became_head(&mut self, now: u64) {
        let faults = &self.config.faults;
        let wait = if faults.inherit_at_once {
            0
        } else if faults.inherit_after_term {
            self.config.lengthened(self.config.term)
        } else {
            self.config.lengthened(self.config.backing)
        };
        self.outwaits_from = now.saturating_add(wait);
    }

    /// The process starts at `now`: what was promised before is not known. One that is `empty`,
    /// although its chain may have existed, grants nothing for as long.
    pub(crate) fn starts(&mut self, now: u64, empty: bool) {
        self.outwaits_from = if self.config.faults.restart_at_once {
            0
        } else {
            now.saturating_add(self.config.lengthened(self.config.backing))
        };
        self.grants_from = if empty { self.outwaits_from } else { 0 };
    }

    /// As tail: the replica that joins has every entry that was ever answered, and
    /// nothing more is answered before it has it too. It may become the tail.
    pub fn has_joined(&self) -> bool {
        self.feed.as_ref().is_some_and(|feed| {
            feed.joined(self.log.acknowledged())
                || (self.config.faults.join_early && feed.follows())
        })
    }

    /// True if the successor, or the joining replica, owes an acknowledgement and has been silent
    /// at `now` for the configured time.
    pub fn suspects_successor(&self, now: u64) -> bool {
        let silence = self.config.limits.silence;
        let feed = self.feed.as_ref();
        self.log.is_silent(now, silence) || feed.is_some_and(|feed| feed.is_silent(now, silence))
    }
}

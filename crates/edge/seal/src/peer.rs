//! State of one end about the other.

use crate::endpoint::PeerConfig;
use crate::key::KeyId;
use crate::mac::Mac;
use crate::window::ReplayWindow;

/// Answers that may follow each other at once.
const ANSWER_BURST: u64 = 8;

/// µs after which another answer is allowed.
const ANSWER_PERIOD: u64 = 1_000;

/// The life of the peer that is listened to.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub(crate) life: u64,
    /// Token that proves the freshness of its messages.
    pub(crate) token: u64,
    pub(crate) window: ReplayWindow,
}

#[derive(Debug, Clone)]
pub(crate) struct Peer {
    keys: Vec<(KeyId, Mac)>,
    send_with: KeyId,
    /// Messages sealed for the peer.
    pub(crate) sent: u64,
    /// The token heard from the peer; 0 before.
    pub(crate) proof: u64,
    /// The greatest of our counters that an answer was taken for.
    pub(crate) answered: u64,
    pub(crate) accepted: Option<Accepted>,
    /// Lives accepted so far.
    pub(crate) accepted_lives: u64,
    /// When all answers of a burst are allowed again, in µs.
    answers_free_at: u64,
}

impl Peer {
    pub(crate) fn new(config: &PeerConfig) -> Peer {
        let mut peer = Peer {
            keys: Vec::new(),
            send_with: config.send_with,
            sent: 0,
            proof: 0,
            answered: 0,
            accepted: None,
            accepted_lives: 0,
            answers_free_at: 0,
        };
        peer.set_keys(config);
        peer
    }

    /// Other keys for the same association: counters, lives and proofs go on.
    pub(crate) fn set_keys(&mut self, config: &PeerConfig) {
        let keys = config.keys.iter();
        self.keys = keys.map(|(id, key)| (*id, Mac::new(key))).collect();
        self.send_with = config.send_with;
    }

    /// The end has no business with the peer any more.
    pub(crate) fn forget_keys(&mut self) {
        self.keys.clear();
    }

    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(crate) fn key(&self, id: KeyId) -> Option<&Mac> {
        let found = self.keys.iter().find(|(other, _)| *other == id);
        found.map(|(_, mac)| mac)
    }

    /// The key to seal with. [`crate::Config::check`] has seen that it is there.
    pub(crate) fn sending_key(&self) -> Option<(KeyId, &Mac)> {
        Some((self.send_with, self.key(self.send_with)?))
    }

    /// True if an answer may be sent at `now`; if so it counts.
    pub(crate) fn may_answer(&mut self, now: u64) -> bool {
        let free_at = self.answers_free_at.max(now) + ANSWER_PERIOD;
        let allowed = free_at - now <= ANSWER_BURST * ANSWER_PERIOD;
        if allowed {
            self.answers_free_at = free_at;
        }
        allowed
    }
}

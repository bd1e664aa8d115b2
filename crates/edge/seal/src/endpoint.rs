//! Endpoint: seals messages that it sends, and opens messages that it receives.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::key::{Key, KeyId};
use crate::mac::Mac;
use crate::peer::{Accepted, Peer};
use crate::trailer::{
    ANSWER_LENGTH, Kind, NotSealed, Repr, TRAILER_LENGTH, Trailer, answer_field, field,
};
use crate::window::{ReplayWindow, Seen};

/// Identity of an end and its peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Number of this end.
    pub id: u32,
    /// The others.
    pub peers: Vec<PeerConfig>,
}

/// One peer of an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerConfig {
    /// Its number.
    pub id: u32,
    /// Keys whose seals are accepted, at least one.
    pub keys: Vec<(KeyId, Key)>,
    /// The one of them that seals what is sent.
    pub send_with: KeyId,
}

/// Why a configuration is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A peer with the own number.
    #[error("peer {id} has this end's own number: each end has its own")]
    OwnNumber {
        /// The number.
        id: u32,
    },
    /// Two peers with one number.
    #[error("peer {id} is named twice: put all its keys into one entry")]
    DuplicatePeer {
        /// The number.
        id: u32,
    },
    /// A peer without keys.
    #[error("peer {id} has no key: add one, or remove the peer")]
    NoKey {
        /// The peer.
        id: u32,
    },
    /// Two keys of a peer with one number.
    #[error("peer {id} has two keys of number {key}: a key's number is never used again")]
    DuplicateKey {
        /// The peer.
        id: u32,
        /// The number.
        key: KeyId,
    },
    /// One secret for two peers, so that each could speak for the other.
    #[error("peers {first} and {second} have the same key: draw one for each pair")]
    SharedKey {
        /// A peer.
        first: u32,
        /// The other.
        second: u32,
    },
    /// None of the keys is for sending.
    #[error("peer {id} has no key number {key} to send with: name one of its keys")]
    NoSendingKey {
        /// The peer.
        id: u32,
        /// The number named.
        key: KeyId,
    },
    /// Another own number than before.
    #[error("this end's number was {was} and is to be {is}: that takes a restart")]
    Renumbered {
        /// Number so far.
        was: u32,
        /// New number.
        is: u32,
    },
}

impl ConfigError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            ConfigError::OwnNumber { .. } => "SEAL001",
            ConfigError::DuplicatePeer { .. } => "SEAL002",
            ConfigError::NoKey { .. } => "SEAL003",
            ConfigError::DuplicateKey { .. } => "SEAL004",
            ConfigError::SharedKey { .. } => "SEAL005",
            ConfigError::NoSendingKey { .. } => "SEAL006",
            ConfigError::Renumbered { .. } => "SEAL007",
        }
    }
}

impl Config {
    /// Checks that an end can work with it.
    ///
    /// # Errors
    ///
    /// The first contradiction.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut numbers = BTreeSet::new();
        for (at, peer) in self.peers.iter().enumerate() {
            let id = peer.id;
            if id == self.id {
                return Err(ConfigError::OwnNumber { id });
            }
            if !numbers.insert(id) {
                return Err(ConfigError::DuplicatePeer { id });
            }
            if peer.keys.is_empty() {
                return Err(ConfigError::NoKey { id });
            }
            let mut keys = BTreeSet::new();
            for (key, secret) in &peer.keys {
                if !keys.insert(*key) {
                    return Err(ConfigError::DuplicateKey { id, key: *key });
                }
                let has_it = |other: &&PeerConfig| other.keys.iter().any(|(_, it)| it == secret);
                if let Some(first) = self.peers[..at].iter().find(has_it) {
                    let (first, second) = (first.id, id);
                    return Err(ConfigError::SharedKey { first, second });
                }
            }
            if !keys.contains(&peer.send_with) {
                let key = peer.send_with;
                return Err(ConfigError::NoSendingKey { id, key });
            }
        }
        Ok(())
    }
}

/// Why a message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Shorter than a seal.
    Truncated,
    /// Not of the format.
    NotSealed,
    /// Sent by an unknown peer.
    UnknownSender,
    /// Sealed with a key that is not, or no longer, known.
    UnknownKey,
    /// The tag does not fit: forged, altered, or meant for another receiver.
    Forged,
    /// Nothing proves that it was sealed after this end last heard of its sender anew.
    Unproven,
    /// The message came before.
    Replayed,
    /// Too far behind the newest message to tell whether it came before.
    TooOld,
}

/// Counts of messages, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counters {
    /// Sealed.
    pub sealed: u64,
    /// Opened.
    pub opened: u64,
    /// Dropped as [`Refusal::Truncated`].
    pub truncated: u64,
    /// Dropped as [`Refusal::NotSealed`].
    pub not_sealed: u64,
    /// Dropped as [`Refusal::UnknownSender`].
    pub unknown_sender: u64,
    /// Dropped as [`Refusal::UnknownKey`].
    pub unknown_key: u64,
    /// Dropped as [`Refusal::Forged`].
    pub forged: u64,
    /// Dropped as [`Refusal::Unproven`]; a few are normal after a start on either side.
    pub unproven: u64,
    /// Dropped as [`Refusal::Replayed`].
    pub replayed: u64,
    /// Dropped as [`Refusal::TooOld`].
    pub too_old: u64,
    /// Not sealed and not sent: the receiver is not known.
    pub unknown_receiver: u64,
    /// Answers to messages without proof.
    pub answers_sent: u64,
    /// Answers heard and heeded.
    pub answers_taken: u64,
    /// Answers that are no news: of an earlier life, or to an older question.
    pub answers_stale: u64,
    /// Starts of peers.
    pub lives: u64,
}

/// An answer to send to whence the message came. It is never longer than that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer(pub [u8; ANSWER_LENGTH]);

/// Result of opening bytes that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// A message of the protected protocol: the first `length` bytes.
    Message {
        /// Number of the sender.
        from: u32,
        /// Its length.
        length: usize,
    },
    /// The message was an answer to this end, and there is nothing to pass on.
    Heard {
        /// An answer of this end, to send back.
        answer: Option<Answer>,
    },
    /// The message is dropped.
    Refused {
        /// Why.
        refusal: Refusal,
        /// An answer, to send back.
        answer: Option<Answer>,
    },
}

/// One end of any number of associations.
#[derive(Debug, Clone)]
pub struct Endpoint {
    id: u32,
    life: u64,
    tokens: Mac,
    peers: BTreeMap<u32, Peer>,
    counters: Counters,
}

impl Endpoint {
    /// An end that starts a life. `life` and `secret` must be drawn at random, anew for
    /// each start: no two lives may share them.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`].
    pub fn new(
        config: &Config,
        life: u64,
        secret: [u8; Key::LENGTH],
    ) -> Result<Endpoint, ConfigError> {
        config.check()?;
        let peers = config.peers.iter();
        Ok(Endpoint {
            id: config.id,
            life,
            tokens: Mac::new(&Key::new(secret)),
            peers: peers.map(|peer| (peer.id, Peer::new(peer))).collect(),
            counters: Counters::default(),
        })
    }

    /// Takes other keys and peers. Associations with peers that stay go on. Of a peer that
    /// goes, counters and lives are kept: if it comes back in the same life of this end,
    /// what was recorded before is no news.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`], and [`ConfigError::Renumbered`]; then nothing
    /// changes.
    pub fn replace_keys(&mut self, config: &Config) -> Result<(), ConfigError> {
        config.check()?;
        if config.id != self.id {
            let (was, is) = (self.id, config.id);
            return Err(ConfigError::Renumbered { was, is });
        }
        for peer in self.peers.values_mut() {
            peer.forget_keys();
        }
        for peer in &config.peers {
            let known = self.peers.entry(peer.id);
            known.or_insert_with(|| Peer::new(peer)).set_keys(peer);
        }
        Ok(())
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Counters of messages since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The trailer that makes `message` a sealed message to `to`; `None`, counted, if
    /// that peer is not known.
    pub fn seal(&mut self, to: u32, message: &[u8]) -> Option<[u8; TRAILER_LENGTH]> {
        let trailer = self.trailer(to, Kind::Message, message);
        match trailer {
            Some(_) => self.counters.sealed += 1,
            None => self.counters.unknown_receiver += 1,
        }
        trailer
    }

    fn trailer(&mut self, to: u32, kind: Kind, message: &[u8]) -> Option<[u8; TRAILER_LENGTH]> {
        let peer = self.peers.get_mut(&to).filter(|peer| peer.has_keys())?;
        peer.sent += 1;
        let (key, mac) = peer.sending_key()?;
        let covered = Repr {
            kind,
            key,
            sender: self.id,
            life: self.life,
            counter: peer.sent,
            proof: peer.proof,
        }
        .covered();
        let mut trailer = [0; TRAILER_LENGTH];
        trailer[..field::TAG].copy_from_slice(&covered);
        let tag = mac.tag(&[&to.to_be_bytes(), message, &covered]);
        trailer[field::TAG..].copy_from_slice(&tag);
        Some(trailer)
    }

    /// Judges bytes that arrived at `now`, in µs of a clock that does not go back.
    pub fn open(&mut self, now: u64, bytes: &[u8]) -> Opened {
        let trailer = match Trailer::new_checked(bytes) {
            Ok(trailer) => trailer,
            Err(NotSealed::Truncated) => return self.refuse(Refusal::Truncated),
            Err(NotSealed::Version) => return self.refuse(Refusal::NotSealed),
        };
        let said = trailer.repr();
        let known = self.peers.get_mut(&said.sender);
        let Some(peer) = known.filter(|peer| peer.has_keys()) else {
            return self.refuse(Refusal::UnknownSender);
        };
        let Some(mac) = peer.key(said.key) else {
            return self.refuse(Refusal::UnknownKey);
        };
        let receiver = self.id.to_be_bytes();
        let parts: [&[u8]; 3] = [&receiver, trailer.message(), trailer.covered()];
        if !mac.agrees(&parts, trailer.tag()) {
            return self.refuse(Refusal::Forged);
        }
        if said.kind == Kind::Answer {
            let heeded = take_answer(peer, self.life, trailer.message());
            if heeded {
                self.counters.answers_taken += 1
            } else {
                self.counters.answers_stale += 1
            }
        }
        let present = peer.accepted.as_ref().filter(|it| it.life == said.life);
        let token = match present {
            Some(accepted) => accepted.token,
            None => self.tokens.number(&[
                &said.sender.to_be_bytes(),
                &peer.accepted_lives.to_be_bytes(),
                &said.life.to_be_bytes(),
            ]),
        };
        if said.proof != token {
            let answers = bytes.len() >= ANSWER_LENGTH && peer.may_answer(now);
            let answer = answers.then(|| self.answer(&said, token)).flatten();
            self.counters.answers_sent += u64::from(answer.is_some());
            if said.kind == Kind::Answer {
                return Opened::Heard { answer };
            }
            self.counters.unproven += 1;
            return Opened::Refused {
                refusal: Refusal::Unproven,
                answer,
            };
        }
        if present.is_none() {
            peer.accepted = Some(Accepted {
                life: said.life,
                token,
                window: ReplayWindow::new(),
            });
            peer.accepted_lives += 1;
            self.counters.lives += 1;
        }
        let window = peer.accepted.as_mut().map(|accepted| &mut accepted.window);
        match window.map_or(Seen::TooOld, |window| window.see(said.counter)) {
            Seen::Again => return self.refuse(Refusal::Replayed),
            Seen::TooOld => return self.refuse(Refusal::TooOld),
            Seen::First => {}
        }
        match said.kind {
            Kind::Answer => Opened::Heard { answer: None },
            Kind::Message => {
                self.counters.opened += 1;
                Opened::Message {
                    from: said.sender,
                    length: trailer.message().len(),
                }
            }
        }
    }

    fn answer(&mut self, question: &Repr, token: u64) -> Option<Answer> {
        let mut bytes = [0; ANSWER_LENGTH];
        let (message, trailer) = bytes.split_at_mut(ANSWER_LENGTH - TRAILER_LENGTH);
        for (at, value) in [
            (answer_field::TOKEN, token),
            (answer_field::LIFE, question.life),
            (answer_field::COUNTER, question.counter),
        ] {
            message[at..at + 8].copy_from_slice(&value.to_be_bytes());
        }
        trailer.copy_from_slice(&self.trailer(question.sender, Kind::Answer, message)?);
        Some(Answer(bytes))
    }

    fn refuse(&mut self, refusal: Refusal) -> Opened {
        let counters = &mut self.counters;
        *match refusal {
            Refusal::Truncated => &mut counters.truncated,
            Refusal::NotSealed => &mut counters.not_sealed,
            Refusal::UnknownSender => &mut counters.unknown_sender,
            Refusal::UnknownKey => &mut counters.unknown_key,
            Refusal::Forged => &mut counters.forged,
            Refusal::Unproven => &mut counters.unproven,
            Refusal::Replayed => &mut counters.replayed,
            Refusal::TooOld => &mut counters.too_old,
        } += 1;
        Opened::Refused {
            refusal,
            answer: None,
        }
    }
}

/// Heeds an answer to a question of this life, if none to a later question was heeded:
/// then the token is the newest that the peer is known to have given.
fn take_answer(peer: &mut Peer, life: u64, message: &[u8]) -> bool {
    let number = |at: usize| {
        let bytes = message.get(at..at + 8).and_then(|it| it.try_into().ok());
        bytes.map_or(0, u64::from_be_bytes)
    };
    let counter = number(answer_field::COUNTER);
    let is_news = counter > peer.answered && counter <= peer.sent;
    if number(answer_field::LIFE) != life || !is_news {
        return false;
    }
    peer.answered = counter;
    peer.proof = number(answer_field::TOKEN);
    true
}

#[cfg(test)]
mod tests;

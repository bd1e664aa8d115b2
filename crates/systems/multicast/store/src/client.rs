//! A client: one operation at a time, repeated until an answer comes.

use crate::message::{Command, MAX_KEYS, Message, Operation, Outcome};
use core::net::SocketAddrV4;
use stateplane_multicast::FinalTime;

/// Settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its number: random bits, so that nobody else has it.
    pub client: u64,
    /// Shards of the store.
    pub shards: u8,
    /// Address to which answers go.
    pub reply: SocketAddrV4,
    /// µs after which an operation without an answer is sent again; the time doubles with each.
    pub repeat_us: u64,
    /// Longest time between two of them, in µs.
    pub longest_repeat_us: u64,
}

/// An operation cannot begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// One has no answer.
    #[error("the operation before has no answer")]
    UnderWay,
    /// It names too many keys, or none.
    #[error("an operation names 1 to {MAX_KEYS} keys, this one {0}")]
    Keys(usize),
}

/// The answer of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Number of the operation.
    pub number: u64,
    /// Place at which it was executed: a sender of the same host takes it, so that what it sends is
    /// behind it ([`stateplane_multicast::Sender::handle_final`]).
    pub at: FinalTime,
    /// Its outcome.
    pub outcome: Outcome,
}

#[derive(Debug)]
struct Asked {
    groups: u32,
    payload: Vec<u8>,
    due: bool,
    repeat_at: u64,
    repeat_us: u64,
}

/// A client of the store. Times are µs of any monotonic clock.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    number: u64,
    opened: Option<FinalTime>,
    asked: Option<Asked>,
    reply: Option<Reply>,
}

impl Client {
    /// A client that opens itself: the first reply has [`Outcome::Opened`].
    pub fn new(now_us: u64, config: ClientConfig) -> Client {
        let mut client = Client {
            config,
            number: 0,
            opened: None,
            asked: None,
            reply: None,
        };
        client.ask(now_us, Operation::Open {});
        client
    }

    fn ask(&mut self, now_us: u64, operation: Operation) {
        let groups = operation.groups(self.config.shards);
        let command = Command {
            client: self.config.client,
            number: self.number,
            opened: self.opened.unwrap_or(FinalTime { time: 0, group: 0 }),
            reply: self.config.reply,
            operation,
        };
        self.asked = Some(Asked {
            groups,
            payload: Message::Command { command }.to_vec(),
            due: true,
            repeat_at: now_us.saturating_add(self.config.repeat_us),
            repeat_us: self.config.repeat_us,
        });
    }

    /// True if an operation can begin.
    pub fn is_idle(&self) -> bool {
        self.opened.is_some() && self.asked.is_none()
    }

    /// Begins an operation; gives its number.
    ///
    /// # Errors
    ///
    /// [`Busy`] if it does not begin.
    pub fn call(&mut self, now_us: u64, operation: Operation) -> Result<u64, Busy> {
        if !self.is_idle() {
            return Err(Busy::UnderWay);
        }
        let keys = operation.keys().len();
        if !(1..=MAX_KEYS).contains(&keys) {
            return Err(Busy::Keys(keys));
        }
        self.number += 1;
        self.ask(now_us, operation);
        Ok(self.number)
    }

    /// The next message of multicast: the map of its groups, and its payload.
    pub fn poll_send(&mut self) -> Option<(u32, Vec<u8>)> {
        let asked = self.asked.as_mut().filter(|asked| asked.due)?;
        asked.due = false;
        Some((asked.groups, asked.payload.clone()))
    }

    /// Multicast refused the message: it is given out again when it is due.
    pub fn handle_refusal(&mut self, now_us: u64) {
        if let Some(asked) = &mut self.asked {
            asked.repeat_at = asked
                .repeat_at
                .min(now_us.saturating_add(self.config.repeat_us));
        }
    }

    /// No lane was free for the message: [`poll_send`](Self::poll_send) gives it out again.
    pub fn handle_no_lane(&mut self) {
        if let Some(asked) = &mut self.asked {
            asked.due = true;
        }
    }

    /// Takes a datagram.
    pub fn handle_datagram(&mut self, bytes: &[u8]) {
        let Ok(Message::Answer {
            client,
            number,
            at,
            outcome,
        }) = Message::parse(bytes)
        else {
            return;
        };
        if client != self.config.client || number != self.number || self.asked.is_none() {
            return;
        }
        if outcome == (Outcome::Opened {}) {
            self.opened = Some(at);
        }
        self.asked = None;
        self.reply = Some(Reply {
            number,
            at,
            outcome,
        });
    }

    /// The answer, once.
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.reply.take()
    }

    /// Time at which [`Client::handle_timeout`] is due, in µs.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.asked.as_ref().map(|asked| asked.repeat_at)
    }

    /// Has an operation without an answer sent again: the answer was lost, or replicas died.
    pub fn handle_timeout(&mut self, now_us: u64) {
        if let Some(asked) = &mut self.asked
            && asked.repeat_at <= now_us
        {
            asked.due = true;
            let doubled = asked.repeat_us.saturating_mul(2);
            asked.repeat_us = doubled.min(self.config.longest_repeat_us).max(1);
            asked.repeat_at = now_us.saturating_add(asked.repeat_us);
        }
    }
}

//! The client of the store at a sender.

use super::{sender_number, session_of};
use crate::places::{Places, store_socket};
use crate::scenario::Scenario;
use stateplane_apps::multicast_store::{answered, called, operation_number, request, response};
use stateplane_history::multicast::EventKind;
use stateplane_multicast_store::{Client, ClientConfig, Operation};
use std::collections::VecDeque;

/// µs after which an operation without an answer is sent again, and at most.
const REPEAT: u64 = 15_000;
const LONGEST_REPEAT: u64 = 60_000;

/// A client, and operations that wait until the one before is answered.
pub(super) struct ClientPart {
    sender: usize,
    client: Client,
    operations: VecDeque<Operation>,
    /// Calls and answers, for the history.
    pub(super) notes: Vec<EventKind>,
}

impl ClientPart {
    /// A client that makes itself known to all shards.
    pub(super) fn new(now: u64, sender: usize, scenario: &Scenario) -> Self {
        let config = ClientConfig {
            client: session_of(sender).into(),
            shards: scenario.groups,
            reply: store_socket(*Places::sender_socket(sender).ip()),
            repeat_us: REPEAT,
            longest_repeat_us: LONGEST_REPEAT,
        };
        Self {
            sender,
            client: Client::new(now, config),
            operations: VecDeque::new(),
            notes: Vec::new(),
        }
    }

    /// Has an operation wait.
    pub(super) fn push(&mut self, operation: Operation) {
        self.operations.push_back(operation);
    }

    fn number(&self, number: u64) -> u64 {
        operation_number(session_of(self.sender).into(), number)
    }

    /// Takes an answer, and begins the next operation. Gives the final timestamp of the answer.
    pub(super) fn go_on(&mut self, now: u64) -> Option<u64> {
        let node = sender_number(self.sender);
        let reply = self.client.poll_reply();
        if let Some(reply) = &reply
            && let Some(response) = response(&reply.outcome)
        {
            let operation = self.number(reply.number);
            self.notes.push(answered(node, operation, response));
        }
        if self.client.is_idle()
            && let Some(operation) = self.operations.pop_front()
            && let Some(request) = request(&operation)
            && let Ok(number) = self.client.call(now, operation)
        {
            let operation = self.number(number);
            self.notes.push(called(node, operation, request));
        }
        reply.map(|reply| reply.at.time)
    }

    /// The next message to send: its groups and its payload.
    pub(super) fn poll_send(&mut self) -> Option<(u32, Vec<u8>)> {
        self.client.poll_send()
    }

    /// The message found no lane, or was refused.
    pub(super) fn handle_refusal(&mut self, now: u64) {
        self.client.handle_refusal(now);
    }

    pub(super) fn handle_datagram(&mut self, bytes: &[u8]) {
        self.client.handle_datagram(bytes);
    }

    /// The message found no lane.
    pub(super) fn handle_no_lane(&mut self) {
        self.client.handle_no_lane();
    }

    pub(super) fn handle_timeout(&mut self, now: u64) {
        self.client.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        self.client.poll_timeout()
    }
}

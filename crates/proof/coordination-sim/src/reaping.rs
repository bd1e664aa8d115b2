//! The reaper among the clients (rule 19), and what it asks of records that histories name.

use crate::client::{group_name, is_named, object_of};
use stateplane_apps::coordination;
use stateplane_coordination::{Agent, Event, Lanes, Reaper, ReaperSettings};
use stateplane_history::coordination::{
    Asked, Condition, EventKind, Holder, Outcome, Request, Response,
};
use stateplane_wire::coordination::{MessageType, Operation, Outcome as Told, Packet, Repr};
use std::collections::BTreeMap;

/// Numbers of the reaper's operations in histories, behind those of all others.
const FIRST: u64 = 1 << 32;

/// A reaper, and its operations as they pass between it and the switches.
pub(crate) struct Reaping {
    node: u32,
    reaper: Reaper,
    /// By group and lane: the request under way and the number of its operation.
    open: BTreeMap<(u16, u16), (u32, u64)>,
    next: u64,
    /// Sessions that it ended.
    pub(crate) ended: Vec<Lanes>,
}

impl Reaping {
    /// A reaper of `sessions`, that histories call `node`.
    pub(crate) fn new(node: u32, ttl: u64, sessions: impl Iterator<Item = Lanes>) -> Self {
        let mut reaper = Reaper::new(ReaperSettings::new(ttl));
        for lanes in sessions {
            reaper.watch(0, lanes);
        }
        Self {
            node,
            reaper,
            open: BTreeMap::new(),
            next: FIRST,
            ended: Vec::new(),
        }
    }

    pub(crate) fn handle_event(&mut self, now: u64, agent: &mut Agent, event: &Event) {
        self.reaper.handle_event(now, agent, event);
        self.ended
            .extend(std::iter::from_fn(|| self.reaper.poll_ended()));
    }

    pub(crate) fn handle_timeout(&mut self, now: u64, agent: &mut Agent) {
        if self.reaper.poll_timeout().is_some_and(|due| due <= now) {
            self.reaper.handle_timeout(now, agent);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        self.reaper.poll_timeout()
    }

    /// Notes what it sends for the first time.
    pub(crate) fn sends(&mut self, bytes: &[u8], notes: &mut Vec<EventKind>) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let message = Repr::parse(&packet);
        let asked = match Operation::from_u8(message.operation) {
            Some(Operation::Release) => Asked::Release,
            Some(Operation::Delete) => Asked::Delete(Condition::None),
            _ => return,
        };
        let lane = (message.group, message.lane);
        let open = self.open.get(&lane);
        if !is_named(message.key) || open.is_some_and(|(request, _)| *request == message.request) {
            return;
        }
        self.open.insert(lane, (message.request, self.next));
        notes.push(EventKind::Call {
            node: self.node,
            object: group_name(message.group),
            operation: self.next,
            request: Request {
                key: object_of(message.key),
                asked,
                token: message.token,
                guard: None,
                holder: Holder {
                    session: message.session,
                    handle: message.handle,
                },
                until: None,
            },
        });
        self.next += 1;
    }

    /// Notes what comes back.
    pub(crate) fn receives(&mut self, bytes: &[u8], notes: &mut Vec<EventKind>) {
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let reply = Repr::parse(&packet);
        let lane = (reply.group, reply.lane);
        let (Some(&(request, operation)), MessageType::Reply) =
            (self.open.get(&lane), reply.message_type)
        else {
            return;
        };
        let outcome = Told::from_u8(reply.outcome).filter(|outcome| outcome.is_final());
        let resolves = reply.operation == Operation::Resolve as u8;
        let response = match outcome {
            // The kept request is the one that was asked (rule 6).
            Some(outcome) if reply.handle == request && (resolves || reply.request == request) => {
                Response {
                    outcome: coordination::outcome(outcome),
                    number: reply.number,
                    token: None,
                    seen: None,
                }
            }
            _ if resolves && reply.request == request + 1 && reply.handle < request => Response {
                outcome: Outcome::Never,
                number: 0,
                token: None,
                seen: None,
            },
            _ => return,
        };
        self.open.remove(&lane);
        notes.push(EventKind::Return {
            node: self.node,
            object: group_name(reply.group),
            operation,
            response,
        });
    }
}

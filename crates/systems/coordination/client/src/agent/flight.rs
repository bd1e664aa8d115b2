//! A request under way: its message, where it is sent to, and when again.

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::coordination::{MessageType, PORT, Repr, SEND_TIME_END, flag};

use super::{Agent, Due};
use crate::Ticket;

/// Unanswered transmissions after which the next switch of the list is asked, and the chain is
/// asked for.
const PATIENCE: u32 = 2;

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// An operation's request.
    Operation(Ticket),
    /// Asks for the fate of an operation (rule 6).
    Resolve(Ticket),
    /// Reads the session's record (rule 19).
    Proof,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Flight {
    pub purpose: Purpose,
    pub group: u16,
    /// The agent's lane, of a request that is numbered.
    pub lane: Option<u16>,
    pub request: u32,
    /// The message but for list, epoch and send time.
    pub message: Repr<'static>,
    pub value: Vec<u8>,
    /// The one switch that may answer, of a read of what that has.
    pub member: Option<Ipv4Addr>,
    /// Founding and epoch known when it was asked first; `None` before it was sent.
    pub asked: Option<(u16, u32)>,
    /// Transmissions.
    pub sent: u32,
    /// Transmissions since somebody answered.
    pub unanswered: u32,
    /// Refusals with BUSY, one after the other.
    pub busy: u32,
    /// How many switches of the list were given up.
    pub turn: usize,
    /// Time until the next repetition but one.
    pub backoff: u64,
    /// When it is due.
    pub due: u64,
}

impl Flight {
    /// A request without a lane that was not sent yet.
    pub fn new(
        purpose: Purpose,
        group: u16,
        request: u32,
        mut message: Repr<'static>,
        value: Vec<u8>,
    ) -> Flight {
        message.group = group;
        message.request = request;
        Flight {
            purpose,
            group,
            lane: None,
            request,
            message,
            value,
            member: None,
            asked: None,
            sent: 0,
            unanswered: 0,
            busy: 0,
            turn: 0,
            backoff: 0,
            due: 0,
        }
    }
}

impl Agent {
    /// Sends a request for the first time.
    pub(super) fn launch(&mut self, now: u64, mut flight: Flight) -> u64 {
        let id = self.fresh();
        let timeout = self.round_trip.timeout();
        flight.backoff = timeout.unwrap_or(self.settings.first_timeout_us).clamp(
            self.settings.least_timeout_us,
            self.settings.most_timeout_us,
        );
        if flight.lane.is_none() {
            self.reads.insert(flight.request, id);
        }
        self.flights.insert(id, flight);
        self.transmit(now, id);
        id
    }

    fn first_backoff(&self) -> u64 {
        let settings = &self.settings;
        let timeout = self.round_trip.timeout();
        timeout
            .unwrap_or(settings.first_timeout_us)
            .clamp(settings.least_timeout_us, settings.most_timeout_us)
    }

    /// Forgets a request.
    pub(super) fn end_flight(&mut self, id: u64) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        self.due.remove(&(flight.due, Due::Repeat(id)));
        if flight.lane.is_none() {
            self.reads.remove(&flight.request);
        }
        Some(flight)
    }

    /// A request was not answered in time.
    pub(super) fn repeat(&mut self, now: u64, id: u64) {
        let most = self.settings.most_timeout_us;
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        flight.backoff = (2 * flight.backoff).min(most);
        if flight.unanswered >= PATIENCE {
            flight.turn += 1;
            flight.unanswered = 0;
            let group = flight.group;
            self.want_chain(now, group);
        }
        self.transmit(now, id);
    }

    /// The next switch of the list is asked at the next transmission, and the chain is asked for.
    pub(super) fn moved(&mut self, now: u64, id: u64) {
        let most = self.settings.most_timeout_us;
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        flight.turn += 1;
        flight.backoff = (2 * flight.backoff).min(most);
        let group = flight.group;
        self.want_chain(now, group);
    }

    /// Sends all requests of `group` again that waited in vain, as its chain changed.
    pub(super) fn ask_again(&mut self, now: u64, group: u16) {
        let backoff = self.first_backoff();
        let waiting: Vec<u64> = self
            .flights
            .iter_mut()
            .filter(|(_, flight)| flight.group == group)
            .filter_map(|(id, flight)| {
                flight.turn = 0;
                flight.unanswered = 0;
                flight.backoff = backoff;
                (flight.sent != 1).then_some(*id)
            })
            .collect();
        for id in waiting {
            let flight = self.flights.get_mut(&id).expect("a flight");
            self.due.remove(&(flight.due, Due::Repeat(id)));
            self.transmit(now, id);
        }
    }

    /// Repeats a request after `wait` instead of when it is due.
    pub(super) fn postpone(&mut self, now: u64, id: u64, wait: u64) {
        let wait = wait + self.random.between(0, wait / 2);
        if let Some(flight) = self.flights.get_mut(&id) {
            self.due.remove(&(flight.due, Due::Repeat(id)));
            flight.due = now.saturating_add(wait);
            flight.unanswered = 0;
            self.due.insert((flight.due, Due::Repeat(id)));
        }
    }

    /// Sends a request, if the chain is known, and notes when it is repeated.
    fn transmit(&mut self, now: u64, id: u64) {
        let Some(flight) = self.flights.get_mut(&id) else {
            return;
        };
        let wait = flight.backoff + self.random.between(0, flight.backoff / 4);
        flight.due = now.saturating_add(wait);
        self.due.insert((flight.due, Due::Repeat(id)));
        let group = flight.group;
        if flight.lane.is_some() && self.proof.is_wanted(group) {
            return;
        }
        let Some(chain) = self.directory.chain(group) else {
            return self.want_chain(now, group);
        };
        // A request names one founding: another knows nothing of what its number or lane means.
        let (generation, _) = *flight.asked.get_or_insert((chain.generation, chain.epoch));
        let mut switches: Vec<_> = chain.switches().collect();
        let members = chain.members.len();
        // The answerer is the tail or the one that joins; each sends on to the head what it must not
        // answer. Reads of any copy are spread over the members.
        let first = match flight.message.flags {
            flags if flags & flag::LEASED != 0 => members - 1,
            flags if flags & flag::STALE != 0 => flight.request as usize % members,
            _ => 0,
        };
        let length = switches.len();
        switches.rotate_left((first + flight.turn) % length);
        if let Some(member) = flight.member {
            switches = vec![member];
        }
        let mut message = Repr {
            value: &flight.value,
            ..flight.message
        };
        message.message_type = MessageType::Request;
        message.generation = generation;
        message.epoch = chain.epoch;
        message.send_time = now % SEND_TIME_END;
        message.hops = (switches.len() - 1) as u8;
        message.set_client(self.settings.client);
        message.set_chain(switches.iter().copied());
        if flight.sent > 0 {
            self.counters.repeated += 1;
        }
        flight.sent += 1;
        flight.unanswered += 1;
        // Who does not take what is to be sent loses it, as a network does.
        let room = self.outbox.len() <= 2 * self.settings.most_operations;
        if let Some(bytes) = message.to_vec().ok().filter(|_| room) {
            self.counters.sent += 1;
            self.outbox
                .push_back((SocketAddrV4::new(switches[0], PORT), bytes));
        }
    }
}

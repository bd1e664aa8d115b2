//! A sender of multicast on a socket: drives a [`Sender`] in the caller's thread.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

use stateplane_multicast::{Call, Event, SendError, Sender, SenderConfig};
use stateplane_wire::multicast::{Code, MessageType, PORT, Packet, Repr};
use stateplane_wire::multicast_control::{
    Leader, Learn, Message, NO_SLOT, NUMBERS_OF_A_SESSION, Opened, reason, room_for_leaders,
};

use crate::clock::boot_time_us;
use crate::datagram::{Link, address_towards};
use crate::random::random_bits;
use crate::sealing::{Guard, KeysError, SealReport};

/// µs between two questions for the leaders, which keep a session open.
const LEARN_US: u64 = 200_000;

/// µs between two questions when a leader is being looked for.
const SEEK_US: u64 = 5_000;

/// µs between two questions for a session.
const OPEN_US: u64 = 50_000;

/// Numbers of a lane that are left when another session is opened.
const RESERVE: u64 = 1 << 10;

/// How a sender reaches the groups.
#[derive(Debug, Clone)]
pub struct MulticastSenderConfig {
    /// The controllers, at least one.
    pub controllers: Vec<SocketAddrV4>,
    /// The sender's own address; without one, that from which the system would send to the first
    /// controller.
    pub address: Option<Ipv4Addr>,
    /// Lanes wanted, at least 1: messages that can be under way together.
    pub lanes: u8,
    /// µs after which a message without an answer is sent again first, at least: later if answers
    /// take longer (RFC 6298). The time doubles with each.
    pub repeat_us: u64,
    /// Longest time between two of them, in µs.
    pub longest_repeat_us: u64,
    /// µs after which the outcome of a message is told as unknown.
    pub give_up_us: u64,
}

impl MulticastSenderConfig {
    /// A sender with eight lanes, which repeats a message after 10 ms, or as much later as answers
    /// take, at least each 200 ms, and gives up after 10 s.
    pub fn new(controllers: Vec<SocketAddrV4>) -> MulticastSenderConfig {
        MulticastSenderConfig {
            controllers,
            address: None,
            lanes: 8,
            repeat_us: 10_000,
            longest_repeat_us: 200_000,
            give_up_us: 10_000_000,
        }
    }
}

/// Reason why a sender could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    /// No slot of a session is free.
    #[error("the controller has no free slot: too many senders, or those that died hold theirs")]
    NoSlot,
    /// No lane is free.
    #[error("the controller has no free lane: too many senders (a quarter of a window is granted)")]
    NoLane,
    /// The time passed.
    #[error("no controller answers")]
    Silent,
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A session.
#[derive(Debug)]
struct Session {
    slot: u16,
    incarnation: u16,
    /// First number that is not the session's (rule 21).
    end: u64,
    sender: Sender,
    /// The controller does not know it any more, or another one took its place.
    over: bool,
}

/// A sender of messages to groups. Times are µs of [`boot_time_us`].
#[derive(Debug)]
pub struct MulticastSender {
    config: MulticastSenderConfig,
    link: Link,
    /// The session in use is the last one; those before it have messages under way.
    sessions: Vec<Session>,
    nonce: u64,
    /// A session is asked for.
    opens: bool,
    refusal: u8,
    open_at: u64,
    groups: u32,
    leaders: BTreeMap<u8, (u32, Ipv4Addr)>,
    learn_at: u64,
    events: VecDeque<Event>,
}

impl MulticastSender {
    /// Opens a sender, and waits for its session and the leaders until `end` at most. With a guard
    /// only sealed messages are sent and taken.
    ///
    /// # Errors
    ///
    /// [`SenderError`].
    pub fn connect(
        config: MulticastSenderConfig,
        guard: Option<Guard>,
        end: u64,
    ) -> Result<MulticastSender, SenderError> {
        let address = match config.address {
            Some(address) => address,
            None => address_towards(&config.controllers)?,
        };
        let now = boot_time_us();
        let mut sender = MulticastSender {
            link: Link::open(SocketAddrV4::new(address, 0), guard)?,
            config,
            sessions: Vec::new(),
            nonce: random_bits()?,
            opens: true,
            refusal: reason::OPENED,
            open_at: now,
            groups: 0,
            leaders: BTreeMap::new(),
            learn_at: now,
            events: VecDeque::new(),
        };
        while sender.sessions.is_empty() || sender.leaders.is_empty() {
            if boot_time_us() >= end {
                return Err(match sender.refusal {
                    reason::NO_SLOT => SenderError::NoSlot,
                    reason::NO_LANE => SenderError::NoLane,
                    _ => SenderError::Silent,
                });
            }
            sender.step(end)?;
        }
        Ok(sender)
    }

    /// The time.
    pub fn now(&self) -> u64 {
        boot_time_us()
    }

    /// Map of the groups of the deployment.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Messages that are under way.
    pub fn under_way(&self) -> usize {
        let sessions = self.sessions.iter();
        sessions.map(|session| session.sender.under_way()).sum()
    }

    /// Datagrams that the system did not take.
    pub fn lost(&self) -> u64 {
        self.link.lost()
    }

    /// Counts of sealed messages, if messages are sealed.
    pub fn seals(&self) -> Option<SealReport> {
        self.link.seals()
    }

    /// Reads the file of keys again if it changed, at most once a second.
    ///
    /// # Errors
    ///
    /// The new file's, once for each change; the keys so far stay.
    pub fn look(&mut self) -> Result<(), KeysError> {
        self.link.look()
    }

    /// The host learned of a final timestamp, by a delivery (rule 17).
    pub fn handle_final(&mut self, time: u64) {
        for session in &mut self.sessions {
            session.sender.handle_final(time);
        }
    }

    /// Sends `payload` to all receivers of the groups in the map `destinations`, with the next
    /// [`MulticastSender::step`].
    ///
    /// # Errors
    ///
    /// [`SendError`] if it is not sent; [`SendError::NoLane`] also while a session is being opened.
    pub fn send(&mut self, destinations: u32, payload: Vec<u8>) -> Result<Call, SendError> {
        let Some(session) = self.sessions.last_mut().filter(|session| !session.over) else {
            return Err(SendError::NoLane);
        };
        let call = session.sender.send(boot_time_us(), destinations, payload)?;
        if call.number + RESERVE >= session.end {
            // Its next messages have another session's numbers.
            session.over = true;
            self.renew();
        }
        Ok(call)
    }

    /// Asks for another session.
    fn renew(&mut self) {
        if !self.opens {
            self.opens = true;
            self.open_at = 0;
            // Every session is asked for by a number of its own.
            self.nonce = self.nonce.wrapping_add(1);
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Sends what waits; then waits until a datagram comes, something is due, or `until`; and takes
    /// what came.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, until: u64) -> io::Result<()> {
        self.flush();
        let sessions = self.sessions.iter();
        let due = sessions.filter_map(|it| it.sender.poll_timeout()).min();
        let due = due.unwrap_or(until).min(until).min(self.learn_at);
        let due = if self.opens {
            due.min(self.open_at)
        } else {
            due
        };
        let mut taken = Vec::new();
        self.link.receive(due, |_, from, message| {
            taken.push((from, message.to_vec()));
        })?;
        let now = boot_time_us();
        for (from, message) in taken {
            self.take(now, from, &message);
        }
        let mut seeks = false;
        for session in &mut self.sessions {
            seeks |= session.sender.handle_timeout(now);
        }
        if seeks {
            // A leader that does not answer may lead no more.
            self.learn_at = self.learn_at.min(now + SEEK_US);
        }
        self.collect();
        self.flush();
        Ok(())
    }

    /// Collects events, and forgets sessions that are over.
    fn collect(&mut self) {
        for session in &mut self.sessions {
            while let Some(event) = session.sender.poll_event() {
                self.events.push_back(event);
            }
        }
        let in_use = self.sessions.len().saturating_sub(1);
        let mut over = Vec::new();
        let mut place = 0;
        self.sessions.retain(|session| {
            let ends = session.over && session.sender.under_way() == 0 && place < in_use;
            place += 1;
            if ends {
                over.push((session.slot, session.incarnation));
            }
            !ends
        });
        for (slot, incarnation) in over {
            // If it does not come, the session ends in silence.
            self.tell(&Message::Close { slot, incarnation });
        }
    }

    fn take(&mut self, now: u64, from: SocketAddrV4, bytes: &[u8]) {
        if Message::is_one(bytes) {
            if self.config.controllers.contains(&from)
                && let Ok(message) = Message::parse(bytes)
            {
                self.take_control(now, message);
            }
            return;
        }
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let message = Repr::parse(&packet);
        if message.message_type == MessageType::Refused {
            let code = Code::from_u8(message.code);
            if code == Some(Code::NotLeader) || code == Some(Code::UnknownGroup) {
                self.learn_at = self.learn_at.min(now + SEEK_US);
            }
        }
        for session in &mut self.sessions {
            session.sender.handle_message(now, &message);
        }
    }

    fn take_leader(&mut self, now: u64, row: Leader) {
        let known = self.leaders.get(&row.group).copied();
        // An earlier epoch's leader is none.
        if known.is_none_or(|(epoch, _)| epoch <= row.epoch) {
            self.leaders.insert(row.group, (row.epoch, row.leader));
            if known != Some((row.epoch, row.leader)) && !row.leader.is_unspecified() {
                for session in &mut self.sessions {
                    session.sender.handle_leader(now, row.group);
                }
            }
        }
    }

    fn take_control(&mut self, now: u64, message: Message) {
        match message {
            Message::Opened(opened) if opened.nonce == self.nonce && self.opens => {
                self.opened(&opened);
            }
            Message::Leaders {
                slot,
                incarnation,
                open,
                leaders,
                ..
            } => {
                for row in leaders {
                    self.take_leader(now, row);
                }
                let last = self.sessions.last_mut();
                let ended = last.filter(|it| (it.slot, it.incarnation) == (slot, incarnation));
                if let Some(session) = ended.filter(|session| !open && !session.over) {
                    session.over = true;
                    self.renew();
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, opened: &Opened) {
        self.refusal = opened.reason;
        self.groups = opened.groups;
        if opened.reason != reason::OPENED || opened.slot == NO_SLOT || opened.lanes == 0 {
            return;
        }
        let first = u64::from(opened.incarnation) * NUMBERS_OF_A_SESSION;
        let sender = Sender::new(SenderConfig {
            session: opened.slot,
            lanes: opened.lanes,
            first_number: first,
            longest: opened.longest.into(),
            repeat_us: self.config.repeat_us,
            longest_repeat_us: self.config.longest_repeat_us,
            give_up_us: self.config.give_up_us,
        });
        self.opens = false;
        self.sessions.push(Session {
            slot: opened.slot,
            incarnation: opened.incarnation,
            end: first + NUMBERS_OF_A_SESSION,
            sender,
            over: false,
        });
    }

    /// Sends a message to all controllers: the one that leads answers.
    fn tell(&mut self, message: &Message) {
        let bytes = message.to_vec();
        for at in 0..self.config.controllers.len() {
            let to = self.config.controllers[at];
            self.link.send(to, bytes.clone());
        }
    }

    fn flush(&mut self) {
        let now = boot_time_us();
        if self.opens && now >= self.open_at {
            self.open_at = now + OPEN_US;
            self.tell(&Message::Open {
                nonce: self.nonce,
                lanes: self.config.lanes.max(1),
            });
        }
        if now >= self.learn_at {
            self.learn_at = now + LEARN_US;
            let last = self.sessions.last();
            let (slot, incarnation) = last.map_or((NO_SLOT, 0), |it| (it.slot, it.incarnation));
            self.tell(&Message::Learn(Learn {
                slot,
                incarnation,
                room: room_for_leaders(stateplane_wire::multicast::MAX_GROUPS),
            }));
        }
        for session in &mut self.sessions {
            while let Some((group, start)) = session.sender.poll_transmit() {
                // Without a leader it is sent again when its time comes.
                let leader = self.leaders.get(&group).map(|(_, address)| *address);
                let leader = leader.filter(|address| !address.is_unspecified());
                if let (Some(leader), Ok(bytes)) = (leader, start.to_vec()) {
                    self.link.send(SocketAddrV4::new(leader, PORT), bytes);
                }
            }
        }
        self.link.flush();
    }

    /// Ends the session, and waits for that until `end`. Messages that are under way are given up.
    pub fn close(mut self, end: u64) {
        for session in core::mem::take(&mut self.sessions) {
            let (slot, incarnation) = (session.slot, session.incarnation);
            let mut closed = false;
            while !closed && boot_time_us() < end {
                self.tell(&Message::Close { slot, incarnation });
                self.link.flush();
                let due = end.min(boot_time_us() + OPEN_US);
                let outcome = self.link.receive(due, |_, _, bytes| {
                    closed |= Message::parse(bytes) == Ok(Message::Closed { slot, incarnation });
                });
                if outcome.is_err() {
                    return;
                }
            }
        }
    }
}

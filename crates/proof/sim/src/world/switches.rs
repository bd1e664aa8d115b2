//! Packets and frames at the switches.

use super::{Happening, World};
use crate::device::{Device, Identity};
use crate::frame::{
    DATA_PORTS, INSIDE_PORT, OUTSIDE_PORT, STORE_PORT, checked_message_in, message_in, number_in,
    store_address,
};
use crate::places::Message;
use crate::plan::Misfortune;
use crate::traffic::Carried;
use stateplane_chains::Rows;
use stateplane_history::replication::{Direction, EventKind, Occupant};
use stateplane_wire::replication::{HEADER_LENGTH, Key, Packet, older};
use stateplane_wire::term::is_term;
use stateplane_world::{Node, NodePort, Random};

/// A switch with its agent, which asks the controller where heads are.
pub(crate) struct SwitchNode {
    /// `None` while it is dead.
    pub(super) device: Option<Box<dyn Device>>,
    pub(super) identity: Identity,
    /// Its data ports were down when it was last looked at.
    pub(super) aloof: bool,
    pub(super) rows: Rows,
}

impl SwitchNode {
    pub(super) fn occupant(&self) -> Occupant {
        Occupant {
            switch: self.identity.switch,
            incarnation: self.identity.incarnation,
        }
    }
}

impl Node for SwitchNode {
    type Message = Vec<u8>;
    type Transmit = (u16, Vec<u8>);

    fn handle_message(&mut self, now: u64, port: u16, _: NodePort, frame: Vec<u8>) {
        if let Some(device) = &mut self.device {
            device.handle_frame(now, port, &frame);
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if let Some(device) = &mut self.device {
            device.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, _: u64) -> Option<(u16, Vec<u8>)> {
        self.device.as_mut()?.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.device.as_ref()?.poll_timeout()
    }
}

impl World<'_> {
    pub(super) fn send(&mut self, connection: usize, direction: Direction) {
        let Some((switch, sent)) = self.traffic.send(connection, direction) else {
            return;
        };
        let port = match (&sent.carried, sent.direction) {
            (Carried::Own(port, _), _) => *port,
            (_, Direction::Outbound) => INSIDE_PORT,
            (_, Direction::Inbound) => OUTSIDE_PORT,
        };
        let frame = sent.carried.to_frame(self.switches[switch].identity.switch);
        let (from, to) = (self.places.outside(), self.places.port(switch, port));
        self.net.send(from, to, &Message::Frame(frame));
    }

    /// A switch takes a frame.
    pub(super) fn switch_takes(&mut self, switch: usize, from: NodePort, port: u16, of: Vec<u8>) {
        let now = self.now;
        let mut replied = None;
        let number = number_in(&of).filter(|_| port != STORE_PORT);
        let mut of_term = false;
        if port == STORE_PORT {
            replied = checked_message_in(&of).map(|(_, message)| message.key());
            of_term = message_in(&of).is_some_and(|(_, _, message)| is_term(message));
        } else if let Some(packet) = number
            && let Some(sent) = self.traffic.sent(packet)
        {
            let machine = self.options.program.machine();
            let input = EventKind::Call {
                node: self.switches[switch].identity.switch,
                object: sent.flow.clone(),
                operation: packet,
                request: machine.and_then(|_| sent.carried.request()),
            };
            self.recorder.coverage.inputs += 1;
            self.recorder.note(now, input);
        }
        let local = self.net.local(self.places.switch(switch));
        let node = &mut self.switches[switch];
        let alarms = |node: &SwitchNode| node.device.as_ref().map_or(0, |it| it.alarms());
        let before = alarms(node);
        node.handle_message(local, port, from, of);
        let alarm = alarms(node) > before;
        let by = node.occupant();
        if let (Some(device), Some(number)) = (&node.device, number) {
            self.traffic
                .handled_own((now, by), number, alarm, &**device);
        }
        self.note_slots(switch, replied, of_term);
        self.after_switch(switch);
    }

    /// Notes what the switch believes of the slot of `replied`, or of all.
    fn note_slots(&mut self, switch: usize, replied: Option<Key>, all: bool) {
        let place = self.places.switch(switch);
        let node = &self.switches[switch];
        let by = node.occupant();
        let Some(device) = &node.device else {
            return;
        };
        let slots: Vec<_> = if all {
            let slots = device.slots().into_iter();
            slots.map(|(key, slot)| (key, Some(slot))).collect()
        } else {
            let replied = replied.into_iter();
            replied.map(|key| (key, device.slot(&key))).collect()
        };
        let clock = self.net.clock(place);
        for (key, slot) in slots {
            let slot = slot.filter(|slot| slot.granted);
            let lease = slot.map(|slot| (slot.epoch, slot.shared, clock.time_of(slot.deadline)));
            self.recorder.lease(self.now, by, &key, lease);
        }
    }

    pub(super) fn switch_timer(&mut self, switch: usize) {
        let local = self.net.local(self.places.switch(switch));
        self.switches[switch].handle_timeout(local);
        self.after_switch(switch);
    }

    /// Takes the frames of a switch, and sees when it wants to be woken.
    pub(super) fn after_switch(&mut self, switch: usize) {
        let place = self.places.switch(switch);
        let node = &mut self.switches[switch];
        if node.device.is_none() {
            return;
        }
        let frames = self.net.poll(place, node);
        let aloof = node.device.as_ref().is_some_and(|it| it.is_aloof());
        if aloof != node.aloof {
            node.aloof = aloof;
            self.recorder.coverage.aloof += u64::from(aloof);
            self.notice(switch);
        }
        for (port, frame) in frames {
            self.transmitted(switch, port, &frame);
        }
    }

    /// Routing looks at a switch soon.
    pub(super) fn notice(&mut self, switch: usize) {
        let at = self.now + self.net.random.between(100, 3_000);
        let look = Misfortune::Look { switch };
        self.net.plan(at, Happening::Misfortune(look));
    }

    pub(super) fn transmitted(&mut self, switch: usize, port: u16, frame: &[u8]) {
        match port {
            STORE_PORT => self.requested(switch, frame),
            0..DATA_PORTS => self.output(switch, port, frame),
            _ => self.anomaly(format!("a frame left by port {port}, which no link faces")),
        }
    }

    pub(super) fn requested(&mut self, switch: usize, frame: &[u8]) {
        let now = self.now;
        let Some((from, to, bytes)) = message_in(frame) else {
            self.anomaly("a switch sent the store a frame without a message".into());
            return;
        };
        match Packet::new_checked(bytes) {
            // Heartbeats, and questions whether the store is older.
            Err(_) if is_term(bytes) || bytes.first() == Some(&older::VERSION) => {}
            Ok(request) => {
                let packet = request.packet().and_then(number_in);
                self.recorder.request(now, &request, packet);
            }
            Err(error) => self.anomaly(format!("a switch sent the store this: {error}")),
        }
        let Some(store) = (0..self.stores.len()).find(|&store| store_address(store) == to) else {
            self.anomaly(format!("a request goes to {to}, where no server is"));
            return;
        };
        let damage = self.options.scenario.damage;
        let (port, to) = (
            self.places.port(switch, STORE_PORT),
            self.places.requests(store),
        );
        let copies = self.net.send_each(port, to, |random| {
            let mut bytes = bytes.to_vec();
            damaged(damage, random, &mut bytes, 0);
            Message::Datagram { from, bytes }
        });
        self.count_copies(copies);
    }
}

/// Perhaps flips a bit of the message that begins `at`: of its header or state. `chance` is in
/// thousandths.
pub(super) fn damaged(chance: u32, random: &mut Random, bytes: &mut [u8], at: usize) {
    if chance == 0 || !random.permille(chance) {
        return;
    }
    let state = Packet::new_checked(&bytes[at..]).map_or(0, |message| message.state().len());
    let bit = random.place((HEADER_LENGTH + state) * 8);
    if let Some(byte) = bytes.get_mut(at + bit / 8) {
        *byte ^= 1 << (bit % 8);
    }
}

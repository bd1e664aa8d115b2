//! Packets and frames at the switches.

use super::{Happening, RING, World};
use crate::frame::{
    DATA_PORTS, INSIDE_PORT, OUTSIDE_PORT, STORE_PORT, checked_message_in, message_in, number_in,
};
use crate::plan::Misfortune;
use crate::traffic::Carried;
use stateplane_history::replication::{Direction, EventKind};
use stateplane_wire::replication::{HEADER_LENGTH, Key, Packet};

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
        let link = self.quality(|options| options.scenario.host_link);
        for delay in link.carry(&mut self.random) {
            let arrival = Happening::ToSwitch {
                switch,
                port,
                frame: frame.clone(),
            };
            self.schedule.add(self.now + delay, arrival);
        }
    }

    pub(super) fn arrive(&mut self, switch: usize, port: u16, frame: Vec<u8>) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let cut = port == STORE_PORT && now < node.cut_until;
        if node.device.is_none() || node.ring.len() >= RING || cut {
            if port == STORE_PORT {
                self.recorder.coverage.lost += 1;
            }
            return;
        }
        node.ring.push_back((port, frame));
        if !node.serving {
            node.serving = true;
            let incarnation = node.identity.incarnation;
            let at = now.max(node.busy_until);
            self.schedule.add(
                at,
                Happening::Serve {
                    switch,
                    incarnation,
                },
            );
        }
    }

    pub(super) fn serve(&mut self, switch: usize, incarnation: u32) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let again = Happening::Serve {
            switch,
            incarnation,
        };
        if node.identity.incarnation != incarnation || node.device.is_none() {
            return;
        }
        if now < node.busy_until {
            self.schedule.add(node.busy_until, again);
            return;
        }
        let Some((port, frame)) = node.ring.pop_front() else {
            node.serving = false;
            return;
        };
        self.witness(switch, &frame);
        let mut replied = None;
        if port == STORE_PORT {
            replied = checked_message_in(&frame).map(|(_, message)| message.key());
        } else if let Some(packet) = number_in(&frame)
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
        let node = &mut self.switches[switch];
        let local = node.clock.local(now);
        let by = node.occupant();
        if let Some(device) = &mut node.device {
            let alarms = device.alarms();
            device.handle_frame(local, port, &frame);
            if port != STORE_PORT
                && let Some(number) = number_in(&frame)
            {
                let alarm = device.alarms() > alarms;
                self.traffic
                    .handled_own((now, by), number, alarm, &**device);
            }
        }
        node.busy_until = now + node.service;
        self.schedule.add(node.busy_until, again);
        self.after_switch(switch, replied);
    }

    pub(super) fn switch_timer(&mut self, switch: usize, incarnation: u32) {
        let now = self.now;
        let node = &mut self.switches[switch];
        if node.identity.incarnation != incarnation || node.timer != Some(now) {
            return;
        }
        if now < node.busy_until {
            node.timer = Some(node.busy_until);
            let again = Happening::SwitchTimer {
                switch,
                incarnation,
            };
            self.schedule.add(node.busy_until, again);
            return;
        }
        node.timer = None;
        let local = node.clock.local(now);
        if let Some(device) = &mut node.device {
            device.handle_timeout(local);
        }
        self.after_switch(switch, None);
    }

    /// Notes what the switch believes after a reply about `replied`, takes its
    /// frames, and sees when it wants to be woken.
    pub(super) fn after_switch(&mut self, switch: usize, replied: Option<Key>) {
        let now = self.now;
        let node = &mut self.switches[switch];
        let by = node.occupant();
        let Some(device) = &mut node.device else {
            return;
        };
        if let Some(key) = replied {
            let slot = device.slot(&key).filter(|slot| slot.granted);
            let lease =
                slot.map(|slot| (slot.epoch, slot.shared, node.clock.time_of(slot.deadline)));
            self.recorder.lease(now, by, &key, lease);
        }
        let mut frames = Vec::new();
        while let Some(transmit) = device.poll_transmit() {
            frames.push(transmit);
        }
        let due = device.poll_timeout();
        let due = due.map(|due| node.clock.time_of(due).max(now + 1));
        if let Some(due) = due
            && node.timer != Some(due)
        {
            node.timer = Some(due);
            let incarnation = node.identity.incarnation;
            self.schedule.add(
                due,
                Happening::SwitchTimer {
                    switch,
                    incarnation,
                },
            );
        }
        let aloof = device.is_aloof();
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
        let at = self.now + self.random.between(100, 3_000);
        let look = Misfortune::Look { switch };
        self.schedule.add(at, Happening::Misfortune(look));
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
            Ok(request) => {
                let packet = request.packet().and_then(number_in);
                self.recorder.request(now, &request, packet);
            }
            Err(error) => self.anomaly(format!("a switch sent the store this: {error}")),
        }
        let link = self.quality(|options| options.scenario.protocol_link);
        let cut = now < self.switches[switch].cut_until;
        let mut copies = 0;
        for delay in link.carry(&mut self.random).filter(|_| !cut) {
            copies += 1;
            let mut bytes = bytes.to_vec();
            self.damage(&mut bytes, 0);
            self.schedule
                .add(now + delay, Happening::Request { to, from, bytes });
        }
        self.count_copies(copies);
    }

    /// Perhaps flips a bit of the message that begins `at`: of its header or state.
    pub(super) fn damage(&mut self, bytes: &mut [u8], at: usize) {
        let chance = self.options.scenario.damage;
        if chance == 0 || !self.random.permille(chance) {
            return;
        }
        let state = Packet::new_checked(&bytes[at..]).map_or(0, |message| message.state().len());
        let bit = self.random.place((HEADER_LENGTH + state) * 8);
        if let Some(byte) = bytes.get_mut(at + bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

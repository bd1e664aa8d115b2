//! State of switches, read from their registers, and the messages that come to them.

use crate::device::Device;
use crate::places::switch_address;
use crate::scenario::Scenario;
use stateplane_apps::datagram::datagram;
use stateplane_history::multicast::{Entry, Event, EventKind, Filled, MulticastEvent};
use stateplane_multicast::MessageId;
use stateplane_wire::multicast::Packet;
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of messages by their ids.
type Messages = BTreeMap<MessageId, u64>;

/// State of a group that was seen at a switch.
#[derive(Clone, Copy, Default)]
struct Seen {
    commit: u32,
    entries: u64,
    held: u64,
}

/// Reads registers and frames, and writes down what is new.
pub(super) struct Observer {
    groups: u8,
    window: u64,
    first_index: u32,
    seen: BTreeMap<(usize, u8), Seen>,
    took: BTreeSet<(usize, u8, u64)>,
}

impl Observer {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            groups: scenario.groups,
            window: scenario.window.into(),
            first_index: scenario.first_index,
            seen: BTreeMap::new(),
            took: BTreeSet::new(),
        }
    }

    pub(super) fn died(&mut self, switch: usize) {
        for group in 0..self.groups {
            // It begins anew, empty.
            self.seen.insert((switch, group), Seen::default());
        }
    }

    /// A frame comes to a switch.
    pub(super) fn frame(
        &mut self,
        switch: usize,
        frame: &[u8],
        messages: &Messages,
        events: &mut Vec<Event>,
    ) {
        let Some((_, to, bytes)) = datagram(frame) else {
            return;
        };
        let Ok(packet) = Packet::new_checked(bytes) else {
            return;
        };
        let id = MessageId {
            session: packet.session(),
            lane: packet.lane(),
            number: packet.number(),
        };
        let Some(message) = messages
            .get(&id)
            .filter(|_| *to.ip() == switch_address(switch))
        else {
            return;
        };
        if self.took.insert((switch, packet.group(), *message)) {
            let at = events.last().map_or(0, |event| event.at);
            let took = MulticastEvent::Took {
                node: switch as u32 + 1,
                group: packet.group(),
                message: *message,
            };
            let kind = EventKind::Of(took);
            events.push(Event { at, kind });
        }
    }

    fn entry(&self, device: &dyn Device, group: u8, index: u32, messages: &Messages) -> Entry {
        let place = u64::from(group) * self.window + u64::from(index) % self.window;
        let id = device.word("multicast_entry_id", place);
        let id = MessageId {
            session: (id >> 48) as u16,
            lane: (id >> 40) as u8,
            number: id & ((1 << 40) - 1),
        };
        Entry {
            index,
            term: device.word("multicast_entry_term", place) as u32,
            time: device.word("multicast_entry_time", place),
            message: messages.get(&id).copied().unwrap_or(0),
        }
    }

    /// Notes what `switch` has that it had not.
    pub(super) fn observe(
        &mut self,
        at: u64,
        switch: usize,
        device: &dyn Device,
        messages: &Messages,
        events: &mut Vec<Event>,
    ) {
        let node = switch as u32 + 1;
        for group in 0..self.groups {
            let word = |register| device.word(register, group.into()) as u32;
            let (base, end) = (word("multicast_base"), word("multicast_end"));
            let commit = word("multicast_commit");
            let first = Seen {
                commit: self.first_index,
                ..Seen::default()
            };
            let mut seen = *self.seen.entry((switch, group)).or_insert(first);
            let mut note = |event| {
                let kind = EventKind::Of(event);
                events.push(Event { at, kind });
            };
            // What was freed before it was seen here has no entry any more.
            if base.wrapping_sub(seen.commit).cast_signed() > 0 || commit == base {
                seen.commit = base;
            }
            while seen.commit != commit && commit.wrapping_sub(seen.commit).cast_signed() > 0 {
                seen.commit = seen.commit.wrapping_add(1);
                let entry = self.entry(device, group, seen.commit, messages);
                note(MulticastEvent::Committed { node, group, entry });
            }
            let entries = u64::from(end.wrapping_sub(base));
            let place = u64::from(group) * self.window + u64::from(end) % self.window;
            let held = device.word("multicast_entry_held", place);
            for (what, count, most) in [
                (Filled::Window, entries, &mut seen.entries),
                (Filled::Held, held, &mut seen.held),
            ] {
                if count > *most {
                    *most = count;
                    note(MulticastEvent::Fills {
                        node,
                        group,
                        what,
                        count,
                    });
                }
            }
            self.seen.insert((switch, group), seen);
        }
    }

    /// Messages that leaders still keep, when all has arrived.
    pub(super) fn left(&self, leaders: &[(u8, &dyn Device)]) -> Vec<String> {
        let mut found = Vec::new();
        for (group, device) in leaders {
            let word = |register| device.word(register, (*group).into()) as u32;
            let (base, end) = (word("multicast_base"), word("multicast_end"));
            if base != end {
                let left = end.wrapping_sub(base);
                found.push(format!("the leader of group {group} keeps {left} entries"));
            }
        }
        found
    }
}

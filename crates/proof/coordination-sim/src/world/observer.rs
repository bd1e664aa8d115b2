//! State of the switches, read from their registers.

use crate::client::group_name;
use crate::device::Device;
use crate::event;
use crate::scenario::Scenario;
use crate::simulator::LANES;
use core::hash::Hasher;
use rustc_hash::FxHasher;
use stateplane_coordination::Lanes;
use stateplane_history::coordination::{CoordinationEvent, Event, EventKind, Part};
use std::collections::BTreeMap;

/// All that the ring keeps of an entry, but for its value.
const ENTRY: [&str; 16] = [
    "ring_operation",
    "ring_outcome",
    "ring_kind",
    "ring_length",
    "ring_slot",
    "ring_lane",
    "ring_lane_incarnation",
    "ring_request",
    "ring_client_address",
    "ring_client_port",
    "ring_session",
    "ring_handle",
    "ring_record",
    "ring_token",
    "ring_send_time",
    "ring_key",
];
const ENTRY_VALUE: [&str; 8] = [
    "ring_value_0",
    "ring_value_1",
    "ring_value_2",
    "ring_value_3",
    "ring_value_4",
    "ring_value_5",
    "ring_value_6",
    "ring_value_7",
];
const SLOT: [&str; 6] = [
    "slot_kind",
    "slot_key",
    "slot_number",
    "slot_token",
    "slot_session",
    "slot_length",
];
const SLOT_VALUE: [&str; 8] = [
    "slot_value_0",
    "slot_value_1",
    "slot_value_2",
    "slot_value_3",
    "slot_value_4",
    "slot_value_5",
    "slot_value_6",
    "slot_value_7",
];
/// Values of `slot_kind`.
const KIND_VALUE: u128 = 1;
const KIND_LOCK: u128 = 2;
/// The incarnation first.
const LANE: [&str; 7] = [
    "lane_incarnation",
    "lane_request",
    "lane_number",
    "lane_kept_request",
    "lane_kept_number",
    "lane_kept_outcome",
    "lane_kept_token",
];
/// Bytes of a value in one register.
const CHUNK: u128 = 16;
/// Place of a switch that is in no chain.
const PLACE_NONE: u128 = 255;
/// Bits of a number below its generation.
const COUNT_BITS: u32 = 48;

/// State of a group at a switch, as it was seen last.
#[derive(Clone, Copy, Default)]
struct Seen {
    epoch: u128,
    generation: u128,
    applied: u128,
}

/// The records and lanes of a group, as a member has them.
#[derive(PartialEq, Eq)]
pub(super) struct State {
    applied: u128,
    slots: BTreeMap<u64, Vec<u128>>,
    lanes: BTreeMap<u64, Vec<u128>>,
}

impl State {
    /// The first difference to `other`.
    pub(super) fn difference(&self, other: &State) -> String {
        if self.applied != other.applied {
            return format!("applied {:x} and {:x}", self.applied, other.applied);
        }
        for (what, one, other) in [
            ("slot", &self.slots, &other.slots),
            ("lane", &self.lanes, &other.lanes),
        ] {
            let places = one.keys().chain(other.keys());
            for place in places {
                if one.get(place) != other.get(place) {
                    let (one, other) = (one.get(place), other.get(place));
                    return format!("{what} {place} is {one:x?} and {other:x?}");
                }
            }
        }
        String::new()
    }
}

/// Reads the registers of switches and writes down what changed.
pub(super) struct Observer {
    groups: u16,
    ring: u64,
    slots: u64,
    numbers_left: u64,
    seen: BTreeMap<(usize, u16), Seen>,
    /// Entries that each switch decided or applied.
    entries: BTreeMap<usize, u64>,
}

impl Observer {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            groups: scenario.groups.into(),
            ring: scenario.ring.into(),
            slots: scenario.slots.into(),
            numbers_left: scenario.numbers_left,
            seen: BTreeMap::new(),
            entries: BTreeMap::new(),
        }
    }

    pub(super) fn died(&mut self, switch: usize) {
        self.seen.retain(|(of, _), _| *of != switch);
        self.entries.remove(&switch);
    }

    /// Notes which configurations and entries `switch` has that it had not.
    pub(super) fn observe(
        &mut self,
        at: u64,
        switch: usize,
        device: &mut dyn Device,
        events: &mut Vec<Event>,
    ) {
        for group in 0..self.groups {
            let index = u64::from(group);
            let seen = self.seen.entry((switch, group)).or_default();
            let (number, name) = (switch as u32 + 1, group_name(group));
            let epoch = device.word("group_epoch", index);
            if epoch != seen.epoch {
                let place = device.word("group_place", index);
                let members = device.word("group_members", index);
                let generation = device.word("group_generation", index);
                let founds = generation != seen.generation && place < members;
                (seen.epoch, seen.generation) = (epoch, generation);
                if founds && self.numbers_left > 0 {
                    let last = (generation as u64) << COUNT_BITS | ((1 << COUNT_BITS) - 1);
                    for register in ["group_applied", "group_acked"] {
                        device.set_word(register, index, last - self.numbers_left);
                    }
                }
                let part = match place {
                    PLACE_NONE => None,
                    _ if founds => Some(Part::Founder),
                    _ if place < members => Some(Part::Member),
                    _ => Some(Part::Joiner),
                };
                if let Some(part) = part {
                    let kind = EventKind::Of(CoordinationEvent::Adopted {
                        switch: number,
                        group: name.clone(),
                        epoch: epoch as u32,
                        part,
                    });
                    events.push(Event { at, kind });
                }
                if part != Some(Part::Member) {
                    seen.applied = device.word("group_applied", index);
                }
            }
            let applied = device.word("group_applied", index);
            if applied <= seen.applied {
                seen.applied = applied;
                continue;
            }
            // The copy that a joiner gets jumps, and what its ring had before is none of it.
            let entries =
                device.events(event::DECIDED as u64) + device.events(event::APPLIED as u64);
            let before = self.entries.insert(switch, entries);
            let copied = before.unwrap_or(0) == entries;
            let place = index * self.ring + applied as u64 % self.ring;
            if !copied && device.word("ring_number", place) == applied {
                let kind = EventKind::Of(CoordinationEvent::Applied {
                    switch: number,
                    group: name.clone(),
                    number: applied as u64,
                    digest: digest(device, place),
                });
                events.push(Event { at, kind });
            }
            seen.applied = applied;
        }
    }

    /// State of a group at a switch.
    pub(super) fn state(&self, device: &dyn Device, group: u16) -> State {
        let index = u64::from(group);
        let era = device.word("group_era", index);
        let mut slots = BTreeMap::new();
        for slot in 0..self.slots {
            let place = index * self.slots + slot;
            let kind = device.word("slot_kind", place);
            if kind == 0 || device.word("slot_era", place) != era {
                continue;
            }
            let mut words: Vec<u128> = SLOT.iter().map(|of| device.word(of, place)).collect();
            let chunks = device.word("slot_length", place).div_ceil(CHUNK) as usize;
            let value = SLOT_VALUE.iter().take(chunks);
            words.extend(value.map(|of| device.word(of, place)));
            slots.insert(slot, words);
        }
        let mut lanes = BTreeMap::new();
        for lane in 0..u64::from(LANES) {
            let place = index * u64::from(LANES) + lane;
            if device.word("lane_era", place) == era {
                let words = LANE.iter().map(|of| device.word(of, place)).collect();
                lanes.insert(lane, words);
            }
        }
        State {
            applied: device.word("group_applied", index),
            slots,
            lanes,
        }
    }
}

impl Observer {
    /// Records of ended sessions that a switch holds of a group, if any.
    pub(super) fn left(&self, device: &dyn Device, group: u16, ended: &[Lanes]) -> Option<String> {
        let is_ended = |session: u128| {
            let mut ended = ended.iter();
            session != 0 && ended.any(|lanes| u128::from(lanes.session) == session)
        };
        let state = self.state(device, group);
        for (slot, words) in &state.slots {
            let [kind, _, _, _, session, length] = words[..SLOT.len()] else {
                continue;
            };
            let value = &words[SLOT.len()..];
            // Owner and token, then waiters, two in each chunk.
            let holders = value.iter().enumerate().flat_map(|(chunk, word)| {
                let at = chunk as u128 * CHUNK;
                [(at, word >> 96), (at + CHUNK / 2, word >> 32)]
            });
            let mut holders = holders
                .filter(|(at, _)| *at < length && *at != CHUNK / 2)
                .map(|(_, holder)| holder & u128::from(u32::MAX));
            let owned = match kind {
                KIND_VALUE => is_ended(session),
                KIND_LOCK => holders.any(is_ended),
                _ => false,
            };
            if owned {
                return Some(format!("slot {slot} is of an ended session"));
            }
        }
        for lanes in ended {
            for lane in lanes.first..lanes.first + lanes.count {
                let known = state.lanes.get(&lane.into());
                if known.is_none_or(|words| words[0] <= lanes.incarnation.into()) {
                    return Some(format!("lane {lane} of an ended session goes on"));
                }
            }
        }
        None
    }
}

fn digest(device: &dyn Device, place: u64) -> u64 {
    let mut hasher = FxHasher::default();
    for register in ENTRY {
        hasher.write_u128(device.word(register, place));
    }
    let chunks = device.word("ring_length", place).div_ceil(CHUNK) as usize;
    for register in ENTRY_VALUE.iter().take(chunks) {
        hasher.write_u128(device.word(register, place));
    }
    hasher.finish()
}

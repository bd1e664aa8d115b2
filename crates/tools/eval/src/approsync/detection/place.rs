//! A switch with the sketches of `apps/count-min`, collected in all ways at once, and what its packets
//! were.

use super::super::collected::{Collected, Cut};
use super::super::packets::Packet;
use super::super::plane::Plane;
use super::super::viewed::Viewed;
use super::super::way::Setup;
use super::super::ways::{Beside, push_bytes};
use crate::error::EvalError;
use rustc_hash::{FxHashMap, FxHashSet};
use stateplane_sketch::Key;
use stateplane_wire::sync::CutKind;
use std::net::Ipv4Addr;

/// Sizes of the sketches: columns of flows, and of partners, and bits of the filter, are 2 to these.
pub(super) const COLUMN_BITS: u32 = 12;
pub(super) const PARTNER_BITS: u32 = 10;
pub(super) const FILTER_BITS: u32 = 20;

/// Groups of the program: flows, destinations of sources, sources of destinations.
pub(super) const GROUPS: usize = 3;

/// Updates of a packet that a budget counts: those of the sketch of flows.
const UPDATES: usize = 4;

/// Values of a message.
const BATCH: f64 = 16.0;

/// Path and rates, but for the link's.
const SETUP: Setup = Setup {
    rate: 1.0,
    delay_us: 50,
    turn_us: 1,
    window_us: 250,
    step_us: 1,
};

/// Bytes each µs of a link that carries all updates of the sketch of flows of so many packets each µs,
/// in messages of sync.
fn sync_rate(packets: f64) -> f64 {
    let message = 194.0 + 12.0 * BATCH;
    packets * UPDATES as f64 * message / BATCH
}

/// µs of a step.
pub(super) const STEP_US: u64 = SETUP.step_us;

/// The packets themselves: of each group its counts by key.
#[derive(Default)]
struct Truth {
    counts: [FxHashMap<Key, u64>; GROUPS],
    pairs: FxHashSet<Key>,
    addresses: FxHashSet<Ipv4Addr>,
    packets: u64,
}

impl Truth {
    fn packet(&mut self, packet: &Packet) {
        self.packets += 1;
        let [flows, destinations, sources] = &mut self.counts;
        *flows.entry(packet.flow()).or_insert(0) += 1;
        if self.pairs.insert(packet.pair()) {
            *destinations.entry(packet.source()).or_insert(0) += 1;
            *sources.entry(packet.destination()).or_insert(0) += 1;
            self.addresses.extend([packet.source, packet.destination]);
        }
    }

    /// The number of which a group's threshold is a share: packets, addresses, flows.
    fn all(&self, group: usize) -> u64 {
        match group {
            0 => self.packets,
            1 => self.addresses.len() as u64,
            _ => self.counts[0].len() as u64,
        }
    }
}

/// A group when a cut took it.
pub(super) struct Moment {
    /// µs that the cut was late.
    pub(super) late_us: u64,
    /// µs at which a window must be whole.
    pub(super) until: u64,
    pub(super) counts: FxHashMap<Key, u64>,
    pub(super) all: u64,
    /// Values of the view, and of the other ways in their order.
    pub(super) view: Vec<u64>,
    pub(super) others: [Vec<u64>; 5],
}

/// The switch.
pub(super) struct Place {
    pub(super) bed: Collected,
    beside: Beside,
    truth: Truth,
    /// Of each group the ends of windows for which a cut was asked.
    asked: [Vec<u64>; GROUPS],
    noted: usize,
    /// Of each group the moments of its cuts.
    pub(super) moments: [Vec<Moment>; GROUPS],
}

impl Place {
    /// A switch whose links, one for each way, carry all updates of `budget` packets each µs.
    ///
    /// # Errors
    /// `EV003` if the program does not suit.
    pub(super) fn new(viewed: &Viewed, budget: f64) -> Result<Self, EvalError> {
        let rate = sync_rate(budget);
        let bed = Collected::new(viewed, Setup { rate, ..SETUP })?;
        let plane = Plane::count_min(COLUMN_BITS, PARTNER_BITS, FILTER_BITS)?;
        let pushed = budget * push_bytes(UPDATES);
        Ok(Self {
            beside: Beside::new(plane, pushed, bed.now),
            bed,
            truth: Truth::default(),
            asked: Default::default(),
            noted: 0,
            moments: Default::default(),
        })
    }

    /// A packet comes.
    pub(super) fn packet(&mut self, packet: &Packet) {
        self.bed.packet(packet);
        self.beside.packet(self.bed.now, packet);
        self.truth.packet(packet);
    }

    /// True if a cut that is asked for is at the switch at `end` at the earliest.
    pub(super) fn is_time_for(&self, end: u64) -> bool {
        self.bed.now + SETUP.step_us + SETUP.delay_us >= end
    }

    /// Asks for cuts of all groups at `end`.
    pub(super) fn cut(&mut self, end: u64) {
        for (group, asked) in self.asked.iter_mut().enumerate() {
            if self.bed.cut(group, CutKind::Carried, 0) {
                asked.push(end);
            }
        }
    }

    /// Lets a step pass. `window_us` is how long a window is.
    pub(super) fn pass(&mut self, window_us: u64) {
        self.bed.pass();
        self.beside.pass(SETUP.step_us);
        while let Some(cut) = self.bed.cuts.get(self.noted).copied() {
            self.noted += 1;
            self.note(cut, window_us);
        }
    }

    fn note(&mut self, cut: Cut, window_us: u64) {
        let group = cut.group;
        let end = self.asked[group].get(self.moments[group].len()).copied();
        let end = end.unwrap_or(cut.at);
        self.moments[group].push(Moment {
            late_us: cut.at.saturating_sub(end),
            until: end + window_us,
            counts: self.truth.counts[group].clone(),
            all: self.truth.all(group),
            view: self.bed.view(group).to_vec(),
            others: self.beside.values(group),
        });
    }

    /// The window of a group that its cut `epoch` ended, if it was whole in time, and when it was.
    pub(super) fn window(&self, group: usize, epoch: usize) -> Option<(&[u64], u64)> {
        let moment = self.moments[group].get(epoch - 1)?;
        let mut windows = self.bed.heard.windows.iter();
        let window = windows.find(|it| (it.group, it.epoch as usize) == (group, epoch))?;
        (window.at <= moment.until).then_some((&window.values[..], window.at))
    }

    /// Shares of updates that mirroring and *Flow lost, in %.
    pub(super) fn lost_percent(&self) -> [f64; 2] {
        self.beside.lost_percent()
    }
}

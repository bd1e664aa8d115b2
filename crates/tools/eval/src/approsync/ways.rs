//! Other ways of collecting: every update pushed (mirroring), a cache whose records are pushed when they
//! are in the way (*Flow), and values that are read one by one (a switch's operating system).

use super::bed::{FRAMING, Link, SHORTEST};
use super::packets::Packet;
use super::plane::{Plane, Update};
use stateplane_runtime::hash::crc32;

/// ns for a value by the switch's operating system, as ApproSync measured it (its Fig. 9): above 1 s for
/// 2^16 values.
pub(super) const OS_NS: f64 = 1e9 / 65_536.0;

/// ns for a value by this project's P4Runtime: about 33 ms for 2^16 registers, from Python.
pub(super) const P4RUNTIME_NS: f64 = 33e6 / 65_536.0;

/// The difference that these constants make, for figures.
pub(super) const CONSTANTS: &str = "the operating system's path takes a constant time for a value: 15.3 µs (ApproSync's Fig. 9: above \
     1 s for 2^16 values), and as P4Runtime 0.50 µs (this project's: about 33 ms for 2^16 registers, \
     from Python)";

/// Updates of a push at most, and bytes of its frame without them (`p4/approsync/frames.p4`).
const UPDATES: usize = 10;
const FRONT: usize = 30;
const UPDATE: usize = 12;

/// Locations for an entry of *Flow's cache at most, and at least half as many: in ApproSync's Exp#9 2.6
/// million counters have a cache of 2^16 entries.
const LOCATIONS_OF_ENTRY: usize = 32;

/// Bytes on the wire of a push with so many updates.
pub(super) fn push_bytes(updates: usize) -> f64 {
    ((FRONT + UPDATE * updates).max(SHORTEST) + FRAMING) as f64
}

/// Values that leave the switch one by one, over a link that loses what it has no room for.
struct Pushed {
    link: Link,
    /// Of *Flow: by place a location, of which group, and its value.
    cache: Option<Vec<Option<Update>>>,
    leaving: Vec<Update>,
    /// Values as they came.
    view: Vec<Vec<u64>>,
    /// Updates that were sent, and lost of these.
    sent: u64,
    lost: u64,
}

impl Pushed {
    /// Every update is pushed.
    fn mirroring(plane: &Plane, rate: f64, now: u64) -> Self {
        Self {
            link: Link::new(rate, now),
            cache: None,
            leaving: Vec::new(),
            view: plane.all(),
            sent: 0,
            lost: 0,
        }
    }

    /// A cache with so many entries, a power of two.
    fn star_flow(plane: &Plane, rate: f64, now: u64, entries: usize) -> Self {
        Self {
            cache: Some(vec![None; entries]),
            ..Self::mirroring(plane, rate, now)
        }
    }

    /// Takes the updates of a packet.
    fn packet(&mut self, now: u64, updates: &[Update]) {
        self.leaving.clear();
        match &mut self.cache {
            None => self.leaving.extend_from_slice(updates),
            Some(cache) => {
                for update in updates {
                    let [a, b, c, d] = (update.location as u32).to_be_bytes();
                    let place = crc32(&[a, b, c, d, update.group as u8]);
                    let place = place as usize & (cache.len() - 1);
                    let held = &mut cache[place];
                    let is_own = held.is_some_and(|it| {
                        (it.group, it.location) == (update.group, update.location)
                    });
                    let before = held.replace(*update);
                    self.leaving.extend(before.filter(|_| !is_own));
                }
            }
        }
        for frame in self.leaving.chunks(UPDATES) {
            self.sent += frame.len() as u64;
            if !self.link.takes(now, FRONT + UPDATE * frame.len()) {
                self.lost += frame.len() as u64;
                continue;
            }
            for update in frame {
                self.view[update.group][update.location] = update.value;
            }
        }
    }

    /// Share of the updates that were sent and lost, in %.
    fn lost_percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.sent.max(1) as f64
    }
}

/// Values that are read one by one, from the first to the last and again.
struct Polled {
    ns: f64,
    /// ns that have passed since the last value was read.
    passed: f64,
    next: (usize, usize),
    /// Values as they were read last.
    view: Vec<Vec<u64>>,
}

impl Polled {
    /// Reads that take so many ns for a value.
    fn new(plane: &Plane, ns: f64) -> Self {
        Self {
            ns,
            passed: 0.0,
            next: (0, 0),
            view: plane.all(),
        }
    }

    /// Lets µs pass, at whose end the data plane holds what it does.
    fn pass(&mut self, us: u64, plane: &Plane) {
        self.passed += us as f64 * 1000.0;
        while self.passed >= self.ns {
            self.passed -= self.ns;
            let (group, at) = self.next;
            let values = plane.values(group);
            self.view[group][at] = values[at];
            self.next = if at + 1 < values.len() {
                (group, at + 1)
            } else {
                ((group + 1) % self.view.len(), 0)
            };
        }
    }
}

/// The other ways of collecting a plane, which all see the same packets, and the plane itself.
pub(super) struct Beside {
    plane: Plane,
    updates: Vec<Update>,
    os: Polled,
    p4runtime: Polled,
    mirroring: Pushed,
    star_flow: Pushed,
}

impl Beside {
    /// Their names; *ideal* reads at once.
    pub(super) const NAMES: [&'static str; 5] = [
        "operating system",
        "P4Runtime",
        "mirroring",
        "*Flow",
        "ideal",
    ];

    /// Ways from a plane without packets. Mirroring and *Flow have a link of `rate` bytes each µs each.
    pub(super) fn new(plane: Plane, rate: f64, now: u64) -> Self {
        let locations: usize = (0..plane.groups()).map(|it| plane.values(it).len()).sum();
        let entries = (locations / LOCATIONS_OF_ENTRY).next_power_of_two();
        Self {
            os: Polled::new(&plane, OS_NS),
            p4runtime: Polled::new(&plane, P4RUNTIME_NS),
            mirroring: Pushed::mirroring(&plane, rate, now),
            star_flow: Pushed::star_flow(&plane, rate, now, entries),
            updates: Vec::new(),
            plane,
        }
    }

    /// A packet comes.
    pub(super) fn packet(&mut self, now: u64, packet: &Packet) {
        self.plane.packet(packet, &mut self.updates);
        self.mirroring.packet(now, &self.updates);
        self.star_flow.packet(now, &self.updates);
    }

    /// Lets µs pass.
    pub(super) fn pass(&mut self, us: u64) {
        self.os.pass(us, &self.plane);
        self.p4runtime.pass(us, &self.plane);
    }

    /// Values of a group, in the order of the names.
    pub(super) fn values(&self, group: usize) -> [Vec<u64>; 5] {
        let values: [&[u64]; 5] = [
            &self.os.view[group],
            &self.p4runtime.view[group],
            &self.mirroring.view[group],
            &self.star_flow.view[group],
            self.plane.values(group),
        ];
        values.map(<[u64]>::to_vec)
    }

    /// Updates that mirroring and *Flow lost, in %.
    pub(super) fn lost_percent(&self) -> [f64; 2] {
        [&self.mirroring, &self.star_flow].map(Pushed::lost_percent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::Source;
    use super::*;

    fn plane() -> Plane {
        Plane::count_min(6, 5, 12).unwrap()
    }

    /// Runs packets, four each µs, and gives what was pushed.
    fn pushed(mut pushed: Pushed) -> (Pushed, Plane) {
        let (mut plane, mut source) = (plane(), Source::drawn(300, 5, true));
        let mut updates = Vec::new();
        for at in 0..20_000 {
            plane.packet(&source.packet(), &mut updates);
            pushed.packet(at / 4, &updates);
        }
        (pushed, plane)
    }

    #[test]
    fn mirroring_is_exact_on_a_link_that_suffices_and_loses_on_another() {
        let (wide, held) = pushed(Pushed::mirroring(&plane(), 1e6, 0));
        assert_eq!((wide.lost, wide.view), (0, held.all()));
        let (narrow, _) = pushed(Pushed::mirroring(&plane(), 2.0 * push_bytes(4), 0));
        let lost = narrow.lost_percent();
        assert!((20.0..80.0).contains(&lost), "{lost}");
    }

    #[test]
    fn a_cache_sends_what_is_in_the_way_and_keeps_the_rest() {
        let (large, held) = pushed(Pushed::star_flow(&plane(), 1e6, 0, 1 << 16));
        let (small, _) = pushed(Pushed::star_flow(&plane(), 1e6, 0, 16));
        assert!(
            large.sent * 100 < small.sent,
            "{} {}",
            large.sent,
            small.sent
        );
        assert_ne!(large.view, held.all());
        assert_eq!(small.lost, 0);
    }

    #[test]
    fn reads_take_their_time_and_begin_anew_at_the_end() {
        let (_, held) = pushed(Pushed::mirroring(&plane(), 1e6, 0));
        let all: usize = held.all().iter().map(Vec::len).sum();
        let mut polled = Polled::new(&plane(), 1_000.0);
        polled.pass(all as u64 - 1, &held);
        assert_ne!(polled.view, held.all());
        polled.pass(1, &held);
        assert_eq!((polled.view, polled.next), (held.all(), (0, 0)));
    }
}

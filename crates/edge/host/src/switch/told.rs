//! A switch's log of what its replicated program counts: a full table, refused messages, packets
//! that cannot go to the store, lease storms.

use super::report::ProgramReport;

/// µs over which events are counted.
const PERIOD: u64 = 1_000_000;

/// The library's counter (`p4/lib/replication/events.p4`).
const COUNTER: &str = "replication_events";

/// Index of lease requests.
const LEASE_REQUEST: usize = 17;

/// Lease requests within [`PERIOD`] that are a lease storm: the flows of a switch that failed, or
/// of one that starts anew.
const LEASE_STORM: u64 = 5_000;

/// Indices that are told when they grow, most once in [`PERIOD`].
const EVENTS: [(usize, &str); 9] = [
    (
        0,
        "messages of the replication protocol are dropped: they are malformed",
    ),
    (
        1,
        "messages of the replication protocol are dropped: they are for another switch",
    ),
    (
        2,
        "messages of the replication protocol are dropped: no store sends such a type",
    ),
    (
        4,
        "answers of the store are dropped: they name another chain_epoch",
    ),
    (
        10,
        "the program's table of flows is full: packets of further flows are dropped",
    ),
    (
        11,
        "packets are dropped: with their request to the store they exceed the path's MTU",
    ),
    (
        12,
        "packets and answers are dropped: their shards have no chain",
    ),
    (
        13,
        "packets are dropped: they would change state that is shared",
    ),
    (
        21,
        "messages of the replication protocol are dropped: they came to a port that does not lead to the store",
    ),
];

/// State that was told last.
#[derive(Debug, Default)]
pub(super) struct Told {
    next: u64,
    counts: Vec<u64>,
    storm: bool,
}

impl Told {
    /// True if it is time to look again.
    pub(super) fn is_due(&mut self, now: u64) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + PERIOD;
        }
        due
    }

    /// Tells what `program` counted since the last look. After another program has begun to count
    /// from 0, one look tells nothing.
    pub(super) fn look(&mut self, program: &ProgramReport) {
        let mut counters = program.counters.iter();
        let counter = counters.find(|it| it.name.rsplit('.').next() == Some(COUNTER));
        let mut counts = vec![0; 32];
        for (index, count) in counter.map_or(&[][..], |it| &it.counts[..]) {
            if let Some(of) = counts.get_mut(*index) {
                *of = count.packets;
            }
        }
        let before = std::mem::replace(&mut self.counts, counts);
        let more = |index: usize| {
            let before = before.get(index).copied().unwrap_or(0);
            self.counts[index].saturating_sub(before)
        };
        for (index, text) in EVENTS {
            let count = more(index);
            if count > 0 {
                tracing::warn!(count, "{text}");
            }
        }
        let requests = more(LEASE_REQUEST);
        let storm = requests > LEASE_STORM;
        match (self.storm, storm) {
            (false, true) => tracing::warn!(
                requests,
                "a lease storm: many flows ask for leases at once, as after the failure of a switch"
            ),
            (true, false) => tracing::info!(requests, "the lease storm is over"),
            _ => {}
        }
        self.storm = storm;
    }
}

#[cfg(test)]
mod tests {
    use stateplane_runtime::Count;

    use super::super::report::CounterReport;
    use super::*;
    use crate::log_lines::lines;

    fn counted(counts: &[(usize, u64)]) -> ProgramReport {
        let counts = counts.iter().map(|(index, packets)| {
            let count = Count {
                packets: *packets,
                bytes: 0,
            };
            (*index, count)
        });
        ProgramReport {
            counters: vec![CounterReport {
                name: "replication_events".to_owned(),
                counts: counts.collect(),
            }],
            ..ProgramReport::default()
        }
    }

    /// The indices are those of the library.
    #[test]
    fn indices_are_those_of_the_library() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../p4/lib/replication/events.p4"
        );
        let library = std::fs::read_to_string(path).unwrap();
        for (name, index) in [
            ("BAD_MESSAGE", EVENTS[0].0),
            ("FOREIGN_SWITCH", EVENTS[1].0),
            ("FOREIGN_TYPE", EVENTS[2].0),
            ("OTHER_CHAIN_EPOCH", EVENTS[3].0),
            ("TABLE_FULL", EVENTS[4].0),
            ("TOO_BIG", EVENTS[5].0),
            ("UNKNOWN_SHARD", EVENTS[6].0),
            ("WRITE_UNDER_SHARED", EVENTS[7].0),
            ("WRONG_PORT", EVENTS[8].0),
            ("LEASE_REQUEST", LEASE_REQUEST),
        ] {
            let line = format!("const bit<32> EVENT_{name} = {index};");
            assert!(library.contains(&line), "{line}");
        }
    }

    #[test]
    fn what_grew_is_told_once() {
        let mut told = Told::default();
        let full = "WARN the program's table of flows is full: packets of further flows are dropped count=3";
        assert_eq!(lines(|| told.look(&counted(&[(10, 3), (16, 9)]))), [full]);
        assert_eq!(lines(|| told.look(&counted(&[(10, 3), (16, 20)]))), [""; 0]);
        // Another program counts from 0.
        assert_eq!(lines(|| told.look(&counted(&[]))), [""; 0]);
        assert_eq!(lines(|| told.look(&counted(&[(10, 3)]))), [full]);
    }

    #[test]
    fn a_lease_storm_has_a_begin_and_an_end() {
        let mut told = Told::default();
        let said = lines(|| told.look(&counted(&[(17, 5_001)])));
        assert!(said[0].starts_with("WARN a lease storm"), "{said:?}");
        assert_eq!(lines(|| told.look(&counted(&[(17, 10_003)]))), [""; 0]);
        let said = lines(|| told.look(&counted(&[(17, 10_004)])));
        assert_eq!(said, ["INFO the lease storm is over requests=1"]);
    }
}

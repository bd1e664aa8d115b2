//! Reads that meet a write in flight and wait (RedPlane §5.1), by share of updates and round
//! trip; and packets that overtake others of their flow, with rule 26 of
//! `docs/replication-protocol.md` and without. In memory.

use super::{Place, Plan, memory_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::memory::{Bed, Links, Seen, Sight};
use crate::network::Setup;
use crate::plot::{Axes, Series};
use crate::probe::traffic::{self, Application, frame};
use crate::statistics::quantile;
use crate::table::Table;
use indicatif::ProgressBar;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Percent of the packets that update.
const UPDATES: [u32; 8] = [0, 1, 5, 10, 20, 50, 80, 100];
/// Share of updates in a quick run: so many that among its few packets some overtake without rule
/// 26.
const QUICK_UPDATES: [u32; 1] = [50];
/// Of a write, in µs.
const ROUND_TRIPS_US: [u64; 4] = [20, 100, 500, 2000];
/// Keys, of which each packet has one by chance.
const KEYS: u64 = 64;
/// From one packet to the next: 100,000 packets/s.
const GAP_US: u64 = 10;
/// Percentage points between the share of reads that met a write, and chance.
const CHANCE_POINTS: f64 = 1.0;
/// Up to this round trip, in µs, rule 26 is to keep all packets in order: the 2 ms for which it
/// lets packets line up are twenty of it.
const IN_ORDER_UP_TO_US: u64 = 100;

/// Outcome of a trial's packets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Outcome {
    packets: u64,
    reads: u64,
    /// Reads that came while an update of their key had not left yet.
    met: u64,
    /// By how much later than it came each read left that did not leave at once, in µs.
    waits: Vec<f64>,
    /// Bytes of requests and replies with such a read on board.
    wait_bytes: u64,
    /// All bytes between switch and store.
    bytes: u64,
    /// Packets that left behind one of their key that had come later (RFC 4737: reordered).
    overtaken: u64,
    /// Packets that did not leave.
    lost: u64,
}

impl Outcome {
    /// `part` in percent of the reads; `None` if there are none.
    fn of_reads(&self, part: u64) -> Option<f64> {
        (self.reads != 0).then(|| percent(part, self.reads))
    }
}

/// A packet that was given to the switch.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: u64,
    number: u64,
    key: u64,
    update: bool,
}

/// The experiment.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "reads",
        "Reads that meet a write in flight, by share of updates and round trip",
        "packets that read state with a write in flight are buffered through the network until \
         the latest write is acknowledged (§5.1); no figure of its own, part of EPC-SGW's \
         bandwidth in fig. 10",
    );
    memory_differs(&mut figure);
    figure.differs(format!(
        "the key-value program with {} packets/s to {KEYS} keys by chance: {} a second to each",
        1_000_000 / GAP_US,
        1_000_000 / GAP_US / KEYS
    ));
    figure.differs(
        "one switch, which has the leases of all keys: reads that wait for a lease to move are \
         not among them",
    );
    figure.differs(
        "a read that met a write goes to the store and back once, by itself, and does not go \
         round until the write is acknowledged; then those behind it go there too, so that \
         none overtakes it (rule 26)",
    );
    let (updates, round_trips) = if plan.quick {
        (&QUICK_UPDATES[..], &ROUND_TRIPS_US[1..2])
    } else {
        (&UPDATES[..], &ROUND_TRIPS_US[..])
    };
    bar.set_length((updates.len() * round_trips.len()) as u64);
    let mut table = columns();
    let (mut waiting, mut disorder) = (Vec::new(), Vec::new());
    let (mut off_chance, mut longest, mut lost) = (0.0f64, 0.0f64, 0);
    let mut overtaken = [0; 2];
    for &round_trip_us in round_trips {
        let mut waited_points = Vec::new();
        let mut disorder_points = [Vec::new(), Vec::new()];
        for &updates in updates {
            bar.set_message(format!("reads: {updates} % updates, {round_trip_us} µs"));
            let with = measure(place, round_trip_us, updates, true, plan)?;
            let without = measure(place, round_trip_us, updates, false, plan)?;
            let trips = |share| quantile(&with.waits, share).map(|us| us / round_trip_us as f64);
            let met = with.of_reads(with.met);
            let chance = met.map(|_| 100.0 * by_chance(round_trip_us, updates));
            let per_read = |sum: f64| (with.reads != 0).then(|| sum / with.reads as f64);
            let disordered = [&with, &without].map(|of| percent(of.overtaken, of.packets));
            if let (Some(met), Some(chance)) = (met, chance) {
                off_chance = off_chance.max((met - chance).abs());
            }
            longest = longest.max(trips(1.0).unwrap_or(0.0));
            lost += with.lost + without.lost;
            if round_trip_us <= IN_ORDER_UP_TO_US {
                overtaken[0] += with.overtaken;
                overtaken[1] += without.overtaken;
            }
            table.row(vec![
                round_trip_us.into(),
                u64::from(updates).into(),
                met.into(),
                chance.into(),
                with.of_reads(with.waits.len() as u64).into(),
                without.of_reads(without.waits.len() as u64).into(),
                trips(0.5).into(),
                trips(0.99).into(),
                per_read(with.waits.iter().fold(0.0, |sum, wait| sum + wait)).into(),
                per_read(with.wait_bytes as f64).into(),
                (with.bytes != 0)
                    .then(|| percent(with.wait_bytes, with.bytes))
                    .into(),
                disordered[0].into(),
                disordered[1].into(),
            ]);
            let x = f64::from(updates);
            waited_points.extend(with.of_reads(with.waits.len() as u64).map(|y| (x, y)));
            for (points, y) in disorder_points.iter_mut().zip(disordered) {
                points.push((x, y));
            }
            bar.inc(1);
        }
        waiting.push(Series {
            name: format!("{round_trip_us} µs"),
            points: waited_points,
        });
        for (points, rule) in disorder_points.into_iter().zip(["", ", without rule 26"]) {
            disorder.push(Series {
                name: format!("{round_trip_us} µs{rule}"),
                points,
            });
        }
    }
    claims(&mut figure, off_chance, longest, lost, overtaken);
    let axes = |y| Axes {
        x: "updates (%)",
        y,
        logarithmic: false,
    };
    figure.curves("waiting", axes("reads that waited (%)"), &waiting)?;
    figure.curves("order", axes("packets out of order (%)"), &disorder)?;
    figure.tables.push(table);
    Ok(figure)
}

fn columns() -> Table {
    Table::new(
        "reads",
        &[
            "round trip (µs)",
            "updates (%)",
            "met a write (% of reads)",
            "by chance (%)",
            "waited (% of reads)",
            "without rule 26",
            "median wait (round trips)",
            "99 %",
            "mean delay of reads (µs)",
            "bytes of those that waited, per read",
            "% of replication's",
            "out of order (% of packets)",
            "without rule 26",
        ],
    )
}

/// The claims: distance from chance in percentage points, the longest wait in round trips, packets
/// that did not leave, and those out of order with rule 26 and without.
fn claims(figure: &mut Figure, off_chance: f64, longest: f64, lost: u64, overtaken: [u64; 2]) {
    figure.claim(
        off_chance <= CHANCE_POINTS,
        format!(
            "as many reads meet a write in flight as chance would have it: {off_chance:.2} \
             percentage points off (claimed: at most {CHANCE_POINTS})"
        ),
    );
    figure.claim(
        longest <= 1.0 && lost == 0,
        format!(
            "no read waits longer than one round trip, and all leave: the longest wait is \
             {longest:.2} round trips, {lost} packets did not leave"
        ),
    );
    figure.claim(
        overtaken[0] == 0 && overtaken[1] > 0,
        format!(
            "with round trips of up to {IN_ORDER_UP_TO_US} µs all packets of a key leave in the \
             order in which they came: {} did not, and {} without rule 26",
            overtaken[0], overtaken[1]
        ),
    );
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole as f64
}

/// The chance that a packet comes less than a round trip after an update of its key.
fn by_chance(round_trip_us: u64, updates: u32) -> f64 {
    let packets_before = round_trip_us.saturating_sub(1) / GAP_US;
    let update_of_key = f64::from(updates) / 100.0 / KEYS as f64;
    1.0 - (1.0 - update_of_key).powf(packets_before as f64)
}

/// Sends packets with an update among `updates` of a hundred, with rule 26 if `in_order`.
fn measure(
    place: &Place,
    round_trip_us: u64,
    updates: u32,
    in_order: bool,
    plan: Plan,
) -> Result<Outcome, EvalError> {
    let store = Application::of("key-value")?;
    let setup = Setup {
        in_order,
        ..Setup::protected(store)
    };
    let links = Links {
        delay_us: round_trip_us / 2,
        loss: 0.0,
    };
    let mut bed = Bed::new(&place.lab, &setup, links, |text| text)?;
    let mut random = SmallRng::seed_from_u64(1);
    let send = |bed: &mut Bed, number: u64, key: u64, update: bool| {
        let of = traffic::Place {
            flow: key,
            packet: 0,
        };
        let updates = if update { 100 } else { 0 };
        let (side, bytes) = frame(store, of, number, 0, updates);
        bed.frame(side as u16, &bytes);
        Sent {
            at: bed.now,
            number,
            key,
            update,
        }
    };
    // Every key gets its lease and a value first.
    for key in 0..KEYS {
        send(&mut bed, key, key, true);
        bed.advance(bed.now + 100);
    }
    bed.advance(bed.now + 100_000);
    bed.forget();
    bed.watch();
    let packets = if plan.quick { 20_000 } else { 100_000 };
    let mut sent = Vec::with_capacity(packets as usize);
    for number in KEYS..KEYS + packets {
        let key = random.random_range(0..KEYS);
        let update = random.random_range(0..100) < updates;
        sent.push(send(&mut bed, number, key, update));
        bed.advance(bed.now + GAP_US);
    }
    let bytes = bed.passed.request_bytes + bed.passed.reply_bytes;
    bed.advance(bed.now + 100_000);
    let outcome = outcome(&sent, &bed.sights());
    Ok(Outcome { bytes, ..outcome })
}

/// Outcome of `sent`, by the observations of it.
fn outcome(sent: &[Sent], sights: &[Sight]) -> Outcome {
    let keys: BTreeMap<u64, u64> = sent.iter().map(|sent| (sent.number, sent.key)).collect();
    let mut left = BTreeMap::new();
    let mut on_board: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last_of_key: BTreeMap<u64, u64> = BTreeMap::new();
    let mut outcome = Outcome {
        packets: sent.len() as u64,
        ..Outcome::default()
    };
    for sight in sights {
        let Some(key) = keys.get(&sight.number) else {
            continue;
        };
        if sight.seen != Seen::Left {
            *on_board.entry(sight.number).or_default() += sight.bytes;
            continue;
        }
        left.insert(sight.number, sight.at);
        let last = last_of_key.entry(*key).or_default();
        outcome.overtaken += u64::from(sight.number < *last);
        *last = sight.number.max(*last);
    }
    // When the last update of each key so far left.
    let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
    for packet in sent {
        let Some(&left) = left.get(&packet.number) else {
            outcome.lost += 1;
            continue;
        };
        let acknowledged = acknowledged.entry(packet.key).or_default();
        if packet.update {
            *acknowledged = left.max(*acknowledged);
            continue;
        }
        outcome.reads += 1;
        outcome.met += u64::from(*acknowledged > packet.at);
        if left > packet.at {
            outcome.waits.push((left - packet.at) as f64);
            outcome.wait_bytes += on_board.get(&packet.number).copied().unwrap_or(0);
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            lab: std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab"),
            logs: std::path::PathBuf::new(),
            capture: None,
            stateplane: std::path::PathBuf::new(),
        }
    }

    const PLAN: Plan = Plan {
        runs: 1,
        quick: true,
    };

    #[test]
    fn waits_bytes_and_order_are_read_off_what_was_seen() {
        let sent = |number: u64, at, key, update| Sent {
            at,
            number,
            key,
            update,
        };
        let packets = [
            sent(1, 10, 7, true),
            // Meets the update of 1, as the one of another key does not.
            sent(2, 20, 7, false),
            sent(3, 30, 8, false),
            // After the update, and in front of 2.
            sent(4, 110, 7, false),
            sent(5, 120, 7, false),
        ];
        let sight = |number, at, seen| Sight {
            at,
            number,
            bytes: 100,
            seen,
        };
        let sights = [
            sight(1, 10, Seen::Request),
            sight(2, 20, Seen::Request),
            sight(3, 30, Seen::Left),
            sight(1, 60, Seen::Reply),
            sight(2, 70, Seen::Reply),
            sight(1, 110, Seen::Left),
            sight(4, 110, Seen::Left),
            sight(2, 120, Seen::Left),
            // A number that nobody sent.
            sight(9, 130, Seen::Left),
        ];
        let expected = Outcome {
            packets: 5,
            reads: 3,
            met: 1,
            waits: vec![100.0],
            wait_bytes: 200,
            bytes: 0,
            overtaken: 1,
            lost: 1,
        };
        assert_eq!(outcome(&packets, &sights), expected);
    }

    #[test]
    fn reads_wait_one_round_trip_for_a_write_and_for_those_before_them() {
        let of = |in_order| measure(&place(), 500, 20, in_order, PLAN).unwrap();
        let (with, without) = (of(true), of(false));
        assert_eq!((with.lost, without.lost), (0, 0));
        assert_eq!(with.overtaken, 0);
        assert!(without.overtaken > 50, "{}", without.overtaken);
        // Without the rule those wait that met a write, and no others.
        assert_eq!(without.waits.len() as u64, without.met);
        assert!(with.waits.len() > without.waits.len());
        assert!(with.waits.iter().all(|&wait| wait == 500.0));
        assert_eq!(with.met, without.met);
        let chance = by_chance(500, 20) * with.reads as f64;
        assert!((with.met as f64 / chance - 1.0).abs() < 0.15, "{chance}");
        assert!(with.wait_bytes > 0 && with.wait_bytes < with.bytes);
    }

    #[test]
    fn a_quick_run_shows_what_rule_26_is_for() {
        for round_trip_us in ROUND_TRIPS_US
            .into_iter()
            .filter(|&us| us <= IN_ORDER_UP_TO_US)
        {
            let of = |in_order| {
                let updates = QUICK_UPDATES[0];
                measure(&place(), round_trip_us, updates, in_order, PLAN).unwrap()
            };
            assert_eq!(of(true).overtaken, 0, "{round_trip_us}");
            // At 20 µs two packets of one key are seldom so close.
            assert!(round_trip_us < 100 || of(false).overtaken >= 10);
        }
    }

    #[test]
    fn where_nothing_is_written_no_read_waits() {
        let outcome = measure(&place(), 500, 0, true, PLAN).unwrap();
        assert_eq!((outcome.reads, outcome.met), (20_000, 0));
        assert!(outcome.waits.is_empty());
        assert_eq!((outcome.wait_bytes, outcome.overtaken), (0, 0));
    }
}

//! Detections on sketches that are collected each 10 ms: Exp#9.

mod place;
mod score;

use super::Making;
use super::packets::{CAPTURES, Packet, Source, captures};
use super::viewed::{Viewed, shipped};
use super::ways::CONSTANTS;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::table::{Cell, Table};
use place::{COLUMN_BITS, FILTER_BITS, PARTNER_BITS, Place, STEP_US};
use score::{DETECTIONS, SYSTEMS, Scores, name, scores};

/// µs of a window.
const WINDOW_US: u64 = 10_000;

/// Frozen values of a message: as many as are asked for at once by three groups fit the link's queue.
const FETCH: u64 = 32;

/// Flows of drawn packets.
const FLOWS: u32 = 4_096;

/// Greatest difference to the ideal.
const CLOSE: f64 = 0.01;

/// Sizes of a figure.
#[derive(Clone, Copy)]
struct Sizes {
    /// Packets each µs of which a link of the first switch carries all updates.
    budget: f64,
    windows: usize,
    rates: &'static [f64],
    captures: &'static [&'static str],
}

impl Sizes {
    fn of(making: &Making<'_>) -> Self {
        if making.quick {
            Self {
                budget: 1.5,
                windows: 3,
                rates: &[1.0, 5.0],
                captures: &CAPTURES[..1],
            }
        } else {
            Self {
                budget: 4.0,
                windows: 10,
                rates: &[1.0, 2.0, 3.0, 4.0, 5.0],
                captures: &CAPTURES,
            }
        }
    }
}

/// Runs traffic of so many budgets through two switches: of three packets the first is the second
/// one's.
fn course(
    viewed: &Viewed,
    sizes: Sizes,
    source: &mut Source,
    budgets: f64,
) -> Result<[Place; 2], EvalError> {
    let mut places = [
        Place::new(viewed, sizes.budget)?,
        Place::new(viewed, sizes.budget / 2.0)?,
    ];
    let begin = places.iter().map(|it| it.bed.now).max().unwrap_or(0);
    for place in &mut places {
        while place.bed.now < begin {
            place.pass(WINDOW_US);
        }
    }
    let packets = 1.5 * budgets * sizes.budget * STEP_US as f64;
    let (mut number, mut due, mut asked) = (0_u64, 0.0, 0);
    let end_of = |window: usize| begin + window as u64 * WINDOW_US;
    while places[0].bed.now < end_of(sizes.windows + 1) {
        due += packets;
        while due >= 1.0 {
            due -= 1.0;
            let packet = source.packet();
            places[usize::from(number.is_multiple_of(3))].packet(&packet);
            number += 1;
        }
        let end = end_of(asked + 1);
        let is_time = asked < sizes.windows && places[0].is_time_for(end);
        asked += usize::from(is_time);
        for place in &mut places {
            if is_time {
                place.cut(end);
            }
            place.pass(WINDOW_US);
        }
    }
    Ok(places)
}

/// Tables of the figure.
struct Tables {
    detections: Table,
    /// Those at the highest rate.
    overload: Table,
    windows: Table,
}

impl Tables {
    fn new() -> Self {
        let mut columns = vec!["traffic", "budgets", "system"];
        let names = [
            ["recall, heavy hitters", "F1"],
            ["recall, icebergs", "F1"],
            ["recall, super-spreaders", "F1"],
            ["recall, victims of DDoS", "F1"],
        ];
        columns.extend(names.as_flattened());
        Self {
            detections: Table::new("detections", &columns),
            overload: Table::new("overload", &columns),
            windows: Table::new(
                "windows",
                &[
                    "traffic",
                    "budgets",
                    "windows",
                    "whole in time",
                    "cut late (µs, most)",
                    "whole after (ms, most)",
                    "mirroring lost (%)",
                    "*Flow lost (%)",
                    "heavy hitters",
                    "icebergs",
                    "super-spreaders",
                    "victims",
                    "from the ideal, most",
                    "frames lost",
                ],
            ),
        }
    }

    /// Adds a course, which `is_last` of its traffic.
    fn add(
        &mut self,
        (traffic, budgets, is_last): (&str, f64, bool),
        places: &[Place; 2],
        scores: &Scores,
    ) {
        for (system, of) in scores.of.iter().enumerate() {
            let front: [Cell; 3] = [traffic.into(), budgets.into(), name(system).into()];
            let cells = of.iter();
            let cells = cells.flat_map(|it| [Cell::from(it.recall), Cell::from(it.f1)]);
            let row: Vec<Cell> = front.into_iter().chain(cells).collect();
            if is_last {
                self.overload.row(row.clone());
            }
            self.detections.row(row);
        }
        let [mirroring, star_flow] = places[0].lost_percent();
        let mut row: Vec<Cell> = vec![
            traffic.into(),
            budgets.into(),
            (scores.asked as u64).into(),
            (scores.whole as u64).into(),
            scores.late_us.into(),
            (scores.took_us as f64 / 1000.0).into(),
            mirroring.into(),
            star_flow.into(),
        ];
        row.extend(scores.there.map(Cell::from));
        row.push(scores.difference().into());
        let lost: u64 = places.iter().map(|place| place.bed.lost()).sum();
        row.push(lost.into());
        self.windows.row(row);
    }
}

/// Exp#9.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp9",
        "Detections on sketches that are collected each 10 ms, by rate of traffic",
        "recall and F1 near the ideal at all rates; less with the operating system's path, and with \
         mirroring and *Flow the less the higher the rate",
    );
    figure.differs(
        "sketches of 3 x 2^12 columns for flows and 3 x 2^10 for partners (the paper: 10 MB), which count \
         from the beginning on; each 10 ms a carried cut takes all groups, and what a window says is \
         judged by the packets before its cut",
    );
    figure.differs(
        "a budget is the packets of which a link carries the four updates of the sketch of flows, those of \
         partners not counted; *Flow, with an entry for 16 to 32 locations, and mirroring are made in memory, \
         with the sketches' own locations, and each has a link of its own",
    );
    figure.differs(
        "a flow is heavy with more than 0.1 % of the packets (the paper: 10,000); an iceberg is heavy in \
         two switches together; a super-spreader has more partners than 0.5 % of the addresses, a victim \
         than 0.5 % of the flows",
    );
    figure.differs(CONSTANTS);
    let sizes = Sizes::of(making);
    let (found, missing) = captures(making.traces, sizes.captures);
    figure.missing.extend(missing);
    let macros = [
        ("COUNT_MIN_COLUMN_BITS", COLUMN_BITS.into()),
        ("COUNT_MIN_PARTNER_BITS", PARTNER_BITS.into()),
        ("COUNT_MIN_FILTER_BITS", FILTER_BITS.into()),
        ("SYNC_FETCH", FETCH),
    ];
    let text = shipped("apps/count-min/count_min.p4")?;
    let viewed = Viewed::new("count-min", text, &macros, &[])?;
    let captured = found
        .iter()
        .map(|(name, packets)| (&name[..], Some(&packets[..])));
    let traffic: Vec<(&str, Option<&[Packet]>)> =
        [("drawn", None)].into_iter().chain(captured).collect();
    making
        .bar
        .set_length((traffic.len() * sizes.rates.len()) as u64);
    let mut tables = Tables::new();
    let mut curves: [Vec<Series>; 4] = std::array::from_fn(|_| {
        let series = (0..SYSTEMS).map(|system| Series {
            name: name(system).to_owned(),
            points: Vec::new(),
        });
        series.collect()
    });
    for (traffic, packets) in traffic {
        for budgets in sizes.rates {
            making
                .bar
                .set_message(format!("exp9: {traffic}, {budgets}"));
            let mut source = match packets {
                Some(packets) => Source::captured(packets),
                None => Source::drawn(FLOWS, 1, true),
            };
            let places = course(&viewed, sizes, &mut source, *budgets)?;
            let scores = scores(&places, sizes.windows)?;
            let is_last = Some(budgets) == sizes.rates.last();
            tables.add((traffic, *budgets, is_last), &places, &scores);
            figure.claim(
                scores.difference() <= CLOSE && scores.whole == scores.asked,
                format!(
                    "{traffic}, {budgets} budgets: {} of {} windows are whole within 10 ms, recall and F1 \
                     of the four detections within {:.3} of the ideal (claimed: all, {CLOSE})",
                    scores.whole,
                    scores.asked,
                    scores.difference()
                ),
            );
            if packets.is_none() {
                for (detection, curves) in curves.iter_mut().enumerate() {
                    for (of, curve) in scores.of.iter().zip(curves) {
                        curve.points.push((*budgets, of[detection].f1));
                    }
                }
            }
            making.bar.inc(1);
        }
    }
    let Tables {
        detections,
        overload,
        windows,
    } = tables;
    figure.tables.extend([windows, overload, detections]);
    for (detection, curves) in DETECTIONS.iter().zip(curves) {
        let axes = Axes {
            x: "traffic (budgets)",
            y: "F1",
            logarithmic: false,
        };
        figure.curves(&detection.replace(' ', "-"), axes, &curves)?;
    }
    Ok(figure)
}

//! Effect on forwarding: Exp#6.

mod applications;
mod followed;

use super::Making;
use super::served::{Subject, frames_of};
use super::turns::{Operation, medians};
use super::viewed::plain;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::statistics::{median, quantile};
use crate::table::Table;
use followed::{Alone, Followed};
use stateplane_native::Compiled;
use stateplane_synchronise::Selection;
use std::time::Duration;

/// Name of the program, for messages.
const NAME: &str = "packet counter";

/// The program: it forwards packets, and counts packets and bytes of each source.
const PROGRAM: &str = include_str!("../../../../../bench/p4/packet_counter.p4");

/// Synchronised writes that a packet makes in it.
const WRITES: f64 = 2.0;

/// Most ns that a synchronised write may add.
const GOAL_NS: f64 = 10.0;

/// Sources of packets, and exponents of the numbers of values that are written.
const SOURCES: u32 = 1 << 16;
const QUICK_SOURCES: u32 = 1 << 12;
const EXPONENTS: [u32; 5] = [8, 10, 12, 14, 16];
const QUICK_EXPONENTS: [u32; 3] = [8, 10, 12];

/// Frames of a turn, and turns of each side.
const FRAMES: usize = 16_384;
const TURNS: usize = 41;
const QUICK_TURNS: usize = 5;

/// Turns with a write of all values, between which the switch settles, and most times that the frames pass
/// in one.
const WRITE_TURNS: usize = 9;
const MOST_PASSES: usize = 100;

/// Work of the control plane meanwhile (the paper's Table IV).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// Nothing: the program has no view.
    None,
    /// Views are followed.
    Read,
    /// Values are written; no view is sent.
    Write,
    /// Views are followed, and values written.
    Both,
}

impl Case {
    const ALL: [Self; 4] = [Self::None, Self::Read, Self::Write, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "no sync",
            Self::Read => "only read",
            Self::Write => "only write",
            Self::Both => "both",
        }
    }

    const fn has_view(self) -> bool {
        matches!(self, Self::Read | Self::Both)
    }

    const fn has_writes(self) -> bool {
        matches!(self, Self::Write | Self::Both)
    }
}

/// The packet counter as it is and with views, and its packets.
struct Programs {
    plain: Compiled,
    seen: Compiled,
    subject: Subject,
    frames: Vec<Vec<u8>>,
}

impl Programs {
    fn new(quick: bool) -> Result<Self, EvalError> {
        let sources = if quick { QUICK_SOURCES } else { SOURCES };
        let source = stateplane_compile::text(PROGRAM).define("SOURCES", &sources.to_string());
        let subject = Subject::new(NAME, &source, Selection::Annotated, Vec::new(), 0)?;
        Ok(Self {
            plain: plain(NAME, PROGRAM, &[("SOURCES", sources.into())])?,
            seen: subject.compiled()?,
            subject,
            frames: frames_of(sources, FRAMES),
        })
    }

    fn followed(&self, case: Case) -> Result<Followed, EvalError> {
        let compiled = match case {
            Case::None => &self.plain,
            Case::Read | Case::Write | Case::Both => &self.seen,
        };
        Followed::new(compiled, self.subject.plan(), case)
    }
}

/// Exp#6.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp6",
        "Effect on forwarding",
        "no throughput lost; latency of a packet +4.6 % (only read), +2.6 % (only write), +6.3 % (both); \
         30 ns while values are written",
    );
    figure.differs(
        "in memory, between ports that take no time: what sync adds is a greater share of a packet than \
         through real ports",
    );
    figure.differs(
        "packets of 60 bytes in bursts of 32; the clock is the time for which the switch works; the \
         budget is 1 Gb/s for each of two groups; writes are a message of 16 values each 50 µs",
    );
    making.bar.set_length(3);
    let programs = Programs::new(making.quick)?;
    write_in_view(making, &programs, &mut figure)?;
    cases(making, &programs, &mut figure)?;
    while_writing(making, &programs, &mut figure)?;
    applications::measure(making, &mut figure)?;
    Ok(figure)
}

const fn turns(making: &Making<'_>) -> usize {
    if making.quick { QUICK_TURNS } else { TURNS }
}

/// The program without a switch: what a write in view adds.
fn write_in_view(
    making: &Making<'_>,
    programs: &Programs,
    figure: &mut Figure,
) -> Result<(), EvalError> {
    let (mut plain, mut seen) = (
        Alone::new(NAME, &programs.plain)?,
        Alone::new(NAME, &programs.seen)?,
    );
    let times = medians(
        turns(making),
        [&mut || Ok(plain.pass(&programs.frames)), &mut || {
            Ok(seen.pass(&programs.frames))
        }],
    )?;
    let [plain, seen] = times.map(|ns| ns / FRAMES as f64);
    let each = (seen - plain) / WRITES;
    let mut table = Table::new(
        "write",
        &[
            "a packet without a view (ns)",
            "with views (ns)",
            "a write (ns)",
        ],
    );
    table.row(vec![plain.into(), seen.into(), each.into()]);
    if !making.quick {
        figure.claim(
            each <= GOAL_NS,
            format!("a synchronised write adds {each:.1} ns in memory (claimed: {GOAL_NS})"),
        );
    }
    figure.tables.push(table);
    making.bar.inc(1);
    Ok(())
}

/// Table IV.
fn cases(making: &Making<'_>, programs: &Programs, figure: &mut Figure) -> Result<(), EvalError> {
    let mut sides = Vec::new();
    for case in Case::ALL {
        sides.push(programs.followed(case)?);
    }
    let Ok([none, read, write, both]) = <&mut [Followed; 4]>::try_from(&mut sides[..]) else {
        return Ok(());
    };
    let frames = &programs.frames;
    let operations: [Operation<'_>; 4] = [
        &mut || Ok(none.pass(frames)),
        &mut || Ok(read.pass(frames)),
        &mut || Ok(write.pass(frames)),
        &mut || Ok(both.pass(frames)),
    ];
    let times = medians(turns(making), operations)?;
    making.bar.inc(1);
    let mut singles = [const { Vec::new() }; 4];
    for _ in 0..turns(making) {
        for (side, ns) in sides.iter_mut().zip(&mut singles) {
            ns.extend(side.packets(frames));
        }
    }
    making.bar.inc(1);
    let mut table = Table::new(
        "forwarding",
        &[
            "sync",
            "packets/s",
            "throughput (%)",
            "of a packet (ns)",
            "added (ns)",
            "packet, median (ns)",
            "99 % (ns)",
            "latency added (%)",
        ],
    );
    let plain = times[0] / FRAMES as f64;
    let least = median(&singles[0]).unwrap_or(f64::NAN);
    let mut bars = Vec::new();
    for ((case, ns), singles) in Case::ALL.into_iter().zip(times).zip(&singles) {
        let each = ns / FRAMES as f64;
        let middle = median(singles);
        table.row(vec![
            case.name().into(),
            (1e9 / each).into(),
            (100.0 * plain / each).into(),
            each.into(),
            (each - plain).into(),
            middle.into(),
            quantile(singles, 0.99).into(),
            middle.map(|ns| 100.0 * (ns / least - 1.0)).into(),
        ]);
        bars.push((0.0, each));
    }
    let groups = Case::ALL.map(|case| case.name().to_owned());
    let series = [Series {
        name: "packet counter".to_owned(),
        points: bars,
    }];
    figure.bars("forwarding", "ns of a packet", &groups, &series)?;
    figure.tables.push(table);
    Ok(())
}

/// Fig. 13: while so many values are written at once.
fn while_writing(
    making: &Making<'_>,
    programs: &Programs,
    figure: &mut Figure,
) -> Result<(), EvalError> {
    let (exponents, turns) = if making.quick {
        (&QUICK_EXPONENTS[..], 2)
    } else {
        (&EXPONENTS[..], WRITE_TURNS)
    };
    let mut table = Table::new(
        "writes",
        &[
            "values",
            "packets meanwhile",
            "of a packet (ns)",
            "without a write (ns)",
            "added (ns)",
            "packet, median (ns)",
            "median without (ns)",
        ],
    );
    making.bar.inc_length(exponents.len() as u64);
    let mut followed = programs.followed(Case::Read)?;
    let mut points = [const { Vec::new() }; 2];
    for exponent in exponents {
        making
            .bar
            .set_message(format!("exp6: 2^{exponent} values written"));
        let mut found = Vec::new();
        for _ in 0..turns {
            found.push(turn(&mut followed, 1 << exponent, &programs.frames)?);
        }
        let middle = |figure: fn(&Turn) -> f64| {
            let figures: Vec<f64> = found.iter().map(figure).collect();
            median(&figures).unwrap_or(f64::NAN)
        };
        let (with, without) = (middle(|it| it.with), middle(|it| it.without));
        table.row(vec![
            format!("2^{exponent}").into(),
            middle(|it| it.packets).into(),
            with.into(),
            without.into(),
            middle(|it| it.with - it.without).into(),
            middle(|it| it.single_with).into(),
            middle(|it| it.single_without).into(),
        ]);
        for (points, ns) in points.iter_mut().zip([with, without]) {
            points.push((f64::from(1_u32 << exponent), ns));
        }
        making.bar.inc(1);
    }
    let names = ["while they are written", "without a write"];
    let series = names.into_iter().zip(points).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    let axes = Axes {
        x: "values",
        y: "ns of a packet",
        logarithmic: true,
    };
    figure.curves("writes", axes, &series.collect::<Vec<_>>())?;
    figure.tables.push(table);
    Ok(())
}

/// Packets that passed while values were written, and as many without: ns of a packet, all that the
/// switch did included, and the median of single ones.
#[derive(Clone, Copy, Debug)]
struct Turn {
    packets: f64,
    with: f64,
    without: f64,
    single_with: f64,
    single_without: f64,
}

fn turn(followed: &mut Followed, values: u32, frames: &[Vec<u8>]) -> Result<Turn, EvalError> {
    let mut times = [Duration::ZERO; 2];
    let mut passes = 0;
    followed.write(values)?;
    while passes == 0 || (followed.is_writing() && passes < MOST_PASSES) {
        times[0] += followed.pass(frames);
        passes += 1;
    }
    followed.end_write()?;
    for _ in 0..passes {
        times[1] += followed.pass(frames);
    }
    followed.write(values)?;
    let with = followed.packets(frames);
    followed.end_write()?;
    let without = followed.packets(frames);
    let packets = (passes * frames.len()) as f64;
    let [with_ns, without_ns] = times.map(|time| time.as_nanos() as f64 / packets);
    Ok(Turn {
        packets,
        with: with_ns,
        without: without_ns,
        single_with: median(&with).unwrap_or(f64::NAN),
        single_without: median(&without).unwrap_or(f64::NAN),
    })
}

//! Reads and resets of the programs of Table II: Exp#7.

mod list;

use super::Making;
use super::collected::Collected;
use super::way::Setup;
use super::ways::{CONSTANTS, OS_NS, P4RUNTIME_NS};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::Series;
use crate::statistics::median;
use crate::table::{Cell, Table};
use list::APPLICATIONS;
pub(super) use list::Application;
use stateplane_sync_setup::TURN_US;
use stateplane_wire::sync::CutKind;

/// A link of 40 Gb/s with a round trip of 100 µs; turns and marks as a switch's file has them unless it
/// says otherwise.
const SETUP: Setup = Setup {
    rate: 5_000.0,
    delay_us: 50,
    turn_us: TURN_US,
    window_us: 1_000,
    step_us: 10,
};

/// Steps between two packets.
const STEPS: u64 = 2;

/// Steps by which operations begin later from run to run, so that they meet turns and marks at all
/// places.
const LATER: u64 = 7;

/// µs in which an operation must end.
const PATIENCE_US: u64 = 30_000_000;

/// Longest of the paper's reads and resets, in ms.
const PAPER_READ: f64 = 12.0;
const PAPER_RESET: f64 = 23.0;

/// Programs of a quick run, by their places in the table.
const QUICK: [usize; 3] = [0, 4, 14];

/// The switch of a program, and its traffic.
struct Bed<'a> {
    application: &'a Application,
    collected: Collected,
    groups: usize,
    steps: u64,
    frames: u32,
}

/// Times of a program's operations, in ms.
#[derive(Default)]
struct Times {
    /// Of a view as fresh as the question.
    fresh: Vec<f64>,
    /// Of all values as they were at one moment.
    whole: Vec<f64>,
    /// Until all values are 0 and the control plane knows.
    reset: Vec<f64>,
    /// Until the next cut was possible.
    settled: Vec<f64>,
    /// Locations that were not 0 at a cut.
    used: usize,
}

impl Bed<'_> {
    /// Lets time pass with packets until `ends`; the time in ms.
    fn until(&mut self, what: &str, ends: impl Fn(&Collected) -> bool) -> Result<f64, EvalError> {
        let begin = self.collected.now;
        let (steps, frames, make) = (&mut self.steps, &mut self.frames, self.application.frame);
        let before = |collected: &mut Collected| {
            *steps += 1;
            if steps.is_multiple_of(STEPS)
                && let Some(frame) = make(*frames)
            {
                collected.frame(&frame);
                *frames += 1;
            }
            Ok(())
        };
        self.collected.until(what, PATIENCE_US, before, ends)?;
        Ok((self.collected.now - begin) as f64 / 1000.0)
    }

    fn pause(&mut self, us: u64) -> Result<(), EvalError> {
        let end = self.collected.now + us;
        self.until("a pause", |bed| bed.now >= end).map(|_| ())
    }

    /// Waits until a cut is possible.
    fn settle(&mut self, run: u64) -> Result<f64, EvalError> {
        let settled = self.until("the sweep", Collected::is_settled)?;
        self.pause(2_000 + run * LATER * SETUP.step_us)?;
        Ok(settled)
    }

    /// A read of the view, a read of all values at one moment, and a reset.
    fn measure(&mut self, run: u64, times: &mut Times) -> Result<(), EvalError> {
        let groups = self.groups;
        let asked: Vec<u64> = (0..groups).map(|at| self.collected.refresh(at)).collect();
        let fresh = self.until("a read of the view", |bed| {
            let mut all = asked.iter().enumerate();
            all.all(|(at, poll)| bed.told(at).is_some_and(|told| told.poll >= *poll))
        })?;
        times.fresh.push(fresh);
        self.settle(run)?;
        for group in 0..groups {
            self.collected.cut(group, CutKind::Carried, 0);
        }
        let has_all = |bed: &Collected| bed.heard.windows.len() == groups;
        times
            .whole
            .push(self.until("a read of all values", has_all)?);
        let windows = self.collected.heard.windows.drain(..);
        let values = windows.flat_map(|window| window.values);
        times.used = values.filter(|value| *value != 0).count();
        times.settled.push(self.settle(run)?);
        let before = self.collected.heard.made.len();
        for group in 0..groups {
            self.collected.reset(group, 0);
        }
        let is_made = |bed: &Collected| bed.heard.made.len() == before + groups;
        times.reset.push(self.until("a reset", is_made)?);
        self.settle(run).map(|_| ())
    }
}

/// The programs of a run.
pub(super) fn chosen(quick: bool) -> Vec<&'static Application> {
    if quick {
        QUICK.map(|place| &APPLICATIONS[place]).to_vec()
    } else {
        APPLICATIONS.iter().collect()
    }
}

/// The table of all programs.
fn table() -> Table {
    Table::new(
        "applications",
        &[
            "application",
            "counters in the paper",
            "locations",
            "groups",
            "used",
            "fresh view (ms)",
            "all values (ms)",
            "longest (ms)",
            "reset (ms)",
            "longest (ms)",
            "next cut after (ms)",
            "P4Runtime's read (ms)",
            "operating system's (ms)",
        ],
    )
}

fn most(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}

/// Measures a program so many times, into a row.
fn measured(application: &Application, runs: u64) -> Result<(Times, Vec<Cell>), EvalError> {
    let viewed = application.viewed()?;
    let mut collected = Collected::new(&viewed, SETUP)?;
    application.prepare(collected.state())?;
    let mut bed = Bed {
        application,
        collected,
        groups: viewed.groups(),
        steps: 0,
        frames: 0,
    };
    bed.pause(20_000)?;
    let mut times = Times::default();
    for run in 0..runs {
        bed.measure(run, &mut times)?;
    }
    let locations = viewed.plan.locations();
    let row = vec![
        application.name.into(),
        application.counters.into(),
        u64::from(locations).into(),
        (viewed.groups() as u64).into(),
        (times.used as u64).into(),
        median(&times.fresh).into(),
        median(&times.whole).into(),
        most(&times.whole).into(),
        median(&times.reset).into(),
        most(&times.reset).into(),
        median(&times.settled).into(),
        (f64::from(locations) * P4RUNTIME_NS / 1e6).into(),
        (f64::from(locations) * OS_NS / 1e6).into(),
    ];
    Ok((times, row))
}

/// Exp#7.
pub(super) fn run(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-exp7",
        "Reads and resets of the applications of Table II",
        "reads take at most 12 ms and resets at most 23 ms, by the operating system at least 285 ms and \
         several seconds",
    );
    figure.differs(
        "virtual time: a link of 40 Gb/s with a round trip of 100 µs, a turn of 50 µs, marks each ms, and \
         50 packets each ms; a read of all values is a cut of all groups at once and their windows, a \
         reset is a cut that fills them",
    );
    figure.differs(
        "of the programs whose flows a store keeps, FW and HH are bench/p4's, SS is the sketch of \
         partners of apps/count-min, and SF has in view the sources that it knows, which stay 0 without \
         its store",
    );
    figure.differs(CONSTANTS);
    let chosen = chosen(making.quick);
    let runs = if making.quick { 2 } else { 10 };
    making.bar.set_length(chosen.len() as u64);
    let mut table = table();
    let (mut read, mut reset) = (0.0_f64, 0.0_f64);
    let (mut groups, mut bars) = (Vec::new(), [const { Vec::new() }; 3]);
    for application in chosen {
        making
            .bar
            .set_message(format!("exp7: {}", application.name));
        let (times, row) = measured(application, runs)?;
        table.row(row);
        let longest = [&times.fresh, &times.whole, &times.reset].map(|times| most(times));
        for (bars, longest) in bars.iter_mut().zip(longest) {
            bars.push((0.0, longest));
        }
        read = read.max(longest[0]).max(longest[1]);
        reset = reset.max(longest[2]);
        groups.push(application.name.to_owned());
        making.bar.inc(1);
    }
    figure.tables.push(table);
    figure.claim(
        read <= PAPER_READ,
        format!("the longest read takes {read:.2} ms (claimed: {PAPER_READ})"),
    );
    figure.claim(
        reset <= PAPER_RESET,
        format!("the longest reset takes {reset:.2} ms (claimed: {PAPER_RESET})"),
    );
    let names = ["fresh view", "all values", "reset"].into_iter();
    let series = names.zip(bars).map(|(name, points)| Series {
        name: name.to_owned(),
        points,
    });
    let series: Vec<Series> = series.collect();
    figure.bars("latency", "longest (ms)", &groups, &series)?;
    Ok(figure)
}

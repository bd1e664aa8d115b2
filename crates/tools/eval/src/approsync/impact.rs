//! Impact of latency, loss and divergence on applications: Fig. 2 and 3.

mod applications;
mod collector;
mod flows;
mod records;

use super::Making;
use crate::error::EvalError;
use crate::figure::Figure;
use crate::plot::{Axes, Series};
use crate::series::check_interrupt;
use crate::table::{Cell, Table};
use applications::{Application, error};
use collector::{Collector, Moment, SECOND_US, watch};
use flows::Flows;

/// ms that a collection takes.
const LATENCIES_MS: [u64; 8] = [1, 10, 100, 250, 500, 1_000, 2_000, 4_000];
const QUICK_LATENCIES_MS: [u64; 4] = [1, 100, 1_000, 4_000];

/// Records that are lost, in %.
const LOSSES: [f64; 9] = [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
const QUICK_LOSSES: [f64; 3] = [0.0, 40.0, 80.0];

/// Records that are lost so that the view diverges, in %, and how often each share is tried.
const DROPS: [f64; 9] = [0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
const QUICK_DROPS: [f64; 4] = [0.0, 0.5, 5.0, 20.0];
const TRIES: usize = 8;
const QUICK_TRIES: usize = 4;

/// Seconds of a window of UDP floods.
const WINDOW_US: u64 = 5 * SECOND_US;

/// The paper's observation: with less dropped than this the error is below that, both in %.
const SMALL: f64 = 1.0;
const SMALL_ERROR: f64 = 2.0;

/// Differences of both figures.
fn differs(figure: &mut Figure, missing: Vec<String>) {
    figure.differs(
        "the paper's trace (CAIDA, 2018) is not public: drawn packets, by Zipf's law with exponent 1.05, \
         and captures, each of which takes 10 s, evenly spaced",
    );
    figure.differs(
        "a heavy hitter has more than one of 2^10 packets (of 2^20 these are the paper's 2^10), at least \
         16; the table has a quarter as many entries as there are flows (`p4/approsync/records.p4`)",
    );
    figure.missing.extend(missing);
}

/// Fig. 2.
pub(super) fn missed(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-fig2",
        "Heavy hitters that are missed, by latency of collection and by loss",
        "the rate of false negatives rises with the latency, up to several seconds, and with the loss",
    );
    let (all, missing) = Flows::all(making.traces, making.quick);
    differs(&mut figure, missing);
    figure.differs(
        "a collection begins with each second, unless one is under way, and reads one entry after the \
         other; evicted records take as long; at its end the flows that it shows are compared with the \
         heavy hitters of that moment",
    );
    let (latencies, losses) = if making.quick {
        (&QUICK_LATENCIES_MS[..], &QUICK_LOSSES[..])
    } else {
        (&LATENCIES_MS[..], &LOSSES[..])
    };
    making.bar.set_length(all.len() as u64);
    let mut by_latency = Table::new(
        "latency",
        &["traffic", "latency (ms)", "missed (%)", "looks"],
    );
    let mut by_loss = Table::new("loss", &["traffic", "lost (%)", "missed (%)", "looks"]);
    let mut curves = [const { Vec::new() }; 2];
    for flows in &all {
        check_interrupt()?;
        making.bar.set_message(format!("fig2: {}", flows.name));
        let count = flows.flows.len();
        let late = latencies.iter();
        let late = late.map(|ms| Collector::new(count, ms * 1_000, 0.0, 1));
        let lossy = losses.iter().enumerate();
        let lossy = lossy.map(|(at, lost)| Collector::new(count, 0, lost / 100.0, at as u64));
        let mut collectors: Vec<Collector> = late.chain(lossy).collect();
        let mut errors = vec![Vec::new(); collectors.len()];
        watch(flows, &mut collectors, &mut |moment| {
            let found = judged(flows, moment, &[]);
            errors[moment.of].extend(found(Application::HeavyHitters));
        })?;
        let (late, lossy) = errors.split_at(latencies.len());
        let latencies = latencies.iter().map(|ms| *ms as f64);
        let sides = [
            (&mut by_latency, latencies.collect::<Vec<_>>(), late),
            (&mut by_loss, losses.to_vec(), lossy),
        ];
        for ((table, xs, errors), curves) in sides.into_iter().zip(&mut curves) {
            let mut points = Vec::new();
            for (x, errors) in xs.into_iter().zip(errors) {
                let missed = 100.0 * mean(errors);
                table.row(vec![
                    flows.name.clone().into(),
                    x.into(),
                    missed.into(),
                    (errors.len() as u64).into(),
                ]);
                points.push((x, missed));
            }
            curves.push(Series {
                name: flows.name.clone(),
                points,
            });
        }
        making.bar.inc(1);
    }
    let [late, lossy] = &curves;
    figure.curves("latency", axes("latency (ms)", "missed (%)", true), late)?;
    figure.curves("loss", axes("records lost (%)", "missed (%)", false), lossy)?;
    figure.tables.extend([by_latency, by_loss]);
    Ok(figure)
}

const fn axes(x: &'static str, y: &'static str, logarithmic: bool) -> Axes<'static> {
    Axes { x, y, logarithmic }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Judges an application: its error at a moment. `before` are, if a window ends, the packets at its
/// begin, of the view and in truth.
fn judged(
    flows: &Flows,
    moment: &Moment<'_>,
    before: &[[u64; 2]],
) -> impl Fn(Application) -> Option<f64> {
    let all = 0..flows.flows.len();
    let seen: Vec<u64> = all.map(|flow| moment.view.packets(flow)).collect();
    let since = move |now: &[u64], side: usize| -> Vec<u64> {
        let pairs = now.iter().zip(before);
        pairs
            .map(|(now, then)| now.saturating_sub(then[side]))
            .collect()
    };
    move |application| {
        let found = application.found(flows, &seen, &since(&seen, 0));
        let truth = application.found(flows, moment.truth, &since(moment.truth, 1));
        error(&found, &truth)
    }
}

/// Findings at a share of records lost.
#[derive(Clone, Default)]
struct Found {
    /// Divergence of the view in shares of all packets, at the end of each collection.
    divergence: Vec<f64>,
    /// Errors of each application.
    errors: [Vec<f64>; 4],
}

/// Fig. 3.
pub(super) fn divergence(making: &Making<'_>) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "approsync-fig3",
        "Errors of applications by divergence",
        "below 1 % of divergence the error is below 2 %; at 20 % it reaches 20 %",
    );
    let (all, missing) = Flows::all(making.traces, making.quick);
    differs(&mut figure, missing);
    figure.differs(
        "records are lost at random, of those that are evicted and of those that are read at the end of \
         each second; as the paper sets the divergence by what it drops, the claim is about the share \
         that is lost; the divergence is the sum of what is missing of flows, in shares of all packets; \
         an error is the number of misjudged ones in shares of those that stand out in truth",
    );
    figure.differs(
        "a UDP flood is a UDP flow with as many packets within 5 s as a heavy hitter needs in 10 s; \
         victims, to whom more than 0.5 % of all sources sent, are of the paper's Exp#9",
    );
    let (drops, tries) = if making.quick {
        (&QUICK_DROPS[..], QUICK_TRIES)
    } else {
        (&DROPS[..], TRIES)
    };
    making.bar.set_length(all.len() as u64);
    let names = Application::ALL.map(|it| format!("error (%): {}", it.name()));
    let mut columns = vec!["traffic", "records lost (%)", "divergence (%)"];
    columns.extend(names.iter().map(String::as_str));
    let mut table = Table::new("divergence", &columns);
    for flows in &all {
        check_interrupt()?;
        making.bar.set_message(format!("fig3: {}", flows.name));
        let mut curves = Application::ALL.map(|application| Series {
            name: application.name().to_owned(),
            points: Vec::new(),
        });
        let mut worst: f64 = 0.0;
        for (lost, found) in drops.iter().zip(diverge(flows, drops, tries)?) {
            let divergence = 100.0 * mean(&found.divergence);
            let errors = found.errors.map(|errors| 100.0 * mean(&errors));
            let mut row: Vec<Cell> =
                vec![flows.name.clone().into(), (*lost).into(), divergence.into()];
            row.extend(errors.map(Cell::from));
            table.row(row);
            if *lost <= SMALL {
                // Traffic without such flows or hosts has no error: it is no number.
                worst = errors.into_iter().fold(worst, f64::max);
            }
            for (curve, error) in curves.iter_mut().zip(errors) {
                curve.points.push((divergence, error));
            }
        }
        figure.claim(
            worst < SMALL_ERROR,
            format!(
                "{}: with at most {SMALL} % of the records lost the error is at most {worst:.2} % \
                 (claimed: below {SMALL_ERROR})",
                flows.name
            ),
        );
        let axes = axes("divergence (%)", "error (%)", false);
        figure.curves(&format!("divergence-{}", flows.name), axes, &curves)?;
        making.bar.inc(1);
    }
    figure.tables.push(table);
    Ok(figure)
}

/// Divergence and errors at each share of records lost, in %.
fn diverge(flows: &Flows, drops: &[f64], tries: usize) -> Result<Vec<Found>, EvalError> {
    let count = flows.flows.len();
    let mut collectors = Vec::new();
    for lost in drops {
        for _ in 0..tries {
            let seed = collectors.len() as u64;
            collectors.push(Collector::new(count, 0, lost / 100.0, seed));
        }
    }
    let mut found = vec![Found::default(); drops.len()];
    let mut windows = vec![vec![[0, 0]; count]; collectors.len()];
    watch(flows, &mut collectors, &mut |moment| {
        let ends = moment.at.is_multiple_of(WINDOW_US);
        let window = &mut windows[moment.of];
        let found = &mut found[moment.of / tries];
        let all: u64 = moment.truth.iter().sum();
        let seen: u64 = (0..count).map(|flow| moment.view.packets(flow)).sum();
        found.divergence.push((all - seen) as f64 / all as f64);
        let judge = judged(flows, moment, if ends { &window[..] } else { &[] });
        for (application, errors) in Application::ALL.into_iter().zip(&mut found.errors) {
            errors.extend(judge(application));
        }
        drop(judge);
        if ends {
            for (flow, window) in window.iter_mut().enumerate() {
                *window = [moment.view.packets(flow), moment.truth[flow]];
            }
        }
    })?;
    Ok(found)
}

//! Fig. 15: what the copies that wait for an acknowledgement take, by rate and loss. In
//! memory.

use super::{Place, Plan, memory_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::memory::{Bed, Links};
use crate::network::Setup;
use crate::plot::{Axes, Series};
use crate::probe::traffic::{Application, frame, place as place_of};
use crate::table::Table;
use indicatif::ProgressBar;

/// Requests lost, as a share.
const LOSSES: [f64; 6] = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05];
/// Packets per second, each of which writes.
const RATES: [u64; 3] = [100_000, 500_000, 1_000_000];
const FLOWS: u64 = 1024;
/// Bytes of a copy that waits: all headers and the counter's state.
const COPY: u64 = 122;
/// The first copy waits for so long, in µs: as in the lab, and as in a network whose round
/// trip is the paper's.
const HOLDS_US: [u64; 2] = [20_000, 50];
const LINKS_DELAY_US: u64 = 10;

/// Fig. 15.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig15",
        "Copies of requests that wait in the switch, by loss of requests",
        "less than 1.5 KB without loss at 100 Gb/s, at most 18 KB with 2 % of the requests lost",
    );
    memory_differs(&mut figure);
    figure.differs(
        "a copy waits for the hold time of its mirror session, and is looked at when that is \
         over; the paper's goes round by recirculation and is dropped as soon as it comes by \
         acknowledged. So the copies here are rate times hold time, and a loss adds little: the \
         table has the lab's hold time of 20 ms and one of 50 µs",
    );
    figure
        .differs("round trips to the store of 20 µs, of which the chain takes no time of its own");
    figure.differs(
        "what waits is counted exactly; the paper reads the greatest queue depth each second",
    );
    let rates: &[u64] = if plan.quick { &RATES[..1] } else { &RATES };
    let losses: &[f64] = if plan.quick { &LOSSES[..2] } else { &LOSSES };
    bar.set_length((rates.len() * losses.len() * HOLDS_US.len()) as u64);
    let mut table = Table::new(
        "buffer",
        &[
            "first hold time (µs)",
            "packets per second",
            "requests lost (%)",
            "most copies at a time",
            "most bytes (KB)",
            "sent again",
        ],
    );
    let mut series = Vec::new();
    for hold_us in HOLDS_US {
        for &rate in rates {
            let mut points = Vec::new();
            for &loss in losses {
                bar.set_message(format!("fig15: {rate}/s, {} % lost", loss * 100.0));
                let (most, again) = measure(place, hold_us, rate, loss, plan)?;
                let kilobytes = (most * COPY) as f64 / 1000.0;
                table.row(vec![
                    hold_us.into(),
                    rate.into(),
                    (loss * 100.0).into(),
                    most.into(),
                    kilobytes.into(),
                    again.into(),
                ]);
                points.push((loss * 100.0, kilobytes));
                bar.inc(1);
            }
            if hold_us == HOLDS_US[1] {
                series.push(Series {
                    name: format!("{} 1000 packets/s, hold {hold_us} µs", rate / 1000),
                    points,
                });
            }
        }
    }
    let axes = Axes {
        x: "requests lost (%)",
        y: "most bytes that wait (KB)",
        logarithmic: false,
    };
    figure.curves("buffer", axes, &series)?;
    figure.tables.push(table);
    Ok(figure)
}

/// The most copies held at a time, and the requests beyond one a packet.
fn measure(
    place: &Place,
    hold_us: u64,
    rate: u64,
    loss: f64,
    plan: Plan,
) -> Result<(u64, u64), EvalError> {
    let counter = Application::of("counter")?;
    let setup = Setup::protected(counter);
    let links = Links {
        delay_us: LINKS_DELAY_US,
        loss,
    };
    let factor = HOLDS_US[0] / hold_us;
    let shorter = |text: String| {
        let line = |line: &str| match line.strip_prefix("hold_us = ") {
            Some(us) => {
                let us: u64 = us.trim().parse().unwrap_or(HOLDS_US[0]);
                format!("hold_us = {}", (us / factor).max(1))
            }
            None => line.to_owned(),
        };
        let lines: Vec<String> = text.lines().map(line).collect();
        lines.join("\n")
    };
    let mut bed = Bed::new(&place.lab, &setup, links, shorter)?;
    let send = |bed: &mut Bed, number: u64| {
        let place = place_of(number, FLOWS, u64::MAX);
        let (side, bytes) = frame(counter, place, number, 0, 0);
        bed.frame(side as u16, &bytes);
    };
    // Every flow gets its lease first, one after the other.
    for number in 0..FLOWS {
        send(&mut bed, number);
        bed.advance(bed.now + 100);
    }
    bed.advance(bed.now + 100_000);
    bed.forget();
    // Virtual time counts µs, so that faster packets come several at once.
    let at_once = (rate / 1_000_000).max(1);
    let gap_us = (1_000_000 / rate).max(1);
    let span_us = if plan.quick { 30_000 } else { 100_000 };
    let begun = bed.now;
    let mut number = FLOWS;
    while bed.now < begun + span_us {
        for _ in 0..at_once {
            send(&mut bed, number);
            number += 1;
        }
        bed.advance(bed.now + gap_us);
    }
    let again = bed.passed.requests.saturating_sub(number - FLOWS);
    Ok((bed.passed.most_held, again))
}

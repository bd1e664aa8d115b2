//! Fig. 11: bandwidth of snapshots, by their period and by how much they hold. In memory.

use super::{Place, Plan, memory_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::memory::{Bed, Links};
use crate::network::Setup;
use crate::plot::{Axes, Series};
use crate::probe::traffic::Application;
use crate::table::Table;
use indicatif::ProgressBar;
use stateplane_apps::{SNAPSHOT_PORT, walk_frame};
use stateplane_cost::{self as cost, Protection, Snapshots, Traffic};
use stateplane_switch::Generator;

/// Tenants, each with a sketch of three rows of 64 elements.
const TENANTS: [u32; 5] = [1, 2, 3, 4, 5];
const PERIODS_US: [u64; 6] = [1000, 2000, 5000, 10_000, 20_000, 50_000];
/// Arrays of a sketch.
const ROWS: usize = 3;
/// `SNAPSHOT_SLOTS` of `apps/heavy-hitter`.
const SLOTS: u32 = 64;
/// The number of the switch in its file.
const SWITCH: u32 = 1;
/// Frames of the walk at once, and µs between.
const BATCH: u32 = 64;
const WALK_US: u64 = 20;
const FACTOR: f64 = 1.2;
/// A round trip in the paper's chain of three, without the path to the switch: about 20 µs.
const LINKS: Links = Links {
    delay_us: 10,
    loss: 0.0,
};

/// Fig. 11.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig11",
        "Bandwidth of snapshots by period and number of sketches",
        "34.16 Mb/s for three sketches each 1 ms, 13.8 % of all; less with longer periods, more \
         with more sketches, and less with five than for the synchronous counter",
    );
    memory_differs(&mut figure);
    figure.differs(
        "a tenant's sketch has three rows of 64 elements of 32 bits, which travel together: 64 \
         messages for a tenant's three rows, not 64 for each row",
    );
    figure.differs(
        "64 messages of 130 bytes there and 114 back each 1 ms are 125 Mb/s; the paper's 34 Mb/s \
         for 192 elements are 22 bytes an element, so its elements must have travelled together",
    );
    let tenants: &[u32] = if plan.quick { &TENANTS[..1] } else { &TENANTS };
    let periods: &[u64] = if plan.quick {
        &PERIODS_US[..2]
    } else {
        &PERIODS_US
    };
    bar.set_length((tenants.len() * periods.len()) as u64);
    let mut table = Table::new(
        "snapshots",
        &[
            "sketches of three rows",
            "period (ms)",
            "replication (Mb/s)",
            "snapshots kept per second",
            "model (Mb/s)",
            "measured / model",
        ],
    );
    let mut series = Vec::new();
    let (mut least, mut most) = (f64::INFINITY, 0.0f64);
    for &count in tenants {
        let mut points = Vec::new();
        for &period_us in periods {
            bar.set_message(format!("fig11: {count} sketches, {period_us} µs"));
            let (mbps, kept) = measure(place, count, period_us, plan)?;
            let model = model(count, period_us);
            least = least.min(mbps / model);
            most = most.max(mbps / model);
            table.row(vec![
                u64::from(count).into(),
                (period_us as f64 / 1000.0).into(),
                mbps.into(),
                kept.into(),
                model.into(),
                (mbps / model).into(),
            ]);
            points.push((period_us as f64 / 1000.0, mbps));
            bar.inc(1);
        }
        series.push(Series {
            name: format!("{count} sketches"),
            points,
        });
    }
    figure.claim(
        least >= 1.0 / FACTOR && most <= FACTOR,
        format!(
            "bandwidth is {least:.2} to {most:.2} times the model's (claimed: within a factor of {FACTOR})"
        ),
    );
    let axes = Axes {
        x: "period of snapshots (ms)",
        y: "replication (Mb/s)",
        logarithmic: true,
    };
    figure.curves("snapshots", axes, &series)?;
    figure.tables.push(table);
    Ok(figure)
}

/// Mb/s of replication, and snapshots begun per second.
fn measure(
    place: &Place,
    tenants: u32,
    period_us: u64,
    plan: Plan,
) -> Result<(f64, f64), EvalError> {
    let setup = Setup {
        tenants,
        snapshot_us: period_us,
        ..Setup::protected(Application::of("heavy-hitter")?)
    };
    // The lab's walk is made for one tenant and 10 ms; it goes as fast as it has to here.
    let without_walk = |text: String| {
        let generator = text.find(&format!("[[generators]]\nport = {SNAPSHOT_PORT}"));
        generator.map_or_else(|| text.clone(), |at| text[..at].to_owned())
    };
    let mut bed = Bed::new(&place.lab, &setup, LINKS, without_walk)?;
    bed.generate(Generator {
        port: SNAPSHOT_PORT,
        period_us: WALK_US,
        batch: BATCH,
        index_at: None,
        spread: false,
        frame: walk_frame(SWITCH, ROWS),
    })?;
    // Leases of both snapshots' records are granted, and all that begins once is past.
    bed.advance(bed.now + 4 * period_us + 200_000);
    bed.forget();
    let begun = bed.now;
    let span_us = (period_us * 20).max(if plan.quick { 50_000 } else { 500_000 });
    bed.advance(begun + span_us);
    let bytes = bed.passed.request_bytes + bed.passed.reply_bytes;
    let requests = bed.passed.requests as f64;
    let seconds = span_us as f64 / 1e6;
    let snapshots = requests / f64::from(tenants * SLOTS) / seconds;
    Ok((bytes as f64 * 8.0 / seconds / 1e6, snapshots))
}

fn model(tenants: u32, period_us: u64) -> f64 {
    let protection = Protection {
        state_bytes: 16.0,
        term_s: cost::TERM_S,
        heads: 1.0,
        round_trip_s: 2.0 * LINKS.delay_us as f64 / 1e6,
        probes_per_s: cost::PROBES_PER_S,
        snapshots: Some(Snapshots {
            elements: f64::from(tenants * SLOTS),
            period_s: period_us as f64 / 1e6,
        }),
    };
    let silence = Traffic {
        packets_per_s: 0.0,
        frame_bytes: 0.0,
        flows: 0.0,
        new_flows_per_s: 0.0,
        writes: 0.0,
    };
    cost::load(&silence, &protection).bytes_per_s() * 8.0 / 1e6
}

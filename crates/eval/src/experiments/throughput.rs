//! Fig. 12 (throughput by application, with and without replication) and Fig. 13 (a
//! key-value store, by the share of updates and the number of store servers).

use super::{Place, Plan, lab_differs};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::network::{Setup, Store, System};
use crate::plot::{Axes, Series};
use crate::probe::ProbeArguments;
use crate::probe::traffic::Application;
use crate::statistics::median;
use crate::table::Table;
use crate::trial::Trial;
use indicatif::ProgressBar;

/// The least share of the throughput that applications that mostly read keep.
const KEPT: f64 = 0.97;
/// Frames sent before anything counts: state is made, leases are granted.
const WARM_UP: u64 = 400;

const APPLICATIONS: [(Application, bool); 6] = [
    (Application::Nat, true),
    (Application::Firewall, true),
    (Application::LoadBalancer, true),
    (Application::ServingGateway, false),
    (Application::HeavyHitter, true),
    (Application::Counter, false),
];
const UPDATES: [u32; 6] = [0, 20, 40, 60, 80, 100];

fn flood(application: Application, updates: u32, plan: Plan) -> ProbeArguments {
    ProbeArguments {
        application,
        frames: if plan.quick { 100_000 } else { 1_000_000 },
        rate: 0,
        window: 64,
        flow_packets: u64::MAX,
        padding: 0,
        updates,
    }
}

/// Frames per second that come through while the host sends as many as it can.
fn throughput(
    place: &Place,
    setup: &Setup,
    updates: u32,
    plan: Plan,
    name: &str,
) -> Result<f64, EvalError> {
    let arguments = flood(setup.application, updates, plan);
    let mut trial = Trial::begin(place, setup, name)?;
    trial.probe(&ProbeArguments {
        frames: WARM_UP,
        rate: 2000,
        ..arguments.clone()
    })?;
    let outcome = trial.probe(&arguments)?;
    trial.end()?;
    Ok(outcome.delivered_per_s())
}

fn differs(figure: &mut Figure) {
    lab_differs(figure);
    figure.differs(
        "the sender, the switch and its store share this machine's processors, so what the \
         store works for writes is taken from the switch, and more store servers add no \
         processors",
    );
}

/// Fig. 12.
pub(super) fn of_applications(
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig12",
        "Throughput by application, with and without replication",
        "122.5 Mpps with and without RedPlane for NAT, firewall, load balancer and heavy \
         hitters, a little less for EPC-SGW, about half for the synchronous counter, bounded by \
         the store",
    );
    differs(&mut figure);
    let mut rows: Vec<(Application, bool, [Vec<f64>; 2])> = APPLICATIONS
        .iter()
        .map(|(of, reads)| (*of, *reads, Default::default()))
        .collect();
    bar.set_length((plan.runs * rows.len() * 2) as u64);
    for _ in 0..plan.runs {
        for (application, _, rates) in &mut rows {
            let setups = [Setup::bare(*application), Setup::protected(*application)];
            for (setup, rates) in setups.iter().zip(rates) {
                bar.set_message(format!("fig12: {}", application.name()));
                let name = format!("fig12-{}", application.name());
                rates.push(throughput(place, setup, 0, plan, &name)?);
                bar.inc(1);
            }
        }
    }
    let mut table = Table::new(
        "throughput",
        &[
            "application",
            "alone (kpps)",
            "replicated (kpps)",
            "kept (%)",
        ],
    );
    let mut series = ["alone", "replicated"].map(|name| Series {
        name: name.to_owned(),
        points: Vec::new(),
    });
    let mut groups = Vec::new();
    for (application, reads, rates) in &rows {
        let medians = [0, 1].map(|at| median(&rates[at]).unwrap_or(f64::NAN));
        let ratios: Vec<f64> = rates[0].iter().zip(&rates[1]).map(|(a, b)| b / a).collect();
        let kept = median(&ratios).unwrap_or(f64::NAN);
        table.row(vec![
            application.name().into(),
            (medians[0] / 1000.0).into(),
            (medians[1] / 1000.0).into(),
            (kept * 100.0).into(),
        ]);
        groups.push(application.name().to_owned());
        for (series, rate) in series.iter_mut().zip(medians) {
            series.points.push((0.0, rate / 1000.0));
        }
        let said = format!(
            "{}: {:.1} % of the throughput is kept, median of {} pairs of runs (claimed: 97 %)",
            application.name(),
            kept * 100.0,
            plan.runs
        );
        match (reads, plan.quick) {
            (true, false) => figure.claim(kept >= KEPT, said),
            (true, true) => figure.missing.push(format!("{said}: too short to tell")),
            (false, _) => {}
        }
    }
    figure.bars(
        "throughput",
        "packets through the switch (1000/s)",
        &groups,
        &series,
    )?;
    figure.tables.push(table);
    Ok(figure)
}

/// Fig. 13.
pub(super) fn of_updates(
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig13",
        "Throughput of the key-value store by its share of updates",
        "122.5 Mpps of reads; the more updates the less, bounded by the store, and each of up to \
         three store servers adds its own throughput",
    );
    differs(&mut figure);
    figure.differs(
        "store servers without replicas, each with its part of the keys, as in the paper; 64 keys",
    );
    let servers: &[u8] = if plan.quick { &[1] } else { &[1, 2, 3] };
    let updates: &[u32] = if plan.quick { &[0, 100] } else { &UPDATES };
    let mut found = vec![vec![Vec::new(); updates.len()]; servers.len()];
    bar.set_length((plan.runs * servers.len() * updates.len()) as u64);
    for _ in 0..plan.runs {
        for (count, found) in servers.iter().zip(&mut found) {
            let setup = Setup {
                system: System::Protected(Store::Servers(*count)),
                ..Setup::protected(Application::KeyValue)
            };
            for (share, found) in updates.iter().zip(found) {
                bar.set_message(format!("fig13: {count} servers, {share} % updates"));
                found.push(throughput(place, &setup, *share, plan, "fig13")?);
                bar.inc(1);
            }
        }
    }
    let mut table = Table::new("throughput", &["store servers", "updates (%)", "kpps"]);
    let mut series = Vec::new();
    for (count, found) in servers.iter().zip(&found) {
        let mut points = Vec::new();
        for (share, found) in updates.iter().zip(found) {
            let rate = median(found).unwrap_or(f64::NAN) / 1000.0;
            table.row(vec![
                u64::from(*count).into(),
                u64::from(*share).into(),
                rate.into(),
            ]);
            points.push((f64::from(*share), rate));
        }
        series.push(Series {
            name: format!("{count} store servers"),
            points,
        });
    }
    let axes = Axes {
        x: "updates (%)",
        y: "packets through the switch (1000/s)",
        logarithmic: false,
    };
    figure.curves("throughput", axes, &series)?;
    figure.tables.push(table);
    Ok(figure)
}

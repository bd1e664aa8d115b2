//! Fig. 12 (throughput by application, with and without replication) and Fig. 13 (a
//! key-value store, by the share of updates and the number of store servers).

use super::{Place, Plan, TOO_SHORT, applications, lab_differs, paced};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::network::{Setup, Store, System};
use crate::plot::{Axes, Series};
use crate::probe::ProbeArguments;
use crate::probe::traffic::Application;
use crate::processors::Processors;
use crate::statistics::{median, over_runs};
use crate::table::Table;
use crate::trial::Trial;
use indicatif::ProgressBar;

/// The least share of the throughput that applications that mostly read keep.
const KEPT: f64 = 0.97;
/// Above this share of what was sent, what came through says more of the sender than of the
/// switch.
const ALL: f64 = 0.97;
const SEED: u64 = 1;
/// Frames sent before anything counts: state is made, leases are granted.
const WARM_UP: u64 = 2048;
const UPDATES: [u32; 6] = [0, 20, 40, 60, 80, 100];
/// Keys of the key-value store, spread over its shards.
const KEYS: u64 = 1024;

/// Frames per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rates {
    offered: f64,
    delivered: f64,
    /// Share of the time for which the switch's processor worked; 1 where it is unknown.
    busy: f64,
}

impl Rates {
    /// Rate of the switch for the time in which it works. A sender that is no faster than the
    /// switch leaves it idle at times, and more so the more of the sender's processor the stores
    /// take.
    fn of_work(&self) -> f64 {
        self.delivered / self.busy
    }
}

/// Rate at the receiver while the host sends as much as it can, to `window` flows.
fn throughput(
    place: &Place,
    setup: &Setup,
    window: u64,
    updates: u32,
    plan: Plan,
    name: &str,
) -> Result<Rates, EvalError> {
    let paced = ProbeArguments {
        frames: WARM_UP,
        rate: 4000,
        window,
        flow_packets: u64::MAX,
        updates,
        ..paced(setup.application, plan)
    };
    let mut trial = Trial::begin(place, setup, name)?;
    trial.probe(&paced)?;
    let probe = trial.probe(&ProbeArguments {
        flood_ms: if plan.quick { 300 } else { 1500 },
        ..paced
    })?;
    trial.end()?;
    let per_s = |frames: u64| frames as f64 / probe.probe.seconds.max(0.001);
    let busy = Processors::here()
        .and_then(|processors| processors.switch.parse().ok())
        .and_then(|switch: u32| probe.probe.busy.get(&switch).copied());
    Ok(Rates {
        offered: per_s(probe.probe.sent),
        delivered: per_s(probe.probe.received),
        busy: busy.unwrap_or(1.0).max(0.01),
    })
}

fn differs(figure: &mut Figure) {
    lab_differs(figure, None);
    figure.differs(
        "the sender, the switch and its store share this machine's processors, so what the \
         store works for writes is taken from the switch, and more store servers add no \
         processors",
    );
}

/// In what figures that compare throughputs differ.
const OF_WORK: &str = "the sender is hardly faster than the switch, and slower where stores share \
    its processor: `kept of work` compares packets in the time for which the switch's processor \
    works";

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
    figure.differs(OF_WORK);
    let mut rows: Vec<(Application, bool, [Vec<Rates>; 2])> = applications()?
        .into_iter()
        .map(|(of, reads)| (of, reads, Default::default()))
        .collect();
    bar.set_length((plan.runs * rows.len() * 2) as u64);
    for run in 0..plan.runs {
        for (application, _, rates) in &mut rows {
            let setups = [Setup::bare(*application), Setup::protected(*application)];
            // In the other order each time, so that neither gains by coming first.
            for at in [run % 2, 1 - run % 2] {
                bar.set_message(format!("fig12: {}", application.name()));
                let name = format!(
                    "fig12-{}-{}",
                    application.name(),
                    ["alone", "replicated"][at]
                );
                rates[at].push(throughput(place, &setups[at], 64, 0, plan, &name)?);
                bar.inc(1);
            }
        }
    }
    let mut table = Table::new(
        "throughput",
        &[
            "application",
            "sent (kpps)",
            "alone (kpps)",
            "replicated (kpps)",
            "switch busy, alone (%)",
            "replicated (%)",
            "kept (%)",
            "kept of work (%)",
        ],
    );
    let mut series = ["alone", "replicated"].map(|name| Series {
        name: name.to_owned(),
        points: Vec::new(),
    });
    let mut groups = Vec::new();
    for (application, reads, rates) in &rows {
        let name = application.name();
        let of = |at: usize, rate: fn(&Rates) -> f64| {
            let all: Vec<f64> = rates[at].iter().map(rate).collect();
            median(&all).unwrap_or(f64::NAN)
        };
        let medians = [0, 1].map(|at| of(at, |rates| rates.delivered));
        let offered = of(0, |rates| rates.offered);
        let busy = [0, 1].map(|at| of(at, |rates| rates.busy));
        let kept = |rate: fn(&Rates) -> f64| {
            let pairs = rates[0].iter().zip(&rates[1]);
            let ratios: Vec<f64> = pairs.map(|(a, b)| rate(b) / rate(a)).collect();
            over_runs(&ratios, SEED)
        };
        let of_work = kept(Rates::of_work);
        let kept = kept(|rates| rates.delivered);
        table.row(vec![
            name.into(),
            (offered / 1000.0).into(),
            (medians[0] / 1000.0).into(),
            (medians[1] / 1000.0).into(),
            (busy[0] * 100.0).into(),
            (busy[1] * 100.0).into(),
            kept.map(|kept| kept.value * 100.0).into(),
            of_work.map(|kept| kept.value * 100.0).into(),
        ]);
        groups.push(name.to_owned());
        for (series, rate) in series.iter_mut().zip(medians) {
            series.points.push((0.0, rate / 1000.0));
        }
        let (Some(kept), true) = (kept, reads) else {
            continue;
        };
        let said = format!(
            "{name}: {:.1} % of the throughput is kept, median of {} pairs of runs, 95 % interval \
             {:.1} to {:.1} % (claimed: 97 %)",
            kept.value * 100.0,
            plan.runs,
            kept.low * 100.0,
            kept.high * 100.0,
        );
        if plan.quick {
            figure.missing.push(format!("{said}: {TOO_SHORT}"));
        } else if medians[1] > offered * ALL {
            figure
                .missing
                .push(format!("{said}: the sender was no faster"));
        } else {
            figure.claim(kept.value >= KEPT, said);
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
        "store servers without replicas, each with its part of the keys, as in the paper; 1024 \
         keys",
    );
    let store = Application::of("key-value")?;
    let servers: &[u8] = if plan.quick { &[1, 3] } else { &[1, 2, 3] };
    let updates: &[u32] = if plan.quick { &[0, 100] } else { &UPDATES };
    let mut found = vec![vec![Vec::new(); updates.len()]; servers.len()];
    bar.set_length((plan.runs * servers.len() * updates.len()) as u64);
    for _ in 0..plan.runs {
        for (count, found) in servers.iter().zip(&mut found) {
            let setup = Setup {
                system: System::Protected(Store::Servers(*count)),
                ..Setup::protected(store)
            };
            for (share, found) in updates.iter().zip(found) {
                bar.set_message(format!("fig13: {count} servers, {share} % updates"));
                let name = format!("fig13-{count}-{share}");
                let rates = throughput(place, &setup, KEYS, *share, plan, &name)?;
                found.push(rates.delivered);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_that_waits_for_its_sender_is_no_slower_for_it() {
        let saturated = Rates {
            offered: 2000.0,
            delivered: 1000.0,
            busy: 1.0,
        };
        let waits = Rates {
            offered: 800.0,
            delivered: 800.0,
            busy: 0.8,
        };
        assert_eq!(saturated.of_work(), waits.of_work());
    }
}

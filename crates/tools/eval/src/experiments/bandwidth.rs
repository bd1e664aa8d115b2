//! Fig. 10: how much of a switch's traffic replication is, by application; and whether the
//! analytical model says so.

use super::{Place, Plan, lab_differs, once, paced};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::network::Setup;
use crate::plot::{self, Series};
use crate::probe::ProbeArguments;
use crate::probe::traffic::Application;
use crate::statistics::median;
use crate::table::Table;
use crate::trial::{Outcome, Trial};
use indicatif::ProgressBar;
use stateplane_cost::{self as cost, Protection, Snapshots, Traffic};

/// Allowed ratio of model and measurement, in either direction.
const FACTOR: f64 = 1.2;

/// `SNAPSHOT_SLOTS` of `apps/heavy-hitter`, for the one tenant here.
const ELEMENTS: f64 = 64.0;
/// Servers that head chains: the store of `lab/eval` has one chain.
const HEADS: f64 = 1.0;

/// Applications whose flows ask their store for nothing once they are known.
const READERS: [&str; 3] = ["nat", "firewall", "load-balancer"];
/// Most of the bytes, in per cent, that replication may be where no flow begins.
const MOST_LASTING: f64 = 2.0;
/// Most kilobits a second between a switch and a server beside leases, writes and snapshots.
const MOST_IDLE: f64 = 26.0;
/// Times as many packets as of short flows, so that heartbeats are counted for seconds.
const LONGER: u64 = 5;

/// Fig. 10.
pub(super) fn run(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig10",
        "Replication's share of the bytes that a switch receives and sends",
        "almost nothing for NAT, firewall, load balancer and heavy hitters; 12.8 % for EPC-SGW; \
         51.2 % for the synchronous counter, of packets of 64 bytes",
    );
    lab_differs(&mut figure, None);
    figure.differs(
        "some thousand packets a second, not 200 million: heartbeats, probes and \
         snapshots, which do not grow with the rate, weigh as much more; the column `at 1 Mpps` \
         has the model's share at a million packets a second of flows just as long",
    );
    figure.differs("a message has 72 bytes of header here, more than the paper's");
    figure.differs("snapshots of heavy hitters each 25 ms, not each 1 ms");
    let mut rows: Vec<(Application, Vec<[f64; 4]>)> = super::applications()?
        .into_iter()
        .map(|(of, _)| (of, Vec::new()))
        .collect();
    bar.set_length((plan.runs * (rows.len() + READERS.len())) as u64);
    for _ in 0..plan.runs {
        for (application, found) in &mut rows {
            let name = application.name();
            bar.set_message(format!("fig10: {name}"));
            let setup = Setup::protected(*application);
            let arguments = paced(*application, plan);
            let outcome = once(place, &setup, &arguments, &format!("fig10-{name}"))?;
            let measured = outcome.replication_bytes_per_s();
            let share = measured / (measured + outcome.own_bytes_per_s());
            let (predicted, at_scale) = predict(&setup, &outcome);
            found.push([measured, share, predicted, at_scale]);
            bar.inc(1);
        }
    }
    let mut table = Table::new(
        "bandwidth",
        &[
            "application",
            "replication (kB/s)",
            "share (%)",
            "model (kB/s)",
            "measured / model",
            "share at 1 Mpps by the model (%)",
        ],
    );
    let mut series = ["measured", "model at 1 Mpps"].map(|name| Series {
        name: name.to_owned(),
        points: Vec::new(),
    });
    for (application, found) in &rows {
        let of = |at: usize| {
            let values: Vec<f64> = found.iter().map(|found| found[at]).collect();
            median(&values).unwrap_or(f64::NAN)
        };
        let ratio = of(0) / of(2);
        table.row(vec![
            application.name().into(),
            (of(0) / 1000.0).into(),
            (of(1) * 100.0).into(),
            (of(2) / 1000.0).into(),
            ratio.into(),
            (of(3) * 100.0).into(),
        ]);
        series[0].points.push((0.0, of(1) * 100.0));
        series[1].points.push((0.0, of(3) * 100.0));
        figure.claim(
            (1.0 / FACTOR..=FACTOR).contains(&ratio),
            format!(
                "{}: measured bandwidth is {ratio:.2} times the model's (claimed: within a factor of {FACTOR})",
                application.name()
            ),
        );
    }
    let groups: Vec<String> = rows.iter().map(|(of, _)| of.name().to_owned()).collect();
    let drawn = plot::bars("replication's share of all bytes (%)", &groups, &series)?;
    figure.plots.push(("share".to_owned(), drawn));
    figure.tables.push(table);
    lasting(place, plan, bar, &mut figure)?;
    Ok(figure)
}

/// Replication of 64 flows that last: heartbeats and probes.
fn lasting(
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
    figure: &mut Figure,
) -> Result<(), EvalError> {
    let mut table = Table::new(
        "lasting",
        &[
            "application, flows that last",
            "replication (kB/s)",
            "share (%)",
            "model (kB/s)",
            "heartbeats (kb/s)",
        ],
    );
    let readers = super::applications()?.into_iter().map(|(of, _)| of);
    for application in readers.filter(|of| READERS.contains(&of.name())) {
        let name = application.name();
        let (mut bytes, mut shares) = (Vec::new(), Vec::new());
        for _ in 0..plan.runs {
            bar.set_message(format!("fig10: {name}, flows that last"));
            let setup = Setup::protected(application);
            let once = ProbeArguments {
                flow_packets: u64::MAX,
                ..paced(application, plan)
            };
            let mut trial = Trial::begin(place, &setup, &format!("fig10-lasting-{name}"))?;
            trial.probe(&once)?;
            let outcome = trial.probe(&ProbeArguments {
                frames: LONGER * once.frames,
                ..once
            })?;
            trial.end()?;
            let measured = outcome.replication_bytes_per_s();
            bytes.push(measured);
            // Of the rate at which packets come, without the time in which the host starts and ends.
            let own = outcome.own_bytes_per_s() * outcome.counted_s / outcome.probe.seconds;
            shares.push(100.0 * measured / (measured + own));
            bar.inc(1);
        }
        let [bytes, share] = [bytes, shares].map(|all| median(&all).unwrap_or(f64::NAN));
        let beats_kb = (bytes - idle(0.0, cost::PROBES_PER_S)) * 8.0 / 1000.0 / HEADS;
        table.row(vec![
            name.into(),
            (bytes / 1000.0).into(),
            share.into(),
            (idle(HEADS, cost::PROBES_PER_S) / 1000.0).into(),
            beats_kb.into(),
        ]);
        figure.claim(
            beats_kb <= MOST_IDLE,
            format!(
                "{name}: heartbeats are {beats_kb:.1} kb/s of a switch and a server (claimed: at most {MOST_IDLE})"
            ),
        );
        figure.claim(
            share <= MOST_LASTING,
            format!(
                "{name}: replication of flows that last is {share:.2} % of all bytes (claimed: at most {MOST_LASTING} %)"
            ),
        );
    }
    figure.tables.push(table);
    Ok(())
}

/// Bytes per second that the model expects of a switch without traffic, with heartbeats to `heads` and
/// probes.
fn idle(heads: f64, probes_per_s: f64) -> f64 {
    let silence = Traffic {
        packets_per_s: 0.0,
        frame_bytes: 0.0,
        flows: 0.0,
        new_flows_per_s: 0.0,
        writes: 0.0,
    };
    let protection = Protection {
        state_bytes: 0.0,
        term_s: cost::TERM_S,
        heads,
        round_trip_s: 0.0,
        probes_per_s,
        snapshots: None,
    };
    cost::load(&silence, &protection).bytes_per_s()
}

/// Bytes per second of replication that the model expects of what was sent, and its share at
/// a million packets a second.
fn predict(setup: &Setup, outcome: &Outcome) -> (f64, f64) {
    let probe = &outcome.probe;
    let sent = probe.sent as f64;
    let new_flows = if setup.keeps_sketches() {
        0.0
    } else {
        probe.new_flows as f64
    };
    let waits = match probe.written_us.len() {
        0 => 0.0,
        count => probe.written_us.iter().sum::<f64>() / count as f64,
    };
    let protection = Protection {
        state_bytes: setup.state_bytes().into(),
        term_s: cost::TERM_S,
        heads: 0.0,
        // Of a packet that writes, the way through the switch and back is part of its time.
        round_trip_s: waits / 1e6,
        probes_per_s: 0.0,
        snapshots: setup.keeps_sketches().then(|| Snapshots {
            elements: ELEMENTS,
            period_s: setup.snapshot_us as f64 / 1e6,
        }),
    };
    let of_rate = |packets_per_s: f64| {
        let seconds = sent / packets_per_s;
        Traffic {
            packets_per_s,
            frame_bytes: probe.sent_bytes as f64 / sent,
            flows: 64.0 * packets_per_s * probe.seconds / sent,
            new_flows_per_s: new_flows / seconds,
            writes: probe.writes as f64 / sent,
        }
    };
    let now = of_rate(sent / probe.seconds.max(0.001));
    // Packets come while the probe sends, snapshots, heartbeats and chain probes all the time.
    let own_s = match protection.snapshots {
        Some(_) => outcome.counted_s,
        None => probe.seconds,
    };
    let bytes = cost::load(&now, &protection).bytes_per_s() * own_s
        + idle(HEADS, cost::PROBES_PER_S) * outcome.counted_s;
    let scaled = of_rate(1e6);
    let full = Protection {
        probes_per_s: cost::PROBES_PER_S,
        heads: HEADS,
        ..protection
    };
    let at_scale = cost::load(&scaled, &full).share(&scaled);
    (bytes / outcome.counted_s, at_scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Bed, Links};
    use crate::probe::ProbeReport;
    use crate::probe::traffic::{frame, place};
    use stateplane_lab::InterfaceTraffic;
    use std::path::Path;

    const DELAY_US: u64 = 50;
    const WINDOW: u64 = 64;
    const FLOW_PACKETS: u64 = 64;

    /// Same measurement as in the lab: packets at 2000 a second through a switch in memory.
    fn measured(setup: &Setup) -> Outcome {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../lab");
        let links = Links {
            delay_us: DELAY_US,
            loss: 0.0,
        };
        let mut bed = Bed::new(&lab, setup, links, |text| text).expect("a switch and its store");
        let begun = bed.now;
        let mut probe = ProbeReport::default();
        for number in 0..8000 {
            let of = place(number, WINDOW, FLOW_PACKETS);
            let (side, bytes) = frame(setup.application, of, number, 0, 0);
            probe.sent += 1;
            probe.new_flows += u64::from(of.packet == 0);
            probe.sent_bytes += bytes.len() as u64;
            probe.writes += u64::from(setup.application.writes(of, number, 0));
            bed.frame(side as stateplane_switch::Port, &bytes);
            bed.advance(bed.now + 500);
        }
        probe.seconds = (bed.now - begun) as f64 / 1e6;
        probe.written_us = vec![2.0 * DELAY_US as f64];
        let fabric = InterfaceTraffic {
            received_bytes: bed.passed.request_bytes,
            sent_bytes: bed.passed.reply_bytes,
            ..InterfaceTraffic::default()
        };
        Outcome {
            counted_s: probe.seconds,
            probe,
            fabric,
            host: Default::default(),
        }
    }

    #[test]
    fn every_application_says_to_its_store_what_the_model_foresees() {
        for (application, _) in super::super::applications().expect("applications") {
            let setup = Setup::protected(application);
            let outcome = measured(&setup);
            let (foreseen, _) = predict(&setup, &outcome);
            let ratio = outcome.replication_bytes_per_s() / foreseen;
            assert!(
                (1.0 / FACTOR..=FACTOR).contains(&ratio),
                "{application:?}: {ratio:.3} times the model"
            );
        }
    }
}

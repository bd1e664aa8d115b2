//! Round trips: Fig. 8 (a NAT by several systems) and Fig. 9 (each application, with and
//! without replication).

use super::{Place, Plan, lab_differs, once, paced};
use crate::error::EvalError;
use crate::figure::Figure;
use crate::network::{Setup, Store, System};
use crate::plot::{Axes, Series};
use crate::probe::ProbeArguments;
use crate::probe::traffic::Application;
use crate::statistics::{distribution, quantile, relative_difference};
use crate::table::{Cell, Table};
use indicatif::ProgressBar;
use stateplane_lab::require;

/// The bound on the difference of medians of applications that mostly read.
const BOUND: f64 = 0.03;
const SEED: u64 = 1;
/// Packets per second: the next is sent when the one before has long come back.
const RATE: u64 = 4000;
/// Packets before those that count, half a second: all flows have begun, the paths are warm.
const WARM_UP: u64 = 2048;
/// Packets of a turn: two generations of 64 flows with 64 packets each.
const FRAMES: u64 = 8192;
/// Points of a curve.
const POINTS: usize = 400;

/// A row of systems, each measured in each turn.
struct Measured {
    name: String,
    setup: Setup,
    /// Times in µs, a list for each turn.
    first: Vec<Vec<f64>>,
    later: Vec<Vec<f64>>,
    sent: u64,
    received: u64,
}

impl Measured {
    fn new(name: impl Into<String>, setup: Setup) -> Self {
        Self {
            name: name.into(),
            setup,
            first: Vec::new(),
            later: Vec::new(),
            sent: 0,
            received: 0,
        }
    }

    fn all(&self) -> Vec<f64> {
        self.turns().concat()
    }

    /// All times of each turn.
    fn turns(&self) -> Vec<Vec<f64>> {
        let turns = self.first.iter().zip(&self.later);
        turns
            .map(|(first, later)| [&first[..], later].concat())
            .collect()
    }

    fn turn(
        &mut self,
        place: &Place,
        plan: Plan,
        figure: &str,
        bar: &ProgressBar,
    ) -> Result<(), EvalError> {
        bar.set_message(format!("{figure}: {}", self.name));
        let arguments = ProbeArguments {
            warm_up: WARM_UP,
            rate: RATE,
            frames: if plan.quick { 600 } else { FRAMES },
            capture: place.capture.clone(),
            ..paced(self.setup.application, plan)
        };
        let name: String = self
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        let name = format!("{figure}-{}", name.to_lowercase());
        let outcome = once(place, &self.setup, &arguments, &name)?;
        self.sent += outcome.probe.sent;
        self.received += outcome.probe.received;
        self.first.push(outcome.probe.first_us);
        self.later.push(outcome.probe.later_us);
        bar.inc(1);
        Ok(())
    }
}

/// A turn of each system, in the other order each time, so that none gains by coming first.
fn turns(
    systems: &mut [Measured],
    run: usize,
    place: &Place,
    plan: Plan,
    figure: &str,
    bar: &ProgressBar,
) -> Result<(), EvalError> {
    let count = systems.len();
    for at in 0..count {
        let at = if run.is_multiple_of(2) {
            at
        } else {
            count - 1 - at
        };
        systems[at].turn(place, plan, figure, bar)?;
    }
    Ok(())
}

const COLUMNS: [&str; 9] = [
    "system",
    "packets",
    "lost",
    "median (µs)",
    "90 % (µs)",
    "99 % (µs)",
    "99.9 % (µs)",
    "first of a flow, median (µs)",
    "later packets, median (µs)",
];

fn row(measured: &Measured) -> Vec<Cell> {
    let all = measured.all();
    let mut row = vec![
        measured.name.as_str().into(),
        measured.sent.into(),
        (measured.sent - measured.received).into(),
    ];
    row.extend([0.5, 0.9, 0.99, 0.999].map(|share| quantile(&all, share).into()));
    row.push(quantile(&measured.first.concat(), 0.5).into());
    row.push(quantile(&measured.later.concat(), 0.5).into());
    row
}

/// Fig. 8.
pub(super) fn of_nat(place: &Place, plan: Plan, bar: &ProgressBar) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig8",
        "Round trips through a NAT",
        "median and 90 % are 7 and 8 µs with RedPlane and without; 99 % are 110 µs for \
         the switch alone, 142 µs for RedPlane and 185 µs with an external controller; NATs on \
         servers have 7 to 14 times the median",
    );
    lab_differs(&mut figure, place.capture.as_deref());
    figure.differs(
        "here the switch is a server too, so Linux's own NAT is no detour: it stands where the \
         switch stands",
    );
    figure.differs(
        "the switch without replication makes mappings in its data plane, not by a control plane",
    );
    figure.differs(
        "conntrackd tells the other server after the packet has left, so its NAT is as fast as \
         Linux's alone, and may lose what it has just translated",
    );
    figure
        .missing
        .push("FTMB-NAT, whose code is not to be had".to_owned());
    figure.differs(
        "the external controller, with a chain of two replicas as the stores are one of three, \
         speaks P4Runtime over TCP on the machine itself, not over a network of 1 Gb/s",
    );
    let nat = Application::of("nat")?;
    let bare = Setup::bare(nat);
    let by = |system| Setup { system, ..bare };
    let mut systems = vec![
        Measured::new("switch alone", bare),
        Measured::new("switch, replicated", Setup::protected(nat)),
        Measured::new("switch, external controller", by(System::Controlled)),
    ];
    for (name, system, tools) in [
        (
            "Linux NAT",
            System::Linux,
            &[("nft", "nftables"), ("conntrack", "conntrack")][..],
        ),
        (
            "Linux NAT, conntrackd",
            System::LinuxSynced,
            &[
                ("nft", "nftables"),
                ("conntrack", "conntrack"),
                ("conntrackd", "conntrackd"),
            ],
        ),
    ] {
        match require(tools) {
            Ok(()) => systems.push(Measured::new(name, by(system))),
            Err(error) => figure.missing.push(format!("{name}: {error}")),
        }
    }
    bar.set_length((plan.runs * systems.len()) as u64);
    for run in 0..plan.runs {
        turns(&mut systems, run, place, plan, "fig8", bar)?;
    }
    let mut table = Table::new("round-trips", &COLUMNS);
    let mut curves = Table::new("distribution", &["system", "µs", "share of packets"]);
    let mut series = Vec::new();
    for system in &systems {
        table.row(row(system));
        let points = distribution(&system.all(), POINTS);
        for &(us, share) in &points {
            curves.row(vec![system.name.as_str().into(), us.into(), share.into()]);
        }
        series.push(Series {
            name: system.name.clone(),
            points,
        });
    }
    let axes = Axes {
        x: "round trip (µs)",
        y: "share of packets",
        logarithmic: true,
    };
    figure.curves("round-trips", axes, &series)?;
    claim(&mut figure, "nat", &systems[0], &systems[1], plan);
    figure.tables = vec![table, curves];
    Ok(figure)
}

/// Checks the claim about an application that mostly reads.
fn claim(figure: &mut Figure, name: &str, bare: &Measured, kept: &Measured, plan: Plan) {
    let Some(interval) = relative_difference(&bare.turns(), &kept.turns(), SEED) else {
        return;
    };
    let said = format!(
        "{name}: replication changes the median by {:+.1} %, 95 % interval {:+.1} to {:+.1} % \
         over {} pairs of runs (claimed: within ±3 %)",
        interval.value * 100.0,
        interval.low * 100.0,
        interval.high * 100.0,
        plan.runs,
    );
    plan.claim(figure, interval.within(BOUND), said);
}

/// Adds the difference between two series of the same system as the resolution limit.
fn limit(figure: &mut Figure, one: &Measured, other: &Measured) {
    let Some(interval) = relative_difference(&one.turns(), &other.turns(), SEED) else {
        return;
    };
    figure.limits.push(format!(
        "{} and {} differ by {:+.1} %, 95 % interval {:+.1} to {:+.1} %, over {} pairs of runs, \
         though they are the same: less than that cannot be told here",
        one.name,
        other.name,
        interval.value * 100.0,
        interval.low * 100.0,
        interval.high * 100.0,
        one.later.len(),
    ));
}

/// Systems compared in Fig. 9.
struct Compared {
    application: Application,
    /// True if it mostly reads.
    reads: bool,
    /// Alone and replicated, and behind a store without replicas where the paper has that.
    systems: Vec<Measured>,
}

impl Compared {
    fn new(application: Application, reads: bool) -> Self {
        let name = |system: &str| format!("{}, {system}", application.name());
        let kept = Setup::protected(application);
        let mut systems = vec![
            Measured::new(name(SYSTEMS[0]), Setup::bare(application)),
            Measured::new(name(SYSTEMS[1]), kept),
        ];
        if application.always_writes() {
            let system = System::Protected(Store::Chain(1));
            let one = Setup { system, ..kept };
            systems.push(Measured::new(name(SYSTEMS[2]), one));
        }
        Self {
            application,
            reads,
            systems,
        }
    }
}

const SYSTEMS: [&str; 3] = ["alone", "chain of 3", "one store"];

/// Fig. 9.
pub(super) fn of_applications(
    place: &Place,
    plan: Plan,
    bar: &ProgressBar,
) -> Result<Figure, EvalError> {
    let mut figure = Figure::new(
        "fig9",
        "Round trips by application, with and without replication",
        "8 µs in the median with and without RedPlane for NAT, firewall, load balancer, \
         EPC-SGW and heavy hitters; the synchronous counter waits 20 µs more for each packet, 12 \
         of them for the chain",
    );
    lab_differs(&mut figure, place.capture.as_deref());
    figure.differs(
        "the firewall's and the load balancer's flows are UDP, whose first packet writes as a \
         SYN does; a serving gateway's session has one signalling packet and 17 of data in turn, \
         as in the paper",
    );
    figure.differs("snapshots of heavy hitters each 25 ms, not each 1 ms");
    let mut all: Vec<Compared> = super::applications()?
        .into_iter()
        .map(|(application, reads)| Compared::new(application, reads))
        .collect();
    let nat = Application::of("nat")?;
    // The same NAT a second time: the difference is chance.
    let mut equal = Measured::new("nat, alone again", Setup::bare(nat));
    let each: usize = all.iter().map(|of| of.systems.len()).sum();
    bar.set_length((plan.runs * (each + 1)) as u64);
    for run in 0..plan.runs {
        for compared in &mut all {
            turns(&mut compared.systems, run, place, plan, "fig9", bar)?;
            if compared.application == nat {
                equal.turn(place, plan, "fig9", bar)?;
            }
        }
    }
    let mut table = Table::new("round-trips", &COLUMNS);
    let mut series = SYSTEMS.map(|name| Series {
        name: name.to_owned(),
        points: Vec::new(),
    });
    let mut groups = Vec::new();
    for compared in &all {
        let name = compared.application.name();
        groups.push(name.to_owned());
        for (at, series) in series.iter_mut().enumerate() {
            let system = compared.systems.get(at);
            let median = system.and_then(|system| quantile(&system.all(), 0.5));
            series.points.push((0.0, median.unwrap_or(f64::NAN)));
        }
        for system in &compared.systems {
            table.row(row(system));
        }
        if compared.application == nat {
            table.row(row(&equal));
            limit(&mut figure, &compared.systems[0], &equal);
        }
        if compared.reads {
            claim(
                &mut figure,
                name,
                &compared.systems[0],
                &compared.systems[1],
                plan,
            );
        }
    }
    figure.tables.push(table);
    figure.bars("medians", "median round trip (µs)", &groups, &series)?;
    Ok(figure)
}

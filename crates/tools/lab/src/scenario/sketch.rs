//! Estimates of the traffic from the sketches of dead and living switches at the store.
//!
//! A run without failure counts every packet that came through. After failures the merged
//! sketches may lack, of these, only what a switch counted within ε of its death (RedPlane
//! §4.4); and they may have what was counted and then lost on a link.

use super::list::Sketches;
use serde::{Deserialize, Serialize};
use stateplane_apps::heavy_hitter::{TENANTS, elements, named};
use stateplane_history::replication::{EventKind, History};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// µs by which the hosts' notes may be later than a switch's clock.
const SLACK_US: u64 = 50_000;
/// Maximum number of objections that are reported.
const MOST_TOLD: usize = 10;

/// A tenant's merged sketch, as `stateplane ctl store sketch --json` shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Merged {
    /// Starts of switches that have a complete snapshot.
    pub(super) starts: Vec<serde_json::Value>,
    /// The values of each element, one for each row; none without a snapshot.
    pub(super) elements: Vec<Vec<u32>>,
}

/// When a switch died: when the fault was begun, and when it was there, in µs since the Unix
/// epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Death {
    pub(super) from_us: u64,
    pub(super) to_us: u64,
}

/// A flow that is heavy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeavyFlow {
    /// Key of its connection, and the CRC-32 of its five-tuple.
    pub flow: String,
    /// Number of packets that the merged sketches estimate.
    pub estimate: u32,
    /// Number of packets that came through.
    pub packets: u64,
}

/// A tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantReport {
    /// Starts of switches whose sketches the store has.
    pub starts: usize,
    /// Packets that the merged sketches have.
    pub counted: u64,
    /// Packets that came through.
    pub packets: u64,
    /// Of these, such as came within ε of a switch's death.
    pub at_risk: u64,
    /// Flows above the limit by the merged sketches, the heaviest first.
    pub heavy: Vec<HeavyFlow>,
    /// Number of flows above the limit by a sketch of all packets that came through.
    pub heavy_without_failure: usize,
}

/// The store's sketches of all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SketchReport {
    /// Number of packets from which a flow is heavy.
    pub limit: u32,
    /// ε in µs.
    pub bound_us: u64,
    /// By the tenant's number.
    pub tenants: Vec<TenantReport>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    sent: u64,
    came: u64,
    at_risk: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.sent += other.sent;
        self.came += other.came;
        self.at_risk += other.at_risk;
    }
}

/// Flows by tenant and CRC-32, with the name of their connection.
fn flows(
    history: &History,
    deaths: &[Death],
    bound_us: u64,
) -> BTreeMap<(usize, u32), (String, Counts)> {
    let mut sent: BTreeMap<u64, (usize, u32)> = BTreeMap::new();
    let mut came: BTreeSet<u64> = BTreeSet::new();
    let mut flows: BTreeMap<(usize, u32), (String, Counts)> = BTreeMap::new();
    for event in &history.events {
        match &event.kind {
            EventKind::Call {
                object: flow,
                operation: packet,
                request: Some(request),
                ..
            } => {
                let of = named(*request);
                sent.insert(*packet, of);
                let (_, counts) = flows
                    .entry(of)
                    .or_insert_with(|| (flow.to_string(), Counts::default()));
                counts.sent += 1;
            }
            EventKind::Return {
                operation: packet, ..
            } if came.insert(*packet) => {
                let Some((_, counts)) = sent.get(packet).and_then(|of| flows.get_mut(of)) else {
                    continue;
                };
                counts.came += 1;
                let risky = |death: &Death| {
                    let from = death.from_us.saturating_sub(bound_us + SLACK_US);
                    (from..=death.to_us + SLACK_US).contains(&event.at)
                };
                counts.at_risk += u64::from(deaths.iter().any(risky));
            }
            _ => {}
        }
    }
    flows
}

/// Compares the merged sketches with what the hosts saw; the report, and what is wrong.
pub(super) fn judge(
    history: &History,
    sketches: &Sketches,
    merged: &[Merged],
    deaths: &[Death],
    (limit, bound_us): (u32, u64),
) -> (SketchReport, Vec<String>) {
    let flows = flows(history, deaths, bound_us);
    let mut report = SketchReport {
        limit,
        bound_us,
        tenants: vec![TenantReport::default(); TENANTS],
    };
    let mut wrong = Vec::new();
    for (tenant, told) in report.tenants.iter_mut().enumerate() {
        let nothing = Merged::default();
        let merged = merged.get(tenant).unwrap_or(&nothing);
        let value = |slot: usize, row: usize| {
            let values = merged.elements.get(slot);
            values.and_then(|values| values.get(row)).copied()
        };
        told.starts = merged.starts.len();
        let mut expected = vec![[Counts::default(); 3]; sketches.slots];
        let own = || flows.iter().filter(move |((of, _), _)| *of == tenant);
        for ((_, flow), (_, counts)) in own() {
            for (row, slot) in elements(*flow, sketches.slots).into_iter().enumerate() {
                expected[slot][row].add(*counts);
            }
            told.packets += counts.came;
            told.at_risk += counts.at_risk;
        }
        for (slot, rows) in expected.iter().enumerate() {
            told.counted += u64::from(value(slot, 0).unwrap_or(0));
            for (row, counts) in rows.iter().enumerate() {
                let has = u64::from(value(slot, row).unwrap_or(0));
                let (least, most) = (counts.came - counts.at_risk, counts.sent);
                if !(least..=most).contains(&has) {
                    wrong.push(format!(
                        "tenant {tenant}: element {slot} of row {row} has {has}, where \
                         {least} to {most} were counted"
                    ));
                }
            }
        }
        for ((_, flow), (name, counts)) in own() {
            let rows = elements(*flow, sketches.slots).into_iter().enumerate();
            let known = rows.clone().filter_map(|(row, slot)| value(slot, row));
            let estimate = known.min().unwrap_or(0);
            let whole = rows.map(|(row, slot)| expected[slot][row].came).min();
            let whole = whole.unwrap_or(0);
            told.heavy_without_failure += usize::from(whole > u64::from(limit));
            if estimate > limit {
                told.heavy.push(HeavyFlow {
                    flow: format!("{name}/{flow:08x}"),
                    estimate,
                    packets: counts.came,
                });
            } else if counts.came - counts.at_risk > u64::from(limit) {
                wrong.push(format!(
                    "tenant {tenant}: flow {name}/{flow:08x} with {} packets is not heavy \
                     any more",
                    counts.came
                ));
            }
        }
        told.heavy
            .sort_by_key(|heavy| std::cmp::Reverse(heavy.estimate));
    }
    wrong.truncate(MOST_TOLD);
    (report, wrong)
}

impl SketchReport {
    /// True if each tenant's flows were counted, and some are heavy.
    pub(super) fn bites(&self) -> bool {
        let counted = |tenant: &TenantReport| tenant.starts > 0 && !tenant.heavy.is_empty();
        !self.tenants.is_empty() && self.tenants.iter().all(counted)
    }
}

impl fmt::Display for SketchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, tenant) in self.tenants.iter().enumerate() {
            writeln!(
                f,
                "      tenant {number}: {} packets came through, {} of them within ε = {} ms of \
                 a death; {} counted, by {} starts of switches; {} flows above {}, {} by a \
                 sketch of all that came through",
                tenant.packets,
                tenant.at_risk,
                self.bound_us / 1000,
                tenant.counted,
                tenant.starts,
                tenant.heavy.len(),
                self.limit,
                tenant.heavy_without_failure,
            )?;
            for heavy in &tenant.heavy {
                writeln!(
                    f,
                    "        {} {} packets, {} came through",
                    heavy.flow, heavy.estimate, heavy.packets
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stateplane_history::replication::{Event, Flow, Released};

    const SLOTS: usize = 8;
    const FLOW: u32 = 0x0500_3001;
    const BOUND: u64 = 400_000;

    fn sketches() -> Sketches {
        Sketches {
            class: 13,
            slots: SLOTS,
            limit: "limit".to_owned(),
            bound: "bound_us".to_owned(),
        }
    }

    /// Packets of one flow of each tenant, each 100 ms, which come through at once.
    fn history(count: u64) -> History {
        let mut events = Vec::new();
        for packet in 0..count {
            let (tenant, at) = (packet % 2, 10_000_000 + packet * 100_000);
            let flow = Flow::new(&format!("flow{tenant}"));
            events.push(Event {
                at,
                kind: EventKind::Call {
                    node: 0,
                    object: flow.clone(),
                    operation: packet,
                    request: Some(tenant << 32 | u64::from(FLOW)),
                },
            });
            events.push(Event {
                at,
                kind: EventKind::Return {
                    node: 0,
                    object: flow,
                    operation: packet,
                    response: Released {
                        value: Some(1),
                        durability: None,
                    },
                },
            });
        }
        History {
            events,
            ..History::default()
        }
    }

    /// Sketches of both tenants in which the flow has `count` packets.
    fn merged(count: u32) -> Vec<Merged> {
        let mut of_one = vec![vec![0; 3]; SLOTS];
        for (row, slot) in elements(FLOW, SLOTS).into_iter().enumerate() {
            of_one[slot][row] = count;
        }
        let merged = Merged {
            starts: vec![serde_json::Value::Null],
            elements: of_one,
        };
        vec![merged.clone(), merged]
    }

    #[test]
    fn only_what_was_counted_within_the_bound_may_be_lost() {
        let history = history(40);
        let judge = |count, deaths: &[Death]| {
            judge(&history, &sketches(), &merged(count), deaths, (10, BOUND))
        };
        let (report, wrong) = judge(20, &[]);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(report.bites());
        assert_eq!(report.tenants[0].heavy[0].estimate, 20);
        assert_eq!(report.tenants[1].heavy_without_failure, 1);
        assert!(!judge(19, &[]).1.is_empty());
        assert!(!judge(21, &[]).1.is_empty());
        let death = [Death {
            from_us: 12_000_000,
            to_us: 12_000_000,
        }];
        let (report, wrong) = judge(18, &death);
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!((2..=3).contains(&report.tenants[0].at_risk));
        assert!(!judge(16, &death).1.is_empty());
    }

    #[test]
    fn a_store_without_sketches_says_nothing_good() {
        let (report, wrong) = judge(&history(40), &sketches(), &[], &[], (10, BOUND));
        assert!(!wrong.is_empty());
        assert!(!report.bites());
    }
}

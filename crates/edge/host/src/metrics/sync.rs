//! Metrics of an engine of sync.

use super::{Families, Labels, sealed};
use crate::sync::{GroupReport, SyncReport};

mod flows;

/// A gauge or counter of groups: name, help, and what it is of one group; `None`: absent.
type OfGroup = (&'static str, &'static str, fn(&GroupReport) -> Option<u64>);

const GAUGES: [OfGroup; 10] = [
    (
        "stateplane_sync_complete",
        "1 if each location has a value",
        |group| Some(group.complete.into()),
    ),
    (
        "stateplane_sync_fenced",
        "1 if another engine has a higher term",
        |group| Some(group.fenced.into()),
    ),
    (
        "stateplane_sync_bound",
        "No location is farther from its register at the mark; absent while unbounded",
        |group| group.bound,
    ),
    (
        "stateplane_sync_age_microseconds",
        "Greatest age of the mark",
        |group| group.age_us,
    ),
    (
        "stateplane_sync_far_locations",
        "Locations that may be farther than the threshold",
        |group| group.complete.then_some(group.all_but),
    ),
    (
        "stateplane_sync_threshold",
        "Distance within which all other locations are",
        |group| group.complete.then_some(group.within),
    ),
    (
        "stateplane_sync_sweep_microseconds",
        "Time of the last whole sweep; 0 before its end",
        |group| group.complete.then_some(group.sweep_us.into()),
    ),
    ("stateplane_sync_generation", "Views that began", |group| {
        group.complete.then_some(group.generation)
    }),
    (
        "stateplane_sync_last_window",
        "Number of the last window that is kept",
        |group| Some(group.last_window),
    ),
    (
        "stateplane_sync_waiting_requests",
        "Requests of clients that wait",
        |group| Some(group.waiting as u64),
    ),
];

const COUNTERS: [OfGroup; 11] = [
    (
        "stateplane_sync_updates",
        "UPDATEs of the switch",
        |group| Some(group.updates),
    ),
    (
        "stateplane_sync_values_applied",
        "Values that were newer than those in the view",
        |group| Some(group.applied),
    ),
    (
        "stateplane_sync_repairs",
        "Lost positions that were asked for",
        |group| Some(group.repairs),
    ),
    (
        "stateplane_sync_repaired",
        "Lost positions that the switch named",
        |group| Some(group.repaired),
    ),
    (
        "stateplane_sync_refused",
        "Requests that the switch refused",
        |group| Some(group.refused),
    ),
    (
        "stateplane_sync_foreign",
        "Dropped answers to another START",
        |group| Some(group.foreign),
    ),
    (
        "stateplane_sync_beyond",
        "Dropped messages with a location that the group does not have",
        |group| Some(group.beyond),
    ),
    (
        "stateplane_sync_other_incarnation",
        "Messages of another start of the switch",
        |group| Some(group.other_incarnation),
    ),
    (
        "stateplane_sync_reads",
        "Reads of clients that were answered",
        |group| Some(group.reads),
    ),
    (
        "stateplane_sync_unmet_reads",
        "Reads of clients whose limits were not met in time",
        |group| Some(group.unmet),
    ),
    (
        "stateplane_sync_windows",
        "Windows that were kept",
        |group| Some(group.windows),
    ),
];

/// The metrics of an engine as OpenMetrics text. Series are those of groups, and of the locations
/// that the file chooses.
pub fn sync_metrics(report: &SyncReport) -> String {
    let mut families = Families::default();
    families.gauge(
        "stateplane_sync_start_time_seconds",
        "When the engine started, since the epoch of Unix",
        vec![(Vec::new(), report.started_us / 1_000_000)],
    );
    families.gauge(
        "stateplane_sync_term",
        "The engine's term",
        vec![(Vec::new(), report.term)],
    );
    families.gauge(
        "stateplane_sync_leads",
        "1 while the engine follows the switches, 0 while it stands by",
        vec![(Vec::new(), report.leads.into())],
    );
    families.counter(
        "stateplane_sync_led",
        "How often the engine began to lead",
        vec![(Vec::new(), report.led)],
    );
    let datagrams = [
        ("received", report.received),
        ("sent", report.sent),
        ("send_failed", report.send_failed),
        ("unknown_source", report.unknown_source),
        ("malformed", report.malformed),
        ("unknown_group", report.unknown_group),
    ];
    families.counter(
        "stateplane_sync_datagrams",
        "Datagrams, by what became of them",
        events_of(&datagrams),
    );
    if let Some(seals) = &report.seals {
        sealed(&mut families, seals);
    }
    let samples = |of: fn(&GroupReport) -> Option<u64>| -> Vec<(Labels, u64)> {
        let groups = report.groups.iter();
        groups
            .filter_map(|group| Some((vec![("group", group.name.clone())], of(group)?)))
            .collect()
    };
    for (name, help, of) in GAUGES {
        families.gauge(name, help, samples(of));
    }
    for (name, help, of) in COUNTERS {
        families.counter(name, help, samples(of));
    }
    families.gauge(
        "stateplane_sync_value",
        "Value of a location in the view, as the file chooses locations",
        of_locations(report, |group| group.values.clone()),
    );
    let totals = |of: fn(&(u32, u64, u32)) -> (u32, u64)| {
        of_locations(report, move |group| group.totals.iter().map(of).collect())
    };
    families.counter(
        "stateplane_sync_counted",
        "Total of a location of a group of counters, as the file chooses locations",
        totals(|(at, total, _)| (*at, *total)),
    );
    families.gauge(
        "stateplane_sync_discontinuity",
        "Number that changes when the total of such a location is broken off, 0 before the first time",
        totals(|(at, _, breaks)| (*at, (*breaks).into())),
    );
    flows::add(&mut families, &report.flows);
    if let Some(redis) = &report.redis {
        families.gauge(
            "stateplane_sync_redis_connected",
            "1 while the Redis or Valkey server answers",
            vec![(Vec::new(), redis.connected.into())],
        );
        let copies = [
            ("view", redis.views),
            ("view_fenced", redis.fenced),
            ("window", redis.windows),
            ("window_repeated", redis.repeated),
            ("window_lost", redis.lost),
            ("connection_failed", redis.failed),
        ];
        families.counter(
            "stateplane_sync_redis_copies",
            "Copies for the Redis or Valkey server, by what became of them",
            events_of(&copies),
        );
    }
    families.text()
}

/// Samples of locations of all groups.
fn of_locations(
    report: &SyncReport,
    of: impl Fn(&GroupReport) -> Vec<(u32, u64)>,
) -> Vec<(Labels, u64)> {
    let samples = report.groups.iter().flat_map(|group| {
        let values = of(group).into_iter();
        values.map(|(location, value)| {
            let labels = vec![
                ("group", group.name.clone()),
                ("location", location.to_string()),
            ];
            (labels, value)
        })
    });
    samples.collect()
}

/// Samples of a counter whose label is the event.
fn events_of(counts: &[(&str, u64)]) -> Vec<(Labels, u64)> {
    let sample = |(event, count): &(&str, u64)| (vec![("event", (*event).to_owned())], *count);
    counts.iter().map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::RedisReport;

    #[test]
    fn each_group_has_its_bound_age_and_chosen_values() {
        let group = |name: &str, complete: bool| GroupReport {
            name: name.to_owned(),
            complete,
            bound: complete.then_some(7),
            age_us: complete.then_some(900),
            values: vec![(3, 12)],
            totals: vec![(3, 70, 1)],
            refused: 2,
            ..GroupReport::default()
        };
        let report = SyncReport {
            received: 5,
            started_us: 3_000_000,
            leads: true,
            led: 2,
            groups: vec![group("a", true), group("b", false)],
            redis: Some(RedisReport {
                connected: true,
                lost: 4,
                ..RedisReport::default()
            }),
            ..SyncReport::default()
        };
        let text = sync_metrics(&report);
        for line in [
            "stateplane_sync_start_time_seconds{} 3",
            "stateplane_sync_leads{} 1",
            "stateplane_sync_led_total{} 2",
            "stateplane_sync_datagrams_total{event=\"received\"} 5",
            "stateplane_sync_bound{group=\"a\"} 7",
            "stateplane_sync_age_microseconds{group=\"a\"} 900",
            "stateplane_sync_complete{group=\"b\"} 0",
            "stateplane_sync_refused_total{group=\"b\"} 2",
            "stateplane_sync_value{group=\"a\",location=\"3\"} 12",
            "stateplane_sync_counted_total{group=\"a\",location=\"3\"} 70",
            "stateplane_sync_discontinuity{group=\"a\",location=\"3\"} 1",
            "stateplane_sync_redis_connected{} 1",
            "stateplane_sync_redis_copies_total{event=\"window_lost\"} 4",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(
            !text.contains("stateplane_sync_bound{group=\"b\"}"),
            "{text}"
        );
    }
}

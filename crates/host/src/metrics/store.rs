//! Metrics of a store replica.

use super::Families;
use crate::store::StoreReport;

/// A replica's metrics as OpenMetrics text. Events are named as in the replica's counters
/// ([`Counters`](stateplane_store::Counters)) and [`HostCounters`](crate::store::HostCounters).
pub fn store_metrics(report: &StoreReport) -> String {
    let mut families = Families::default();
    let mut samples = Vec::new();
    // The report is a struct of structs of counts.
    if let Ok(serde_json::Value::Object(parts)) = serde_json::to_value(report) {
        for (_, part) in parts {
            let counts = part.as_object().into_iter().flatten();
            samples.extend(counts.filter_map(|(event, count)| {
                Some((vec![("event", event.clone())], count.as_u64()?))
            }));
        }
    }
    families.counter("stateplane_store_events", "What the replica did", samples);
    families.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_of_the_report_is_there() {
        let mut report = StoreReport::default();
        report.replica.granted = 3;
        report.host.send_failed = 2;
        let text = store_metrics(&report);
        for line in [
            "# TYPE stateplane_store_events counter",
            "stateplane_store_events_total{event=\"granted\"} 3",
            "stateplane_store_events_total{event=\"send_failed\"} 2",
            "stateplane_store_events_total{event=\"written\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}

//! Reports as OpenMetrics text, which Prometheus reads.

mod controller;
mod store;
mod switch;
mod sync;

pub use controller::controller_metrics;
pub use store::store_metrics;
pub use switch::{SwitchInfo, switch_metrics};
pub use sync::sync_metrics;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

type Labels = Vec<(&'static str, String)>;

/// All counts in `report`, a struct of counts or of structs of counts, by their name;
/// those of one name added up.
fn events(report: &impl Serialize) -> Vec<(Labels, u64)> {
    fn add(value: &Value, name: &str, events: &mut BTreeMap<String, u64>) {
        match value {
            Value::Object(parts) => parts
                .iter()
                .for_each(|(name, part)| add(part, name, events)),
            count => *events.entry(name.to_owned()).or_default() += count.as_u64().unwrap_or(0),
        }
    }
    let mut events = BTreeMap::new();
    add(
        &serde_json::to_value(report).unwrap_or_default(),
        "",
        &mut events,
    );
    let events = events.into_iter();
    events
        .map(|(event, count)| (vec![("event", event)], count))
        .collect()
}

/// Counts of sealed messages.
fn sealed(families: &mut Families, seals: &impl Serialize) {
    families.counter(
        "stateplane_sealed_messages",
        "Number of messages that must be sealed, by event",
        events(seals),
    );
}

/// One metric with its samples.
#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    kind: MetricType,
    samples: Vec<(Labels, u64)>,
}

/// All metrics of one scrape.
#[derive(Debug, Default)]
struct Families(Vec<Family>);

impl Families {
    /// Adds a counter; `_total` is appended to its name.
    fn counter(&mut self, name: &'static str, help: &'static str, samples: Vec<(Labels, u64)>) {
        self.add(name, help, MetricType::Counter, samples);
    }

    /// Adds a gauge.
    fn gauge(&mut self, name: &'static str, help: &'static str, samples: Vec<(Labels, u64)>) {
        self.add(name, help, MetricType::Gauge, samples);
    }

    fn add(
        &mut self,
        name: &'static str,
        help: &'static str,
        kind: MetricType,
        samples: Vec<(Labels, u64)>,
    ) {
        self.0.push(Family {
            name,
            help,
            kind,
            samples,
        });
    }

    /// OpenMetrics text of the metrics.
    fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // A `String` takes whatever is written to it.
        let _ = encode_registry(&mut text, &registry);
        text.push_str("# EOF\n");
        text
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        for family in &self.0 {
            let kind = family.kind;
            let mut metric = encoder.encode_descriptor(family.name, family.help, None, kind)?;
            for (labels, value) in &family.samples {
                let sample = metric.encode_family(labels)?;
                match kind {
                    MetricType::Counter => ConstCounter::new(*value).encode(sample)?,
                    _ => ConstGauge::new(*value).encode(sample)?,
                }
            }
        }
        Ok(())
    }
}

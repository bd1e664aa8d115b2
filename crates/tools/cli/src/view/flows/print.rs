//! Answers about flows, for people and as JSON.

use super::hex;
use crate::view::print::line;
use serde_json::{Value, json};
use stateplane_view::proto::v1;
use stateplane_view::unpack;

/// Prints answers.
#[derive(Clone, Copy)]
pub struct FlowsPrinter {
    /// As JSON.
    pub json: bool,
}

fn told_json(told: Option<&v1::FlowsTold>) -> Value {
    told.map_or(
        Value::Null,
        |told| json!({ "age_us": told.age_us, "chains": told.chains, "flows": told.flows }),
    )
}

fn told_text(told: Option<&v1::FlowsTold>) -> String {
    let Some(told) = told else {
        return "the view is not complete".to_owned();
    };
    let v1::FlowsTold {
        age_us,
        chains,
        flows,
    } = told;
    let chains = count(*chains, "chain");
    format!(
        "{} of {chains}; exact, age {age_us} µs",
        count(*flows, "flow")
    )
}

/// So many things, in words.
fn count(count: impl Into<u64>, thing: &str) -> String {
    match count.into() {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

fn lease(flow: &v1::Flow) -> &'static str {
    match flow.lease() {
        v1::Lease::Nobody => "nobody",
        v1::Lease::Owner => "owner",
        v1::Lease::Readers => "readers",
    }
}

fn flow_json(flow: &v1::Flow) -> Value {
    json!({
        "shard": flow.shard,
        "key": hex::text(&flow.key),
        "state": hex::text(&flow.state),
        "epoch": flow.epoch,
        "sequence": flow.sequence,
        "lease": lease(flow),
    })
}

fn flow_text(flow: &v1::Flow) -> String {
    let (key, state) = (hex::text(&flow.key), hex::text(&flow.state));
    let (shard, epoch, sequence) = (flow.shard, flow.epoch, flow.sequence);
    format!("{shard} {key} {state} {epoch} {sequence} {}", lease(flow))
}

fn snapshot_json(snapshot: &v1::Snapshot) -> Value {
    json!({
        "switch": snapshot.switch,
        "incarnation": snapshot.incarnation,
        "number": snapshot.number,
        "values": unpack(&snapshot.values).collect::<Vec<_>>(),
    })
}

fn arrays_view_json(view: &v1::ArraysView) -> Value {
    let promise = |it: &v1::ArrayPromise| json!({ "age_us": it.age_us, "bound": it.bound });
    json!({
        "switch": view.switch,
        "incarnation": view.incarnation,
        "promises": view.promises.iter().map(promise).collect::<Vec<_>>(),
        "values": unpack(&view.values).collect::<Vec<_>>(),
    })
}

fn promise_text(promise: &v1::ArrayPromise) -> String {
    match (promise.age_us, promise.bound) {
        (None, _) => "not complete".to_owned(),
        (Some(age), Some(bound)) => format!("bound {bound}, age {age} µs"),
        (Some(age), None) => format!("unbounded, age {age} µs"),
    }
}

/// Names of the columns of flows.
const COLUMNS: &str = "# shard key state epoch sequence lease";

impl FlowsPrinter {
    /// Names that are followed.
    pub fn list(self, said: &v1::ListFlowsResponse) {
        for followed in &said.flows {
            let told = followed.told.as_ref();
            if self.json {
                line(json!({
                    "name": followed.name,
                    "stores": followed.stores,
                    "classes": followed.classes,
                    "writes": followed.writes,
                    "changes": followed.changes,
                    "told": told_json(told),
                }));
                continue;
            }
            let stores = followed.stores.join(", ");
            line(format!(
                "{}: {}; store {stores}",
                followed.name,
                told_text(told)
            ));
        }
    }

    /// Flows of a name.
    pub fn flows(self, name: &str, said: &v1::ReadFlowsResponse) {
        let told = said.told.as_ref();
        if self.json {
            let flows: Vec<Value> = said.flows.iter().map(flow_json).collect();
            return line(json!({ "name": name, "told": told_json(told), "flows": flows }));
        }
        line(format!("# {}", told_text(told)));
        line(COLUMNS);
        said.flows.iter().for_each(|flow| line(flow_text(flow)));
    }

    /// A change.
    pub fn written(self, said: &v1::WriteFlowResponse) {
        let (epoch, sequence, state) = (said.epoch, said.sequence, hex::text(&said.state));
        if self.json {
            return line(json!({
                "done": said.done,
                "epoch": epoch,
                "sequence": sequence,
                "state": state,
            }));
        }
        if said.done {
            line(format!("{state} under lease {epoch}, number {sequence}"));
        }
    }

    /// Arrays of which a store has snapshots.
    pub fn snapshots(self, name: &str, said: &v1::ReadSnapshotsResponse) {
        let told = said.told.as_ref();
        let arrays = said.arrays.max(1) as usize;
        if self.json {
            let snapshots: Vec<Value> = said.snapshots.iter().map(snapshot_json).collect();
            return line(json!({
                "name": name,
                "told": told_json(told),
                "arrays": said.arrays,
                "merged": unpack(&said.merged).collect::<Vec<_>>(),
                "snapshots": snapshots,
                "views": said.views.iter().map(arrays_view_json).collect::<Vec<_>>(),
            }));
        }
        line(format!("# {}", told_text(told)));
        for snapshot in &said.snapshots {
            let v1::Snapshot {
                switch,
                incarnation,
                number,
                ..
            } = snapshot;
            line(format!(
                "# switch {switch}, start {incarnation}: snapshot {number}"
            ));
        }
        if said.snapshots.is_empty() {
            line("# no snapshot is complete");
        }
        for view in &said.views {
            let promises: Vec<String> = view.promises.iter().map(promise_text).collect();
            line(format!(
                "# switch {}, start {}: in view, by array: {}",
                view.switch,
                view.incarnation,
                promises.join("; ")
            ));
        }
        let values: Vec<u64> = unpack(&said.merged).collect();
        for (element, values) in values.chunks(arrays).enumerate() {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            line(format!("{element} {}", values.join(" ")));
        }
    }

    /// A snapshot that came.
    pub fn snapshot(self, name: &str, snapshot: &v1::Snapshot) {
        let mut said = snapshot_json(snapshot);
        said["name"] = json!(name);
        line(said);
    }

    /// A notification.
    pub fn notification(self, name: &str, said: &v1::FlowsNotification) {
        let told = said.told.as_ref();
        if self.json {
            let gone =
                |flow: &v1::Flow| json!({ "shard": flow.shard, "key": hex::text(&flow.key) });
            return line(json!({
                "name": name,
                "told": told_json(told),
                "met": said.met,
                "all": said.all,
                "flows": said.flows.iter().map(flow_json).collect::<Vec<_>>(),
                "gone": said.gone.iter().map(gone).collect::<Vec<_>>(),
            }));
        }
        let met = if said.met {
            ""
        } else {
            "; not within the limits"
        };
        line(format!("# {}{met}", told_text(told)));
        said.flows.iter().for_each(|flow| line(flow_text(flow)));
        for flow in &said.gone {
            line(format!("{} {} gone", flow.shard, hex::text(&flow.key)));
        }
    }
}

//! Resets and writes of all values.

use super::programs::SOURCES;
use super::reads::{GROUP, client_runtime, settle};
use super::rounds::{medians, time};
use super::served::Served;
use stateplane_bench::Report;
use stateplane_view::proto::v1::{WriteAllValuesRequest, write_all_values_request::What};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Turns; the switch settles between two.
const TURNS: usize = 5;

/// Locations of the small group.
const FEW: u64 = 1 << 8;

/// Most time that a reset of many locations may take, in times of few ones.
const FLAT: f64 = 1.5;

fn write_all(runtime: &Runtime, served: &Served, what: What) -> Duration {
    let mut client = served.view(runtime);
    settle(served);
    let request = WriteAllValuesRequest {
        group: GROUP.to_owned(),
        what: Some(what),
        patience_us: 600_000_000,
        ..WriteAllValuesRequest::default()
    };
    time(|| {
        runtime
            .block_on(client.write_all_values(request))
            .expect("a write")
    })
}

/// Measures them.
pub fn run(report: &mut Report) {
    let runtime = client_runtime();
    let served = [FEW, SOURCES].map(Served::start);
    let [few, many] = &served;
    let values = vec![0; 8 * SOURCES as usize];
    let [few_ns, many_ns, writes_ns] = medians(
        TURNS,
        [
            ("few", &mut || write_all(&runtime, few, What::Fill(0))),
            ("many", &mut || write_all(&runtime, many, What::Fill(0))),
            ("values", &mut || {
                write_all(&runtime, many, What::Values(values.clone().into()))
            }),
        ],
    );
    let rate = |ns: f64| SOURCES as f64 * 1e9 / ns;
    report.measure("reset of 2^16", "ms", many_ns / 1e6, "of 2^8", few_ns / 1e6);
    report.measure("  times as long", "times", many_ns / few_ns, "goal", FLAT);
    report.add(
        "reset of 2^16",
        rate(many_ns),
        "WRITE_ALL_VALUES",
        rate(writes_ns),
    );
}

//! Reads of all values.

use super::programs::SOURCES;
use super::rounds::{compare, time};
use super::served::Served;
use stateplane_bench::Report;
use stateplane_rpc::client::names;
use stateplane_rpc::proto::v1::{self, entity::Entity};
use stateplane_view::proto::v1 as view;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Turns of reads, and of reads that are as of one moment, between which the switch settles.
const TURNS: usize = 31;
const CUTS: usize = 9;

/// Longest sweep in µs that is waited for.
const LONGEST_SWEEP_US: u64 = 2_000_000;

/// Greatest time for a fresh view, in ms.
const FRESH_MS: f64 = 10.0;

/// Group that is read.
pub const GROUP: &str = "bytes";

/// Runs clients of both.
pub fn client_runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
}

/// P4Runtime's id of the register.
pub fn register(served: &Served) -> u32 {
    let registers = &served.info().registers;
    let found = names::find(registers, GROUP, "register").map(names::id);
    found.expect("the program has it")
}

/// A read of all elements of the register.
fn all_elements(served: &Served) -> v1::ReadRequest {
    v1::ReadRequest {
        device_id: 1,
        entities: vec![v1::Entity {
            entity: Some(Entity::RegisterEntry(v1::RegisterEntry {
                register_id: register(served),
                ..v1::RegisterEntry::default()
            })),
        }],
        ..v1::ReadRequest::default()
    }
}

/// Limits of a read.
fn read_request(fresh: bool) -> view::ReadAllValuesRequest {
    view::ReadAllValuesRequest {
        group: GROUP.to_owned(),
        limits: Some(view::Limits {
            fresh,
            ..view::Limits::default()
        }),
        patience_us: 10_000_000,
    }
}

/// Waits, out of all times, until all locations have crossed the last cut: a whole sweep.
pub fn settle(served: &Served) {
    let told = served.remote.call(|server| server.told());
    let told = told.expect("the engine runs");
    let sweeps = told.iter().flatten().map(|told| u64::from(told.sweep_us));
    let sweep = sweeps.max().unwrap_or(0).clamp(10_000, LONGEST_SWEEP_US);
    std::thread::sleep(Duration::from_micros(sweep + sweep / 8));
}

/// Measures them.
pub fn run(report: &mut Report) {
    let runtime = client_runtime();
    let served = Served::start(SOURCES);
    let (mut p4runtime, mut cached) = (served.p4runtime(&runtime), served.view(&runtime));
    let (mut fresh, mut atomic) = (served.view(&runtime), served.view(&runtime));
    let request = all_elements(&served);
    let mut over_p4runtime = || {
        time(|| {
            runtime.block_on(async {
                let parts = p4runtime.read(request.clone()).await.expect("a read");
                let mut parts = parts.into_inner();
                let mut count = 0;
                while let Some(part) = parts.message().await.expect("a part") {
                    count += part.entities.len() as u64;
                }
                assert_eq!(count, SOURCES, "all elements");
            });
        })
    };
    let mut of_view = || time(|| read(&runtime, &mut cached, false));
    let mut of_fresh = || time(|| read(&runtime, &mut fresh, true));
    let mut within = || {
        time(|| {
            let reading = served.remote.call(|server| server.present(GROUP));
            let reading = reading.expect("the engine runs").expect("the group");
            let reading = reading.expect("the view is complete");
            stateplane_view::unpack(&reading.values).fold(0, u64::wrapping_add)
        })
    };
    let before = served
        .counts
        .packets
        .load(std::sync::atomic::Ordering::Relaxed);
    let times = compare(
        report,
        TURNS,
        SOURCES,
        [
            ("view, gRPC", &mut of_view),
            ("view, fresh, gRPC", &mut of_fresh),
            ("view, in process", &mut within),
            ("P4Runtime", &mut over_p4runtime),
        ],
    );
    report.limit("view, fresh, gRPC", times[1] / 1e6, "goal", FRESH_MS);
    let cut = || {
        settle(&served);
        time(|| {
            let request = view::CutRequest {
                group: GROUP.to_owned(),
                patience_us: 10_000_000,
                ..view::CutRequest::default()
            };
            let window = runtime.block_on(atomic.cut(request)).expect("a cut");
            assert_eq!(window.into_inner().values.len() as u64, 8 * SOURCES);
        })
    };
    let mut cut = cut;
    compare(
        report,
        CUTS,
        SOURCES,
        [
            ("view, one moment, gRPC", &mut cut),
            ("P4Runtime", &mut over_p4runtime),
        ],
    );
    let after = served
        .counts
        .packets
        .load(std::sync::atomic::Ordering::Relaxed);
    assert!(after > before, "packets come meanwhile");
}

/// Reads the view.
fn read(
    runtime: &Runtime,
    client: &mut view::view_client::ViewClient<tonic::transport::Channel>,
    fresh: bool,
) -> u64 {
    let read = runtime.block_on(client.read_all_values(read_request(fresh)));
    let values = read.expect("a view").into_inner().values;
    assert_eq!(values.len() as u64, 8 * SOURCES);
    stateplane_view::unpack(&values).fold(0, u64::wrapping_add)
}

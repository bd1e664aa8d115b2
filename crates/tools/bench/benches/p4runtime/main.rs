//! Entries that a controller inserts and reads back each second over gRPC, a register array
//! that it reads, against a gRPC server that takes and gives as many bytes and does nothing;
//! and packets forwarded while a controller writes, against those while none does.

// It has sockets and threads: a server, a switch and a controller.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod echo;
mod forwarding;
mod served;

use echo::Echo;
use prost::Message;
use served::Served;
use stateplane_bench::{Report, Sample};
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use v1::p4_runtime_client::P4RuntimeClient;

/// Entries inserted in a sample.
const ENTRIES: u64 = 10_000;

/// Elements of the register array.
const ELEMENTS: u64 = 65_536;

/// Updates each second while packets are forwarded, and in how large batches.
const UPDATES: u64 = 10_000;
const BATCH: u64 = 100;

fn request(served: &Served, kind: Type, addresses: std::ops::Range<u64>) -> v1::WriteRequest {
    let entry = |address| v1::Update {
        r#type: kind.into(),
        entity: Some(v1::Entity {
            entity: Some(Entity::TableEntry(served.entry(address, 1))),
        }),
    };
    v1::WriteRequest {
        device_id: 1,
        election_id: Some(served::ELECTION_ID),
        updates: addresses.map(entry).collect(),
        ..v1::WriteRequest::default()
    }
}

/// Requests that insert all entries, `batch` in each, and what removes these entries.
fn batches(served: &Served, batch: u64, count: u64) -> (Vec<v1::WriteRequest>, v1::WriteRequest) {
    let starts = (0..count).step_by(batch as usize);
    let inserts = starts.map(|start| request(served, Type::Insert, start..start + batch));
    (inserts.collect(), request(served, Type::Delete, 0..count))
}

/// Runs `calls`, against the clock.
fn against_clock<F: Future<Output = ()>>(runtime: &Runtime, items: u64, calls: F) -> Sample {
    let start = Instant::now();
    runtime.block_on(calls);
    Sample {
        items,
        spent: start.elapsed(),
    }
}

fn insert(report: &mut Report, runtime: &Runtime, served: &Served, echo: &Echo, batch: u64) {
    let count = ENTRIES.min(batch * 200);
    let (inserts, delete) = batches(served, batch, count);
    let lengths: Vec<usize> = inserts.iter().map(Message::encoded_len).collect();
    let mut client = served.client(runtime);
    let mut plain = echo.client(runtime);
    report.compare(
        &format!("insert, {batch} in a batch"),
        || {
            let requests = inserts.clone();
            let sample = against_clock(runtime, count, async {
                for request in requests {
                    client.write(request).await.expect("entries are inserted");
                }
            });
            let deleted = runtime.block_on(client.write(delete.clone()));
            deleted.expect("entries are deleted");
            sample
        },
        "grpc-echo",
        || {
            let requests: Vec<_> = lengths.iter().map(|it| echo::taking(*it)).collect();
            against_clock(runtime, count, async {
                for request in requests {
                    let answer = plain.set_forwarding_pipeline_config(request).await;
                    answer.expect("an answer");
                }
            })
        },
    );
}

/// Entities of a read, and bytes of its messages.
async fn read(
    client: &mut P4RuntimeClient<Channel>,
    request: v1::ReadRequest,
) -> (u64, Vec<usize>) {
    let (mut count, mut lengths) = (0, Vec::new());
    let mut parts = client.read(request).await.expect("a read").into_inner();
    while let Some(part) = parts.message().await.expect("a part") {
        count += part.entities.len() as u64;
        lengths.push(part.encoded_len());
    }
    (count, lengths)
}

fn read_back(
    report: &mut Report,
    runtime: &Runtime,
    served: &Served,
    echo: &Echo,
    (name, wanted, count): (&str, Entity, u64),
) {
    let request = v1::ReadRequest {
        device_id: 1,
        entities: vec![v1::Entity {
            entity: Some(wanted),
        }],
        ..v1::ReadRequest::default()
    };
    let mut client = served.client(runtime);
    let mut plain = echo.client(runtime);
    let (read_first, lengths) = runtime.block_on(read(&mut client, request.clone()));
    assert_eq!(read_first, count, "all of {name}");
    let giving = echo::giving(&lengths);
    report.compare(
        name,
        || {
            against_clock(runtime, count, async {
                let (entities, _) = read(&mut client, request.clone()).await;
                assert_eq!(entities, count);
            })
        },
        "grpc-echo",
        || {
            against_clock(runtime, count, async {
                read(&mut plain, giving.clone()).await;
            })
        },
    );
}

/// Writes pairs of batches, of which the second undoes the first, at a steady rate until it is
/// stopped.
async fn write_steadily(
    mut client: P4RuntimeClient<Channel>,
    requests: [v1::WriteRequest; 2],
    mut stop: tokio::sync::oneshot::Receiver<()>,
) -> u64 {
    let period = Duration::from_secs(1) * BATCH as u32 / UPDATES as u32;
    let mut clock = tokio::time::interval(period);
    let mut written = 0;
    while stop.try_recv().is_err() {
        for request in &requests {
            clock.tick().await;
            client.write(request.clone()).await.expect("a batch");
            written += BATCH;
        }
    }
    written
}

fn main() -> std::io::Result<()> {
    let mut report = Report::new("p4runtime", "entries/s");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let served = Served::start(&runtime);
    let echo = Echo::start(&runtime);
    for batch in [1, 100, ENTRIES] {
        insert(&mut report, &runtime, &served, &echo, batch);
    }
    let mut client = served.client(&runtime);
    let all = request(&served, Type::Insert, 0..ENTRIES);
    runtime.block_on(client.write(all)).expect("entries");
    let table = ("read 10,000 entries", served.all_entries(), ENTRIES);
    read_back(&mut report, &runtime, &served, &echo, table);
    let array = ("read a register of 2^16", served.all_elements(), ELEMENTS);
    read_back(&mut report, &runtime, &served, &echo, array);
    drop(served);
    let served = Served::forwarding(&runtime);
    let requests =
        [Type::Insert, Type::Delete].map(|kind| request(&served, kind, 1000..1000 + BATCH));
    let busy = served.forwarded();
    let quiet = served.forwarded();
    let client = served.client(&runtime);
    report.compare(
        "packets while 10,000 updates/s arrive",
        || {
            let (tell, stop) = tokio::sync::oneshot::channel();
            let writing = runtime.spawn(write_steadily(client.clone(), requests.clone(), stop));
            let sample = forwarding::during(&busy);
            let _ = tell.send(());
            let written = runtime.block_on(writing).expect("the writer ends");
            assert!(written > 0, "updates arrive");
            sample
        },
        "packets while none do",
        || forwarding::during(&quiet),
    );
    report.finish()
}

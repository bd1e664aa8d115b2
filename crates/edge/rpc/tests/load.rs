//! The server under load over real connections: damaged messages and controllers that fight
//! for primacy, while its memory is watched: in a process of their own.

#[path = "p4runtime/support/mod.rs"]
mod support;

use prost::Message;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use stateplane_rpc::proto::v1::{self, entity::Entity, update::Type};
use support::server::{Running, l2};
use support::update;
use tonic::Code;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_messages_are_answered_and_leave_no_memory_behind() {
    let running = Running::start();
    let _primary = running.primary(1).await;
    let entry = update(Type::Insert, Entity::TableEntry(l2(&running.info, 1, 1)));
    let good = running.request(1, vec![entry]).encode_to_vec();
    let mut random = SmallRng::seed_from_u64(9);
    let mut raw = running.raw().await;
    let mut round = async |count: u32| {
        for _ in 0..count {
            let bytes = support::damage(&mut random, &good);
            // Some are good; the others have a code, and never end the connection.
            if let Err(status) = raw.call("/p4.v1.P4Runtime/Write", bytes).await {
                assert_ne!(status.code(), Code::Unavailable, "{status}");
                assert_ne!(status.code(), Code::Cancelled, "{status}");
            }
        }
    };
    round(1000).await;
    let before = resident();
    round(4000).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
}

/// Bytes of memory of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

const ENTRIES: u64 = 50;

/// Two controllers, each on a connection of its own, become primary in turn and write their
/// mark into all entries; a third one reads all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_fights_over_connections_leave_no_entry_half_written() {
    let running = Running::start();
    let all = |kind, mark: u16, id| {
        let entries = (1..=ENTRIES).map(|address| l2(&running.info, address, mark));
        let updates = entries.map(|entry| update(kind, Entity::TableEntry(entry)));
        running.request(id, updates.collect())
    };
    let mut rivals = [running.stream().await, running.stream().await];
    let mut clients = [running.client().await, running.client().await];
    rivals[1].become_primary(1).await;
    clients[1].write(all(Type::Insert, 1, 1)).await.unwrap();
    let mut reader = running.client().await;
    let table = Entity::TableEntry(v1::TableEntry {
        table_id: support::id(&running.info, "l2"),
        ..v1::TableEntry::default()
    });
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let reading = tokio::spawn(async move {
        let mut reads = 0;
        while stopped.try_recv().is_err() {
            let marks = support::server::marks(&mut reader, table.clone()).await;
            assert_eq!(marks.len() as u64, ENTRIES);
            let mut distinct = marks;
            distinct.dedup();
            assert_eq!(distinct.len(), 1, "a batch was seen in part");
            reads += 1;
        }
        reads
    });
    let before = resident();
    let (mut won, mut lost) = (0, 0);
    for fight in 2..1002u64 {
        let (new, old) = (fight as usize % 2, (fight as usize + 1) % 2);
        let mark = |id: u64| (id % 500) as u16;
        // Both write at once: the old primary does not know yet.
        let [first, second] = &mut clients;
        let (winner, loser) = match new {
            0 => (first, second),
            _ => (second, first),
        };
        let late = loser.write(all(Type::Modify, mark(fight - 1), fight - 1));
        let claim = async {
            rivals[new].become_primary(fight).await;
            winner.write(all(Type::Modify, mark(fight), fight)).await
        };
        let (late, good) = tokio::join!(late, claim);
        good.unwrap();
        won += 1;
        match late {
            Ok(_) => {}
            Err(status) => {
                assert_eq!(status.code(), Code::PermissionDenied, "{status}");
                lost += 1;
            }
        }
        let denied = clients[old]
            .write(all(Type::Modify, mark(fight - 1), fight - 1))
            .await;
        assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    }
    assert_eq!(won, 1000);
    let _ = stop.send(());
    let reads = reading.await.unwrap();
    assert!(reads > 100, "{reads} reads, {lost} late writes refused");
    let grown = resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
}

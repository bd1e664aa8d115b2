//! The pipeline once more, from its description alone: every cycle is visited, every action that
//! is under way is looked at.

use super::{Fate, Packet, Queues, UNLOCKED};
use std::collections::VecDeque;

/// Fate of each packet.
pub(super) fn fates(packets: &[Packet], queues: Queues) -> Vec<Fate> {
    let mut fates = vec![Fate::Dropped; packets.len()];
    let mut waiting = vec![VecDeque::new(); queues.count as usize];
    let mut under_way: Vec<(Packet, u64)> = Vec::new();
    let mut first_queue = 0;
    let mut arrived = 0;
    let mut cycle = 0;
    while arrived < packets.len() || waiting.iter().any(|queue| !queue.is_empty()) {
        under_way.retain(|(packet, started)| cycle < started + u64::from(packet.depth));
        while arrived < packets.len() && packets[arrived].arrival == cycle {
            let queue = &mut waiting[packets[arrived].queue as usize];
            if queues
                .capacity
                .is_none_or(|most| queue.len() < most as usize)
            {
                queue.push_back(arrived);
            }
            arrived += 1;
        }
        for turn in 0..queues.count {
            let queue = (first_queue + turn) % queues.count;
            let Some(&number) = waiting[queue as usize].front() else {
                continue;
            };
            let packet = packets[number];
            let held = |(other, _): &(Packet, u64)| other.lock == packet.lock;
            if packet.lock != UNLOCKED && under_way.iter().any(held) {
                continue;
            }
            waiting[queue as usize].pop_front();
            let hazard = under_way
                .iter()
                .any(|(other, _)| other.state == packet.state);
            fates[number] = Fate::Started { at: cycle, hazard };
            under_way.push((packet, cycle));
            first_queue = (queue + 1) % queues.count;
            break;
        }
        cycle += 1;
    }
    fates
}

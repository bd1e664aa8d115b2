//! The pipeline of the action, its queues and its locks, cycle by cycle.

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::{HazardError, Histogram};
use std::collections::VecDeque;

/// Lock of a packet that needs none.
pub const UNLOCKED: u32 = u32::MAX;

/// A packet, as it comes to the queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Cycle in which the packet is wholly read, and its action may start.
    pub arrival: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Cycles of its action, at least 1.
    pub depth: u32,
    /// Number of the state that its action changes. Numbers are dense, from 0.
    pub state: u32,
    /// Number of the lock that its action holds, dense from 0, or [`UNLOCKED`].
    pub lock: u32,
    /// Number of its queue, below [`Queues::count`].
    pub queue: u32,
}

/// Queues in which packets wait for the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Number of queues, at least 1. They are served in turn.
    pub count: u32,
    /// Packets that wait in one queue at most, at least 1; `None`: no bound.
    pub capacity: Option<u32>,
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its action started.
    Started {
        /// Cycle of the action's first instruction.
        at: u64,
        /// True if the action of another packet on the same state was under way.
        hazard: bool,
    },
    /// Its queue was full.
    Dropped,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Packets that arrived.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that found their queue full.
    pub dropped: u64,
    /// Packets whose action started while another on the same state was under way.
    pub hazards: u64,
    /// Cycle in which the last packet arrived.
    pub offered_cycles: u64,
    /// Cycle in which the last action started, which is the time of the run.
    pub cycles: u64,
    /// Bytes of packets whose action had started when the last packet arrived.
    pub bytes_in_time: u64,
    /// Most packets that waited in all queues at a time.
    pub most_waiting: u64,
    /// Most packets that waited in one queue.
    pub most_in_queue: u64,
    /// Cycles that packets waited, summed up.
    pub waited: u64,
    /// Cycles from a packet's arrival to the end of its action.
    pub latency: Histogram,
}

impl Outcome {
    /// Hazards as a share of cycles, 0 to 1: the paper's "percentage of time" (§2, Fig. 1b).
    pub fn hazards_per_cycle(&self) -> f64 {
        share(self.hazards, self.cycles)
    }

    /// Hazards as a share of the packets whose action started, 0 to 1.
    pub fn hazards_per_packet(&self) -> f64 {
        share(self.hazards, self.packets - self.dropped)
    }

    /// Share of the offered bytes whose action had started when the last packet arrived, 0 to 1
    /// (the paper's Fig. 1c).
    pub fn throughput(&self) -> f64 {
        share(self.bytes_in_time, self.bytes)
    }

    /// Share of packets that were dropped, 0 to 1.
    pub fn drops(&self) -> f64 {
        share(self.dropped, self.packets)
    }

    /// Packets that waited in all queues, on average over the run's cycles.
    pub fn mean_waiting(&self) -> f64 {
        share(self.waited, self.cycles)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Runs packets, sorted by arrival, through the pipeline.
///
/// In each cycle the packets that arrive join their queues, or are dropped where these are full.
/// Then the queues' first packets are looked at, beginning with the queue behind the one served
/// last, and the first whose lock is free starts its action. A lock is held for the cycles of the
/// action; the next holder may start in the cycle after them.
///
/// # Errors
///
/// [`HazardError::Setting`] if there is no queue or no room in one, or if a packet has depth 0 or a
/// queue that does not exist; [`HazardError::Order`] if packets are not sorted by arrival.
pub fn simulate(
    packets: impl Iterator<Item = Packet>,
    queues: Queues,
) -> Result<Outcome, HazardError> {
    simulate_with(packets, queues, |_, _| {})
}

/// [`simulate`], which tells `fate` what became of each packet, by its number from 0.
///
/// # Errors
///
/// Those of [`simulate`].
pub fn simulate_with(
    packets: impl Iterator<Item = Packet>,
    queues: Queues,
    fate: impl FnMut(u64, Fate),
) -> Result<Outcome, HazardError> {
    if queues.count == 0 || queues.capacity == Some(0) {
        let text = "at least one queue, with room for at least one packet, is needed";
        return Err(HazardError::Setting(text.into()));
    }
    let mut pipeline = Pipeline {
        queues: (0..queues.count).map(|_| VecDeque::new()).collect(),
        capacity: queues.capacity.map_or(usize::MAX, |most| most as usize),
        turn: 0,
        waiting: 0,
        more: true,
        free_at: Vec::new(),
        written_at: Vec::new(),
        outcome: Outcome::default(),
        fate,
    };
    pipeline.run(packets)?;
    Ok(pipeline.outcome)
}

/// A packet in its queue.
struct Waiting {
    number: u64,
    packet: Packet,
}

struct Pipeline<F> {
    queues: Vec<VecDeque<Waiting>>,
    capacity: usize,
    /// Queue that is looked at first.
    turn: usize,
    /// Packets in all queues.
    waiting: u64,
    /// False once the last packet has arrived.
    more: bool,
    /// First cycle in which a lock is free.
    free_at: Vec<u64>,
    /// First cycle in which no action on a state is under way.
    written_at: Vec<u64>,
    outcome: Outcome,
    fate: F,
}

impl<F: FnMut(u64, Fate)> Pipeline<F> {
    /// Visits only cycles in which a packet arrives, or in which one may start.
    fn run(&mut self, mut packets: impl Iterator<Item = Packet>) -> Result<(), HazardError> {
        let mut cycle = 0;
        let mut next = packets.next();
        loop {
            if self.waiting == 0 {
                let Some(packet) = &next else { break };
                cycle = cycle.max(packet.arrival);
            }
            while let Some(packet) = next.filter(|packet| packet.arrival <= cycle) {
                self.arrive(packet)?;
                next = packets.next();
            }
            self.more = next.is_some();
            match self.serve(cycle) {
                None => cycle += 1,
                Some(free) => {
                    cycle = next.map_or(free, |packet| free.min(packet.arrival));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn arrive(&mut self, packet: Packet) -> Result<(), HazardError> {
        let outcome = &mut self.outcome;
        let number = outcome.packets;
        if packet.arrival < outcome.offered_cycles {
            return Err(HazardError::Order {
                packet: number,
                arrival: packet.arrival,
                previous: outcome.offered_cycles,
            });
        }
        let Some(queue) = self.queues.get_mut(packet.queue as usize) else {
            return Err(HazardError::Setting(format!(
                "packet {number} has queue {}; give one below the number of queues",
                packet.queue
            )));
        };
        if packet.depth == 0 {
            return Err(HazardError::Setting(format!(
                "packet {number} has depth 0; an action takes at least one cycle"
            )));
        }
        outcome.packets += 1;
        outcome.bytes += u64::from(packet.bytes);
        outcome.offered_cycles = packet.arrival;
        if queue.len() >= self.capacity {
            outcome.dropped += 1;
            (self.fate)(number, Fate::Dropped);
            return Ok(());
        }
        queue.push_back(Waiting { number, packet });
        self.waiting += 1;
        outcome.most_in_queue = outcome.most_in_queue.max(queue.len() as u64);
        outcome.most_waiting = outcome.most_waiting.max(self.waiting);
        Ok(())
    }

    /// Starts the action of at most one packet. If no lock of a queue's first packet is free,
    /// returns the cycle in which the first of them will be.
    #[inline]
    fn serve(&mut self, cycle: u64) -> Option<u64> {
        let mut first_free = u64::MAX;
        let count = self.queues.len();
        let mut at = self.turn;
        for _ in 0..count {
            let following = if at + 1 == count { 0 } else { at + 1 };
            if let Some(first) = self.queues[at].front() {
                let free = self.free_at(first.packet.lock);
                if free <= cycle {
                    self.turn = following;
                    self.start(at, cycle);
                    return None;
                }
                first_free = first_free.min(free);
            }
            at = following;
        }
        Some(first_free)
    }

    fn free_at(&self, lock: u32) -> u64 {
        self.free_at.get(lock as usize).copied().unwrap_or(0)
    }

    #[inline]
    fn start(&mut self, queue: usize, cycle: u64) {
        let Some(Waiting { number, packet }) = self.queues[queue].pop_front() else {
            return;
        };
        self.waiting -= 1;
        let end = cycle + u64::from(packet.depth);
        if packet.lock != UNLOCKED {
            *element(&mut self.free_at, packet.lock) = end;
        }
        let written_at = element(&mut self.written_at, packet.state);
        let hazard = *written_at > cycle;
        *written_at = end.max(*written_at);
        let outcome = &mut self.outcome;
        outcome.hazards += u64::from(hazard);
        outcome.cycles = cycle;
        if self.more || cycle <= outcome.offered_cycles {
            outcome.bytes_in_time += u64::from(packet.bytes);
        }
        outcome.waited += cycle - packet.arrival;
        outcome.latency.add(end - packet.arrival);
        (self.fate)(number, Fate::Started { at: cycle, hazard });
    }
}

#[inline]
fn element(cycles: &mut Vec<u64>, number: u32) -> &mut u64 {
    let place = number as usize;
    if place >= cycles.len() {
        cycles.resize(place + 1, 0);
    }
    &mut cycles[place]
}

//! Writes to one replica by the number of its flows, each of which is chosen as often as
//! any other, or as Zipf's law says; and the memory that a flow takes.

use crate::{CLASS_COUNTER, COUNTER_STORE, NOW, SWITCH, packet, request};
use stateplane_bench::chain::Chain;
use stateplane_bench::{Numbers, Report, Sample, resident, timed};
use stateplane_wire::replication::{Key, MessageType, Packet, Repr};
use std::hint::black_box;

const SIZES: [(usize, &str); 5] = [
    (1_000, "1k"),
    (10_000, "10k"),
    (100_000, "100k"),
    (1_000_000, "1M"),
    (10_000_000, "10M"),
];

/// Writes that are made before the clock starts, and served against it.
const WRITES: usize = 65_536;

/// Requests that are taken at once: at most as many as a server takes from its socket.
const BURST: usize = 64;

/// From one burst to the next, in µs: 64 requests at the goal of 3 million a second.
const GAP: u64 = 21;

/// Rounds of each size; their median counts.
const ROUNDS: usize = 9;

/// Exponent of Zipf's law, as YCSB has it.
const SKEW: f64 = 0.99;

/// Choice of a packet's flow.
enum Choice {
    Uniform,
    /// Sums of the weights of the flows up to each.
    Zipf(Vec<f64>),
}

impl Choice {
    fn zipf(flows: usize) -> Choice {
        let mut sum = 0.0;
        let weights = (1..=flows).map(|rank| (rank as f64).powf(-SKEW));
        Choice::Zipf(
            weights
                .map(|weight| {
                    sum += weight;
                    sum
                })
                .collect(),
        )
    }

    fn flow(&self, numbers: &mut Numbers, flows: usize) -> usize {
        match self {
            Choice::Uniform => (numbers.next() % flows as u64) as usize,
            Choice::Zipf(sums) => {
                let at = numbers.unit() * sums[flows - 1];
                let rank = sums.partition_point(|sum| *sum <= at);
                // Neighbours in rank are no neighbours in the store; the factor is prime.
                rank * 2_654_435_761 % flows
            }
        }
    }
}

/// Flows that a switch has leases of, in a chain of one.
struct Flows {
    chain: Chain,
    /// Epoch of the lease and the next sequence number of each.
    held: Vec<(u32, u32)>,
    /// Bytes of memory of each flow.
    weight: f64,
    numbers: Numbers,
    /// Virtual time in µs.
    now: u64,
}

fn key(flow: usize) -> Key {
    let mut key = [0; 16];
    key[0] = CLASS_COUNTER;
    key[1] = 17;
    key[2..10].copy_from_slice(&(flow as u64).to_be_bytes());
    Key(key)
}

impl Flows {
    fn new(count: usize) -> Flows {
        let text = format!("{COUNTER_STORE}\n[replication.limits]\nrecords = {count}\n");
        let before = resident();
        let mut chain = Chain::new(&text, 1);
        let mut held = Vec::with_capacity(count);
        for flow in 0..count {
            let lease = Repr {
                key: key(flow),
                ..request(MessageType::LeaseRequest, CLASS_COUNTER, shard(flow))
            };
            let lease = lease.to_vec().expect("a request fits");
            chain.request(NOW, SWITCH, &lease, |(_, reply)| {
                let reply = Packet::new_checked(&reply).expect("a reply");
                assert_eq!(reply.message_type(), MessageType::LeaseReply);
                held.push((reply.lease_epoch(), reply.sequence().wrapping_add(1)));
            });
        }
        assert_eq!(held.len(), count, "every request is answered");
        let taken = resident().saturating_sub(before);
        let weight = taken as f64 / count as f64 - size_of::<(u32, u32)>() as f64;
        let numbers = Numbers(1);
        Flows {
            chain,
            held,
            weight,
            numbers,
            now: NOW,
        }
    }

    /// Serves writes, with the output packet on board, to flows that `choice` picks.
    fn write(&mut self, choice: &Choice) -> Sample {
        let packet = packet();
        let mut bytes = Vec::new();
        let mut length = 0;
        for _ in 0..WRITES {
            let flow = choice.flow(&mut self.numbers, self.held.len());
            let (lease_epoch, sequence) = &mut self.held[flow];
            let state = u64::from(*sequence).to_be_bytes();
            let write = Repr {
                key: key(flow),
                lease_epoch: *lease_epoch,
                sequence: *sequence,
                state: &state,
                packet: Some(&packet),
                ..request(MessageType::WriteRequest, CLASS_COUNTER, shard(flow))
            };
            *sequence = sequence.wrapping_add(1);
            let write = write.to_vec().expect("a request fits");
            length = write.len();
            bytes.extend(write);
        }
        let written = self.chain.written();
        let sample = timed(|| {
            for burst in bytes.chunks(BURST * length) {
                self.now += GAP;
                self.chain.advance(self.now, |reply| {
                    black_box(reply);
                });
                let requests = burst.chunks_exact(length);
                self.chain.burst(self.now, SWITCH, requests, |reply| {
                    black_box(reply);
                });
            }
            WRITES as u64
        });
        assert_eq!(
            self.chain.written() - written,
            WRITES as u64,
            "each write is kept"
        );
        sample
    }
}

/// The shard of a flow, of which [`request`] takes the lower bits.
fn shard(flow: usize) -> u16 {
    flow as u16
}

/// Nanoseconds for a write, the median of all rounds.
fn cost(flows: &mut Flows, choice: &Choice) -> f64 {
    let _warm = flows.write(choice);
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let sample = flows.write(choice);
            sample.spent.as_nanos() as f64 / sample.items as f64
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    costs[ROUNDS / 2]
}

/// Measures all sizes, the one of 10,000 flows again beside each.
pub fn report(report: &mut Report) {
    let mut few = Flows::new(10_000);
    for (size, name) in SIZES {
        let mut flows = Flows::new(size);
        let choices = [
            ("uniform", Choice::Uniform, Choice::Uniform),
            ("Zipf", Choice::zipf(size), Choice::zipf(10_000)),
        ];
        for (law, choice, few_choice) in choices {
            let against = cost(&mut few, &few_choice);
            let value = cost(&mut flows, &choice);
            let figure = format!("write, {name} flows, {law}");
            report.measure(&figure, "ns", value, "10k flows", against);
            if size == 1_000_000 {
                let goal = "3 million a second";
                report.add(&format!("{figure}, a core"), 1e9 / value, goal, 3e6);
            }
        }
        // The memory of fewer flows is lost in what the allocator keeps of earlier ones.
        if size >= 100_000 {
            let figure = format!("memory of a flow, {name} flows");
            let least = (size_of::<Key>() + size_of::<u64>()) as f64;
            report.measure(&figure, "bytes", flows.weight, "key and state", least);
        }
    }
}

//! Requests that wait for a lease to end, bounded per flow and in bytes
//! (rule 23).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::{Ipv4Addr, SocketAddrV4};

use stateplane_wire::replication::Key;

use crate::config::Limits;
use crate::record::{GaveUp, Owner};

/// A flow: shard and key.
pub(crate) type Flow = (u16, Key);

/// One request that waits.
#[derive(Debug, Clone)]
pub(crate) struct ParkedRequest {
    pub(crate) owner: Owner,
    pub(crate) request: u32,
    pub(crate) shared: bool,
    pub(crate) gave_up: GaveUp,
    pub(crate) has_packet: bool,
    pub(crate) from: SocketAddrV4,
    pub(crate) bytes: Vec<u8>,
}

/// Result of the attempt to park a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parked {
    /// The request is parked.
    Waiting,
    /// The same request waits already.
    Duplicate,
    /// There is no room.
    Full,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    due: u64,
    /// µs until holders are recalled again.
    pub(crate) recall_after: u64,
    /// When those that are in the way now were first recalled.
    pub(crate) recalled: Option<u64>,
    pub(crate) requests: VecDeque<ParkedRequest>,
}

/// Amount of parked requests, in total and of each switch.
#[derive(Debug, Clone, Default)]
struct Load {
    count: usize,
    bytes: usize,
    by_switch: BTreeMap<Ipv4Addr, usize>,
}

impl Load {
    fn add(&mut self, request: &ParkedRequest) {
        self.count += 1;
        self.bytes += request.bytes.len();
        *self.by_switch.entry(*request.from.ip()).or_default() += request.bytes.len();
    }

    fn remove(&mut self, request: &ParkedRequest) {
        self.count -= 1;
        self.bytes -= request.bytes.len();
        let from = *request.from.ip();
        if let Some(bytes) = self.by_switch.get_mut(&from) {
            *bytes -= request.bytes.len();
            if *bytes == 0 {
                self.by_switch.remove(&from);
            }
        }
    }

    fn of(&self, switch: &Ipv4Addr) -> usize {
        self.by_switch.get(switch).copied().unwrap_or(0)
    }
}

/// All requests that wait, each flow's in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Parking {
    per_flow: usize,
    most_bytes: usize,
    most_bytes_per_switch: usize,
    load: Load,
    queues: BTreeMap<Flow, Queue>,
    due: BTreeSet<(u64, Flow)>,
}

impl Parking {
    pub(crate) fn new(limits: &Limits) -> Parking {
        Parking {
            per_flow: limits.parked_per_flow,
            most_bytes: limits.parked_bytes,
            most_bytes_per_switch: limits.parked_bytes_per_switch,
            load: Load::default(),
            queues: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Requests that wait, and their bytes.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.load.count, self.load.bytes)
    }

    /// True if `more` bytes of the switch at `from` may be parked too.
    fn has_room(&self, from: &SocketAddrV4, more: usize) -> bool {
        self.load.bytes + more <= self.most_bytes
            && self.load.of(from.ip()) + more <= self.most_bytes_per_switch
    }

    /// The requests that wait for `flow`.
    pub(crate) fn requests(&self, flow: &Flow) -> impl Iterator<Item = &ParkedRequest> {
        self.queues.get(flow).into_iter().flat_map(|q| &q.requests)
    }

    /// Lets `parked` wait at `now`; a new queue is looked at again at `due`, and its holders,
    /// which are recalled now, are recalled again then, and `recall_after` µs later.
    ///
    /// A retransmission of a waiting request is a duplicate; it takes the waiting
    /// one's place only if it alone has the packet on board.
    pub(crate) fn park(
        &mut self,
        now: u64,
        flow: Flow,
        parked: ParkedRequest,
        due: u64,
        recall_after: u64,
    ) -> Parked {
        let same = |q: &ParkedRequest| {
            q.owner == parked.owner && q.request == parked.request && q.shared == parked.shared
        };
        let waiting = self.queues.get(&flow).map(|queue| &queue.requests);
        let length = waiting.map_or(0, VecDeque::len);
        let place = waiting.and_then(|requests| requests.iter().position(same));
        if let (Some(waiting), Some(place)) = (waiting, place) {
            let waiting = &waiting[place];
            let more = parked.bytes.len().saturating_sub(waiting.bytes.len());
            if parked.has_packet && !waiting.has_packet && self.has_room(&parked.from, more) {
                self.load.remove(waiting);
                self.load.add(&parked);
                if let Some(queue) = self.queues.get_mut(&flow) {
                    queue.requests[place] = parked;
                }
            }
            return Parked::Duplicate;
        }
        if length >= self.per_flow || !self.has_room(&parked.from, parked.bytes.len()) {
            return Parked::Full;
        }
        self.load.add(&parked);
        let queue = self.queues.entry(flow).or_default();
        if queue.requests.is_empty() {
            queue.due = due;
            queue.recall_after = recall_after;
            queue.recalled = Some(now);
            self.due.insert((due, flow));
        }
        queue.requests.push_back(parked);
        Parked::Waiting
    }

    /// Lets the queue of `flow`, if there is one, be looked at at once.
    pub(crate) fn hasten(&mut self, flow: &Flow, now: u64) {
        if let Some(queue) = self.queues.get_mut(flow)
            && now < queue.due
        {
            self.due.remove(&(queue.due, *flow));
            queue.due = now;
            self.due.insert((now, *flow));
        }
    }

    /// When the holders of that flow were first recalled for which this was done first.
    pub(crate) fn longest(&self) -> Option<u64> {
        self.queues
            .values()
            .filter_map(|queue| queue.recalled)
            .min()
    }

    /// When a queue is to be looked at next.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Takes out the queue of the flow that is due first, if it is due at `now`.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<(Flow, Queue)> {
        let (_, flow) = *self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.pop_first();
        let queue = self.queues.remove(&flow)?;
        for request in &queue.requests {
            self.load.remove(request);
        }
        Some((flow, queue))
    }

    /// Puts back what is left of a queue, to be looked at again at `due`.
    pub(crate) fn put_back(&mut self, flow: Flow, mut queue: Queue, due: u64) {
        if queue.requests.is_empty() {
            return;
        }
        for request in &queue.requests {
            self.load.add(request);
        }
        queue.due = due;
        self.due.insert((due, flow));
        self.queues.insert(flow, queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = (0, Key([1; 16]));

    fn parking(per_flow: usize, bytes: usize) -> Parking {
        Parking::new(&Limits {
            parked_per_flow: per_flow,
            parked_bytes: bytes,
            ..Limits::default()
        })
    }

    fn request(switch: u32, request: u32, length: usize) -> ParkedRequest {
        ParkedRequest {
            owner: Owner {
                switch,
                incarnation: 1,
                claim: 1,
            },
            request,
            shared: false,
            gave_up: GaveUp::default(),
            has_packet: length > 72,
            from: SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1),
            bytes: vec![0; length],
        }
    }

    #[test]
    fn flows_and_bytes_are_bounded() {
        let mut parking = parking(2, 300);
        assert_eq!(
            parking.park(0, FLOW, request(1, 1, 72), 9, 1),
            Parked::Waiting
        );
        assert_eq!(
            parking.park(0, FLOW, request(1, 2, 72), 9, 1),
            Parked::Waiting
        );
        assert_eq!(parking.park(0, FLOW, request(1, 3, 72), 9, 1), Parked::Full);
        let other = (1, FLOW.1);
        assert_eq!(
            parking.park(0, other, request(1, 1, 157), 5, 1),
            Parked::Full
        );
        assert_eq!(
            parking.park(0, other, request(1, 1, 156), 5, 1),
            Parked::Waiting
        );
        assert_eq!(parking.load(), (3, 300));
        assert_eq!(parking.next_due(), Some(5));
    }

    #[test]
    fn one_switch_leaves_room_for_others() {
        let mut parking = Parking::new(&Limits {
            parked_bytes: 1000,
            parked_bytes_per_switch: 200,
            ..Limits::default()
        });
        assert_eq!(
            parking.park(0, FLOW, request(1, 1, 100), 9, 1),
            Parked::Waiting
        );
        assert_eq!(
            parking.park(0, FLOW, request(1, 2, 72), 9, 1),
            Parked::Waiting
        );
        assert_eq!(parking.park(0, FLOW, request(1, 3, 72), 9, 1), Parked::Full);
        // With its packet on board the second one would be too much.
        assert_eq!(
            parking.park(0, FLOW, request(1, 2, 101), 9, 1),
            Parked::Duplicate
        );
        assert_eq!(parking.load(), (2, 172));
        let mut other = request(2, 1, 100);
        other.from.set_ip(Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(parking.park(0, FLOW, other, 9, 1), Parked::Waiting);
        parking.take_due(9).unwrap();
        assert!(parking.load.by_switch.is_empty());
        assert_eq!(
            parking.park(0, FLOW, request(1, 3, 200), 9, 1),
            Parked::Waiting
        );
    }

    #[test]
    fn a_retransmission_keeps_the_packet_on_board() {
        let mut parking = parking(4, 1000);
        parking.park(0, FLOW, request(1, 1, 100), 9, 1);
        assert_eq!(
            parking.park(0, FLOW, request(1, 1, 72), 9, 1),
            Parked::Duplicate
        );
        parking.park(0, FLOW, request(1, 2, 72), 9, 1);
        assert_eq!(
            parking.park(0, FLOW, request(1, 2, 90), 9, 1),
            Parked::Duplicate
        );
        let packets = parking.requests(&FLOW).map(|q| q.bytes.len());
        assert_eq!(packets.collect::<Vec<_>>(), [100, 90]);
        assert_eq!(parking.load(), (2, 190));
    }

    #[test]
    fn what_is_taken_out_and_put_back_is_counted_once() {
        let mut parking = parking(4, 1000);
        parking.park(0, FLOW, request(1, 1, 100), 9, 1);
        parking.park(0, FLOW, request(2, 1, 80), 9, 1);
        assert!(parking.take_due(8).is_none());
        let (flow, mut queue) = parking.take_due(9).unwrap();
        assert_eq!(parking.load(), (0, 0));
        queue.requests.pop_front();
        parking.put_back(flow, queue, 20);
        assert_eq!(parking.load(), (1, 80));
        assert_eq!(parking.next_due(), Some(20));
        let (flow, mut queue) = parking.take_due(20).unwrap();
        queue.requests.clear();
        parking.put_back(flow, queue, 30);
        assert_eq!(parking.next_due(), None);
    }

    #[test]
    fn a_queue_that_is_hastened_is_due_at_once() {
        let mut parking = parking(4, 1000);
        parking.park(0, FLOW, request(1, 1, 100), 9, 1);
        parking.hasten(&(1, FLOW.1), 4);
        assert_eq!(parking.next_due(), Some(9));
        parking.hasten(&FLOW, 4);
        assert_eq!(parking.next_due(), Some(4));
        parking.hasten(&FLOW, 6);
        assert!(parking.take_due(4).is_some());
        assert_eq!(parking.next_due(), None);
    }
}

//! Links, seats and faults of a net, each alone.

use stateplane_world::{
    Clock, LinkQuality, Loss, Net, Node, NodePort, NodeSpec, Random, Step, Topology,
};

const A: NodePort = NodePort::new(0, 1);
const B: NodePort = NodePort::new(1, 1);

type Bytes = Vec<u8>;

/// Two nodes and a link of 10 µs.
fn net(spec: NodeSpec) -> Net<Bytes, &'static str> {
    let mut topology = Topology::default();
    topology.add_node(NodeSpec::default());
    topology.add_node(spec);
    topology.join(A, B, LinkQuality::whole(10));
    Net::new(&topology, Random::new(1))
}

/// Everything that happens before `end`, with its time.
fn steps(net: &mut Net<Bytes, &'static str>, end: u64) -> Vec<(u64, Step<Bytes, &'static str>)> {
    core::iter::from_fn(|| {
        let step = net.next_before(end)?;
        Some((net.now(), step))
    })
    .collect()
}

fn taken(at: u64, byte: u8) -> (u64, Step<Bytes, &'static str>) {
    let message = vec![byte];
    let (from, to) = (A, B);
    (at, Step::Message { from, to, message })
}

fn lost(at: u64, cause: Loss) -> (u64, Step<Bytes, &'static str>) {
    let (from, to) = (A, B);
    (at, Step::Lost { from, to, cause })
}

const RING: NodeSpec = NodeSpec {
    ring: Some(2),
    service: 100,
};

#[test]
fn a_ring_holds_what_waits_for_service_and_loses_the_rest() {
    let mut net = net(RING);
    for byte in 0..4 {
        net.send(A, B, &vec![byte]);
    }
    // The first waits in the ring too until all that arrive with it have arrived.
    let happened = steps(&mut net, 1_000);
    let expected = [
        lost(10, Loss::Full),
        lost(10, Loss::Full),
        taken(10, 0),
        taken(110, 1),
    ];
    assert_eq!(happened, expected);
    net.set_service(1, 7);
    net.send(A, B, &vec![5]);
    net.send(A, B, &vec![6]);
    let happened = steps(&mut net, 1_000);
    assert_eq!(happened.len(), 2);
    assert_eq!(happened[1].0 - happened[0].0, 7);
    assert_eq!(net.counters().refused, 2);
    assert_eq!(net.counters().taken, 4);
}

#[test]
fn what_arrives_in_a_standstill_waits_in_order() {
    for spec in [NodeSpec::default(), RING] {
        let mut net = net(spec);
        net.stall(1, 500);
        net.stall(1, 400);
        net.send(A, B, &vec![1]);
        net.send(A, B, &vec![2]);
        assert_eq!(steps(&mut net, 500), []);
        let late = if spec.ring.is_some() { 600 } else { 500 };
        assert_eq!(steps(&mut net, 1_000), [taken(500, 1), taken(late, 2)]);
    }
    let mut net = net(NodeSpec::default());
    net.stall(1, 500);
    assert_eq!(net.stands_until(1), Some(500));
    net.rouse(1);
    assert_eq!(net.stands_until(1), None);
    net.send(A, B, &vec![1]);
    assert_eq!(steps(&mut net, 1_000), [taken(10, 1)]);
}

#[test]
fn a_death_empties_the_ring_and_a_return_begins_anew() {
    let mut net = net(RING);
    net.send(A, B, &vec![1]);
    net.send(A, B, &vec![2]);
    assert_eq!(steps(&mut net, 50), [taken(10, 1)]);
    net.die(1);
    assert!(!net.is_alive(1));
    net.send(A, B, &vec![3]);
    assert_eq!(steps(&mut net, 80), [lost(20, Loss::Dead)]);
    let clock = Clock {
        began: 20,
        offset: 7,
        drift_ppm: 0,
    };
    net.restart(1, clock);
    assert_eq!((net.is_alive(1), net.local(1)), (true, 7));
    // The service of the earlier life, which was to begin at 110, serves nothing.
    net.send(A, B, &vec![4]);
    net.send(A, B, &vec![5]);
    assert_eq!(steps(&mut net, 1_000), [taken(30, 4), taken(130, 5)]);
}

#[test]
fn a_cut_is_of_one_direction_and_of_what_is_sent_in_it() {
    let mut net = net(NodeSpec::default());
    net.send(A, B, &vec![1]);
    net.cut(A, B, 100);
    net.cut(A, B, 50);
    assert!(net.has_cuts() && net.is_cut(A, B) && !net.is_cut(B, A));
    assert_eq!(net.send(A, B, &vec![2]), 0);
    assert_eq!(net.send(B, A, &vec![3]), 1);
    net.plan(100, "over");
    assert_eq!(steps(&mut net, 200).len(), 3);
    assert!(!net.has_cuts());
    assert_eq!(net.send(A, B, &vec![4]), 1);
    assert_eq!((net.counters().sent, net.counters().lost), (4, 1));
}

#[test]
fn a_port_that_is_down_loses_what_leaves_and_what_arrives() {
    let mut net = net(NodeSpec::default());
    net.send(A, B, &vec![1]);
    net.take_down(B, 15);
    assert_eq!(net.send(B, A, &vec![2]), 0);
    net.plan(9, "later");
    assert_eq!(steps(&mut net, 10), [(9, Step::Event("later"))]);
    net.send(A, B, &vec![3]);
    assert_eq!(steps(&mut net, 100), [lost(10, Loss::Down), taken(19, 3)]);
    net.take_down(B, 1_000);
    net.heal();
    assert_eq!(net.send(B, A, &vec![4]), 1);
}

#[test]
fn a_healed_net_loses_nothing() {
    let bad = LinkQuality {
        loss: 500,
        duplicate: 500,
        jitter: 90,
        ..LinkQuality::whole(10)
    };
    let mut topology = Topology::default();
    topology.add_node(NodeSpec::default());
    topology.add_node(NodeSpec::default());
    topology.join(A, B, bad);
    let mut net: Net<Bytes, ()> = Net::new(&topology, Random::new(3));
    let before: Vec<u32> = (0..100).map(|_| net.send(A, B, &vec![0])).collect();
    assert!(before.contains(&0) && before.contains(&2), "{before:?}");
    net.heal();
    let after: Vec<u32> = (0..100).map(|_| net.send(B, A, &vec![0])).collect();
    assert_eq!(after, [1; 100]);
}

#[test]
#[should_panic(expected = "no link from")]
fn nothing_is_sent_where_no_link_is() {
    net(NodeSpec::default()).send(A, A, &vec![0]);
}

#[test]
#[should_panic(expected = "ends at none of 1 nodes")]
fn links_end_at_nodes() {
    let mut topology = Topology::default();
    topology.add_node(NodeSpec::default());
    topology.join(A, B, LinkQuality::whole(10));
    let _: Net<Bytes, ()> = Net::new(&topology, Random::new(1));
}

#[test]
fn time_may_pass_without_a_step() {
    let mut net = net(NodeSpec::default());
    net.send(A, B, &vec![1]);
    net.rest_until(10);
    assert_eq!(net.now(), 10);
    assert_eq!(steps(&mut net, 11), [taken(10, 1)]);
    net.rest_until(70);
    net.rest_until(60);
    assert_eq!(net.now(), 70);
}

#[test]
#[should_panic(expected = "Some(10) is before 11")]
fn time_does_not_pass_over_a_step() {
    let mut net = net(NodeSpec::default());
    net.send(A, B, &vec![1]);
    net.rest_until(11);
}

/// Has timeouts at these times of its clock, earliest last.
struct Alarm(Vec<u64>);

impl Node for Alarm {
    type Message = Bytes;
    type Transmit = Bytes;

    fn handle_message(&mut self, _: u64, _: u16, _: NodePort, _: Bytes) {}

    fn handle_timeout(&mut self, now: u64) {
        self.0.retain(|due| *due > now);
    }

    fn poll_transmit(&mut self, _: u64) -> Option<Bytes> {
        None
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.0.last().copied()
    }
}

#[test]
fn a_timeout_is_due_by_the_clock_of_its_node_and_after_its_standstill() {
    let mut net = net(NodeSpec::default());
    net.set_clock(
        0,
        Clock {
            began: 0,
            offset: 1_000,
            drift_ppm: -500_000,
        },
    );
    let mut alarm = Alarm(vec![1_400, 1_300, 1_200, 1_100]);
    let mut due = Vec::new();
    net.poll(0, &mut alarm);
    net.plan(450, "stall");
    while let Some(step) = net.next_before(10_000) {
        match step {
            Step::Timeout { node } => {
                due.push(net.now());
                alarm.handle_timeout(net.local(node));
                net.poll(node, &mut alarm);
            }
            _ => net.stall(0, 700),
        }
    }
    // The clock runs at half the rate; the timeout of 1,300 waited from 600 to 700.
    assert_eq!(due, [200, 400, 700, 800]);
}

#[test]
fn a_timeout_that_stays_due_does_not_stop_time() {
    struct Stuck;
    impl Node for Stuck {
        type Message = Bytes;
        type Transmit = Bytes;
        fn handle_message(&mut self, _: u64, _: u16, _: NodePort, _: Bytes) {}
        fn handle_timeout(&mut self, _: u64) {}
        fn poll_transmit(&mut self, _: u64) -> Option<Bytes> {
            None
        }
        fn poll_timeout(&self) -> Option<u64> {
            Some(0)
        }
    }
    let mut net = net(NodeSpec::default());
    net.poll(0, &mut Stuck);
    let mut timeouts = 0;
    while net.next_before(6).is_some() {
        timeouts += 1;
        net.poll(0, &mut Stuck);
    }
    assert_eq!((timeouts, net.now()), (5, 5));
}

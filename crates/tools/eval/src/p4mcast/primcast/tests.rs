use super::*;
use crate::p4mcast::frame::HEADER;
use stateplane_random::Random;
use std::collections::VecDeque;

/// Members joined by links that keep their order, each as slow as chance has it.
struct World {
    members: Vec<Member>,
    /// Datagrams on the way from one place to another; senders have places behind all members.
    links: BTreeMap<(u8, u8), VecDeque<Arc<Vec<u8>>>>,
    /// Ids and final timestamps that each member's receiver got.
    delivered: Vec<Vec<(u32, u64)>>,
    random: Random,
}

impl World {
    fn new(shape: Shape, seed: u64) -> Self {
        let places = 0..shape.places();
        Self {
            members: places
                .clone()
                .map(|place| Member::new(shape, place))
                .collect(),
            links: BTreeMap::new(),
            delivered: places.map(|_| Vec::new()).collect(),
            random: Random::new(seed),
        }
    }

    /// A sender's message leaves.
    fn start(&mut self, shape: Shape, sender: u8, id: u32, destinations: u8) {
        let header = Header {
            kind: kind::START,
            destinations,
            id,
            ..Header::default()
        };
        for group in 0..shape.groups {
            if destinations >> group & 1 == 1 {
                let datagram = Arc::new([&header.bytes()[..], &id.to_be_bytes()].concat());
                let link = (shape.places() + sender, shape.leader(group));
                self.links.entry(link).or_default().push_back(datagram);
            }
        }
    }

    /// A datagram of some link arrives; false if none is on its way.
    fn step(&mut self) -> bool {
        let on_way = self.links.iter().filter(|(_, link)| !link.is_empty());
        let on_way: Vec<(u8, u8)> = on_way.map(|(link, _)| *link).collect();
        if on_way.is_empty() {
            return false;
        }
        let link = on_way[self.random.place(on_way.len())];
        let datagram = self.links.get_mut(&link).and_then(VecDeque::pop_front);
        let place = link.1;
        let mut leaves = Vec::new();
        let member = &mut self.members[usize::from(place)];
        member.handle(&datagram.unwrap_or_default(), &mut |to, datagram| {
            leaves.push((to, datagram));
        });
        for (to, datagram) in leaves {
            match to {
                To::Place(to) => self
                    .links
                    .entry((place, to))
                    .or_default()
                    .push_back(datagram),
                To::Receiver => {
                    let (header, payload) = Header::parse(&datagram).unwrap_or_default();
                    assert_eq!(header.kind, kind::DELIVER);
                    assert_eq!(payload, header.id.to_be_bytes(), "its own payload");
                    let delivered = &mut self.delivered[usize::from(place)];
                    delivered.push((header.id, header.timestamp));
                }
            }
        }
        true
    }
}

/// Two senders send `count` messages each, in any interleaving with the members' own.
fn run(shape: Shape, seed: u64, count: u32) -> (World, BTreeMap<u32, u8>) {
    let mut world = World::new(shape, seed);
    let mut destinations = BTreeMap::new();
    let mut waiting: Vec<u32> = (1..=count).flat_map(|at| [at << 1, at << 1 | 1]).collect();
    loop {
        let all = (1u8 << shape.groups) - 1;
        let sends = world.random.permille(300);
        if sends && !waiting.is_empty() {
            let id = waiting.remove(0);
            let map = world.random.between(1, all.into()) as u8;
            destinations.insert(id, map);
            world.start(shape, (id & 1) as u8, id, map);
        } else if !world.step() && waiting.is_empty() {
            return (world, destinations);
        }
    }
}

#[test]
fn two_clients_and_two_groups_have_one_order_everywhere() {
    let shape = Shape {
        groups: 2,
        members: 3,
    };
    for seed in 0..100 {
        let (world, destinations) = run(shape, seed, 40);
        let mut places: BTreeMap<u32, u64> = BTreeMap::new();
        for (place, delivered) in (0..).zip(&world.delivered) {
            let own = 1 << shape.group_of(place);
            let addressed = destinations.values().filter(|map| **map & own != 0);
            assert_eq!(delivered.len(), addressed.count(), "seed {seed}");
            assert!(
                delivered.windows(2).all(|pair| pair[0].1 <= pair[1].1),
                "seed {seed}"
            );
            let first = usize::from(shape.leader(shape.group_of(place)));
            assert_eq!(delivered, &world.delivered[first], "seed {seed}");
            for (id, time) in delivered {
                assert_eq!(*places.entry(*id).or_insert(*time), *time, "seed {seed}");
            }
        }
        // Both groups got the messages that both got in the same order.
        let both = |place: usize| {
            let delivered = world.delivered[place].iter().map(|(id, _)| *id);
            let both = delivered.filter(|id| destinations[id] == 3);
            both.collect::<Vec<u32>>()
        };
        assert_eq!(both(0), both(3), "seed {seed}");
        assert!(world.members.iter().all(|member| member.pending.is_empty()));
    }
}

#[test]
fn three_of_five_members_are_a_majority() {
    let shape = Shape {
        groups: 1,
        members: 5,
    };
    for seed in 0..50 {
        let (world, destinations) = run(shape, seed, 40);
        for delivered in &world.delivered[..3] {
            assert_eq!(delivered.len(), destinations.len());
            assert_eq!(delivered, &world.delivered[0], "seed {seed}");
        }
        assert!(world.delivered[3].is_empty() && world.delivered[4].is_empty());
    }
}

#[test]
fn a_member_waits_for_its_leaders_clock() {
    let shape = Shape {
        groups: 2,
        members: 3,
    };
    let mut member = Member::new(shape, 1);
    let mut hear = |kind, group, origin, timestamp| {
        let header = Header {
            kind,
            destinations: 3,
            group,
            origin,
            id: 2,
            timestamp,
            ..Header::default()
        };
        let mut delivered = 0;
        member.handle(&header.bytes(), &mut |to, datagram| {
            assert!(datagram.len() >= HEADER);
            delivered += usize::from(to == To::Receiver);
        });
        delivered
    };
    assert_eq!(hear(kind::PROP, 0, 0, 4), 0);
    assert_eq!(hear(kind::PROP, 1, 3, 9), 0);
    // Both groups have majorities, but the own leader may yet propose 5.
    assert_eq!(hear(kind::ACK, 1, 4, 9), 0);
    assert_eq!(hear(kind::BUMP, 0, 0, 8), 0);
    assert_eq!(hear(kind::BUMP, 0, 0, 9), 1);
}

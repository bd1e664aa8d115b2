//! Random faults: switches that die, return and are cut off, messages that are lost, late and
//! doubled, controllers that start anew from what was stored.

use proptest::prelude::*;
use stateplane_wire::coordination::Packet;

use super::*;

const SWITCHES: u32 = 5;

/// Steele, Lea and Flood's SplitMix64.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// State of a group at a switch.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    generation: u16,
    epoch: u32,
    /// Time at which the switch, as joiner, begins to answer.
    joins_at: Option<u64>,
    /// True if it has the state, as founder or since it joined.
    holds: bool,
}

#[derive(Debug, Default)]
struct Node {
    incarnation: u32,
    down: bool,
    /// Cut off from the controller, and alive.
    cut: bool,
    places: BTreeMap<u16, Place>,
}

struct Net {
    controller: Controller,
    starts: u32,
    now: u64,
    chance: Chance,
    nodes: BTreeMap<u32, Node>,
    /// Messages on their way, by time of arrival and order.
    transit: BTreeMap<(u64, u64), (u32, bool, Vec<u8>)>,
    sent: u64,
    faults: bool,
    log: Vec<Decision>,
    /// Group, epoch, switch and incarnation of each that said it joined.
    joined: BTreeSet<(u16, u32, u32, u32)>,
}

impl Net {
    fn new(seed: u64) -> Net {
        let nodes = (1..=SWITCHES).map(|number| {
            let incarnation = number * 1000;
            (
                number,
                Node {
                    incarnation,
                    ..Node::default()
                },
            )
        });
        Net {
            controller: Controller::new(settings(SWITCHES), 1, [1; 32], [], 0).unwrap(),
            starts: 1,
            now: 0,
            chance: Chance(seed),
            nodes: nodes.collect(),
            transit: BTreeMap::new(),
            sent: 0,
            faults: true,
            log: Vec::new(),
            joined: BTreeSet::new(),
        }
    }

    /// Puts a message on its way, to a switch or from it.
    fn send(&mut self, switch: u32, to_switch: bool, bytes: &[u8]) {
        let copies = match self.faults {
            true if self.chance.percent(15) => 0,
            true if self.chance.percent(5) => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let late = self.faults && self.chance.percent(5);
            let delay = self.chance.below(if late { 500_000 } else { 2_000 });
            self.sent += 1;
            let at = (self.now + 50 + delay, self.sent);
            self.transit.insert(at, (switch, to_switch, bytes.to_vec()));
        }
    }

    fn take_out(&mut self) {
        while let Some(decision) = self.controller.poll_record() {
            self.check(&decision);
            self.log.push(decision.clone());
            if self.faults && self.chance.percent(1) {
                // Stored, and the controller never learns it.
                self.restart();
                return;
            }
            self.controller.handle_stored(self.now, &decision);
        }
        while let Some(transmit) = self.controller.poll_transmit() {
            let switch = u32::from(transmit.to.ip().octets()[3]);
            self.send(switch, true, &transmit.bytes);
        }
    }

    fn restart(&mut self) {
        self.starts += 1;
        let (log, now) = (self.log.clone(), self.now);
        let controller = Controller::new(settings(SWITCHES), self.starts, [1; 32], log, now);
        self.controller = controller.unwrap();
    }

    /// Checks a decision against the one before it.
    fn check(&self, decision: &Decision) {
        let Decision::Group(config) = decision else {
            panic!("{decision:?}");
        };
        let mut switches: Vec<u32> = config.all().map(|it| it.switch).collect();
        assert!(!config.members.is_empty() && switches.len() <= 4);
        switches.sort_unstable();
        switches.dedup();
        assert_eq!(switches.len(), config.all().count());
        let same = self.log.iter().rev().find_map(|before| match before {
            Decision::Group(before) if before.group == config.group => Some(before),
            _ => None,
        });
        let Some(before) = same else {
            assert_eq!((config.generation, config.epoch), (1, 1));
            return;
        };
        assert_eq!(config.epoch, before.epoch + 1);
        if config.founds {
            assert_eq!(config.generation, before.generation + 1);
            return;
        }
        assert_eq!(config.generation, before.generation);
        assert_eq!(config.hash_key, before.hash_key);
        for member in &config.members {
            if before.members.contains(member) {
                continue;
            }
            assert_eq!(before.joining, Some(*member), "{before:?} to {config:?}");
            let joined = (
                before.group,
                before.epoch,
                member.switch,
                member.incarnation,
            );
            assert!(self.joined.contains(&joined), "{before:?} to {config:?}");
        }
    }

    /// A switch gets a message of the controller.
    fn arrives(&mut self, switch: u32, bytes: &[u8]) {
        let packet = Packet::new_checked(bytes).unwrap();
        let message = Repr::parse(&packet);
        let mut answer = message;
        let join_time = self.chance.below(400_000);
        let node = self.nodes.get_mut(&switch).unwrap();
        if node.down || node.cut {
            return;
        }
        match message.message_type {
            MessageType::Ping => {
                answer.message_type = MessageType::Pong;
                answer.handle = node.incarnation;
            }
            MessageType::Redirect => answer.message_type = MessageType::Redirected,
            _ => {
                let place = node.places.entry(message.group).or_default();
                if message.handle == node.incarnation && message.epoch > place.epoch {
                    let at = message.chain().position(|it| it == address(switch));
                    let is_member = at.is_some_and(|at| at < message.hops.into());
                    let founds = message.flags & flag::FOUNDS != 0;
                    if is_member && !founds {
                        let (from, to) = (*place, message.epoch);
                        assert!(from.holds, "{switch} has not joined: {from:?} to {to}");
                    }
                    place.generation = message.generation;
                    place.epoch = message.epoch;
                    let joins = at.is_some() && !is_member;
                    place.joins_at = joins.then_some(self.now + join_time);
                    place.holds = is_member;
                }
                answer.message_type = MessageType::Configured;
                (answer.generation, answer.epoch) = (place.generation, place.epoch);
                let joined = place.joins_at.is_some_and(|at| at <= self.now);
                answer.flags = (u8::from(joined) * flag::JOINED) | flag::LEASED;
                if joined {
                    place.holds = true;
                    let start = (switch, node.incarnation);
                    let joined = (message.group, place.epoch, start.0, start.1);
                    self.joined.insert(joined);
                }
            }
        }
        let bytes = answer.to_vec().unwrap();
        self.send(switch, false, &bytes);
    }

    fn fault(&mut self) {
        let switch = 1 + self.chance.below(SWITCHES.into()) as u32;
        let what = self.chance.below(10);
        let node = self.nodes.get_mut(&switch).unwrap();
        match what {
            0..=2 => node.down = true,
            3 | 4 => node.cut = !node.cut,
            5..=8 if node.down => {
                node.down = false;
                node.incarnation += 1;
                node.places.clear();
            }
            5 => {
                // It starts anew at once.
                node.incarnation += 1;
                node.places.clear();
            }
            9 => self.restart(),
            _ => {}
        }
    }

    fn run(&mut self, time: u64) {
        let end = self.now + time;
        while self.now < end {
            let arrival = self.transit.first_key_value().map(|((at, _), _)| *at);
            let due = self.controller.poll_timeout().max(self.now + 1);
            let next = arrival.map_or(due, |arrival| arrival.min(due));
            self.now = next.min(end).max(self.now);
            if let Some(entry) = self.transit.first_entry()
                && entry.key().0 <= self.now
            {
                let (switch, to_switch, bytes) = entry.remove();
                let cut = self.nodes[&switch].cut;
                if to_switch {
                    self.arrives(switch, &bytes);
                } else if !cut {
                    let from = SocketAddrV4::new(address(switch), PORT);
                    self.controller.handle_message(self.now, from, &bytes);
                }
            } else {
                self.controller.handle_timeout(self.now);
            }
            self.take_out();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_fault_makes_a_member_of_who_has_not_joined(seed: u64) {
        let mut net = Net::new(seed);
        for _ in 0..25 {
            let time = 20_000 + net.chance.below(600_000);
            net.run(time);
            net.fault();
        }
        net.faults = false;
        for node in net.nodes.values_mut() {
            if node.down {
                node.down = false;
                node.incarnation += 1;
                node.places.clear();
            }
            node.cut = false;
        }
        // One stays dead: the others are enough.
        net.nodes.get_mut(&5).unwrap().down = true;
        net.run(2_000_000);
        let groups: Vec<u16> = (0..GROUPS).collect();
        for group in groups {
            let config = net.controller.configuration(group).unwrap();
            if !config.members.iter().any(|it| net.controller.is_alive(it)) {
                net.controller.refound(net.now, group).unwrap();
                net.take_out();
            }
        }
        net.run(15_000_000);
        prop_assert!(!net.controller.is_behind());
        prop_assert!(net.controller.is_settled());
        for config in net.controller.configurations() {
            prop_assert_eq!(config.members.len(), 3);
            for member in &config.members {
                let node = &net.nodes[&member.switch];
                prop_assert_eq!(member.incarnation, node.incarnation);
                prop_assert_eq!(node.places[&config.group].epoch, config.epoch);
            }
        }
    }
}

//! A switch without sockets, whose work is timed.

use num_bigint::BigUint;
use stateplane_multicast_setup::{Group, Hold, Member, Multicast, Rows};
use stateplane_native::{Compiled, Native, Options};
use stateplane_runtime::{Engine, Entry, KeyMatch};
use stateplane_switch::{Port, Switch, SwitchConfig};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Instant;

/// Members of a group.
pub const MEMBERS: usize = 3;

/// Port of frames that arrive, and of whatever no other one is for.
pub const IN: Port = 0;
/// Ports to whom a member sends: member 0, 1 or 2, receivers, the sender, other groups' leaders.
pub const TO_MEMBERS: Port = 1;
pub const TO_RECEIVERS: Port = 4;
pub const TO_SENDER: Port = 5;
pub const TO_LEADERS: Port = 6;

/// Address of the sender, and its UDP port.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 33, 0, 1);
pub const SENDER_PORT: u16 = 40_000;

/// Most bytes of a payload.
const LONGEST: u16 = 1400;

/// Number that each switch has for its start.
pub const INCARNATION: u32 = 7;

/// Frames with the ports by which they leave.
pub type Frames = Vec<(Port, Vec<u8>)>;

/// Address of a member.
pub fn member_address(group: usize, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 31, group as u8, number as u8 + 1)
}

/// Address of a receiver.
pub fn receiver_address(group: usize, number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 32, group as u8, number as u8 + 1)
}

/// Groups, and the receivers of each.
#[derive(Clone, Copy, Debug)]
pub struct Deployment {
    pub groups: usize,
    pub receivers: usize,
    /// Sessions, and lanes of each.
    pub sessions: u16,
    pub lanes: u8,
}

/// A switch, in a time that its user tells.
pub struct Node(Switch<Native>);

impl Node {
    /// Any program, with entries of its tables.
    pub fn new(compiled: &Compiled, entries: &[(&str, Entry)]) -> Node {
        let engine = compiled.engine(Options::default()).expect("an engine");
        let ports = SwitchConfig {
            ports: (IN..=TO_LEADERS).collect(),
            ..SwitchConfig::default()
        };
        let mut switch = Switch::new(engine, ports).expect("a switch");
        for (table, entry) in entries {
            let state = switch.engine_mut().state_mut();
            let table = state.table_mut(table).expect("the program's table");
            table.insert(entry).expect("the entry fits");
        }
        Node(switch)
    }

    /// A member of a group, set up as a controller would.
    pub fn member(compiled: &Compiled, of: Deployment, group: usize, number: usize) -> Node {
        let own = member_address(group, number);
        let members =
            (0..MEMBERS).map(|other| (member_address(group, other), TO_MEMBERS + other as Port));
        let receivers =
            (0..of.receivers).map(|other| (receiver_address(group, other), TO_RECEIVERS));
        let leaders = (0..of.groups).filter(|other| *other != group);
        let leaders = leaders.map(|other| (member_address(other, 0), TO_LEADERS));
        let reached = members.chain(receivers).chain(leaders);
        let reached = reached.chain([(SENDER, TO_SENDER)]);
        let reached = reached.filter(|(address, _)| *address != own);
        let entries: Vec<_> = reached
            .flat_map(|(address, port)| hop(address, port))
            .collect();
        let mut node = Node::new(compiled, &entries);
        let multicast = Multicast {
            address: own,
            port: IN,
            hold: Hold::default(),
        };
        multicast
            .apply(&mut node.0, INCARNATION)
            .expect("the program is multicast's");
        let others = (0..MEMBERS).filter(|other| *other != number);
        let others = others.map(|other| Member {
            number: other as u8,
            incarnation: INCARNATION,
            address: member_address(group, other),
        });
        let receivers =
            (0..of.receivers).map(|other| (other as u8, receiver_address(group, other)));
        let rows = Rows {
            groups: BTreeMap::from([(
                group as u8,
                Group {
                    member: number as u8,
                    longest: LONGEST,
                    others: others.collect(),
                    receivers: receivers.collect(),
                },
            )]),
            leaders: (0..of.groups)
                .map(|other| (other as u8, member_address(other, 0)))
                .collect(),
            sessions: (0..of.sessions)
                .map(|session| (session, of.lanes))
                .collect(),
        };
        let unreached = rows.apply(&mut node.0).expect("the rows fit");
        assert!(unreached.is_empty(), "no way to {unreached:?}");
        node
    }

    /// Takes `frames` at `now`, and gives what it sends; adds the time in ns to `spent`.
    pub fn pass<'a>(
        &mut self,
        now: u64,
        frames: impl ExactSizeIterator<Item = &'a [u8]>,
        spent: &mut f64,
    ) -> Frames {
        let mut sent = Vec::with_capacity(frames.len() * 5);
        let start = Instant::now();
        for frame in frames {
            self.0.handle_frame(now, IN, frame);
            self.drain(&mut sent);
        }
        *spent += start.elapsed().as_nanos() as f64;
        sent
    }

    /// Lets time pass to `now`: copies that were held come back.
    pub fn wait(&mut self, now: u64, spent: &mut f64) -> Frames {
        let mut sent = Vec::new();
        let start = Instant::now();
        while let Some(due) = self.0.poll_timeout()
            && due <= now
        {
            self.0.handle_timeout(now);
            self.drain(&mut sent);
        }
        *spent += start.elapsed().as_nanos() as f64;
        sent
    }

    fn drain(&mut self, sent: &mut Frames) {
        while let Some(transmit) = self.0.poll_transmit() {
            sent.push((transmit.port, transmit.frame));
        }
    }

    /// Takes back frames that it sent, as ports do it.
    pub fn recycle(&mut self, frames: Frames) {
        for (_, frame) in frames {
            self.0.recycle(frame);
        }
    }
}

/// Entries of the router by which it reaches `address`.
fn hop(address: Ipv4Addr, port: Port) -> [(&'static str, Entry); 2] {
    let address = BigUint::from(address.to_bits());
    let route = Entry {
        keys: vec![KeyMatch::Prefix {
            value: address.clone(),
            length: 32,
        }],
        priority: 0,
        action: "connected".into(),
        data: Vec::new(),
    };
    let neighbour = Entry {
        keys: vec![KeyMatch::Exact(address)],
        priority: 0,
        action: "forward".into(),
        data: [u64::from(port), 2, 1].map(BigUint::from).to_vec(),
    };
    [("routes", route), ("neighbours", neighbour)]
}

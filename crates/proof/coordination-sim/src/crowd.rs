//! Sessions whose clients die by the thousands, at the controller that gives lanes and at a switch
//! whose tables they fill: each is ended, and nothing of them is left.

use crate::attacks::{EPOCH, GENERATION, INCARNATION, configure};
use crate::authority::ControllerNode;
use crate::device::Device;
use crate::options::Options;
use crate::places::{
    CONTROLLER, CONTROLLER_PORT, Places, SWITCHES, client_address, switch_address, switch_socket,
};
use crate::scenario::Scenario;
use crate::simulator::{LANES, Simulator};
use stateplane_apps::datagram::{datagram, frame};
use stateplane_coordination::{
    Action, Agent, Chain, Event, Lanes, Operation, Owner, Place, Reaper, ReaperSettings, Session,
    SessionSettings, SessionState, Settings, Write,
};
use stateplane_wire::coordination::{Key, Outcome};
use stateplane_wire::coordination_control::{self as control, Message, Opened};
use stateplane_world::{Node as _, NodePort};
use std::collections::BTreeMap;

/// Sessions, unless the environment variable `STATEPLANE_SESSIONS` asks for more.
const SESSIONS: u64 = 1_000;
const GROUPS: u16 = 2;
/// Lanes of the reaper.
const OWN_LANES: u16 = 8;
const TTL: u64 = 100_000;

struct Crowd {
    device: Box<dyn Device>,
    controller: ControllerNode,
    now: u64,
    nonce: u64,
    outcomes: BTreeMap<u8, u64>,
}

impl Crowd {
    fn new() -> Crowd {
        let scenario = Scenario {
            groups: GROUPS as u8,
            ..Scenario::quiet()
        };
        let simulator = Simulator::new(Options::new(scenario.clone())).expect("it compiles");
        let places = Places { clients: 1 };
        let mut device = simulator.device(&places, 0, INCARNATION).expect("a switch");
        for (to, port) in places.routes(0, &[true; SWITCHES]) {
            device.route(to, port);
        }
        for group in 0..GROUPS {
            let bytes = configure(group, &[0], EPOCH, INCARNATION).to_vec();
            let bytes = frame(CONTROLLER, switch_socket(0), &bytes.expect("a message"));
            device.handle_frame(1_000, CONTROLLER_PORT, &bytes);
        }
        while device.poll_transmit().is_some() {}
        let mut controller = ControllerNode::new(&scenario, None, vec![None; SWITCHES], 1);
        controller.start(0, 1).expect("a controller");
        Crowd {
            device,
            controller,
            now: 1_000,
            nonce: 0,
            outcomes: BTreeMap::new(),
        }
    }

    fn agent(&self, lanes: Lanes) -> Agent {
        let settings = Settings::new(client_address(0), GROUPS);
        let mut agent = Agent::new(settings, lanes.session.into());
        for group in 0..GROUPS {
            let chain = Chain {
                group,
                generation: GENERATION,
                epoch: EPOCH,
                members: vec![switch_address(0)],
                joining: None,
            };
            agent.learn(self.now, chain);
        }
        agent.set_lanes(lanes);
        agent
    }

    /// The controller's answers to the client.
    fn ask(&mut self, message: &Message) -> Vec<Message> {
        let bytes = frame(client_address(0), CONTROLLER, &message.to_vec());
        let from = NodePort::new(Places::client(0), 1);
        let port = Places::client_port(0);
        self.controller.handle_message(self.now, port, from, bytes);
        let mut answers = Vec::new();
        while let Some((to, frame)) = self.controller.poll_transmit(self.now) {
            let sent = datagram(&frame).filter(|_| to == port);
            answers.extend(sent.and_then(|(_, _, bytes)| Message::parse(bytes).ok()));
        }
        answers
    }

    /// A session with so many lanes; `None` if no lane is free.
    fn open(&mut self, lanes: u16) -> Option<Lanes> {
        self.nonce += 1;
        let nonce = self.nonce;
        let answers = self.ask(&Message::Open { nonce, lanes });
        let [
            Message::Opened(Opened {
                session,
                first_lane,
                count,
                lane_incarnation,
                ..
            }),
        ] = answers[..]
        else {
            panic!("{answers:?}");
        };
        (session != 0).then_some(Lanes {
            session,
            first: first_lane,
            count,
            incarnation: lane_incarnation,
        })
    }

    /// Sessions that are open, and lanes that are free.
    fn listed(&mut self) -> (u16, u32) {
        let list = Message::List {
            session: 0,
            room: 1_000,
        };
        match self.ask(&list)[..] {
            [
                Message::Sessions {
                    sessions,
                    free_lanes,
                    ..
                },
            ] => (sessions, free_lanes),
            ref other => panic!("{other:?}"),
        }
    }

    /// Gives the switch what the agent sends, and the agent what comes back.
    fn exchange(&mut self, agent: &mut Agent) -> Vec<Event> {
        while let Some((to, bytes)) = agent.poll_transmit() {
            let bytes = frame(client_address(0), to, &bytes);
            self.device
                .handle_frame(self.now, Places::client_port(0), &bytes);
            while let Some((_, frame)) = self.device.poll_transmit() {
                if let Some((from, _, bytes)) = datagram(&frame) {
                    agent.handle_datagram(self.now, from, bytes);
                }
            }
        }
        std::iter::from_fn(|| agent.poll_event()).collect()
    }

    /// A client makes its session's record, takes or waits for a lock, writes, and dies.
    fn lives(&mut self, lanes: Lanes) {
        let mut agent = self.agent(lanes);
        let settings = SessionSettings::new(TTL);
        let mut session = Session::open(self.now, &mut agent, settings).expect("asked");
        let owner = Owner {
            session: lanes.session,
            handle: 1,
        };
        let place = |letter, number: u32, group| {
            let mut key = [letter; 16];
            key[..4].copy_from_slice(&number.to_be_bytes());
            Place::within(group, Key(key))
        };
        let group = (lanes.session % u32::from(GROUPS)) as u16;
        let lock = Operation::acquire(place(b'l', lanes.session % 3, group), owner, true);
        let write = Write {
            value: b"mine".to_vec(),
            session: lanes.session,
            ..Write::default()
        };
        let write = Operation::new(place(b'v', lanes.session, group), Action::Write(write));
        for operation in [lock, write] {
            agent.submit(self.now, operation).expect("submitted");
        }
        for event in self.exchange(&mut agent) {
            session.handle_event(self.now, &mut agent, &event);
            match event {
                Event::Answered { answer, .. } => {
                    *self.outcomes.entry(answer.outcome as u8).or_default() += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        let made = [SessionState::Connected, SessionState::Lost];
        assert!(made.contains(&session.state()), "{:?}", session.state());
    }
}

#[test]
fn sessions_that_die_by_the_thousands_leave_nothing() {
    let count: u64 = std::env::var("STATEPLANE_SESSIONS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(SESSIONS);
    let mut crowd = Crowd::new();
    let own = crowd.open(OWN_LANES).expect("lanes");
    let mut agent = crowd.agent(own);
    let mut reaper = Reaper::new(ReaperSettings::new(TTL));
    let room = u64::from(LANES) - u64::from(OWN_LANES);
    while reaper.ended() < count {
        let before = reaper.ended();
        while let Some(lanes) = crowd.open(1) {
            crowd.lives(lanes);
            reaper.watch(crowd.now, lanes);
        }
        // The table is full, and says so.
        assert_eq!(crowd.listed(), (room as u16 + 1, 0));
        let died = crowd.now;
        while reaper.ended() < before + room {
            assert!(crowd.now < died + 10 * TTL, "some are not ended");
            crowd.now += 5_000;
            agent.handle_timeout(crowd.now);
            reaper.handle_timeout(crowd.now, &mut agent);
            loop {
                let events = crowd.exchange(&mut agent);
                if events.is_empty() {
                    break;
                }
                for event in events {
                    reaper.handle_event(crowd.now, &mut agent, &event);
                }
            }
        }
        while let Some(lanes) = reaper.poll_ended() {
            let session = lanes.session;
            let closed = crowd.ask(&Message::Close(control::Lanes {
                session,
                first: lanes.first,
                count: lanes.count,
                incarnation: lanes.incarnation,
            }));
            assert_eq!(closed, [Message::Ended { session }]);
        }
        assert_eq!(crowd.listed(), (1, room as u32));
        let kinds = crowd.device.words("slot_kind");
        assert!(kinds.iter().all(|kind| *kind == 0), "{kinds:?}");
    }
    // Tables and queues were full, too.
    for outcome in [Outcome::Done, Outcome::Queued, Outcome::Full] {
        assert!(crowd.outcomes[&(outcome as u8)] > 0, "{outcome:?}");
    }
}

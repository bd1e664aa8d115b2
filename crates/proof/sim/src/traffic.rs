//! Hosts, their connections, and the switch by which each packet goes.

use crate::device::Device;
use crate::frame::host_frame;
use crate::key::flow_name;
use crate::options::ProgramKind;
use crate::own::{Own, Released, unmarked};
use stateplane_apps::{AppId, Asked, Hosts, Random, Translation};
use stateplane_history::replication::{Direction, Flow, Occupant};
use stateplane_wire::replication::Key;

/// By which switch packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    By(usize),
    Alternate,
}

/// One connection.
struct Connection {
    /// Outwards and back.
    routes: [Route; 2],
    sent: usize,
}

/// A packet that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) connection: usize,
    pub(crate) direction: Direction,
    /// Its flow, as the program will see it.
    pub(crate) flow: Flow,
    pub(crate) key: Key,
    pub(crate) carried: Carried,
}

/// Content of a packet that a host sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// To an application.
    Asked(Asked),
    /// To a program of the user's: the port by which it comes, and the frame.
    Own(u16, Vec<u8>),
}

impl Carried {
    pub(crate) fn to_frame(&self, switch: u32) -> Vec<u8> {
        match self {
            Self::Asked(asked) => host_frame(switch, &asked.tag, &asked.datagram),
            Self::Own(_, frame) => frame.clone(),
        }
    }

    /// Value that the packet requests, in the terms of the application.
    pub(crate) fn request(&self) -> Option<u64> {
        match self {
            Self::Own(..) => None,
            Self::Asked(asked) => Some(asked.request),
        }
    }
}

/// All connections, and every packet sent, by number.
pub(crate) struct Traffic<'a> {
    program: ProgramKind,
    app: Option<Box<dyn Hosts>>,
    own: Option<&'a Own>,
    released: Released,
    connections: Vec<Connection>,
    sent: Vec<Sent>,
    random: Random,
    alternate: u32,
    /// Of each switch, whether routing goes around it.
    dead: Vec<bool>,
}

impl<'a> Traffic<'a> {
    /// `count` connections by `switches` switches.
    pub(crate) fn new(
        program: ProgramKind,
        switches: usize,
        count: u64,
        alternate: u32,
        own: Option<&'a Own>,
        mut random: Random,
    ) -> Self {
        let connections = (0..count).map(|_| Connection {
            routes: [Route::By(0); 2],
            sent: 0,
        });
        let mut traffic = Self {
            program,
            app: program.app().map(AppId::hosts),
            own,
            released: Released::default(),
            connections: connections.collect(),
            sent: Vec::new(),
            random: random.split(),
            alternate,
            dead: vec![false; switches],
        };
        traffic.reroute(1000);
        traffic
    }

    /// Number of connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The packet of that number, if it was sent.
    pub(crate) fn sent(&self, number: u64) -> Option<&Sent> {
        self.sent.get(usize::try_from(number).ok()?)
    }

    /// Lets flows choose their path again, each direction with this chance.
    pub(crate) fn reroute(&mut self, chance: u32) {
        for connection in &mut self.connections {
            for route in &mut connection.routes {
                if self.random.permille(chance) {
                    *route = if self.random.permille(self.alternate) {
                        Route::Alternate
                    } else {
                        Route::By(self.random.place(self.dead.len()))
                    };
                }
            }
        }
    }

    /// Routing knows whether a switch is dead, and goes around it.
    pub(crate) fn know(&mut self, switch: usize, dead: bool) {
        self.dead[switch] = dead;
    }

    /// The next packet of a connection, and the switch by which it goes; `None` if
    /// its host does not know whereto.
    pub(crate) fn send(
        &mut self,
        connection: usize,
        direction: Direction,
    ) -> Option<(usize, Sent)> {
        let number = self.sent.len() as u64;
        let random = &mut self.random;
        let (direction, key, carried) = match (&mut self.app, self.own) {
            (Some(app), _) => {
                let asked = match direction {
                    Direction::Outbound => app.send(connection, number, random),
                    Direction::Inbound => app.reply(connection, number, random)?,
                };
                (asked.direction, asked.key, Carried::Asked(asked))
            }
            (None, own) => {
                let (key, port, frame) = own?.send(connection, number, random, &mut self.released);
                (direction, key, Carried::Own(port, frame))
            }
        };
        let of = &mut self.connections[connection];
        of.sent += 1;
        let route = of.routes[direction as usize];
        let switches = self.dead.len();
        let first = match route {
            Route::By(switch) => switch,
            Route::Alternate => of.sent % switches,
        };
        let mut in_turn = (first..first + switches).map(|switch| switch % switches);
        let living = in_turn.find(|&switch| !self.dead[switch]);
        let by = living.unwrap_or((first + 1) % switches);
        let sent = Sent {
            connection,
            direction,
            flow: flow_name(self.program, &key),
            key,
            carried,
        };
        self.sent.push(sent.clone());
        Some((by, sent))
    }

    /// Reads a packet that left as an application event, or gives the reason why no host would take
    /// it.
    pub(crate) fn observe(&self, asked: &Asked, port: u16, frame: &[u8]) -> Result<u64, String> {
        match &self.app {
            Some(app) => app.observe(asked, port, frame),
            None => Err("no application runs".into()),
        }
    }

    /// A switch let packet `number` of a program of the user's out by `port`.
    pub(crate) fn released_own(&mut self, number: u64, port: u16, frame: &[u8]) {
        let output = (port, unmarked(frame).to_vec());
        self.released.outputs.entry(number).or_insert(output);
    }

    /// Packets that a user's program released.
    pub(crate) fn into_released(self) -> Released {
        self.released
    }

    /// A switch let a packet of an application out.
    pub(crate) fn released(&mut self, at: u64, by: Occupant, asked: &Asked, frame: &[u8]) {
        if let Some(app) = &mut self.app {
            app.released(at, by, asked, frame);
        }
    }

    /// Connections that hosts opened.
    pub(crate) fn opened(&self) -> u64 {
        self.app.as_ref().map_or(0, |app| app.opened())
    }

    /// Errors that an application finds in the final content of the store's tail.
    pub(crate) fn recovered(&self, records: &[(Key, Vec<u8>)]) -> Vec<String> {
        match (&self.app, self.own) {
            (Some(app), _) => app.recovered(records),
            (None, Some(own)) => own.recovered(records, &self.released),
            (None, None) => Vec::new(),
        }
    }

    /// True if switches write although no host sends.
    pub(crate) fn writes_for_ever(&self) -> bool {
        let of_app = self.app.as_ref().is_some_and(|app| app.writes_for_ever());
        of_app || self.own.is_some_and(Own::is_bounded)
    }

    /// A switch took packet `number` of a program of the user's; `alarm`: while the newest
    /// snapshot that is kept was older than ε.
    pub(crate) fn handled_own(
        &mut self,
        at: (u64, Occupant),
        number: u64,
        alarm: bool,
        device: &dyn Device,
    ) {
        if let Some(own) = self.own {
            own.handled(at, number, alarm, device, &mut self.released);
        }
    }

    /// Endpoints that a NAT gave a packet that left as `frame`.
    pub(crate) fn translated(&self, asked: &Asked, frame: &[u8]) -> Option<Translation> {
        self.app.as_ref()?.translated(asked, frame)
    }

    /// True if hosts outside hear of what reaches them.
    pub(crate) fn listens(&self) -> bool {
        self.app.as_ref().is_some_and(|app| app.listens())
    }

    /// A host outside got packet `number` as `frame`: the connection that it answers to.
    pub(crate) fn arrived_outside(&mut self, number: u64, frame: &[u8]) -> Option<usize> {
        let at = usize::try_from(number).ok()?;
        let sent = self.sent.get(at)?;
        let (Carried::Asked(asked), Some(app)) = (&sent.carried, &mut self.app) else {
            return None;
        };
        let answers = app.arrived(sent.connection, asked, frame, &mut self.random);
        answers.then_some(sent.connection)
    }
}

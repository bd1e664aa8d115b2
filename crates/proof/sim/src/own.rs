//! A program of the user's: protected on the switches, and as it was beside them, to say
//! what should come out.
//!
//! Hosts send the packets of a packet test (STF) again and again, with a mark behind them:
//! each flow's in the order of the test, but for some out of turn. What comes out of the
//! switches has to be what the original program gives for each flow in some order of its
//! packets (RedPlane §4, Definitions 2 to 4). Of a program in bounded-inconsistency mode see
//! `bounded`.

mod bounded;
mod packet_test;
mod reference;

use crate::device::{Device as _, Identity};
use crate::frame::{STORE_PORT, checked_message_in};
use crate::options::{Class, ProgramKind, Rule, Walk};
use crate::p4::{P4Switch, PROBED_SHARD};

use crate::simulator::SimError;
use bounded::Handled;
use reference::Reference;
use stateplane_apps::{Random, number_mark};
use stateplane_check::compile;
use stateplane_compile::Source;
use stateplane_diagnostics::{Color, Diagnostics, SourceMap, render_all};
use stateplane_history::replication::{Flow, History, Occupant, Replication};
use stateplane_history::{Operation, OperationOf, Program as _, linearization, operations_of};
use stateplane_interp::Interp;
use stateplane_ir::Program;
use stateplane_protect::{Snapshots, protect};
use stateplane_runtime::{Engine as _, TargetState, Value};
use stateplane_setup::{BEAT, SetupError};
use stateplane_stf::{Command, Script};
use stateplane_switch::Switch;
use stateplane_syntax::{FileLoader, MemoryLoader, Options as Reading};
use stateplane_wire::replication::{KEY_LENGTH, Key, MessageType};
use std::collections::BTreeMap;

/// Bytes of the mark behind each packet.
const MARK: usize = 16;
/// Buckets of the flow table where the keys of packets are found out.
const BUCKETS: u32 = 64;
/// Chance in thousandths that a host sends any packet of its flow, out of turn.
const OUT_OF_TURN: u32 = 100;
/// Maximum number of flows whose unexplained outputs are reported.
const MOST_TOLD: usize = 3;

/// A frame without its mark.
pub(crate) fn unmarked(frame: &[u8]) -> &[u8] {
    &frame[..frame.len().saturating_sub(MARK)]
}

/// Packets that hosts sent and switches released, by number of the packet.
#[derive(Default)]
pub(crate) struct Released {
    /// Index of the test's packet from which each packet was made.
    pub(crate) templates: BTreeMap<u64, usize>,
    /// Number of packets that each flow has sent.
    turns: BTreeMap<usize, usize>,
    /// Port, and frame without its mark.
    pub(crate) outputs: BTreeMap<u64, (u16, Vec<u8>)>,
    /// Packets that each start of each switch handled, in bounded-inconsistency mode.
    handled: BTreeMap<Occupant, Vec<Handled>>,
}

/// A packet of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Template {
    port: u16,
    frame: Vec<u8>,
}

impl Template {
    fn marked(&self, number: u64) -> Vec<u8> {
        [&self.frame[..], &number_mark(number)].concat()
    }
}

/// A program of the user's with its traffic.
pub struct Own {
    text: String,
    class: Class,
    /// In bounded-inconsistency mode, what is kept.
    snapshots: Option<Snapshots>,
    reading: Reading,
    original: Program,
    /// The original with the entries of the packet test.
    configured: Switch<Interp>,
    script: Script,
    /// Its different packets.
    templates: Vec<Template>,
    /// Numbers of the packets of the test, in its order.
    order: Vec<usize>,
    /// Keys, and the packets of the test that have them, in its order.
    flows: Vec<(Key, Vec<usize>)>,
}

impl Own {
    /// Reads and protects the program whose main file is `main_file`. Hosts send the
    /// packets of `script`, whose other commands set the program up.
    ///
    /// # Errors
    ///
    /// [`SimError::Compile`] with the diagnostics as text, and
    /// [`SimError::PacketTest`] if the program does not take what the script sets up.
    pub fn new(
        loader: &dyn FileLoader,
        main_file: &str,
        reading: &Reading,
        script: &Script,
    ) -> Result<Self, SimError> {
        let compiled = compile(loader, main_file, reading);
        let original = compiled
            .program
            .ok_or_else(|| refused(&compiled.diagnostics, &compiled.sources))?;
        let protected = protect(loader, main_file, reading);
        let (text, class) = protected
            .program
            .ok_or_else(|| refused(&protected.diagnostics, &protected.sources))?;
        if let Some(snapshots) = &class.snapshots {
            Self::can_walk(snapshots)?;
        }
        let is_setup = |command: &Command| {
            !matches!(
                command,
                Command::Packet { .. }
                    | Command::Expect { .. }
                    | Command::ExpectNone(_)
                    | Command::Ignore(_)
                    | Command::RegisterRead { .. }
                    | Command::CheckCounter { .. }
                    | Command::CheckDropped { .. }
                    | Command::ExpectLog(_)
                    | Command::Wait
                    | Command::Advance(_)
            )
        };
        let mut setup = script.clone();
        setup.lines.retain(|line| is_setup(&line.command));
        let engine = Interp::new(original.clone(), stateplane_interp::Options::default())?;
        let configured = stateplane_stf::run(&setup, engine)?;
        let (mut templates, mut order) = (Vec::new(), Vec::new());
        for line in &script.lines {
            if let Command::Packet { port, frame } = &line.command {
                let template = Template {
                    port: *port,
                    frame: frame.clone(),
                };
                let known = templates.iter().position(|known| *known == template);
                order.push(known.unwrap_or(templates.len()));
                if known.is_none() {
                    templates.push(template);
                }
            }
        }
        let mut own = Self {
            text,
            class: Class {
                id: class.id,
                state_length: class.state_length,
                walk: class.snapshots.as_ref().map(|snapshots| Walk {
                    batch: snapshots.batch,
                    arrays: snapshots.arrays.len(),
                }),
            },
            snapshots: class.snapshots,
            reading: reading.clone(),
            original,
            configured,
            script: script.clone(),
            templates,
            order,
            flows: Vec::new(),
        };
        own.flows = own.find_flows()?;
        Ok(own)
    }

    /// The protected program as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The class of its flows.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Flows that the packets belong to; where they belong to none, hosts that send them.
    pub(crate) fn connections(&self) -> usize {
        if self.is_bounded() {
            bounded::HOSTS
        } else {
            self.flows.len()
        }
    }

    /// The protected program with flow tables of `buckets` buckets and without a rule.
    pub(crate) fn protected(
        &self,
        buckets: u32,
        without: Option<Rule>,
    ) -> Result<Program, SimError> {
        let loader = MemoryLoader::new().with("protected.p4", self.text.as_str());
        let mut source = Source::new(loader, "protected.p4");
        source = source.defines(self.reading.defines.clone());
        // The records of snapshots all have a place in the table that the program comes with.
        if !self.is_bounded() {
            source = source.define("REPLICATION_BUCKETS", &buckets.to_string());
        }
        if let Some(fault) = without.and_then(Rule::macro_name) {
            source = source.define(fault, "1");
        }
        let program = source.program();
        program.map_err(|refused| SimError::Compile(refused.to_string()))
    }

    /// Fills the tables of the protected program as the test fills those of the original.
    pub(crate) fn configure(&self, state: &mut TargetState) {
        state.adopt(self.configured.engine().state(), 0);
    }

    /// A switch with the protected program on the interpreter, the `start`th that was started
    /// and in turn one of two; it has heard its store at `now`.
    fn device(
        &self,
        program: &Program,
        start: u32,
        now: u64,
    ) -> Result<P4Switch<Interp>, SimError> {
        let identity = Identity {
            switch: start % 2 + 1,
            incarnation: start,
        };
        let mut engine = Interp::new(program.clone(), stateplane_interp::Options::default())?;
        self.configure(engine.state_mut());
        for (register, index) in [("replication_heard", PROBED_SHARD), (BEAT, 0)] {
            let heard = engine.state_mut().register_mut(register);
            heard
                .and_then(|heard| heard.write(index.into(), &Value::from(now)))
                .map_err(SetupError::from)?;
        }
        Ok(P4Switch::new(
            engine,
            ProgramKind::Own(self.class),
            identity,
            false,
        )?)
    }

    /// Asks the protected program for the key of each packet, by the lease that it wants;
    /// packets of no flow have key 0.
    fn find_flows(&self) -> Result<Vec<(Key, Vec<usize>)>, SimError> {
        if self.is_bounded() {
            return Ok(vec![(Key([0; KEY_LENGTH]), self.order.clone())]);
        }
        let now = 1;
        let program = self.protected(BUCKETS, None)?;
        let mut device = self.device(&program, 1, now)?;
        let mut keys = Vec::new();
        for template in &self.templates {
            device.handle_frame(now, template.port, &template.marked(0));
            let mut key = Key([0; KEY_LENGTH]);
            loop {
                while let Some((port, frame)) = device.poll_transmit() {
                    if port == STORE_PORT
                        && let Some((_, message)) = checked_message_in(&frame)
                        && message.message_type() == MessageType::LeaseRequest
                    {
                        key = message.key();
                    }
                }
                if device.poll_timeout().is_none_or(|due| due > now) {
                    break;
                }
                device.handle_timeout(now);
            }
            keys.push(key);
        }
        let mut flows: Vec<(Key, Vec<usize>)> = Vec::new();
        for &place in &self.order {
            match flows.iter_mut().find(|(known, _)| *known == keys[place]) {
                Some((_, places)) => places.push(place),
                None => flows.push((keys[place], vec![place])),
            }
        }
        Ok(flows)
    }

    /// Ports by which the packets come.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u16> {
        self.templates.iter().map(|template| template.port)
    }

    /// The next packet of a flow: its key, the port by which it comes, and the frame.
    pub(crate) fn send(
        &self,
        connection: usize,
        number: u64,
        random: &mut Random,
        released: &mut Released,
    ) -> (Key, u16, Vec<u8>) {
        let flow = connection % self.flows.len();
        let (key, places) = &self.flows[flow];
        let place = if random.permille(OUT_OF_TURN) {
            places[random.place(places.len())]
        } else {
            let turn = released.turns.entry(flow).or_default();
            *turn += 1;
            places[(*turn - 1) % places.len()]
        };
        released.templates.insert(number, place);
        let template = &self.templates[place];
        (*key, template.port, template.marked(number))
    }

    /// Parts of a history that no run of the original program explains.
    pub(crate) fn judge(&self, history: &History, released: &Released) -> Vec<String> {
        let reference = match Reference::new(self) {
            Ok(reference) => reference,
            Err(error) => return vec![error.to_string()],
        };
        if let Some(snapshots) = &self.snapshots {
            return self.judge_lives(snapshots, &reference, released);
        }
        let mut found = Vec::new();
        for (flow, operations) in operations_of(history) {
            if let Some(objection) = self.objection(&reference, &flow, operations, released) {
                found.push(objection);
            }
        }
        found.truncate(MOST_TOLD);
        found
    }

    fn objection(
        &self,
        reference: &Reference<'_>,
        flow: &Flow,
        operations: Vec<OperationOf<Replication>>,
        released: &Released,
    ) -> Option<String> {
        let stateless = *flow == Flow::new(&Key([0; KEY_LENGTH]).to_string());
        let mut asked = Vec::new();
        for operation in operations {
            let (packet, _) = operation.input;
            let input = *released.templates.get(&packet)?;
            let ended = operation.ended.map(|(at, _)| at);
            let output = released.outputs.get(&packet).cloned();
            asked.push(Operation {
                input,
                began: operation.began,
                ended: ended.map(|at| (at, output)),
            });
        }
        if stateless {
            let wrong = asked.iter().find(|operation| {
                let (output, _) = reference.step(&reference.start(), operation.input);
                let seen = operation.ended.as_ref().map(|(_, seen)| seen);
                seen.is_some_and(|seen| *seen != output)
            });
            return wrong.map(|operation| {
                let template = &self.templates[operation.input];
                format!("a packet of no flow left otherwise than from the original program: {template:02x?}")
            });
        }
        match linearization(reference, &asked) {
            Ok(Some(_)) => None,
            Ok(None) => Some(format!(
                "flow {flow}: no order of its packets explains what came out"
            )),
            Err(error) => Some(format!("flow {flow}: {error}")),
        }
    }
}

fn refused(diagnostics: &Diagnostics, sources: &SourceMap) -> SimError {
    SimError::Compile(render_all(diagnostics, sources, Color::Never))
}

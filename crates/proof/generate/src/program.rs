//! Random valid programs.

mod action;
mod control;
mod declaration;
mod expression;
mod features;
mod object;
mod operation;
mod packet;
mod parser;
mod profile;
mod statement;
mod table;

use crate::choices::Choices;
use crate::evaluate::evaluate;
use crate::expr::{Expr, Ty};
use crate::session::{Arrival, LIMITS, Session, Update, Write};
use features::{Feature, Features};
use packet::Packets;
use stateplane_switch::{MirrorSession, Replica, SwitchConfig};
use std::fmt::Display;

/// A program with a session for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The program's text, which needs nothing but `v1model.p4`.
    pub program: String,
    /// Configuration, table entries, frames.
    pub session: Session,
}

/// Ports of the switches of generated sessions, numbered from 0.
pub const PORTS: u16 = 8;

/// Time in µs of the first frame of a session at the earliest.
const START_US: u64 = 1_000_000;

/// Makes a program and a session of `packets` frames for it: of those some follow a
/// path through the parser, some of these are cut short or damaged, some are random.
///
/// Equal seeds give equal results.
#[must_use]
pub fn generate(seed: u64, packets: usize) -> Generated {
    generate_from(Choices::new(seed), packets)
}

/// Constant expressions of numbers and truth values, which have a value: no name stands
/// in them, and nothing is divided by zero. Numbers written without a width stand beside
/// others only.
#[must_use]
pub fn constant_expressions(seed: u64, count: usize) -> Vec<Expr> {
    let mut maker = Maker::new(Choices::new(seed));
    maker.features = Features::all();
    let mut expressions = Vec::new();
    while expressions.len() < count {
        let ty = maker.data_type();
        let depth = maker.c.between(1, 5);
        let expr = maker.expr(ty, depth);
        expressions.extend(evaluate(&expr).is_some().then_some(expr));
    }
    expressions
}

/// Generates a program from other decisions, see [`generate`].
#[must_use]
pub fn generate_from(choices: Choices, packets: usize) -> Generated {
    let mut maker = Maker::new(choices);
    maker.program();
    let session = maker.session(packets);
    Generated {
        program: maker.text,
        session,
    }
}

/// The parameter of constructors.
const SETTING: &str = "setting";

/// Something that has a value and perhaps can be written.
#[derive(Clone, Debug)]
struct Place {
    text: String,
    ty: Ty,
    writable: bool,
}

/// A header that can be named.
#[derive(Clone, Debug)]
struct HeaderPlace {
    text: String,
    /// Number of its type.
    header: usize,
}

/// A header stack.
#[derive(Clone, Debug)]
struct StackPlace {
    text: String,
    header: usize,
    size: u32,
}

/// Block that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Function,
    Parser,
    Ingress,
    Egress,
}

/// A header type: fields in order, and the greatest widths of `varbit` fields, the last of which
/// stands behind the last field, and each other one behind the field before.
#[derive(Clone, Debug)]
struct Header {
    fields: Vec<(String, Ty)>,
    varbits: Vec<u32>,
}

/// A direction of a parameter; the last is that of action data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    In,
    Out,
    InOut,
    Data,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Direction::In => "in ",
            Direction::Out => "out ",
            Direction::InOut => "inout ",
            Direction::Data => "",
        }
    }
}

/// A function, action or control that can be called.
#[derive(Clone, Debug)]
struct Callable {
    name: String,
    params: Vec<(Direction, Ty)>,
    result: Option<Ty>,
}

/// Objects that the statements of a block may use.
#[derive(Clone, Debug, Default)]
struct Objects {
    registers: Vec<object::Register>,
    counters: Vec<(String, u32)>,
    meters: Vec<(String, u32)>,
    actions: Vec<Callable>,
    controls: Vec<Callable>,
    tables: Vec<table::Table>,
    profiles: Vec<profile::Profile>,
}

struct Maker {
    c: Choices,
    features: Features,
    text: String,
    indent: usize,
    fresh: usize,
    block: Block,
    /// True if statements stand in an action or function, which apply nothing.
    in_action: bool,
    /// True if expressions may call functions.
    calls: bool,
    /// Loops around the statements.
    loops: u32,
    headers: Vec<Header>,
    serials: Vec<u32>,
    enums: usize,
    errors: usize,
    scope: Vec<Place>,
    header_places: Vec<HeaderPlace>,
    stacks: Vec<StackPlace>,
    /// Members of the headers struct in order.
    members: Vec<String>,
    /// Metadata that a header reports.
    reported: Vec<String>,
    /// Field lists of the metadata.
    field_lists: u32,
    inner_fields: Vec<(String, Ty)>,
    functions: Vec<Callable>,
    objects: Objects,
    writes: Vec<Write>,
    updates: Vec<Write>,
    packets: Packets,
    /// Parser value sets with the widths of their members.
    value_sets: Vec<(String, u32)>,
    /// Value sets of structs with the widths of their fields.
    struct_sets: Vec<(String, Vec<u32>)>,
}

impl Maker {
    fn new(mut c: Choices) -> Maker {
        let features = Features::new(&mut c);
        Maker {
            c,
            features,
            text: String::new(),
            indent: 0,
            fresh: 0,
            block: Block::Function,
            in_action: false,
            calls: true,
            loops: 0,
            headers: Vec::new(),
            serials: Vec::new(),
            enums: 0,
            errors: 0,
            scope: Vec::new(),
            header_places: Vec::new(),
            stacks: Vec::new(),
            members: Vec::new(),
            reported: Vec::new(),
            field_lists: 0,
            inner_fields: Vec::new(),
            functions: Vec::new(),
            objects: Objects::default(),
            writes: Vec::new(),
            updates: Vec::new(),
            packets: Packets::default(),
            value_sets: Vec::new(),
            struct_sets: Vec::new(),
        }
    }

    fn has(&self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    fn line(&mut self, text: impl Display) {
        for _ in 0..self.indent {
            self.text.push_str("    ");
        }
        self.text.push_str(&text.to_string());
        self.text.push('\n');
    }

    fn open(&mut self, head: impl Display) {
        self.line(format_args!("{head} {{"));
        self.indent += 1;
    }

    fn close(&mut self) {
        self.close_with("}");
    }

    fn close_with(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    /// A name that nothing else has.
    fn fresh(&mut self, front: &str) -> String {
        self.fresh += 1;
        format!("{front}{}", self.fresh)
    }

    fn program(&mut self) {
        self.line("#include <v1model.p4>");
        self.declarations();
        self.functions();
        self.parsers();
        self.verify_control();
        self.pipeline_control(Block::Ingress);
        self.pipeline_control(Block::Egress);
        self.compute_control();
        self.deparser();
        self.line(
            "V1Switch(MainParser(), Verify(), MyIngress(), MyEgress(), Compute(), MyDeparser()) main;",
        );
    }

    fn session(&mut self, packets: usize) -> Session {
        let mut config = SwitchConfig {
            ports: (0..PORTS).collect(),
            limits: LIMITS,
            ..SwitchConfig::default()
        };
        for number in 1..=2 {
            let replicas = self.c.between(1, 3) as u16;
            let replicas = (0..replicas)
                .map(|rid| Replica {
                    port: self.c.below(usize::from(PORTS)) as u16,
                    rid,
                })
                .collect();
            config.multicast_groups.insert(number, replicas);
            config.mirror_sessions.insert(
                u32::from(number),
                MirrorSession {
                    egress_port: Some(self.c.below(usize::from(PORTS)) as u16),
                    multicast_group: None,
                    truncate: self.c.chance(30).then_some(40),
                    hold_us: if self.c.chance(20) { 50 } else { 0 },
                },
            );
        }
        let mut at = START_US;
        let arrivals: Vec<Arrival> = (0..packets)
            .map(|_| {
                at += self.c.below(100) as u64;
                Arrival {
                    at,
                    port: self.c.below(usize::from(PORTS)) as u16,
                    frame: self.packets.make(&mut self.c),
                }
            })
            .collect();
        let writes = std::mem::take(&mut self.updates);
        let step = (at - START_US) / (writes.len() as u64 + 1);
        let updates = (1..).zip(writes).map(|(number, write)| Update {
            at: START_US + number * step,
            write,
        });
        Session {
            updates: updates.collect(),
            seed: self.c.below(1 << 16) as u64,
            config,
            writes: std::mem::take(&mut self.writes),
            arrivals,
        }
    }
}

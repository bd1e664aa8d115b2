//! A script as data.

use crate::Pattern;
use num_bigint::BigUint;
use stateplane_switch::Port;
use stateplane_target::KeyMatch;

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Script {
    /// Its name, for messages.
    pub name: String,
    /// The program to test, relative to the script, if it says so.
    pub program: Option<String>,
    /// Preprocessor definitions for the program; without a value they are 1.
    pub defines: Vec<(String, String)>,
    /// Commands in order.
    pub lines: Vec<Line>,
}

/// A command and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Number of its line, from 1.
    pub number: usize,
    /// The command.
    pub command: Command,
}

/// An action and its data: named, or in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the action.
    pub action: String,
    /// Values with the names of their parameters, if they have one.
    pub data: Vec<(Option<String>, BigUint)>,
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// All of them, with their signs.
    pub const ALL: [(Comparison, &'static str); 6] = [
        (Comparison::Equal, "=="),
        (Comparison::Unequal, "!="),
        (Comparison::AtMost, "<="),
        (Comparison::AtLeast, ">="),
        (Comparison::Less, "<"),
        (Comparison::Greater, ">"),
    ];

    /// Whether it holds between `left` and `right`.
    pub fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::Unequal => left != right,
            Comparison::Less => left < right,
            Comparison::AtMost => left <= right,
            Comparison::Greater => left > right,
            Comparison::AtLeast => left >= right,
        }
    }

    /// Its sign.
    pub fn sign(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(comparison, _)| *comparison == self)
            .map_or("", |(_, sign)| sign)
    }
}

/// What of a counter is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// One command; the [crate] describes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `packet`
    Packet {
        /// Port by which it arrives.
        port: Port,
        /// The frame.
        frame: Vec<u8>,
    },
    /// `expect`
    Expect {
        /// Port that sends it.
        port: Port,
        /// What it looks like; `None` fits any frame.
        pattern: Option<Pattern>,
    },
    /// `expect_none`
    ExpectNone(Option<Port>),
    /// `ignore`
    Ignore(Option<Port>),
    /// `add`
    Add {
        /// Name of the table.
        table: String,
        /// Priority, if given.
        priority: Option<u32>,
        /// Names of keys, and what they match.
        keys: Vec<(String, KeyMatch)>,
        /// What the entry runs.
        call: Call,
    },
    /// `setdefault`
    SetDefault {
        /// Name of the table.
        table: String,
        /// What it runs.
        call: Call,
    },
    /// `remove all`
    RemoveAll,
    /// `register_write`
    RegisterWrite {
        /// Name of the register.
        name: String,
        /// The element.
        index: u64,
        /// Its value.
        value: BigUint,
    },
    /// `register_read`
    RegisterRead {
        /// Name of the register.
        name: String,
        /// The element.
        index: u64,
        /// The value that it has to have, if any.
        value: Option<BigUint>,
    },
    /// `register_reset`
    RegisterReset(String),
    /// `check_counter`
    CheckCounter {
        /// Name of the counter.
        name: String,
        /// The element.
        index: u64,
        /// What is compared.
        unit: CounterUnit,
        /// How.
        comparison: Comparison,
        /// With what.
        number: u64,
    },
    /// `check_dropped`
    CheckDropped {
        /// Name of the reason.
        reason: String,
        /// How its count is compared.
        comparison: Comparison,
        /// With what.
        number: u64,
    },
    /// `mirroring_add`
    Mirroring {
        /// Number of the session.
        session: u32,
        /// Its port.
        port: Port,
        /// Bytes to which copies are cut.
        truncate: Option<u32>,
        /// µs for which copies wait.
        hold_us: u64,
    },
    /// `mc_mgrp_create`
    GroupCreate(u16),
    /// `mc_node_create`
    NodeCreate {
        /// `egress_rid` of the node.
        rid: u16,
        /// Its ports.
        ports: Vec<Port>,
    },
    /// `mc_node_associate`
    NodeAssociate {
        /// The group.
        group: u16,
        /// The node, from 0.
        node: usize,
    },
    /// `generator`
    Generator {
        /// Ingress port of its frames.
        port: Port,
        /// µs between them.
        period_us: u64,
        /// The frame.
        frame: Vec<u8>,
    },
    /// `advance`
    Advance(u64),
    /// `wait`
    Wait,
}

//! A script as data.

use crate::{Matching, Pattern};
use num_bigint::BigUint;
use stateplane_runtime::MeterConfig;
use stateplane_switch::{MirrorSession, Port};

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Script {
    /// Its name, for messages.
    pub name: String,
    /// The program to test, relative to the script, if it says so.
    pub program: Option<String>,
    /// Preprocessor definitions for the program; without a value they are 1.
    pub defines: Vec<(String, String)>,
    /// Bytes of the shortest frame that the switch takes, 0 if the script does not say.
    pub shortest_frame: u32,
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

/// Comparison of two numbers.
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

    /// True if it holds between `left` and `right`.
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

/// Part of a counter that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

/// An element of a counter or meter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// By its number; of a direct object, that of the entry in the order of insertion.
    Number(u64),
    /// Of a direct object: by the handle that the script gave the entry.
    Entry(String),
}

/// Action of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// An action.
    Call(Call),
    /// A member of the table's action profile.
    Member(u32),
    /// A group of the table's action profile.
    Group(u32),
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
        /// Pattern of the frame; `None` fits any frame.
        pattern: Option<Pattern>,
    },
    /// `expect_none` and `no_packet`
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
        keys: Vec<(String, Matching)>,
        /// Action of the entry.
        runs: Runs,
        /// Name by which later commands mean the entry.
        handle: Option<String>,
    },
    /// `setdefault`
    SetDefault {
        /// Name of the table.
        table: String,
        /// Action with its arguments.
        call: Call,
    },
    /// `remove`: the entry of a handle, or all entries.
    Remove(Option<String>),
    /// `member`
    Member {
        /// Name of the action profile.
        profile: String,
        /// Number of the member.
        member: u32,
        /// Action with its arguments.
        call: Call,
    },
    /// `group`
    Group {
        /// Name of the action selector.
        profile: String,
        /// Number of the group.
        group: u32,
        /// Its members with their weights.
        members: Vec<(u32, u32)>,
    },
    /// `value_set_add`
    ValueSetAdd {
        /// Name of the value set.
        set: String,
        /// One for each field, in order.
        keys: Vec<Matching>,
    },
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
        element: Element,
        /// Compared part, comparison and number; `None` if the element only has to exist.
        check: Option<(CounterUnit, Comparison, u64)>,
    },
    /// `counter_read`
    CounterRead {
        /// Name of the counter.
        name: String,
        /// The element.
        element: Element,
    },
    /// `counter_write`
    CounterWrite {
        /// Name of the counter.
        name: String,
        /// The element.
        index: u64,
        /// Packets.
        packets: u64,
        /// Bytes.
        bytes: u64,
    },
    /// `meter_set_rates` and `meter_array_set_rates`
    MeterWrite {
        /// Name of the meter.
        name: String,
        /// The element, or all.
        element: Option<Element>,
        /// Its rates and bursts.
        config: MeterConfig,
    },
    /// `meter_get_rates`
    MeterRead {
        /// Name of the meter.
        name: String,
        /// The element.
        element: Element,
    },
    /// `set_crc16_parameters` and `set_crc32_parameters`
    Crc {
        /// 16 or 32.
        width: u32,
        /// Polynomial, first remainder and final XOR.
        numbers: [u32; 3],
        /// True if the bits of each byte, and those of the remainder, are reflected.
        reflected: [bool; 2],
    },
    /// `expect_digest`
    ExpectDigest {
        /// Name of the digest.
        name: String,
        /// Its numbers in order.
        numbers: Vec<BigUint>,
    },
    /// `expect_log`
    ExpectLog(String),
    /// `check_dropped`
    CheckDropped {
        /// Name of the reason.
        reason: String,
        /// Comparison of the count.
        comparison: Comparison,
        /// Number with which the count is compared.
        number: u64,
    },
    /// `mirroring_add` and `mirroring_add_mc`
    Mirroring {
        /// Number of the session.
        session: u32,
        /// Destinations of the session's clones.
        config: MirrorSession,
    },
    /// `mirroring_delete`
    MirroringDelete(u32),
    /// `mirroring_get`
    MirroringGet(u32),
    /// `mc_mgrp_create`
    GroupCreate(u16),
    /// `mc_node_create`
    NodeCreate {
        /// `egress_rid` of the node.
        rid: u16,
        /// Its ports.
        ports: Vec<Port>,
    },
    /// `mc_node_update`
    NodeUpdate {
        /// The node, from 0.
        node: usize,
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

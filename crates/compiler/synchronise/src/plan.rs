//! Groups of registers, and where they lie in the registers of the library.

use serde::Serialize;
use std::fmt;

/// Measure of the distance of two values of a location (rule 1 of docs/sync-protocol.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The forward difference, modulo the width.
    Counter,
    /// The absolute difference.
    Gauge,
    /// 1 if they differ.
    Opaque,
}

impl Kind {
    /// All kinds with their names in annotations.
    const ALL: [(Self, &'static str); 3] = [
        (Self::Counter, "counter"),
        (Self::Gauge, "gauge"),
        (Self::Opaque, "opaque"),
    ];

    /// The kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The library's constant.
    pub(crate) fn constant(self) -> &'static str {
        match self {
            Self::Counter => "SYNC_COUNTER",
            Self::Gauge => "SYNC_GAUGE",
            Self::Opaque => "SYNC_OPAQUE",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(kind, _)| kind == self);
        f.pad(name.map_or("", |(_, name)| name))
    }
}

/// Treatment of packets that come while no engine polls a group (rule 28 of docs/sync-protocol.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Otherwise {
    /// They are counted.
    #[serde(rename = "go on")]
    GoOn,
    /// They are counted and dropped before the program has them.
    #[serde(rename = "drop")]
    Drop,
}

impl Otherwise {
    /// That of this name in annotations.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "go on" => Some(Self::GoOn),
            "drop" => Some(Self::Drop),
            _ => None,
        }
    }
}

/// Longest time without a poll of a group's engine, and what becomes of packets beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Age {
    /// µs.
    pub us: u64,
    /// Treatment of late packets.
    pub otherwise: Otherwise,
}

/// A register within its group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The register as control planes call it.
    pub register: String,
    /// Width of an element.
    pub bits: u32,
    /// True for `int<W>`.
    pub signed: bool,
    /// Lowest bit of the element in the value of a location; 0 for a register that is alone.
    pub lowest_bit: u32,
}

/// Registers that are sent together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Number of the group in messages.
    pub group: u16,
    /// As annotations name it, or its first register.
    pub name: String,
    /// Measure of distances.
    pub kind: Kind,
    /// True if the kind follows from the program's writes and not from an annotation.
    pub kind_inferred: bool,
    /// The registers, from the lowest bits of a value on.
    pub registers: Vec<Member>,
    /// Elements of each register.
    pub elements: u32,
    /// Locations of an element: 64-bit words of one that is wider, to a power of two.
    pub words: u32,
    /// Locations of the group.
    pub locations: u32,
    /// Places of the ring, a power of two.
    pub ring: u32,
    /// Greatest t; `None`: as the configuration of the switch says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<u64>,
    /// µs between two marks at most; `None`: as the configuration of the switch says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_us: Option<u64>,
    /// When packets are late; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<Age>,
}

impl Group {
    /// Bits of a location's value.
    #[must_use]
    pub fn bits(&self) -> u32 {
        let bits: u32 = self.registers.iter().map(|member| member.bits).sum();
        bits.min(64)
    }
}

/// All groups of a program, and what engines have to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The groups, in the order of their numbers.
    pub groups: Vec<Group>,
    /// Most values of a message (SYNC_BATCH).
    pub batch: u32,
    /// Positions that are sent beyond what the engine has (SYNC_WINDOW).
    pub window: u32,
}

/// Positions beyond what the engine has (SYNC_WINDOW).
pub(crate) const WINDOW: u32 = 1024;

/// Most values of a message: fewer where many groups make each of them long code.
pub(crate) fn batch(groups: usize) -> u32 {
    match groups {
        0..=4 => 16,
        5..=16 => 8,
        _ => 4,
    }
}

/// Most frozen values of a FETCHED (SYNC_FETCH), which the switch tells the engine: as many as
/// 1,500 bytes of IPv4 take, and fewer where many groups make each of them long code.
pub(crate) fn fetch(groups: usize) -> u32 {
    match groups {
        0..=2 => 168,
        3..=4 => 64,
        5..=16 => 16,
        _ => 4,
    }
}

/// Most locations of a program: the library numbers them, and the places of rings, by 32 bits.
pub(crate) const LOCATIONS: u64 = 1 << 28;

/// Places of the ring of so many locations: each of them once, and again as many, or as many as
/// are sent beyond what the engine has, and a message's values (rules 8, 9).
pub(crate) fn ring(locations: u32) -> u32 {
    (locations + locations.max(WINDOW) + 32).next_power_of_two()
}

impl Plan {
    /// Locations of all groups.
    #[must_use]
    pub fn locations(&self) -> u32 {
        self.groups.iter().map(|group| group.locations).sum()
    }

    /// First location of a group among those of all groups.
    #[must_use]
    pub fn first_location(&self, group: &Group) -> u32 {
        let before = self.groups.iter().take_while(|it| it.group != group.group);
        before.map(|group| group.locations).sum()
    }

    /// Places of all rings.
    #[must_use]
    pub fn rings(&self) -> u32 {
        self.groups.iter().map(|group| group.ring).sum()
    }
}

impl fmt::Display for Plan {
    /// One line for each register: group, register, kind, elements, ring.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let registers = self.groups.iter().flat_map(|group| &group.registers);
        let widest = registers.map(|member| member.register.len()).max();
        let widest = widest.unwrap_or(0).max("register".len());
        write!(
            f,
            "group  {:widest$}  kind     elements     bits  ring",
            "register"
        )?;
        for group in &self.groups {
            for member in &group.registers {
                let first = member.lowest_bit;
                let last = first + member.bits - 1;
                let bits = match (group.registers.len(), group.words) {
                    (1, 1) => member.bits.to_string(),
                    (1, words) => format!("{}/{words}", member.bits),
                    _ => format!("{last}:{first}"),
                };
                write!(
                    f,
                    "\n{:5}  {:widest$}  {:7}  {:8}  {bits:>7}  {:4}",
                    group.group, member.register, group.kind, group.elements, group.ring
                )?;
            }
        }
        Ok(())
    }
}

//! Errors of the control plane and of loading.

use crate::names;
use std::fmt;
use thiserror::Error;

/// Kinds of named objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A match-action table.
    Table,
    /// A register array.
    Register,
    /// An indirect counter array.
    Counter,
    /// An indirect meter array.
    Meter,
    /// A parser value set.
    ValueSet,
    /// An action profile or selector.
    ActionProfile,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Table => "table",
            Kind::Register => "register",
            Kind::Counter => "counter",
            Kind::Meter => "meter",
            Kind::ValueSet => "value set",
            Kind::ActionProfile => "action profile",
        })
    }
}

/// A refused request of the control plane, or a program that cannot be loaded. The
/// state is as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// No object has this name.
    #[error("there is no {kind} `{name}`{}", hint(near))]
    Unknown {
        /// Kind of the missing object.
        kind: Kind,
        /// The name as given.
        name: String,
        /// Names that are meant perhaps.
        near: Vec<String>,
    },
    /// Several objects have names that end so.
    #[error(
        "`{name}` may be any of the {kind}s {}; write more of the name",
        list(candidates)
    )]
    Ambiguous {
        /// Kind of the missing object.
        kind: Kind,
        /// The name as given.
        name: String,
        /// Full names that fit.
        candidates: Vec<String>,
    },
    /// The table has no such action.
    #[error("{owner} has no action `{action}`{}", hint(near))]
    UnknownAction {
        /// The table or action profile, with its full name.
        owner: String,
        /// The name as given.
        action: String,
        /// Names of its actions.
        near: Vec<String>,
    },
    /// The action is `@defaultonly` or `@tableonly`.
    #[error("action `{action}` of table `{table}` may not be used {place}; the program says so")]
    ActionNotAllowed {
        /// Full name of the table.
        table: String,
        /// Full name of the action.
        action: String,
        /// `in entries` or `as default action`.
        place: &'static str,
    },
    /// Another number of keys than the table or value set has.
    #[error("{owner} has {expected} keys ({}), {given} are given", list(names))]
    KeyCount {
        /// The table or value set, with its full name.
        owner: String,
        /// Its keys.
        names: Vec<String>,
        /// Declared number.
        expected: usize,
        /// Given number.
        given: usize,
    },
    /// A key in a notation that its match kind does not have.
    #[error("{place} is {expected}; give {wanted}, not {given}")]
    KeyKind {
        /// The key, and the table or value set that has it.
        place: String,
        /// Its match kind.
        expected: &'static str,
        /// Accepted kinds.
        wanted: &'static str,
        /// Given kind.
        given: &'static str,
    },
    /// A value of more bits than its place.
    #[error("{value} does not fit {place}, which has {width} bits")]
    TooWide {
        /// The value.
        value: String,
        /// Place that was to get the value.
        place: String,
        /// Width of the place.
        width: u32,
    },
    /// A prefix longer than its key.
    #[error("prefix length {length} of {place} is too great; the key has {width} bits")]
    PrefixLength {
        /// The length.
        length: u32,
        /// The key.
        place: String,
        /// Width of the key.
        width: u32,
    },
    /// A value with bits outside its prefix or mask.
    #[error("{place}: {value} has bits that its prefix or mask leaves out; clear them")]
    OutsideMask {
        /// The key.
        place: String,
        /// The value.
        value: String,
    },
    /// A range that ends before it begins.
    #[error("{place}: the range {low} to {high} is empty; exchange its ends")]
    EmptyRange {
        /// The key.
        place: String,
        /// First value.
        low: String,
        /// Last value.
        high: String,
    },
    /// Another number of action data than the action has.
    #[error(
        "action `{action}` takes {expected} values ({}), {given} are given",
        list(names)
    )]
    DataCount {
        /// Full name of the action.
        action: String,
        /// Its parameters.
        names: Vec<String>,
        /// Declared number.
        expected: usize,
        /// Given number.
        given: usize,
    },
    /// A priority where none counts, or none where one is needed.
    #[error("table `{table}` {why}")]
    Priority {
        /// Full name of the table.
        table: String,
        /// The error and how to mend it.
        why: &'static str,
    },
    /// The entry is there already.
    #[error("table `{table}` has an entry {keys} already; modify or delete it")]
    Duplicate {
        /// Full name of the table.
        table: String,
        /// The keys.
        keys: String,
    },
    /// The entry is not there.
    #[error("table `{table}` has no entry {keys}")]
    NoEntry {
        /// Full name of the table.
        table: String,
        /// The keys.
        keys: String,
    },
    /// The value set has the member already.
    #[error("value set `{set}` has the member {member} already")]
    DuplicateMember {
        /// Full name of the value set.
        set: String,
        /// The member.
        member: String,
    },
    /// The value set does not have the member.
    #[error("value set `{set}` has no member {member}")]
    NoMember {
        /// Full name of the value set.
        set: String,
        /// The member.
        member: String,
    },
    /// No room for another member.
    #[error("value set `{set}` is full with {size} members; delete one or raise its size")]
    FullSet {
        /// Full name of the value set.
        set: String,
        /// Its size.
        size: u64,
    },
    /// An entry with an action of its own, in a table whose entries run what its action
    /// profile holds.
    #[error(
        "the entries of table `{table}` run what its action profile holds; \
         give a member, a group or a set of actions"
    )]
    Indirect {
        /// Full name of the table.
        table: String,
    },
    /// An entry that runs a member or group, in a table without action profile.
    #[error("table `{table}` has no action profile; give its entries their actions")]
    NotIndirect {
        /// Full name of the table.
        table: String,
    },
    /// The member or group of an action profile exists.
    #[error("action profile `{profile}` has {what} {id} already")]
    ProfileExists {
        /// Full name of the profile.
        profile: String,
        /// `member` or `group`.
        what: &'static str,
        /// Its number.
        id: u32,
    },
    /// The action profile does not have the member.
    #[error("action profile `{profile}` has no member {member}; make it first")]
    NoProfileMember {
        /// Full name of the profile.
        profile: String,
        /// Number of the member.
        member: u32,
    },
    /// The action profile does not have the group.
    #[error("action profile `{profile}` has no group {group}; make it first")]
    NoGroup {
        /// Full name of the profile.
        profile: String,
        /// Number of the group.
        group: u32,
    },
    /// No room for another member or group.
    #[error("action profile `{profile}` is full with {size}; delete some or raise its size")]
    FullProfile {
        /// Full name of the profile.
        profile: String,
        /// Its size.
        size: u64,
    },
    /// A member or group that entries or groups name.
    #[error("{what} {id} of action profile `{profile}` is in use; change what names it first")]
    InUse {
        /// Full name of the profile.
        profile: String,
        /// `member` or `group`.
        what: &'static str,
        /// Its number.
        id: u32,
    },
    /// Weights of members that are 0, or too great together.
    #[error("members of action profile `{profile}` weigh from 1 to {limit}, together")]
    Weights {
        /// Full name of the profile.
        profile: String,
        /// The greatest sum.
        limit: u64,
    },
    /// No room for another entry.
    #[error("table `{table}` is full with {size} entries; delete one or raise `size`")]
    Full {
        /// Full name of the table.
        table: String,
        /// Its size.
        size: u64,
    },
    /// The program forbids the change.
    #[error("{what} of table `{table}` is const in the program and cannot be changed")]
    Constant {
        /// Full name of the table.
        table: String,
        /// Name of the thing that cannot be changed.
        what: &'static str,
    },
    /// An element that does not exist.
    #[error("{kind} `{name}` has {size} elements, numbered from 0; there is no element {index}")]
    Index {
        /// Kind of the array.
        kind: Kind,
        /// Its full name.
        name: String,
        /// The element asked for.
        index: u64,
        /// Number of elements.
        size: u64,
    },
    /// A value of another shape than the register's elements.
    #[error("{place} is {expected}; give it {wanted}")]
    Shape {
        /// The register, or a member of it.
        place: String,
        /// Declared shape.
        expected: String,
        /// Accepted notations.
        wanted: &'static str,
    },
    /// Text that is not a value.
    #[error("`{text}` is no value; write {expected}")]
    Text {
        /// The text.
        text: String,
        /// Accepted notations.
        expected: &'static str,
    },
    /// Rates or bursts of a meter that contradict each other.
    #[error("meter `{name}`: {why}")]
    MeterConfig {
        /// Full name of the meter.
        name: String,
        /// The error and how to mend it.
        why: &'static str,
    },
    /// An object that takes too much memory.
    #[error("{what} takes {size} words of 16 bytes; the limit is {limit}; make it smaller")]
    TooLarge {
        /// Kind of the object.
        what: String,
        /// Its size in words.
        size: u64,
        /// The limit in words.
        limit: u64,
    },
    /// Types nested too deep.
    #[error("types are nested deeper than {limit}, or one contains itself; flatten them")]
    TooDeep {
        /// The limit.
        limit: u32,
    },
    /// Something of the program that this target does not have.
    #[error("{what} in `{place}` is not supported by this target; {instead}")]
    Unsupported {
        /// Name of the unsupported thing.
        what: &'static str,
        /// Position in the program.
        place: String,
        /// Replacement that is supported.
        instead: &'static str,
    },
}

impl StateError {
    /// Error for a wrong action name; `owner` has the actions `names`.
    pub(crate) fn unknown_action<'a>(
        owner: &str,
        action: &str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) -> StateError {
        let mut near = names::near(names.clone(), action);
        if near.is_empty() {
            near = names.map(str::to_owned).collect();
        }
        StateError::UnknownAction {
            owner: owner.to_owned(),
            action: action.to_owned(),
            near,
        }
    }

    /// Stable code, `TG` and three digits.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "TG001",
            Self::Ambiguous { .. } => "TG002",
            Self::UnknownAction { .. } => "TG003",
            Self::ActionNotAllowed { .. } => "TG004",
            Self::KeyCount { .. } => "TG005",
            Self::KeyKind { .. } => "TG006",
            Self::TooWide { .. } => "TG007",
            Self::PrefixLength { .. } => "TG008",
            Self::OutsideMask { .. } => "TG009",
            Self::EmptyRange { .. } => "TG010",
            Self::DataCount { .. } => "TG011",
            Self::Priority { .. } => "TG012",
            Self::Duplicate { .. } => "TG013",
            Self::NoEntry { .. } => "TG014",
            Self::Full { .. } => "TG015",
            Self::Constant { .. } => "TG016",
            Self::Index { .. } => "TG017",
            Self::Shape { .. } => "TG018",
            Self::Text { .. } => "TG019",
            Self::MeterConfig { .. } => "TG020",
            Self::TooLarge { .. } => "TG021",
            Self::TooDeep { .. } => "TG022",
            Self::Unsupported { .. } => "TG023",
            Self::DuplicateMember { .. } => "TG024",
            Self::NoMember { .. } => "TG025",
            Self::FullSet { .. } => "TG026",
            Self::Indirect { .. } => "TG027",
            Self::NotIndirect { .. } => "TG028",
            Self::ProfileExists { .. } => "TG029",
            Self::NoProfileMember { .. } => "TG030",
            Self::NoGroup { .. } => "TG031",
            Self::FullProfile { .. } => "TG032",
            Self::InUse { .. } => "TG033",
            Self::Weights { .. } => "TG034",
        }
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn hint(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", list(near)),
    }
}

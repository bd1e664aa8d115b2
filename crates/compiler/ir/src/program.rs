//! A whole program: its tables of entities.

use crate::{
    ActionId, ActionProfileId, Annotation, Arg, Const, ControlId, EnumDef, Expr, HashAlgorithm,
    ParserId, StackDef, StateId, Stmt, StructDef, StructId, TableId, Type, VarId,
};
use num_bigint::BigUint;

/// A checked v1model program.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Structs, headers and unions.
    pub structs: Vec<StructDef>,
    /// Header stack types.
    pub stacks: Vec<StackDef>,
    /// Enums without underlying type.
    pub enums: Vec<EnumDef>,
    /// Names of errors; `NoError` is 0. The first seven are those of core.p4 in
    /// its order.
    pub errors: Vec<String>,
    /// Variables.
    pub vars: Vec<Var>,
    /// Parsers.
    pub parsers: Vec<Parser>,
    /// Controls.
    pub controls: Vec<Control>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Match-action tables.
    pub tables: Vec<Table>,
    /// Register arrays.
    pub registers: Vec<Register>,
    /// Counters.
    pub counters: Vec<Counter>,
    /// Meters.
    pub meters: Vec<Meter>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Action profiles and action selectors.
    pub action_profiles: Vec<ActionProfile>,
    /// Metadata preserved by clone, resubmit and recirculate.
    pub field_lists: Vec<FieldList>,
    /// The six blocks of `V1Switch`.
    pub pipeline: Pipeline,
}

/// The blocks given to `V1Switch`, and the types they share. The parameters of
/// each block are, without packets: parser (out headers, inout metadata, inout
/// standard metadata); verify (inout headers, inout metadata); ingress and egress
/// (inout headers, inout metadata, inout standard metadata); compute (inout
/// headers, inout metadata); deparser (in headers).
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Parser.
    pub parser: ParserId,
    /// VerifyChecksum.
    pub verify_checksum: ControlId,
    /// Ingress.
    pub ingress: ControlId,
    /// Egress.
    pub egress: ControlId,
    /// ComputeChecksum.
    pub compute_checksum: ControlId,
    /// Deparser.
    pub deparser: ControlId,
    /// Type of the headers.
    pub headers: Type,
    /// Type of the user metadata.
    pub metadata: Type,
    /// `standard_metadata_t`; fields are found by name.
    pub standard_metadata: StructId,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Readable name with its block's: `ingress.nat.port`.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its variable.
    pub var: VarId,
    /// Its direction.
    pub direction: Direction,
}

/// Direction of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `in`, and directionless ones but action data.
    In,
    /// `out`.
    Out,
    /// `inout`.
    InOut,
    /// Action data: from the control plane, or an argument of a direct call.
    Data,
}

/// A parser instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Parser {
    /// Full name.
    pub name: String,
    /// Parameters but packets.
    pub params: Vec<Param>,
    /// Variables reset on entry (not the parameters), temporaries included.
    pub locals: Vec<VarId>,
    /// Initialisers of locals, run on entry.
    pub init: Vec<Stmt>,
    /// States.
    pub states: Vec<State>,
    /// The state `start`.
    pub start: StateId,
}

/// A parser state.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The source's name.
    pub name: String,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Transition to the next state.
    pub transition: Transition,
}

/// Transition at the end of a state.
#[derive(Clone, Debug, PartialEq)]
pub enum Transition {
    /// To one target.
    To(Target),
    /// `select`: the first case that matches; none rejects with `NoMatch`.
    Select {
        /// Scalars.
        keys: Vec<Expr>,
        /// Key sets, one for each key, and the target.
        cases: Vec<(Vec<KeySet>, Target)>,
    },
}

/// Destination of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Another state.
    State(StateId),
    /// `accept`.
    Accept,
    /// `reject`.
    Reject,
}

/// A set of values of one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySet {
    /// `_` and `default`.
    Any,
    /// One value.
    Exact(BigUint),
    /// `value &&& mask`.
    Mask(BigUint, BigUint),
    /// `lo .. hi`, both inclusive, unsigned.
    Range(BigUint, BigUint),
    /// `value` in the high `length` bits; from `lpm` entries only.
    Prefix(BigUint, u32),
    /// The key's part of the members of a value set; in parsers only. A set of `n`
    /// fields stands at `n` keys one after the other, field 0 first, and all of them
    /// must fit one and the same member.
    Member {
        /// The set.
        set: crate::ValueSetId,
        /// Position in [`ValueSet::fields`].
        field: u32,
    },
}

/// A control instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Full name.
    pub name: String,
    /// Parameters but packets.
    pub params: Vec<Param>,
    /// Variables reset on entry, temporaries included.
    pub locals: Vec<VarId>,
    /// Initialisers of locals and the `apply` block.
    pub body: Vec<Stmt>,
}

/// An action of one control instance (or of the top level).
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Full control-plane name, for example `ingress.router.forward`. `$` begins the last
    /// part of one that the check introduces around a direct call of another.
    pub name: String,
    /// Directed parameters first, then action data.
    pub params: Vec<Param>,
    /// Variables reset on entry.
    pub locals: Vec<VarId>,
    /// Statements.
    pub body: Vec<Stmt>,
    /// Annotations kept from the source.
    pub annotations: Vec<Annotation>,
}

impl Action {
    /// True if the source does not declare the parser or control: the compiler wraps it around a
    /// direct call of another.
    #[must_use]
    pub fn is_introduced(&self) -> bool {
        let last = self.name.rsplit('.').next();
        last.is_some_and(|last| last.starts_with('$'))
    }
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Parameters.
    pub params: Vec<Param>,
    /// Variables reset on entry.
    pub locals: Vec<VarId>,
    /// Holds the value to return.
    pub result: Option<VarId>,
    /// Statements.
    pub body: Vec<Stmt>,
}

/// A match-action table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Full control-plane name.
    pub name: String,
    /// Keys in order.
    pub keys: Vec<Key>,
    /// Actions that entries may name.
    pub actions: Vec<TableAction>,
    /// Default action; data arguments are constants.
    pub default_action: ActionCall,
    /// True if the control plane may not change the default action.
    pub const_default: bool,
    /// Entries of the source; with `const_entries` they are the only ones.
    pub entries: Vec<Entry>,
    /// True if the control plane may not add entries.
    pub const_entries: bool,
    /// Greatest number of entries; 1024 if the source gives none.
    pub size: u64,
    /// Counter attached as direct counter.
    pub direct_counter: Option<crate::CounterId>,
    /// Meter attached as direct meter.
    pub direct_meter: Option<crate::MeterId>,
    /// True if entries age.
    pub support_timeout: bool,
    /// Action profile of the table: each entry names a member of the profile or, if the profile has
    /// a selector, a group of members. `None`: each has its action itself. The entries of the
    /// source have their actions themselves in any case.
    pub implementation: Option<ActionProfileId>,
    /// Annotations kept from the source.
    pub annotations: Vec<Annotation>,
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Control-plane name (`@name`, or the expression as written).
    pub name: String,
    /// The value looked up.
    pub expr: Expr,
    /// Match kind of the key.
    pub match_kind: MatchKind,
}

/// Match kinds of core.p4 and v1model.p4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// Equality.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask, by priority.
    Ternary,
    /// Inclusive range, by priority.
    Range,
    /// A value or nothing, by priority.
    Optional,
    /// Input of an action selector's hash.
    Selector,
}

/// An action that a table may run.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Arguments for its directed parameters, bound in the table.
    pub bound: Vec<Arg>,
    /// True if entries may name the action (not `@defaultonly`).
    pub in_entries: bool,
    /// True if the action may be the default action (not `@tableonly`).
    pub as_default: bool,
}

/// One of a table's actions with constant action data.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionCall {
    /// Position in [`Table::actions`].
    pub action: u32,
    /// Action data in order.
    pub data: Vec<Const>,
}

/// An entry of the source.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Match values, one for each key.
    pub keys: Vec<KeySet>,
    /// Of entries that match the greatest wins, as in P4Runtime; 1 or more in tables whose
    /// entries have priorities.
    pub priority: u32,
    /// Action call of the entry.
    pub call: ActionCall,
    /// True if the control plane may not change the entry.
    pub is_const: bool,
}

/// A register array.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Full control-plane name.
    pub name: String,
    /// Element type: a scalar or a struct.
    pub element: Type,
    /// Number of elements.
    pub size: u64,
    /// Annotations kept from the source.
    pub annotations: Vec<Annotation>,
}

/// Unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Both.
    PacketsAndBytes,
}

/// An indirect counter array, or a table's direct counter.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Full control-plane name.
    pub name: String,
    /// Unit of the counter.
    pub kind: CounterKind,
    /// Number of elements; 0 for a direct counter.
    pub size: u64,
    /// The table of a direct counter.
    pub table: Option<TableId>,
}

/// A meter array, or a table's direct meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// Full control-plane name.
    pub name: String,
    /// True if the meter measures bytes rather than packets.
    pub bytes: bool,
    /// Number of elements; 0 for a direct meter.
    pub size: u64,
    /// The table of a direct meter.
    pub table: Option<TableId>,
}

/// Actions with their data, called members, that entries of one table or several name
/// in place of an action of their own (v1model's `action_profile` and
/// `action_selector`). Members and groups come from the control plane, none at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionProfile {
    /// Full control-plane name.
    pub name: String,
    /// Greatest number of members.
    pub size: u64,
    /// Selector that chooses one member of a group; `None` if there are no groups.
    pub selector: Option<Selector>,
    /// Annotations kept from the source, for example `@mode("fair")`.
    pub annotations: Vec<Annotation>,
}

/// Selector of a group's member: a hash of the table's [`MatchKind::Selector`] keys, in order,
/// modulo the number of the group's members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The hash.
    pub algorithm: HashAlgorithm,
    /// The source's width of the hash. The choice does not depend on it, as in BMv2,
    /// which takes the whole hash.
    pub output_width: u32,
}

/// A parser value set (spec §12.14): its members come from the control plane, none at
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    /// Full control-plane name.
    pub name: String,
    /// Fields of a member; one without a name of its own for a scalar set.
    pub fields: Vec<ValueSetField>,
    /// Greatest number of members.
    pub size: u64,
    /// Annotations kept from the source.
    pub annotations: Vec<Annotation>,
}

/// One field of the members of a value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSetField {
    /// The source's name; empty for the only field of a scalar set.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Match kind of the field (`@match`); exact if the source has none.
    pub match_kind: MatchKind,
}

/// Fields of the user metadata annotated `@field_list(number)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldList {
    /// The number.
    pub number: u32,
    /// Paths of member positions from the user metadata inwards.
    pub fields: Vec<Vec<u32>>,
}

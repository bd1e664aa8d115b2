//! Events that an observer of a run receives, step by step.

use stateplane_ir::{
    ActionId, Callee, CloneKind, ControlId, CounterId, Expr, HashAlgorithm, MeterId, ParserId,
    Program, RegisterId, StateId, TableId, Target, Type,
};
use stateplane_runtime::{Color, EgressInput, IngressInput, Listed, SwitchEvent};

/// Watches a program at work.
///
/// [`Interp`](crate::Interp) is compiled for each observer type: for `()`, which watches nothing,
/// events are not even computed.
pub trait Observer {
    /// True if the observer wants events. What an observer with `false` implements is never called.
    const ACTIVE: bool = true;

    /// Takes note of one step.
    fn event(&mut self, program: &Program, event: Event<'_>);
}

impl Observer for () {
    const ACTIVE: bool = false;

    fn event(&mut self, _: &Program, _: Event<'_>) {}
}

/// A value of the program at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// A scalar, in two's complement if it is signed.
    Scalar(Type, num_bigint::BigUint),
    /// A `varbit`: its length in bits, and them.
    Varbit(u32, num_bigint::BigUint),
    /// Members with their names; of a stack, the valid elements.
    Members(Vec<(String, Datum)>),
    /// A header or union that is not valid.
    Invalid,
}

/// A block of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The parser.
    Parser(ParserId),
    /// VerifyChecksum.
    VerifyChecksum(ControlId),
    /// Ingress.
    Ingress(ControlId),
    /// Egress.
    Egress(ControlId),
    /// ComputeChecksum.
    ComputeChecksum(ControlId),
    /// The deparser.
    Deparser(ControlId),
}

/// One step. Places are written as in the program's IR, with the values of indices in
/// place of their expressions.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// Ingress begins: a frame is about to be parsed.
    Ingress(&'a IngressInput<'a>),
    /// A frame is about to be parsed for a clone.
    Reparse(&'a IngressInput<'a>),
    /// Egress begins.
    Egress(&'a EgressInput),
    /// A block of the pipeline begins.
    Block(Block),
    /// The latest block that began, or callable that was called, ended.
    End,
    /// A callable is called; with the values of its parameters but `out` ones.
    Call(Callee, Vec<(String, Datum)>),
    /// A parser enters a state.
    State(ParserId, StateId),
    /// A state is left: values of the keys of `select`, if it has one; `None` if no case
    /// matches them.
    Transition(ParserId, Vec<Datum>, Option<Target>),
    /// The pipeline's parser stopped with this error.
    ParserError(u32),
    /// A header is extracted from this bit of the frame on.
    Extract {
        /// The header.
        header: String,
        /// Offset in bits.
        from: usize,
        /// Its size in bits.
        bits: usize,
        /// Its fields.
        value: Datum,
    },
    /// Bits are read ahead.
    Lookahead(String, Datum),
    /// This many bits are skipped.
    Advance(u64),
    /// A header is emitted.
    Emit(String, Datum),
    /// A table is looked up.
    Apply {
        /// The table.
        table: TableId,
        /// Values of its keys.
        keys: Vec<Datum>,
        /// The entry hit; `None` for a miss.
        entry: Option<Listed>,
        /// The action that runs; `None` where the entry's group has no members.
        action: Option<ActionId>,
        /// Its data with their names.
        data: Vec<(String, Datum)>,
    },
    /// A place is assigned to.
    Assign(String, Datum),
    /// A header becomes valid or invalid.
    Validity(String, bool),
    /// The condition of an `if`, and its value.
    Branch(&'a Expr, bool),
    /// The value that a `switch` is on, and its value.
    Switch(&'a Expr, Datum),
    /// A register is read into a place; an index past its end gives zeros.
    RegisterRead {
        /// The register.
        register: RegisterId,
        /// The element.
        index: u64,
        /// Value read; `None` past the end.
        value: Option<Datum>,
        /// Name of the place that gets the value.
        result: String,
    },
    /// A register is written; an index past its end writes nothing.
    RegisterWrite {
        /// The register.
        register: RegisterId,
        /// The element.
        index: u64,
        /// Old value; `None` past the end.
        old: Option<Datum>,
        /// Written value.
        value: Datum,
    },
    /// A counter's element counts the packet.
    Count(CounterId, u64),
    /// A meter's element colours the packet.
    Meter(MeterId, u64, Color),
    /// The colour that a direct meter gave is read.
    DirectMeter(MeterId, Color),
    /// A hash of these bytes goes to a place.
    Hash {
        /// The algorithm.
        algorithm: HashAlgorithm,
        /// The bytes.
        data: Vec<u8>,
        /// Name of the place that gets the result.
        result: String,
        /// The result, within the bounds asked for.
        value: Datum,
    },
    /// A random number goes to a place.
    Random(String, Datum),
    /// A checksum is verified.
    VerifyChecksum {
        /// Checksum in the packet.
        carried: u128,
        /// Computed checksum.
        computed: u128,
    },
    /// A checksum is put into a place.
    UpdateChecksum(String, Datum),
    /// The packet is marked to be dropped.
    MarkToDrop,
    /// A clone is asked for: kind, session, field list.
    Clone(CloneKind, u32, Option<u32>),
    /// A resubmission is asked for, with a field list.
    Resubmit(u32),
    /// A recirculation is asked for, with a field list.
    Recirculate(u32),
    /// The frame will be cut to this many bytes.
    Truncate(u32),
    /// A digest goes to the control plane.
    Digest(&'a str, Datum),
    /// An assertion at this place of the source fails.
    AssertionFailed(&'a str),
    /// The program logs a line.
    Log(String),
    /// `exit`.
    Exit,
    /// Step of the switch with the packet.
    Switched(SwitchEvent<'a>),
}

//! Values of expressions while they are checked and lowered.

use crate::types::Ty;
use num_bigint::BigInt;
use stateplane_diagnostics::Span;
use stateplane_ir as ir;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub ty: Ty,
    pub kind: ValueKind,
    pub span: Span,
}

/// Form of a value: constant or expression.
#[derive(Clone, Debug)]
pub(crate) enum ValueKind {
    /// Not known: after a reported error, or a constructor parameter of a block
    /// that is checked without being instantiated.
    Poison,
    /// A compile-time constant.
    Const(Known),
    /// A place.
    Place(ir::Place, Access),
    /// A computed value.
    Expr(ir::Expr),
    /// `{a, b}` and constants of tuple type.
    List(Vec<Value>),
    /// `{f = a}`; whether it ends in `...` is in the type.
    Record(Vec<(String, Value)>),
    /// `...`.
    Dots,
    /// `{#}`.
    Invalid,
    /// An instance of an extern object, parser or control.
    Instance(Instance),
    /// Of a call without result.
    Void,
}

/// A compile-time scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Of type `bool`.
    Bool(bool),
    /// Of a numeric type, in its range.
    Int(BigInt),
    /// Of type `string`.
    Str(String),
    /// Position of an `error`, enum member or match kind.
    Index(u32),
}

/// Access to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// A place that may be written.
    Writable,
    /// An `in` parameter.
    InParameter,
    /// A parameter without direction.
    Directionless,
    /// A temporary value.
    Temporary,
}

/// An instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Instance {
    /// `packet_in` and `packet_out`.
    Packet,
    /// A register array.
    Register(ir::RegisterId),
    /// A counter array.
    Counter(ir::CounterId),
    /// A table's counter.
    DirectCounter(ir::CounterId),
    /// A meter array.
    Meter(ir::MeterId),
    /// A table's meter.
    DirectMeter(ir::MeterId),
    /// An action profile or selector.
    ActionProfile(ir::ActionProfileId),
    /// The deprecated `Checksum16`, which has no state.
    Checksum16,
    /// A parser.
    Parser(ir::ParserId),
    /// A control.
    Control(ir::ControlId),
    /// A parser or control that is made when it is applied: position in
    /// `Made::deferred`.
    Deferred(u32),
}

impl Value {
    /// A value with a type, but unknown.
    pub(crate) fn unknown(ty: Ty, span: Span) -> Value {
        Value {
            ty,
            kind: ValueKind::Poison,
            span,
        }
    }

    /// The value of an expression with a reported error.
    pub(crate) fn poison(span: Span) -> Value {
        Value::unknown(Ty::Poison, span)
    }

    /// A constant.
    pub(crate) fn known(ty: Ty, known: Known, span: Span) -> Value {
        Value {
            ty,
            kind: ValueKind::Const(known),
            span,
        }
    }

    /// A computed value.
    pub(crate) fn expr(ty: Ty, expr: ir::Expr, span: Span) -> Value {
        Value {
            ty,
            kind: ValueKind::Expr(expr),
            span,
        }
    }

    /// True if an error in it was reported, so that no other should be.
    pub(crate) fn is_poison(&self) -> bool {
        self.ty == Ty::Poison
    }

    /// The number, if it is a constant one.
    pub(crate) fn as_int(&self) -> Option<&BigInt> {
        match &self.kind {
            ValueKind::Const(Known::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// The truth value, if it is a constant one.
    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self.kind {
            ValueKind::Const(Known::Bool(value)) => Some(value),
            _ => None,
        }
    }
}

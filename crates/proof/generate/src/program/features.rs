//! Parts of the language that a program uses. Each program lacks some, so that what one part hides
//! is seen in programs without it.

use crate::choices::Choices;

/// A part of the language or architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    Varbit,
    Stack,
    Union,
    NestedHeaders,
    Signed,
    Wide,
    Division,
    Enum,
    Serial,
    Function,
    SubControl,
    SubParser,
    Lookahead,
    Advance,
    Verify,
    Table,
    Register,
    Counter,
    Meter,
    Hash,
    Random,
    Checksum,
    Clone,
    Resubmit,
    Recirculate,
    Multicast,
    Digest,
    Exit,
    Return,
    Switch,
    HeaderOps,
    StructOps,
    Truncate,
    Log,
    Slice,
    Drop,
    Loop,
    ValueSet,
    Profile,
    Aging,
}

const COUNT: usize = Feature::Aging as usize + 1;

/// The features of one program.
#[derive(Clone, Debug)]
pub(super) struct Features([bool; COUNT]);

impl Features {
    /// Two of three features.
    pub(super) fn new(choices: &mut Choices) -> Features {
        Features(std::array::from_fn(|_| choices.chance(67)))
    }

    /// All features.
    pub(super) fn all() -> Features {
        Features([true; COUNT])
    }

    /// True if the program has it.
    pub(super) fn has(&self, feature: Feature) -> bool {
        self.0[feature as usize]
    }
}

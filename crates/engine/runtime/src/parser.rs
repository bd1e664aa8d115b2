//! The transition limit and the errors that every engine gives a parser.

/// Transitions that a parser may make for one packet; more end it with `ParserTimeout`.
pub const MAX_TRANSITIONS: u32 = 4096;

/// The errors of `core.p4`, by number.
pub mod core_error {
    /// `NoError`: a parser that rejects a packet by its own transition.
    pub const NO_ERROR: u32 = 0;
    /// `PacketTooShort`: an extraction beyond the end of the frame.
    pub const PACKET_TOO_SHORT: u32 = 1;
    /// `NoMatch`: a `select` of which no case matches.
    pub const NO_MATCH: u32 = 2;
    /// `StackOutOfBounds`: an element of a header stack that it does not have.
    pub const STACK_OUT_OF_BOUNDS: u32 = 3;
    /// `HeaderTooShort`: a `varbit` field that is longer than its maximum.
    pub const HEADER_TOO_SHORT: u32 = 4;
    /// `ParserTimeout`: more than [`MAX_TRANSITIONS`](super::MAX_TRANSITIONS).
    pub const PARSER_TIMEOUT: u32 = 5;
    /// `ParserInvalidArgument`: an extracted size that is no number of whole bytes.
    pub const PARSER_INVALID_ARGUMENT: u32 = 6;
}

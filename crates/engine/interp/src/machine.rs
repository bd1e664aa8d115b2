//! The packet at hand: variables, bytes, requests.

use crate::code::Code;
use crate::place::Spot;
use crate::units::UnitCheck;
use stateplane_ir::{Program, Type};
use stateplane_runtime::{Color, Layout, TargetState};

/// Buffers kept for later packets.
const MAX_SPARE: usize = 64;

/// A packet between ingress and egress.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// Headers, user metadata and standard metadata.
    pub(crate) words: Vec<u128>,
    /// The frame that it came from.
    pub(crate) frame: Vec<u8>,
    /// Offset of the first byte that no header holds.
    pub(crate) rest: usize,
    /// Bytes that may leave at most.
    pub(crate) limit: u32,
}

/// A clone or a packet to run again, as the program asked for it. The metadata is
/// read when the block ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    /// Session and field list of an ingress-to-egress clone.
    pub(crate) ingress_clone: Option<(u32, Option<u32>)>,
    /// Session and field list of an egress-to-egress clone.
    pub(crate) egress_clone: Option<(u32, Option<u32>)>,
    /// Field list.
    pub(crate) resubmit: Option<u32>,
    /// Field list.
    pub(crate) recirculate: Option<u32>,
}

/// Control flow after a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// With the next one.
    Next,
    /// Behind the innermost loop.
    Break,
    /// With the update of the innermost loop.
    Continue,
    /// At the end of the callable.
    Return,
    /// At the end of the architecture's block, and with the packet given up at the end of
    /// all.
    Exit,
    /// With a parser error.
    Reject(u32),
}

/// Everything that changes.
#[derive(Debug)]
pub(crate) struct Machine {
    /// All variables.
    pub(crate) words: Vec<u128>,
    /// Intermediate values.
    pub(crate) stack: Vec<u128>,
    /// Places that wait for a copy-out; `None` for one past the end of a stack.
    pub(crate) spots: Vec<Option<Spot>>,
    pub(crate) state: TargetState,
    /// The frame at hand.
    pub(crate) frame: Vec<u8>,
    /// Bit of the frame that the parser reads next.
    pub(crate) cursor: usize,
    /// Offset of the unparsed part of the frame, in bytes.
    pub(crate) rest: usize,
    /// Bytes that may leave at most.
    pub(crate) limit: u32,
    /// Time in µs.
    pub(crate) now: u64,
    pub(crate) transitions: u32,
    /// Rounds that the loops of the block at hand may still begin.
    pub(crate) rounds: u32,
    /// True if the loop limit was exceeded, so that the packet is dropped.
    pub(crate) gave_up: bool,
    pub(crate) in_parser: bool,
    /// A parser error that an expression met.
    pub(crate) fault: Option<u32>,
    pub(crate) requests: Requests,
    /// Bytes that the deparser emitted, and the number of free bits in the last one.
    pub(crate) emitted: Vec<u8>,
    pub(crate) emitted_free: u32,
    /// Data of a hash or checksum.
    pub(crate) data: Vec<u8>,
    /// Last result of each direct meter.
    pub(crate) colors: Vec<Color>,
    /// In tests, checks of what atomic blocks use.
    pub(crate) units: Option<Box<UnitCheck>>,
    pub(crate) spare_words: Vec<Vec<u128>>,
    pub(crate) spare_frames: Vec<Vec<u8>>,
}

impl Machine {
    pub(crate) fn new(code: &Code, state: TargetState) -> Machine {
        Machine {
            words: vec![0; code.words],
            stack: Vec::new(),
            spots: Vec::new(),
            frame: Vec::new(),
            cursor: 0,
            rest: 0,
            limit: u32::MAX,
            now: 0,
            transitions: 0,
            rounds: 0,
            gave_up: false,
            in_parser: false,
            fault: None,
            requests: Requests::default(),
            emitted: Vec::new(),
            emitted_free: 0,
            data: Vec::new(),
            colors: vec![Color::Green; state.meters().len()],
            state,
            units: None,
            spare_words: Vec::new(),
            spare_frames: Vec::new(),
        }
    }

    /// Makes the machine's packet one in flight.
    pub(crate) fn store(&mut self, code: &Code) -> InFlight {
        let mut words = self.spare_words.pop().unwrap_or_default();
        words.clear();
        words.extend_from_slice(&self.words[code.packet.clone()]);
        let mut frame = self.spare_frames.pop().unwrap_or_default();
        std::mem::swap(&mut frame, &mut self.frame);
        InFlight {
            words,
            frame,
            rest: self.rest,
            limit: self.limit,
        }
    }

    /// A copy of the machine's packet.
    pub(crate) fn copy(&mut self, code: &Code) -> InFlight {
        let frame = self.frame.clone();
        let copy = self.store(code);
        self.frame = frame;
        copy
    }

    /// Takes a packet in flight on.
    pub(crate) fn load(&mut self, code: &Code, packet: InFlight) {
        self.words[code.packet.clone()].copy_from_slice(&packet.words);
        let frame = std::mem::replace(&mut self.frame, packet.frame);
        self.rest = packet.rest;
        self.limit = packet.limit;
        if self.spare_words.len() < MAX_SPARE {
            self.spare_words.push(packet.words);
        }
        if self.spare_frames.len() < MAX_SPARE {
            self.spare_frames.push(frame);
        }
    }

    /// Starts a block.
    pub(crate) fn start_block(&mut self, now: u64) {
        self.now = now;
        self.fault = None;
        self.gave_up = false;
        self.in_parser = false;
        self.requests = Requests::default();
        self.stack.clear();
        self.spots.clear();
    }
}

/// A run through one block: the program, and the machine that it changes.
pub(crate) struct Run<'a, O> {
    pub(crate) code: &'a Code,
    pub(crate) m: &'a mut Machine,
    pub(crate) o: &'a mut O,
}

impl<'a, O> Run<'a, O> {
    pub(crate) fn program(&self) -> &'a Program {
        &self.code.program
    }

    pub(crate) fn layout(&self) -> &'a Layout {
        &self.code.layout
    }

    pub(crate) fn size(&self, ty: Type) -> usize {
        self.code.layout.words(ty)
    }

    /// The parser error that an expression met, if any.
    pub(crate) fn faulted(&mut self) -> Option<Flow> {
        self.m.fault.take().map(Flow::Reject)
    }
}

//! Bounded inconsistency: of which arrays snapshots are kept, and how often.

use crate::annotation::{Merge, Otherwise, Replicated};
use crate::codes;
use crate::names::Names;
use crate::state::{State, States};
use crate::{Array, STATE_BITS, Snapshots};
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use std::collections::BTreeSet;

/// Most bits of an element, each of which has a word of its own in the store.
pub(crate) const ELEMENT_BITS: u32 = 32;
/// Maximum number of elements of an array, each of which is a record of its own.
const MOST_ELEMENTS: u64 = 65_536;
/// Most frames that the packet generator is asked for in a millisecond.
const MOST_FRAMES: u64 = 1_000;
/// Snapshots begun within the bound where the annotation does not say how often.
const WITHIN_BOUND: u32 = 3;

/// An array, and what it is called in the protected program.
pub(crate) struct Kept {
    /// Position of the register's declaration.
    pub(crate) declared: Span,
    pub(crate) bits: u32,
    pub(crate) size: u64,
    /// Its value in a frame of the walk.
    pub(crate) field: String,
    /// Register of both copies, and its name for control planes.
    pub(crate) copies: String,
    pub(crate) copies_name: String,
    /// Register of the bits, and its name for control planes.
    pub(crate) updated: String,
    pub(crate) updated_name: String,
    /// Actions that take the place of the register's methods.
    pub(crate) read: String,
    pub(crate) write: String,
    pub(crate) merge: Merge,
}

/// All arrays, and how their snapshots are kept.
pub(crate) struct Plan {
    pub(crate) arrays: Vec<Kept>,
    /// Elements of the largest.
    pub(crate) elements: u64,
    /// T_snap and ε, in ms.
    pub(crate) period: u32,
    pub(crate) bound: u32,
    pub(crate) otherwise: Otherwise,
    /// Frames of the packet generator in a millisecond.
    pub(crate) batch: u32,
}

impl Plan {
    /// The plan of a program; `None` if its snapshots cannot be kept, which is reported.
    pub(crate) fn new(
        states: &States<'_>,
        names: &Names,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let keyed = &states.keyed;
        let bound = keyed.bound?;
        let period = keyed
            .snapshot_period
            .unwrap_or((bound / WITHIN_BOUND).max(1));
        if bound <= period {
            diagnostics.push(
                Diagnostic::error(
                    codes::MODE,
                    keyed.span,
                    format!("the bound is {bound} ms, and a snapshot is begun each {period} ms"),
                )
                .with_note("a snapshot is as old as the time since it was begun, and the one before it counts until it is complete")
                .with_help("let the bound be two or three snapshot periods long"),
            );
            return None;
        }
        for state in &states.all {
            if let Some((message, help)) = objection(state) {
                let span = state.annotation.span;
                diagnostics.push(Diagnostic::error(codes::ARRAY, span, message).with_help(help));
                return None;
            }
        }
        let bits = ELEMENT_BITS as usize * (1 + states.all.len());
        if bits > STATE_BITS as usize {
            let count = states.all.len();
            let most = STATE_BITS / ELEMENT_BITS - 1;
            let message = format!("{count} arrays are replicated; {most} is the most");
            diagnostics.push(
                Diagnostic::error(codes::ARRAY, keyed.span, message)
                    .with_help("make one array of several, one behind the other"),
            );
            return None;
        }
        let elements = states.all.iter().map(|state| state.size).max()?;
        Some(Self {
            arrays: kept(states, names),
            elements,
            period,
            bound,
            otherwise: keyed.otherwise.unwrap_or(Otherwise::GoOn),
            batch: batch(keyed, elements, period, bound, diagnostics)?,
        })
    }

    /// The array of a register, by the place of its declaration.
    pub(crate) fn array(&self, declared: Span) -> Option<&Kept> {
        self.arrays.iter().find(|array| array.declared == declared)
    }

    /// Bytes of the record of an element: the snapshot's number, and each array's value.
    pub(crate) fn state_bytes(&self) -> u32 {
        ELEMENT_BITS / 8 * (1 + self.arrays.len() as u32)
    }

    /// Description of the snapshots for hosts and simulators.
    pub(crate) fn told(&self, states: &States<'_>) -> Snapshots {
        let arrays = self.arrays.iter().zip(&states.all);
        Snapshots {
            elements: self.elements as u32,
            period: self.period,
            bound: self.bound,
            batch: self.batch,
            arrays: arrays
                .map(|(kept, state)| Array {
                    register: state.control_name.clone(),
                    elements: kept.size as u32,
                    copies: kept.copies_name.clone(),
                    updated: kept.updated_name.clone(),
                })
                .collect(),
        }
    }
}

/// Why no snapshots can be kept of a register, and what helps.
fn objection(state: &State<'_>) -> Option<(String, &'static str)> {
    let name = &state.declaration.name;
    if state.signed || state.bits > ELEMENT_BITS {
        let kind = if state.signed { "int" } else { "bit" };
        let bits = state.bits;
        return Some((
            format!("the elements of `{name}` are {kind}<{bits}>"),
            "use elements of bit<32> or narrower",
        ));
    }
    (state.size == 0 || state.size > MOST_ELEMENTS).then(|| {
        (
            format!(
                "`{name}` has {} elements; 1 to {MOST_ELEMENTS} can be kept",
                state.size
            ),
            "use a smaller array: each element is a record of its own",
        )
    })
}

/// Frames in a millisecond that make a walk over all elements, twice, take half of the time
/// that the period and the bound leave it.
fn batch(
    keyed: &Replicated,
    elements: u64,
    period: u32,
    bound: u32,
    diagnostics: &mut Diagnostics,
) -> Option<u32> {
    let frames = 2 * elements;
    let time = (period.min(bound - period) / 2).max(1);
    let batch = frames.div_ceil(time.into());
    if batch > MOST_FRAMES {
        diagnostics.push(
            Diagnostic::error(
                codes::ARRAY,
                keyed.span,
                format!("snapshots of {elements} elements each {period} ms are not kept within {bound} ms"),
            )
            .with_note(format!("a snapshot takes {frames} frames of the packet generator, which would be {batch} in a millisecond; {MOST_FRAMES} is the most"))
            .with_help("use smaller arrays, or a longer bound and snapshot period"),
        );
        return None;
    }
    Some(batch as u32)
}

/// The arrays with unused names.
fn kept(states: &States<'_>, names: &Names) -> Vec<Kept> {
    let mut taken = BTreeSet::new();
    let arrays = states.all.iter().map(|state| {
        let mut base = state.declaration.name.to_string();
        while !taken.insert(base.clone()) {
            base.push('_');
        }
        let free = |what: &str| names.free(&format!("{base}_{what}"));
        Kept {
            declared: state.declaration.name.span,
            bits: state.bits,
            size: state.size,
            copies: free("copies"),
            copies_name: format!("{}.copies", state.control_name),
            updated: free("updated"),
            updated_name: format!("{}.updated", state.control_name),
            read: free("read"),
            write: free("write"),
            merge: state.annotation.merge.unwrap_or(Merge::Add),
            field: base,
        }
    });
    arrays.collect()
}

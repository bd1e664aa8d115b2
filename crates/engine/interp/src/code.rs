//! Values computed once for a program.

use stateplane_ir::{ParserId, Program, VarId};
use stateplane_runtime::{StateError, Storage};
use std::ops::{Deref, Range};

/// Variables that a callable resets when it is entered, as ranges of words.
pub(crate) type Resets = Vec<Range<usize>>;

/// A program with the storage of its variables.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) program: Program,
    storage: Storage,
    pub(crate) parser_resets: Vec<Resets>,
    pub(crate) control_resets: Vec<Resets>,
    pub(crate) action_resets: Vec<Resets>,
    pub(crate) function_resets: Vec<Resets>,
}

impl Deref for Code {
    type Target = Storage;

    fn deref(&self) -> &Storage {
        &self.storage
    }
}

impl Code {
    /// Lays out a verified program.
    pub(crate) fn new(program: Program) -> Result<Code, StateError> {
        let storage = Storage::new(&program)?;
        let resets = |locals: &[VarId]| {
            let ranges = locals.iter().map(|var| {
                let start = storage.bases[var.index()];
                start..start + storage.layout.words(program.vars[var.index()].ty)
            });
            merged(ranges.collect())
        };
        let parser_resets = program.parsers.iter().map(|p| resets(&p.locals)).collect();
        let control_resets = program.controls.iter().map(|c| resets(&c.locals)).collect();
        let action_resets = program.actions.iter().map(|a| resets(&a.locals)).collect();
        let function_resets = program
            .functions
            .iter()
            .map(|f| {
                let locals: Vec<VarId> = f.locals.iter().copied().chain(f.result).collect();
                resets(&locals)
            })
            .collect();
        Ok(Code {
            parser_resets,
            control_resets,
            action_resets,
            function_resets,
            storage,
            program,
        })
    }

    /// The pipeline's parser.
    pub(crate) fn parser(&self) -> ParserId {
        self.program.pipeline.parser
    }
}

/// Ranges in order, those that touch made one.
fn merged(mut ranges: Resets) -> Resets {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Resets = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

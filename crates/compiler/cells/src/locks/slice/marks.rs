//! Marks of values at one place of a program: those that depend on more than the frame and entries
//! of tables, and those that depend on the frame's bytes.

use super::super::leaves::{Leaf, Leaves};
use super::super::state::Set;
use stateplane_ir::passes::places;
use stateplane_ir::{Expr, ExprKind, Place};
use std::ops::Range;

/// Marks of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// It may depend on registers that packets write, on time or on chance.
    pub unknown: bool,
    /// It may depend on bytes of the frame.
    pub bytes: bool,
}

impl Mark {
    pub const UNKNOWN: Mark = Mark {
        unknown: true,
        bytes: false,
    };
    pub const BYTES: Mark = Mark {
        unknown: false,
        bytes: true,
    };

    pub fn or(self, other: Mark) -> Mark {
        Mark {
            unknown: self.unknown || other.unknown,
            bytes: self.bytes || other.bytes,
        }
    }
}

/// Marks of all leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    unknown: Set,
    bytes: Set,
}

impl Marks {
    pub fn get(&self, leaf: Leaf) -> Mark {
        Mark {
            unknown: self.unknown.has(leaf),
            bytes: self.bytes.has(leaf),
        }
    }

    /// Adds a mark to a leaf that has others.
    pub fn add(&mut self, leaf: Leaf, mark: Mark) {
        if mark.unknown {
            self.unknown.add(leaf);
        }
        if mark.bytes {
            self.bytes.add(leaf);
        }
    }

    /// Gives a leaf that is written a mark in place of its old ones.
    pub fn set(&mut self, leaf: Leaf, mark: Mark) {
        self.unknown.remove(leaf);
        self.bytes.remove(leaf);
        self.add(leaf, mark);
    }

    pub fn unite(&mut self, other: &Marks) {
        self.unknown.unite(&other.unknown);
        self.bytes.unite(&other.bytes);
    }

    /// The marks of several leaves as one.
    pub fn of(&self, leaves: Range<Leaf>) -> Mark {
        leaves.fold(Mark::default(), |mark, leaf| mark.or(self.get(leaf)))
    }

    pub fn of_expr(&self, expr: &Expr, leaves: &Leaves<'_>) -> Mark {
        let mut mark = Mark::default();
        places(expr, &mut |place| {
            mark = mark.or(self.of(leaves.spot(place).leaves));
        });
        mark
    }

    /// The marks of a value's leaves, of which there are so many.
    pub fn of_value(&self, expr: &Expr, count: usize, leaves: &Leaves<'_>) -> Vec<Mark> {
        match &expr.kind {
            ExprKind::Read(place) => self.of_place(place, count, leaves),
            ExprKind::Record(members) => {
                let mut marks = Vec::with_capacity(count);
                for member in members {
                    marks.extend(self.of_value(member, leaves.of(member.ty), leaves));
                }
                // A header begins with its validity.
                let valid = count.saturating_sub(marks.len());
                marks.splice(0..0, std::iter::repeat_n(Mark::default(), valid));
                marks.truncate(count);
                marks
            }
            _ => vec![self.of_expr(expr, leaves); count],
        }
    }

    /// The marks of a place's leaves, of which there are so many.
    pub fn of_place(&self, place: &Place, count: usize, leaves: &Leaves<'_>) -> Vec<Mark> {
        let spot = leaves.spot(place);
        if spot.exact && spot.leaves.len() == count {
            spot.leaves.map(|leaf| self.get(leaf)).collect()
        } else {
            vec![self.of(spot.leaves); count]
        }
    }

    /// Writes a place, if it is not `weak` in place of what was there.
    pub fn write(&mut self, place: &Place, marks: &[Mark], weak: bool, leaves: &Leaves<'_>) {
        let spot = leaves.spot(place);
        let is_whole = spot.exact && spot.slice.is_none() && spot.union.is_none();
        if is_whole && spot.leaves.len() == marks.len() {
            for (leaf, mark) in spot.leaves.zip(marks) {
                if weak {
                    self.add(leaf, *mark);
                } else {
                    self.set(leaf, *mark);
                }
            }
        } else {
            let all = marks.iter().fold(Mark::default(), |all, it| all.or(*it));
            for leaf in spot.union.unwrap_or(spot.leaves) {
                self.add(leaf, all);
            }
        }
    }
}

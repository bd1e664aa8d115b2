//! Facts that are certain of a place after it was written.

use super::Lint;
use super::layout::{Fact, Layout, Place};
use stateplane_syntax::tree::{Expr, ExprKind};

impl<'t> Lint<'t, '_> {
    /// The place gets a value.
    pub(super) fn assign(&mut self, place: &Place<'t>) {
        self.note_write(place);
        if self.flow.is_dead() {
            return;
        }
        let (at, layout) = match &place.around {
            Some((at, layout)) => (*at, layout),
            None => (place.at, &place.layout),
        };
        layout.each(at, &mut |fact, kind| {
            for fact in place.copies(fact) {
                self.flow.set(fact, kind != Fact::Invalid);
            }
        });
        if place.header.is_none() {
            self.others_invalid(place);
        }
    }

    fn note_write(&mut self, place: &Place<'t>) {
        let local = &mut self.locals[place.id];
        local.written = true;
        let inside = self.body.outside;
        if inside == 0 || local.depth >= inside {
            return;
        }
        let (base, size) = (local.base, local.layout.size());
        let facts = match (place.range(), &place.union) {
            (Some(range), None) => range,
            _ => base..base + size,
        };
        for fact in facts {
            self.body.touched.set(fact, true);
        }
    }

    /// Of the members of a union, only that in which `place` is may be valid.
    fn others_invalid(&mut self, place: &Place<'t>) {
        let Some((at, layout, member)) = &place.union else {
            return;
        };
        let Layout::Union(members) = &**layout else {
            return;
        };
        let others = members.list.iter().map(|(_, offset, _)| at + offset);
        for header in others.filter(|header| header != member) {
            if place.spread.is_none() {
                self.flow.set(header, true);
                self.flow.set(header + 1, false);
            }
        }
    }

    /// A header becomes valid or invalid.
    pub(super) fn set_validity(&mut self, place: &Place<'t>, valid: bool) {
        self.note_write(place);
        if self.flow.is_dead() || !matches!(*place.layout, Layout::Header(_)) {
            return;
        }
        if !valid && place.spread.is_none() {
            // It was meant.
            self.assign(place);
        }
        for fact in place.copies(place.at) {
            // Of an element that is not known, nothing is certain.
            if valid || place.spread.is_none() {
                self.flow.set(fact, !valid);
                self.flow.set(fact + 1, valid);
            }
        }
        if valid {
            self.others_invalid(place);
        }
    }

    /// The facts about a value that an assignment copies.
    pub(super) fn copied(&self, value: &'t Expr) -> Option<Place<'t>> {
        self.place(value).filter(|place| place.range().is_some())
    }

    /// After the assignment of `value`: what is known of its parts is known of the target's.
    pub(super) fn copy(&mut self, source: Option<Place<'t>>, target: &'t Expr, value: &'t Expr) {
        if let Some(place) = self.place(target) {
            self.copy_to(source, &place, value);
        }
    }

    /// Like [`Lint::copy`], to a place.
    pub(super) fn copy_to(
        &mut self,
        source: Option<Place<'t>>,
        target: &Place<'t>,
        value: &'t Expr,
    ) {
        if self.flow.is_dead() {
            return;
        }
        if let ExprKind::Invalid = value.kind {
            target.layout.each(target.at, &mut |fact, kind| {
                if target.spread.is_none() && matches!(kind, Fact::Invalid | Fact::Sound) {
                    self.flow.set(fact, kind == Fact::Invalid);
                }
            });
            return;
        }
        let (Some(source), Some(range)) = (source, target.range()) else {
            return;
        };
        let same = source.layout.size() == range.len()
            && matches!(
                (&*source.layout, &*target.layout),
                (Layout::Header(_), Layout::Header(_))
                    | (Layout::Struct(_), Layout::Struct(_))
                    | (Layout::Union(_), Layout::Union(_))
                    | (Layout::Stack(..), Layout::Stack(..))
            );
        if same {
            self.flow.copy(source.at, range.start, range.len());
        }
    }
}

//! Externs that v1model keeps for older programs, in terms of those that replaced them.

use crate::architecture::Taken;
use crate::checker::Checker;
use crate::codes;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Access, Value, ValueKind};
use num_bigint::BigUint;
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, Op};

/// Numbers of field lists that a program writes out where it uses them; those of
/// `@field_list` are below.
const FIRST_LIST: u32 = 256;

/// Fields given to `clone3`, `resubmit` or `recirculate`.
#[derive(Clone, Debug)]
pub(crate) struct WrittenList {
    fields: Vec<(ir::Place, Span)>,
}

impl Taken<'_, '_> {
    /// The field list of the argument `data`.
    pub(crate) fn written_list(&mut self) -> Option<ir::Expr> {
        let value = self.value()?;
        self.checker().written_list(value)
    }
}

impl Checker<'_> {
    fn written_list(&mut self, data: Value) -> Option<ir::Expr> {
        let mut fields = Vec::new();
        self.listed_fields(data, &mut fields)?;
        let lists = &mut self.made.written_lists;
        lists.push(WrittenList { fields });
        let number = FIRST_LIST + lists.len() as u32 - 1;
        Some(crate::expr::bits(number, 32))
    }

    fn listed_fields(&mut self, data: Value, fields: &mut Vec<(ir::Place, Span)>) -> Option<()> {
        match data.kind {
            ValueKind::List(elements) => elements
                .into_iter()
                .try_for_each(|element| self.listed_fields(element, fields)),
            ValueKind::Place(place, _) => {
                fields.push((place, data.span));
                Some(())
            }
            ValueKind::Poison => None,
            _ => {
                self.not_preserved(data.span);
                None
            }
        }
    }

    fn not_preserved(&mut self, span: Span) {
        self.report(
            Diagnostic::error(
                codes::FIELD_LIST,
                span,
                "only fields of the user metadata can be preserved",
            )
            .with_help("copy the value to a field of the metadata, and list that"),
        );
    }

    /// The written lists as paths from the user metadata. What lies in the standard
    /// metadata is left out: the switch sets it anew for each copy.
    pub(crate) fn written_field_lists(
        &mut self,
        metadata: ir::Type,
        standard: ir::Type,
    ) -> Vec<ir::FieldList> {
        let mut lists = Vec::new();
        for (number, list) in (FIRST_LIST..).zip(self.made.written_lists.clone()) {
            let mut fields = Vec::new();
            for (place, span) in list.fields {
                let ty = self.out.vars[place.var.index()].ty;
                let steps = place.path.iter().map(|step| match step {
                    ir::Projection::Field(field) => Some(*field),
                    _ => None,
                });
                match steps.collect::<Option<Vec<u32>>>() {
                    Some(path) if ty == metadata => fields.push(path),
                    Some(_) if ty == standard => {}
                    _ => self.not_preserved(span),
                }
            }
            lists.push(ir::FieldList { number, fields });
        }
        lists
    }

    /// The standard metadata that `mark_to_drop()` means: what is in scope. In an action outside
    /// of controls there are none; those that use it decide.
    pub(crate) fn standard_metadata_in_scope(&mut self, span: Span) -> Option<ir::Place> {
        if self.callable.lacks_metadata {
            self.callable.wants_metadata = true;
            return None;
        }
        if let Some(metadata) = &self.metadata {
            return Some(metadata.clone());
        }
        let found = self.frames.iter().rev().flat_map(|frame| frame.values());
        let place = found
            .filter_map(|symbol| match &symbol.entity {
                Entity::Value(value) => Some(value),
                _ => None,
            })
            .find_map(|value| match (&value.ty, &value.kind) {
                (Ty::Struct(id), ValueKind::Place(place, Access::Writable))
                    if self.types.info(*id).name == "standard_metadata_t" =>
                {
                    Some(place.clone())
                }
                _ => None,
            });
        if place.is_none() {
            self.unsupported(
                span,
                "`mark_to_drop` where no standard metadata can be written",
                "hand the standard metadata over, and write mark_to_drop(standard_metadata)",
            );
        }
        place
    }
}

/// `Checksum16.get(data)`: the Internet checksum of the data.
pub(crate) fn checksum16(taken: &mut Taken<'_, '_>, result: ir::Place) -> Option<Op> {
    let data = taken.scalars()?;
    Some(Op::Hash {
        result,
        algorithm: ir::HashAlgorithm::Csum16,
        base: crate::expr::bits(0, 16),
        data,
        max: ir::Expr {
            kind: ir::ExprKind::Const(ir::Const::Bits(BigUint::from(1u32 << 16))),
            ty: ir::Type::Bits(32),
        },
    })
}

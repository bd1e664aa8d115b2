//! Table properties other than keys, actions and entries.

use crate::checker::Checker;
use crate::codes;
use crate::interface::property_object_name;
use crate::types::Ty;
use crate::value::{Instance, ValueKind};
use num_traits::ToPrimitive;
use stateplane_diagnostics::{Diagnostic, Span, nearest};
use stateplane_ir::{self as ir};
use stateplane_syntax::tree::{self, ExprKind};

/// Properties of core P4 and v1model.
const PROPERTIES: [&str; 10] = [
    "key",
    "actions",
    "default_action",
    "entries",
    "size",
    "counters",
    "meters",
    "implementation",
    "support_timeout",
    "largest_priority_wins",
];

impl<'a> Checker<'a> {
    pub(crate) fn check_properties(&mut self, decl: &'a tree::TableDecl) {
        for (position, property) in decl.properties.iter().enumerate() {
            let name = property.name.as_str();
            let earlier = decl.properties[..position]
                .iter()
                .find(|other| other.name.name == property.name.name);
            if let Some(earlier) = earlier {
                self.duplicate(&property.name, earlier.name.span);
            }
            let known = PROPERTIES.contains(&name) || name == "priority_delta";
            if !known {
                let diagnostic = Diagnostic::warning(
                    codes::UNKNOWN_PROPERTY,
                    property.name.span,
                    format!("v1model knows no table property `{name}`; it has no effect"),
                );
                self.report(match nearest(name, PROPERTIES) {
                    Some(near) => diagnostic.with_help(format!("did you mean `{near}`?")),
                    None => diagnostic,
                });
            }
        }
    }

    pub(crate) fn table_property(
        &mut self,
        property: &'a tree::TableProperty,
        expr: &'a tree::Expr,
        id: ir::TableId,
        table: &mut ir::Table,
    ) {
        match property.name.as_str() {
            "size" => {
                let size = self.property_int(expr, "the size of a table");
                match size.to_u64() {
                    Some(size) => table.size = size,
                    None => self.report(
                        Diagnostic::error(
                            codes::OUT_OF_RANGE,
                            expr.span,
                            format!("a table cannot have {size} entries"),
                        )
                        .with_help("the size is a number from 0 to 2^64 - 1"),
                    ),
                }
            }
            "support_timeout" => {
                table.support_timeout = self.constant_bool(expr, "`support_timeout`", false);
            }
            "counters" | "meters" => self.direct_object(property, expr, id, table),
            "implementation" => self.implementation(property, expr, table),
            _ => {}
        }
    }

    pub(crate) fn direct_object(
        &mut self,
        property: &'a tree::TableProperty,
        expr: &'a tree::Expr,
        id: ir::TableId,
        table: &mut ir::Table,
    ) {
        let value = match &expr.kind {
            ExprKind::Construct { ty, args } => {
                let made = property_object_name(property, &table.name);
                self.construct(ty, args, Some(made), &property.annotations, expr.span)
            }
            _ => self.expr(expr),
        };
        let property = property.name.as_str();
        let attached = match (property, &value.kind) {
            ("counters", ValueKind::Instance(Instance::DirectCounter(counter))) => {
                table.direct_counter = Some(*counter);
                self.out.counters[counter.index()].table.replace(id)
            }
            ("meters", ValueKind::Instance(Instance::DirectMeter(meter))) => {
                table.direct_meter = Some(*meter);
                self.out.meters[meter.index()].table.replace(id)
            }
            (_, ValueKind::Poison) => None,
            _ => {
                let wanted = if property == "counters" {
                    "direct_counter"
                } else {
                    "direct_meter"
                };
                self.report(
                    Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        expr.span,
                        format!("`{property}` is a `{wanted}`"),
                    )
                    .with_help(format!("declare one: {wanted}(…) name;")),
                );
                None
            }
        };
        if let Some(other) = attached {
            let declared = self.made.tables[other.index()].span;
            self.report(
                Diagnostic::error(
                    codes::DIRECT_OBJECT_SHARED,
                    expr.span,
                    "a direct counter or meter belongs to one table",
                )
                .with_secondary(declared, "it belongs to this one")
                .with_help("declare another for this table"),
            );
        }
    }

    fn implementation(
        &mut self,
        property: &'a tree::TableProperty,
        expr: &'a tree::Expr,
        table: &mut ir::Table,
    ) {
        let value = match &expr.kind {
            ExprKind::Construct { ty, args } => {
                let made = property_object_name(property, &table.name);
                self.construct(ty, args, Some(made), &property.annotations, expr.span)
            }
            _ => self.expr(expr),
        };
        match value.kind {
            ValueKind::Instance(Instance::ActionProfile(profile)) => {
                table.implementation = Some(profile);
                self.same_selection(profile, table, expr.span);
            }
            ValueKind::Poison => {}
            _ => self.report(
                Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    expr.span,
                    "`implementation` is an `action_profile` or an `action_selector`",
                )
                .with_help("declare one: action_profile(128) name;"),
            ),
        }
    }

    /// Reports a selector that hashes other keys in another table: its groups could not
    /// be shared.
    fn same_selection(&mut self, profile: ir::ActionProfileId, table: &ir::Table, span: Span) {
        if self.out.action_profiles[profile.index()].selector.is_none() {
            return;
        }
        let inputs = |table: &ir::Table| -> Vec<ir::Expr> {
            let keys = table.keys.iter();
            let inputs = keys.filter(|key| key.match_kind == ir::MatchKind::Selector);
            inputs.map(|key| key.expr.clone()).collect()
        };
        let wanted = inputs(table);
        let other = self
            .out
            .tables
            .iter()
            .position(|other| other.implementation == Some(profile) && inputs(other) != wanted);
        if let Some(other) = other {
            let declared = self.made.tables[other].span;
            self.report(
                Diagnostic::error(
                    codes::SELECTOR_INPUTS,
                    span,
                    "two tables share an action selector, but have other `selector` keys",
                )
                .with_secondary(declared, "the other table")
                .with_help("give both the same `selector` keys in the same order, or each its own selector"),
            );
        }
    }

    /// Drops the `selector` keys of a table without an action selector, as BMv2 does:
    /// nothing hashes them.
    pub(crate) fn selector_keys(
        &mut self,
        decl: &'a tree::TableDecl,
        table: &mut ir::Table,
        types: &mut Vec<Ty>,
    ) {
        let profile = table
            .implementation
            .map(|profile| &self.out.action_profiles[profile.index()]);
        let selects = profile.is_some_and(|profile| profile.selector.is_some());
        let kinds: Vec<ir::MatchKind> = table.keys.iter().map(|key| key.match_kind).collect();
        if selects || !kinds.contains(&ir::MatchKind::Selector) {
            return;
        }
        if !self.foreign {
            self.report(
                Diagnostic::warning(
                    codes::UNKNOWN_PROPERTY,
                    decl.name.span,
                    format!(
                        "the `selector` keys of the table `{}`, which has no action selector, are ignored",
                        decl.name
                    ),
                )
                .with_help("add `implementation = action_selector(HashAlgorithm.crc16, 128, 16);`"),
            );
        }
        table
            .keys
            .retain(|key| key.match_kind != ir::MatchKind::Selector);
        if types.len() == kinds.len() {
            let mut kinds = kinds.iter();
            types.retain(|_| kinds.next() != Some(&ir::MatchKind::Selector));
        }
    }
}

//! Priorities of the entries that a program puts in its tables (spec §14.2.1.4, "Entry
//! priorities").

use crate::annotation;
use crate::checker::Checker;
use crate::codes;
use num_bigint::BigInt;
use num_traits::{One, ToPrimitive, Zero};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, MatchKind};
use stateplane_syntax::tree::{
    self, Annotation, AnnotationTokenKind, TableEntry, TablePropertyValue,
};
use std::collections::BTreeMap;

/// Order of two priorities, and the annotations that control warnings.
struct Order<'a> {
    largest_wins: bool,
    annotations: &'a [Annotation],
}

impl Order<'_> {
    /// True if `@noWarn` takes back the warning of that name.
    fn is_quiet(&self, warning: &str) -> bool {
        self.annotations.iter().any(|annotation| {
            annotation.name.as_str() == "noWarn"
                && annotation.string().is_some_and(|text| *text == *warning)
        })
    }

    fn goes_before(&self, one: &BigInt, other: &BigInt) -> bool {
        if self.largest_wins {
            one > other
        } else {
            one < other
        }
    }
}

impl<'a> Checker<'a> {
    /// The priority of each entry, greatest wins, with the least at 1 or above.
    pub(crate) fn priorities(
        &mut self,
        decl: &'a tree::TableDecl,
        entries: &'a [TableEntry],
        table: &ir::Table,
    ) -> Vec<u32> {
        let Some(written) = entries.iter().find_map(|entry| entry.priority.as_ref()) else {
            return self.annotated_priorities(decl, entries);
        };
        let takes_priorities = table
            .keys
            .iter()
            .any(|key| !matches!(key.match_kind, MatchKind::Exact | MatchKind::Lpm));
        if !takes_priorities {
            self.report(
                Diagnostic::error(
                    codes::USELESS_PRIORITY,
                    written.span,
                    format!("entries of table `{}` have no priorities", decl.name),
                )
                .with_secondary(decl.name.span, "its keys are all `exact` or `lpm`")
                .with_help("leave out `priority`: at most one entry, or the longest prefix, fits"),
            );
            return self.annotated_priorities(decl, entries);
        }
        if let Some(first) = entries.first().filter(|first| first.priority.is_none()) {
            self.report(
                Diagnostic::error(
                    codes::MISSING_PRIORITY,
                    first.span,
                    "the first entry has no priority, and another has one",
                )
                .with_secondary(written.span, "a priority is given here")
                .with_help("give the first entry a priority: the next ones count from it"),
            );
            return self.annotated_priorities(decl, entries);
        }
        let largest_wins = expression(decl, "largest_priority_wins")
            .is_none_or(|expr| self.constant_bool(expr, "`largest_priority_wins`", true));
        let delta = self.priority_delta(decl);
        let mut values: Vec<BigInt> = Vec::new();
        for entry in entries {
            let value = match (&entry.priority, values.last()) {
                (Some(expr), _) => self.property_int(expr, "a priority"),
                (None, Some(last)) if largest_wins => last - &delta,
                (None, last) => last.cloned().unwrap_or_default() + &delta,
            };
            if value < BigInt::zero() || value.to_u32().is_none() {
                self.priority_out_of_range(&value, place(entry));
            }
            values.push(value);
        }
        let property = decl
            .properties
            .iter()
            .find(|property| matches!(property.value, TablePropertyValue::Entries(_)));
        let order = Order {
            largest_wins,
            annotations: property.map_or(&[], |property| &property.annotations),
        };
        self.doubtful_priorities(entries, &values, &order);
        let values = values.iter().map(|value| value.to_u32().unwrap_or(0));
        let values: Vec<u32> = values.collect();
        if largest_wins {
            // Zero, which P4-16 allows, is no priority of P4Runtime.
            let shift = u32::from(values.contains(&0));
            let shifted = values.into_iter();
            shifted.map(|value| value.saturating_add(shift)).collect()
        } else {
            reversed(&values)
        }
    }

    /// Warns of the first entry with a priority that an earlier one has, and of the first
    /// that goes before the one above it.
    fn doubtful_priorities(
        &mut self,
        entries: &'a [TableEntry],
        values: &[BigInt],
        order: &Order<'_>,
    ) {
        let mut seen: BTreeMap<&BigInt, Span> = BTreeMap::new();
        for (entry, value) in entries.iter().zip(values) {
            let span = place(entry);
            let Some(earlier) = seen.insert(value, span) else {
                continue;
            };
            if !order.is_quiet("duplicate_priorities") {
                self.report(
                    Diagnostic::warning(
                        codes::DUPLICATE_PRIORITY,
                        span,
                        format!("two entries have the priority {value}"),
                    )
                    .with_secondary(earlier, "the other one")
                    .with_help(
                        "which of them a packet meets that fits both is left open; \
                         @noWarn(\"duplicate_priorities\") before `entries` if it is meant",
                    ),
                );
            }
            break;
        }
        let mut pairs = entries
            .iter()
            .zip(values)
            .zip(entries.iter().zip(values).skip(1));
        let unordered = pairs.find(|((_, above), (_, below))| order.goes_before(below, above));
        if let Some(((above, _), (below, value))) = unordered
            && !order.is_quiet("entries_out_of_priority_order")
        {
            self.report(
                Diagnostic::warning(
                    codes::UNORDERED_PRIORITIES,
                    place(below),
                    format!("the priority {value} goes before that of the entry above"),
                )
                .with_secondary(place(above), "this entry comes later")
                .with_help(
                    "write entries in the order in which they match; \
                     @noWarn(\"entries_out_of_priority_order\") before `entries` if it is meant",
                ),
            );
        }
    }

    /// The distance of the priorities of consecutive entries.
    fn priority_delta(&mut self, decl: &'a tree::TableDecl) -> BigInt {
        match expression(decl, "priority_delta") {
            Some(expr) => self.property_int(expr, "`priority_delta`"),
            None => BigInt::one(),
        }
    }

    /// Priorities from the order of the entries: the last one has 1, the others as much more
    /// as `priority_delta` says. The annotation `@priority` of the reference compiler, by
    /// which the smaller wins, is compared with an entry's place, counted from 1.
    fn annotated_priorities(
        &mut self,
        decl: &'a tree::TableDecl,
        entries: &'a [TableEntry],
    ) -> Vec<u32> {
        let delta = self.priority_delta(decl);
        let mut priorities = Vec::new();
        let mut next = BigInt::one();
        for entry in entries {
            let place_value = next.to_u32();
            next += &delta;
            let annotation = annotation::find(&entry.annotations, "priority");
            let value = match annotation.map(|annotation| &annotation.body) {
                None => place_value,
                Some(tree::AnnotationBody::Unstructured(tokens)) => match &tokens[..] {
                    [token] => match &token.kind {
                        AnnotationTokenKind::Number(literal) => literal.value.to_u32(),
                        _ => None,
                    },
                    _ => None,
                },
                Some(_) => None,
            };
            if value.is_none() {
                let span = annotation.map_or(entry.span, |annotation| annotation.span);
                self.priority_out_of_range("of this entry", span);
            }
            priorities.push(value.unwrap_or(0));
        }
        reversed(&priorities)
    }

    fn priority_out_of_range(&mut self, value: impl std::fmt::Display, span: Span) {
        self.report(
            Diagnostic::error(
                codes::OUT_OF_RANGE,
                span,
                format!("the priority {value} is out of range"),
            )
            .with_help("a priority lies between 0 and 4294967295"),
        );
    }
}

/// Priorities of which the greatest wins, from those of which the smallest wins: the last one
/// has 1, and the distances stay.
fn reversed(priorities: &[u32]) -> Vec<u32> {
    let last = priorities.iter().max().copied().unwrap_or(0);
    let distances = priorities.iter().map(|priority| last - priority);
    distances
        .map(|distance| distance.saturating_add(1))
        .collect()
}

/// The priority of an entry, or where there is none the entry.
fn place(entry: &TableEntry) -> Span {
    entry.priority.as_ref().map_or(entry.span, |expr| expr.span)
}

/// The expression that a property is given.
fn expression<'t>(decl: &'t tree::TableDecl, name: &str) -> Option<&'t tree::Expr> {
    let property = decl
        .properties
        .iter()
        .find(|property| property.name.as_str() == name)?;
    match &property.value {
        TablePropertyValue::Expr(expr) => Some(expr),
        _ => None,
    }
}

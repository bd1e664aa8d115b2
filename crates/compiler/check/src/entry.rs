//! Entries that a program puts in its tables (spec §14.2.1.4).

use crate::checker::Checker;
use crate::codes;
use crate::types::Ty;
use num_bigint::BigUint;
use num_traits::{One, Zero};
use stateplane_diagnostics::{Diagnostic, Span};
use stateplane_ir::{self as ir, KeySet, MatchKind};
use stateplane_syntax::tree;
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Checks the entries of a table whose keys and actions are known.
    pub(crate) fn table_entries(
        &mut self,
        decl: &'a tree::TableDecl,
        entries: &'a [tree::TableEntry],
        table: &ir::Table,
        types: &[Ty],
        all_const: bool,
    ) -> Vec<ir::Entry> {
        if types.len() != table.keys.len() {
            // A key has an error, so entries cannot be judged.
            return Vec::new();
        }
        if types.is_empty() {
            if let Some(first) = entries.first() {
                self.report(
                    Diagnostic::error(
                        codes::KEYSET_COUNT,
                        first.span,
                        "a table without keys has no entries",
                    )
                    .with_help("use `default_action`"),
                );
            }
            return Vec::new();
        }
        let priorities = self.priorities(decl, entries, table);
        let mut lowered = Vec::new();
        let mut taken = BTreeMap::new();
        for (entry, priority) in entries.iter().zip(priorities) {
            let keys = self
                .keyset(&entry.keyset, types)
                .and_then(|sets| self.entry_keys(sets, table, &entry.keyset));
            let args = entry.action.args.as_deref().unwrap_or_default();
            let call = self.action_call(&entry.action.path, args, entry.action.span, decl, table);
            let (Some(keys), Some(call)) = (keys, call) else {
                continue;
            };
            if !table.actions[call.action as usize].in_entries {
                self.report(
                    Diagnostic::error(
                        codes::ACTION_NOT_ALLOWED,
                        entry.action.span,
                        format!(
                            "`{}` is @defaultonly and cannot be in an entry",
                            entry.action.path
                        ),
                    )
                    .with_secondary(decl.name.span, "in this table"),
                );
            }
            let span = entry.keyset.span;
            let exact = table
                .keys
                .iter()
                .all(|key| key.match_kind == MatchKind::Exact);
            match taken.get(&keys) {
                Some(earlier) if exact => self.report(
                    Diagnostic::error(codes::DUPLICATE_CASE, span, "two entries have the same key")
                        .with_secondary(*earlier, "the other one")
                        .with_help("remove one of them"),
                ),
                Some(earlier) => self.unreachable_case("entry", span, *earlier),
                None => {
                    taken.insert(keys.clone(), span);
                }
            }
            lowered.push(ir::Entry {
                keys,
                priority,
                call,
                is_const: all_const || entry.is_const,
            });
        }
        lowered
    }

    fn entry_keys(
        &mut self,
        mut sets: Vec<Vec<KeySet>>,
        table: &ir::Table,
        written: &'a tree::Keyset,
    ) -> Option<Vec<KeySet>> {
        let keys = match (sets.pop(), sets.is_empty()) {
            (Some(keys), true) => keys,
            _ => {
                self.unsupported(
                    written.span,
                    "a range of signed numbers across zero in an entry",
                    "write two entries",
                );
                return None;
            }
        };
        let single = written.elements.len() == 1;
        keys.into_iter()
            .zip(&table.keys)
            .enumerate()
            .map(|(position, (set, key))| {
                let element = if single { 0 } else { position };
                let span = written
                    .elements
                    .get(element)
                    .map_or(written.span, |e| e.span);
                self.entry_key(set, key, span)
            })
            .collect()
    }

    fn entry_key(&mut self, set: KeySet, key: &ir::Key, span: Span) -> Option<KeySet> {
        let width = key.expr.ty.scalar_width().unwrap_or(32);
        let fitting = match (key.match_kind, set) {
            (MatchKind::Exact, set @ KeySet::Exact(_)) => Some(set),
            (MatchKind::Lpm, KeySet::Exact(value)) => Some(KeySet::Prefix(value, width)),
            (MatchKind::Lpm, KeySet::Any) => Some(KeySet::Prefix(BigUint::zero(), 0)),
            (MatchKind::Lpm, KeySet::Mask(value, mask)) => {
                let length = prefix_length(&mask, width);
                if length.is_none() {
                    self.report(
                        Diagnostic::error(
                            codes::KEYSET_KIND,
                            span,
                            "the mask of an `lpm` key is not a prefix",
                        )
                        .with_help("its ones come first, for example 0xffffff00"),
                    );
                    return None;
                }
                length.map(|length| KeySet::Prefix(value, length))
            }
            (
                MatchKind::Ternary | MatchKind::Selector,
                set @ (KeySet::Exact(_) | KeySet::Mask(..) | KeySet::Any),
            ) => Some(set),
            (MatchKind::Range, set @ (KeySet::Exact(_) | KeySet::Range(..) | KeySet::Any)) => {
                Some(set)
            }
            (MatchKind::Optional, set @ (KeySet::Exact(_) | KeySet::Any)) => Some(set),
            _ => None,
        };
        if fitting.is_none() {
            let (kind, help) = match key.match_kind {
                MatchKind::Exact => ("exact", "give one value"),
                MatchKind::Lpm => ("lpm", "give value &&& mask, where the mask is a prefix"),
                MatchKind::Ternary => ("ternary", "give value &&& mask"),
                MatchKind::Range => ("range", "give low .. high"),
                MatchKind::Optional => ("optional", "give one value, or `_`"),
                MatchKind::Selector => ("selector", "give one value"),
            };
            self.report(
                Diagnostic::error(
                    codes::KEYSET_KIND,
                    span,
                    format!("`{}` is an `{kind}` key, which this does not fit", key.name),
                )
                .with_help(help),
            );
        }
        fitting
    }
}

/// Number of leading ones of a mask that has no others.
fn prefix_length(mask: &BigUint, width: u32) -> Option<u32> {
    let ones = mask.count_ones() as u32;
    let expected = ((BigUint::one() << ones) - BigUint::one()) << (width.checked_sub(ones)?);
    (*mask == expected).then_some(ones)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leading_ones_are_a_prefix() {
        let mask = |bits: u32| BigUint::from(bits);
        assert_eq!(prefix_length(&mask(0xff00_0000), 32), Some(8));
        assert_eq!(prefix_length(&mask(0), 32), Some(0));
        assert_eq!(prefix_length(&mask(0xffff_ffff), 32), Some(32));
        assert_eq!(prefix_length(&mask(0xff00_ff00), 32), None);
        assert_eq!(prefix_length(&mask(0x00ff_0000), 32), None);
        assert_eq!(prefix_length(&mask(0xffff), 8), None);
    }
}

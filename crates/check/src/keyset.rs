//! Key sets of `select` cases and table entries.

use crate::checker::Checker;
use crate::codes;
use crate::scope::Entity;
use crate::types::Ty;
use crate::value::{Known, Value, ValueKind};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, Zero};
use stateplane_diagnostics::Diagnostic;
use stateplane_diagnostics::Span;
use stateplane_ir::{self as ir, KeySet};
use stateplane_syntax::tree::{self, KeysetElementKind};

impl<'a> Checker<'a> {
    /// The sets of one case, one list for each combination: a signed range that crosses
    /// zero is two ranges of bits. `None` if there is an error.
    pub(crate) fn keyset(
        &mut self,
        keyset: &'a tree::Keyset,
        keys: &[Ty],
    ) -> Option<Vec<Vec<KeySet>>> {
        if let [element] = keyset.elements.as_slice() {
            let all = matches!(
                element.kind,
                KeysetElementKind::Default | KeysetElementKind::DontCare
            );
            if all {
                return Some(vec![vec![KeySet::Any; keys.len()]]);
            }
        }
        if self.names_broken(keyset) {
            return None;
        }
        let sets: Vec<Option<u32>> = keyset
            .elements
            .iter()
            .map(|element| self.value_set_named(element))
            .collect();
        let covered: usize = sets
            .iter()
            .map(|set| set.map_or(1, |set| self.value_set_width(set)))
            .sum();
        if covered != keys.len() {
            self.report(
                Diagnostic::error(
                    codes::KEYSET_COUNT,
                    keyset.span,
                    format!("{covered} values are given for {} keys", keys.len()),
                )
                .with_help("give one for each key; `_` matches anything"),
            );
            return None;
        }
        let mut combinations: Vec<Vec<KeySet>> = vec![Vec::new()];
        let mut valid = true;
        let mut rest = keys;
        for (element, set) in keyset.elements.iter().zip(sets) {
            let width = set.map_or(1, |set| self.value_set_width(set));
            let (here, behind) = rest.split_at(width.min(rest.len()));
            rest = behind;
            if let Some(set) = set {
                match self.members_of_set(set, here, element.span) {
                    Some(members) => {
                        for combination in &mut combinations {
                            combination.extend(members.iter().cloned());
                        }
                    }
                    None => valid = false,
                }
                continue;
            }
            let Some(sets) = here.first().and_then(|ty| self.keyset_element(element, ty)) else {
                valid = false;
                continue;
            };
            combinations = combinations
                .into_iter()
                .flat_map(|combination| {
                    sets.iter().map(move |set| {
                        let mut combination = combination.clone();
                        combination.push(set.clone());
                        combination
                    })
                })
                .take(1 << 10)
                .collect();
        }
        valid.then_some(combinations)
    }

    /// Whether the set is a name whose declaration was reported, as of a value set.
    fn names_broken(&self, keyset: &tree::Keyset) -> bool {
        let [element] = keyset.elements.as_slice() else {
            return false;
        };
        let KeysetElementKind::Value(expr) = &element.kind else {
            return false;
        };
        let tree::ExprKind::Name(path) = &expr.kind else {
            return false;
        };
        self.find(path)
            .is_some_and(|symbol| matches!(symbol.entity, Entity::Broken))
    }

    fn keyset_element(&mut self, element: &'a tree::KeysetElement, ty: &Ty) -> Option<Vec<KeySet>> {
        match &element.kind {
            KeysetElementKind::Default | KeysetElementKind::DontCare => Some(vec![KeySet::Any]),
            KeysetElementKind::Value(expr) => {
                let value = self.key_constant(expr, ty)?;
                Some(vec![KeySet::Exact(self.key_bits(&value)?)])
            }
            KeysetElementKind::Mask { value, mask } => {
                let value = self.key_constant(value, ty);
                let mask = self.key_constant(mask, ty);
                let (value, mask) = (value?, mask?);
                if !self.numeric_key(ty, element.span, "&&&") {
                    return None;
                }
                let (value, mask) = (self.key_bits(&value)?, self.key_bits(&mask)?);
                Some(vec![KeySet::Mask(value & &mask, mask)])
            }
            KeysetElementKind::Range { low, high } => {
                let low = self.key_constant(low, ty);
                let high = self.key_constant(high, ty);
                let (low, high) = (low?, high?);
                if !self.numeric_key(ty, element.span, "..") {
                    return None;
                }
                self.range(&low, &high, element.span)
            }
        }
    }

    fn numeric_key(&mut self, ty: &Ty, span: Span, symbol: &str) -> bool {
        if self.underlying_width(ty).is_some() {
            return true;
        }
        let shown = self.quote(ty);
        self.report(Diagnostic::error(
            codes::OPERATOR_NOT_DEFINED,
            span,
            format!("`{symbol}` is not defined on {shown}"),
        ));
        false
    }

    fn range(&mut self, low: &Value, high: &Value, span: Span) -> Option<Vec<KeySet>> {
        let (Some(from), Some(to)) = (low.as_int(), high.as_int()) else {
            return None;
        };
        if from > to {
            self.report(
                Diagnostic::error(
                    codes::EMPTY_RANGE,
                    span,
                    format!("the range {from} .. {to} is empty"),
                )
                .with_help("the lower bound comes first"),
            );
            return None;
        }
        let bits = |checker: &Self, number: &BigInt| {
            checker
                .ir_const(&Known::Int(number.clone()), &low.ty)
                .and_then(|constant| match constant {
                    ir::Const::Bits(bits) => Some(bits),
                    ir::Const::Bool(_) => None,
                })
        };
        if from.is_negative() && !to.is_negative() {
            let minus_one = -BigInt::one();
            return Some(vec![
                KeySet::Range(bits(self, from)?, bits(self, &minus_one)?),
                KeySet::Range(BigUint::zero(), bits(self, to)?),
            ]);
        }
        Some(vec![KeySet::Range(bits(self, from)?, bits(self, to)?)])
    }

    fn key_constant(&mut self, expr: &'a tree::Expr, ty: &Ty) -> Option<Value> {
        let value = self.constant(expr, "a value to match")?;
        if *ty == Ty::Poison {
            return None;
        }
        let target = match (ty, &value.ty) {
            (Ty::Serial(_), Ty::Integer | Ty::Bits(_) | Ty::Int(_)) => self.strip_serial(ty),
            _ => ty.clone(),
        };
        let value = self.coerce(value, &target);
        match value.kind {
            ValueKind::Const(_) => Some(value),
            // A constructor parameter of a block that is not instantiated.
            ValueKind::Poison => None,
            _ => {
                self.not_constant(expr.span, "a value to match");
                None
            }
        }
    }

    fn key_bits(&self, value: &Value) -> Option<BigUint> {
        let ValueKind::Const(known) = &value.kind else {
            return None;
        };
        match self.ir_const(known, &value.ty)? {
            ir::Const::Bits(bits) => Some(bits),
            ir::Const::Bool(flag) => Some(BigUint::from(u8::from(flag))),
        }
    }

    /// Whether values of the type can be matched; reports if not.
    pub(crate) fn matchable(&mut self, ty: &Ty, span: Span) -> bool {
        let stripped = match ty {
            Ty::Newtype(id) => self.types.newtypes[*id as usize].underlying.clone(),
            _ => self.strip_serial(ty),
        };
        let fits = matches!(
            stripped,
            Ty::Bool | Ty::Bits(_) | Ty::Int(_) | Ty::Enum(_) | Ty::Error | Ty::Newtype(_)
        );
        if fits || self.types.is_open(&stripped) {
            return fits;
        }
        let shown = self.quote(ty);
        let diagnostic = Diagnostic::error(
            codes::NOT_MATCHABLE,
            span,
            format!("a value of type {shown} cannot be matched"),
        );
        self.report(match stripped {
            Ty::Integer => diagnostic.with_help("give it a width"),
            _ => diagnostic.with_help("match its fields one by one"),
        });
        false
    }
}

//! Key sets of `select` cases and table entries.

use crate::checker::Checker;
use crate::codes;
use crate::scope::Entity;
use crate::types::{StructKind, Ty};
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
                let scalars = keys.iter().map(|ty| self.key_scalars(ty)).sum();
                return Some(vec![vec![KeySet::Any; scalars]]);
            }
            // One list is what its elements are in parentheses.
            if let KeysetElementKind::Value(expr) = &element.kind
                && let tree::ExprKind::List(elements) = &expr.kind
                && keys.len() > 1
                && elements.len() == keys.len()
            {
                return self.key_value(expr, &Ty::Tuple(keys.into()));
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
            combinations = combined(combinations, &sets);
        }
        valid.then_some(combinations)
    }

    /// True if the set is a name whose declaration was reported, as of a value set.
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

    /// The sets of one element at a key of type `ty`: alternatives, each with one set for
    /// each scalar of the key.
    fn keyset_element(
        &mut self,
        element: &'a tree::KeysetElement,
        ty: &Ty,
    ) -> Option<Vec<Vec<KeySet>>> {
        match &element.kind {
            KeysetElementKind::Default | KeysetElementKind::DontCare => {
                Some(vec![vec![KeySet::Any; self.key_scalars(ty)]])
            }
            // Its condition is a key of its own.
            _ if self.is_computed(element) => Some(vec![vec![KeySet::Any; self.key_scalars(ty)]]),
            KeysetElementKind::Value(expr) => self.key_value(expr, ty),
            KeysetElementKind::Mask { value, mask } => {
                let value = self.key_constant(value, ty);
                let mask = self.key_constant(mask, ty);
                let (value, mask) = (value?, mask?);
                if !self.numeric_key(ty, element.span, "&&&") {
                    return None;
                }
                let (value, mask) = (self.key_bits(&value)?, self.key_bits(&mask)?);
                Some(vec![vec![KeySet::Mask(value & &mask, mask)]])
            }
            KeysetElementKind::Range { low, high } => {
                let low = self.key_constant(low, ty);
                let high = self.key_constant(high, ty);
                let (low, high) = (low?, high?);
                if !self.numeric_key(ty, element.span, "..") {
                    return None;
                }
                let sets = self.range(&low, &high, element.span)?;
                Some(sets.into_iter().map(|set| vec![set]).collect())
            }
        }
    }

    /// Number of scalars that a key of type `ty` is matched by.
    fn key_scalars(&self, ty: &Ty) -> usize {
        match self.members(ty) {
            Some(members) => members.iter().map(|ty| self.key_scalars(ty)).sum(),
            None => 1,
        }
    }

    /// Types of the members of a struct or tuple.
    fn members(&self, ty: &Ty) -> Option<Vec<Ty>> {
        match ty {
            Ty::Struct(id) if self.types.info(*id).kind == StructKind::Struct => {
                let fields = &self.types.info(*id).fields;
                Some(fields.iter().map(|field| field.ty.clone()).collect())
            }
            Ty::Tuple(members) | Ty::List(members) => Some(members.to_vec()),
            _ => None,
        }
    }

    fn key_value(&mut self, expr: &'a tree::Expr, ty: &Ty) -> Option<Vec<Vec<KeySet>>> {
        let elements = match &expr.kind {
            tree::ExprKind::List(elements) => Some(elements.as_slice()),
            _ => None,
        };
        match (self.members(ty), elements) {
            (Some(members), Some(elements)) if members.len() == elements.len() => {
                let mut combinations = vec![Vec::new()];
                for (element, ty) in elements.iter().zip(&members) {
                    let sets = self.key_value(element, ty)?;
                    combinations = combined(combinations, &sets);
                }
                Some(combinations)
            }
            (None, Some([only])) => self.key_value(only, ty),
            (Some(_), _) => {
                let value = self.constant(expr, "a value to match")?;
                let value = self.coerce(value, ty);
                let mut sets = Vec::new();
                self.constant_sets(&value, expr.span, &mut sets)?;
                Some(vec![sets])
            }
            (None, _) => {
                let value = self.key_constant(expr, ty)?;
                Some(vec![vec![KeySet::Exact(self.key_bits(&value)?)]])
            }
        }
    }

    /// The scalars of a compile-time value, each as a set.
    fn constant_sets(&mut self, value: &Value, span: Span, sets: &mut Vec<KeySet>) -> Option<()> {
        match &value.kind {
            ValueKind::List(elements) => elements
                .iter()
                .try_for_each(|element| self.constant_sets(element, span, sets)),
            ValueKind::Const(_) => {
                sets.push(KeySet::Exact(self.key_bits(value)?));
                Some(())
            }
            ValueKind::Poison => None,
            _ => {
                self.not_constant(span, "a value to match");
                None
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

    /// Checks that values of the type can be matched in a `select`, structs and tuples by their
    /// members; reports the type if not.
    pub(crate) fn selectable(&mut self, ty: &Ty, span: Span) -> bool {
        match self.members(ty) {
            Some(members) => members.iter().all(|member| self.selectable(member, span)),
            None => self.matchable(ty, span),
        }
    }

    /// Checks that values of the type can be matched; reports the type if not.
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

/// Every combination with every set behind it, up to a limit.
fn combined(combinations: Vec<Vec<KeySet>>, sets: &[Vec<KeySet>]) -> Vec<Vec<KeySet>> {
    /// Each signed range across zero doubles their number.
    const LIMIT: usize = 1 << 10;
    combinations
        .into_iter()
        .flat_map(|combination| {
            sets.iter().map(move |set| {
                let mut combination = combination.clone();
                combination.extend(set.iter().cloned());
                combination
            })
        })
        .take(LIMIT)
        .collect()
}

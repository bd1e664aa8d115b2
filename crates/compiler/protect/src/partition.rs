//! Check that state is partitioned by its key: every element of a register belongs to one key, and
//! every key to one element.
//!
//! Indices are mostly hashes. An index belongs to the key if it is made of the same fields,
//! each once; in the same order everywhere, or else in the order of `reverse`. That two keys
//! may share an element, as they hash alike, is an accident of the original program which
//! the protected one does not repeat.

use crate::annotation::Part;
use crate::codes;
use crate::origin::{Leaf, Origin, Value};
use crate::state::{State, States};
use crate::walk::{Access, Found};
use stateplane_diagnostics::{Diagnostic, Diagnostics, Span};
use stateplane_syntax::tree::Ident;
use std::collections::BTreeMap;

/// A key with where the values of its parts come from.
pub(crate) struct Key<'a> {
    pub(crate) parts: &'a [Part],
    pub(crate) values: Vec<Value>,
    /// The values of `reverse`; empty without it.
    pub(crate) reverse: Vec<Value>,
    pub(crate) span: Span,
}

/// Part of the key for each leaf of an index.
type Order = Vec<usize>;

/// One element of a register, which is a field of a flow's state.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) bits: u32,
    pub(crate) signed: bool,
}

/// The state of a flow.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) all: Vec<Field>,
    /// Index of the key that a read or write means, by its position.
    pub(crate) of_access: BTreeMap<Span, usize>,
}

/// The fields that the registers become; `None` if state is not partitioned by the key,
/// which is reported.
pub(crate) fn fields(
    key: &Key<'_>,
    found: &Found,
    states: &States<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Fields> {
    let mut order: Option<Order> = None;
    for access in &found.accesses {
        let name = states
            .names
            .get(&access.register)
            .map_or("", String::as_str);
        for origin in &access.index {
            if let Err(problem) = fits(key, origin, &mut order) {
                diagnostics.push(objection(key, found, access, name, origin, &problem));
                return None;
            }
        }
    }
    let mut fields = Fields::default();
    for state in &states.all {
        elements(state, found, &mut fields, diagnostics)?;
    }
    Some(fields)
}

/// Adds the elements that packets use of a register. There are several if it is indexed by
/// several hash functions, as Bloom filters are.
fn elements(
    state: &State<'_>,
    found: &Found,
    fields: &mut Fields,
    diagnostics: &mut Diagnostics,
) -> Option<()> {
    let name = &state.declaration.name;
    let own = |access: &&Access| access.register == name.span;
    let mut recipes: Vec<(&str, Span)> = Vec::new();
    let mut chosen: BTreeMap<Span, usize> = BTreeMap::new();
    for access in found.accesses.iter().filter(own) {
        for origin in &access.index {
            let known = recipes
                .iter()
                .position(|(recipe, _)| *recipe == origin.recipe);
            let at = known.unwrap_or_else(|| {
                recipes.push((&origin.recipe, access.index_span));
                recipes.len() - 1
            });
            let other = *chosen.entry(access.span).or_insert(at);
            if other != at {
                diagnostics.push(several(name, access.index_span, recipes[other].1));
                return None;
            }
        }
    }
    let algorithms: Vec<Option<&str>> = recipes.iter().map(|(it, _)| algorithm(it)).collect();
    for (at, (_, span)) in recipes.iter().enumerate() {
        let same = algorithms[..at]
            .iter()
            .position(|other| *other == algorithms[at]);
        let clash = same.or((at > 0 && algorithms[at].is_none()).then_some(0));
        if let Some(clash) = clash {
            diagnostics.push(several(name, *span, recipes[clash].1));
            return None;
        }
    }
    let first = fields.all.len();
    for at in 0..recipes.len() {
        let mut own = match recipes.len() {
            1 => name.to_string(),
            _ => format!("{name}_{}", at + 1),
        };
        while fields.all.iter().any(|field| field.name == own) {
            own.push('_');
        }
        fields.all.push(Field {
            name: own,
            bits: state.bits,
            signed: state.signed,
        });
    }
    let chosen = chosen.into_iter().map(|(span, at)| (span, first + at));
    fields.of_access.extend(chosen);
    Some(())
}

/// The algorithm of an index that is a hash and nothing more.
fn algorithm(recipe: &str) -> Option<&str> {
    let (algorithm, rest) = recipe.strip_prefix("hash(")?.split_once(';')?;
    let mut depth = 1usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return (at + 1 == rest.len()).then_some(algorithm);
        }
    }
    None
}

fn several(name: &Ident, span: Span, other: Span) -> Diagnostic {
    Diagnostic::error(
        codes::TWO_ELEMENTS,
        span,
        format!("`{name}` is indexed in two ways"),
    )
    .with_label("this index")
    .with_secondary(other, "and this one")
    .with_note("they may or may not be the same element, so it cannot be told what a flow has to keep; hashes by two algorithms can be told apart")
    .with_help("use a register of its own for each index, or one variable for the index")
}

/// Why an index does not belong to a key.
enum Problem {
    /// A leaf that is no part of the key.
    Foreign(Leaf),
    /// A part of the key that the index lacks.
    Lacks(usize),
    /// All are there, in another order than before.
    Order,
}

fn leaves(origin: &Origin) -> Vec<&Leaf> {
    let mut leaves: Vec<&Leaf> = Vec::new();
    for leaf in &origin.leaves {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    leaves
}

/// True if a part of a key may be this leaf.
fn may_be(part: &Value, leaf: &Leaf) -> bool {
    part.iter().any(|origin| origin.leaves.contains(leaf))
}

fn fits(key: &Key<'_>, origin: &Origin, order: &mut Option<Order>) -> Result<(), Problem> {
    let leaves = leaves(origin);
    // Constants in the key tell its flows from those of other keys, and no more.
    let parts: Vec<usize> = (0..key.values.len())
        .filter(|&at| {
            key.values[at]
                .iter()
                .any(|origin| !origin.leaves.is_empty())
        })
        .collect();
    let place = |leaf: &Leaf| parts.iter().find(|&&at| may_be(&key.values[at], leaf));
    for leaf in &leaves {
        if place(leaf).is_none() {
            return Err(Problem::Foreign((*leaf).clone()));
        }
    }
    for &at in &parts {
        if !leaves.iter().any(|leaf| may_be(&key.values[at], leaf)) {
            return Err(Problem::Lacks(at));
        }
    }
    let own: Order = leaves
        .iter()
        .filter_map(|leaf| place(leaf).copied())
        .collect();
    let Some(order) = order else {
        *order = Some(own);
        return Ok(());
    };
    let in_order = |values: &[Value]| {
        order.len() == leaves.len()
            && order
                .iter()
                .zip(&leaves)
                .all(|(&at, leaf)| values.get(at).is_some_and(|value| may_be(value, leaf)))
    };
    if in_order(&key.values) || in_order(&key.reverse) {
        Ok(())
    } else {
        Err(Problem::Order)
    }
}

fn objection(
    key: &Key<'_>,
    found: &Found,
    access: &Access,
    name: &str,
    origin: &Origin,
    problem: &Problem,
) -> Diagnostic {
    let made_of = match leaves(origin).as_slice() {
        [] => "the same for all packets".to_owned(),
        leaves => {
            let words: Vec<String> = leaves.iter().map(|leaf| leaf.words()).collect();
            format!("made of {}", words.join(", "))
        }
    };
    let at = |code, message: String| {
        Diagnostic::error(code, access.index_span, message)
            .with_label(format!("this index is {made_of}"))
            .with_secondary(key.span, "the key")
    };
    // A field of the key that was written before says more than that it is missing.
    let rewritten = key
        .values
        .iter()
        .flatten()
        .flat_map(|origin| &origin.leaves)
        .find_map(|leaf| match leaf {
            Leaf::Field(field) => {
                let field = field.split('[').next().unwrap_or(field);
                let span = found.writes.get(field)?;
                (!origin.leaves.contains(leaf)).then_some((field.to_owned(), *span))
            }
            _ => None,
        });
    if let Some((field, span)) = rewritten {
        return at(
            codes::KEY_REWRITTEN,
            format!("`{field}` is part of the key, and rewritten before `{name}` is used"),
        )
        .with_secondary(span, "rewritten here")
        .with_note("the key is taken from the packet as it arrives, before ingress runs")
        .with_help("compute the index before the field is rewritten");
    }
    match problem {
        Problem::Foreign(Leaf::Entry(table)) => at(
            codes::NOT_PARTITIONED,
            format!("the index of `{name}` comes from entries of table `{table}`"),
        )
        .with_note("what a control plane chooses may give packets of different keys one element")
        .with_help("index the register by a hash of the fields that tell flows apart"),
        Problem::Foreign(leaf) => at(
            codes::NOT_PARTITIONED,
            format!("the index of `{name}` depends on {}, which is not in the key", leaf.words()),
        )
        .with_note("one key would have several elements, of which one would be kept")
        .with_help("let the key and the index be made of the same fields"),
        Problem::Lacks(part) => at(
            codes::NOT_PARTITIONED,
            format!(
                "packets of different keys share elements of `{name}`: its index does not depend on `{}`",
                key.parts.get(*part).map_or("", |part| part.text.as_str())
            ),
        )
        .with_note("each key has state of its own, so packets would no longer see what others wrote")
        .with_help("let the key and the index be made of the same fields"),
        Problem::Order => at(
            codes::NOT_PARTITIONED,
            format!("packets with exchanged fields share an element of `{name}`, but not a key"),
        )
        .with_note("the fields of the key enter this index in another order than one before")
        .with_help("add reverse = {…}, the key as a packet of the other direction has it"),
    }
}

//! Origin of a variable's value.

use std::collections::BTreeSet;

/// Maximum number of origins of a value before it counts as unknown.
const MOST_ORIGINS: usize = 32;
/// Longest recipe before a value counts as unknown.
const LONGEST_RECIPE: usize = 4096;

/// Something that a packet brings or meets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaf {
    /// A field as it was when ingress began: `hdr.ipv4.srcAddr`.
    Field(String),
    /// Value of a register.
    State(String),
    /// Value from an entry of a table.
    Entry(String),
    /// Anything else.
    Unknown(String),
}

impl Leaf {
    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Leaf::Field(field) => format!("`{field}`"),
            Leaf::State(register) => format!("what `{register}` holds"),
            Leaf::Entry(table) => format!("an entry of table `{table}`"),
            Leaf::Unknown(what) => what.clone(),
        }
    }
}

/// One possible origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Expression over the leaves, which are written as `_`.
    pub recipe: String,
    /// Leaves in the order of the recipe.
    pub leaves: Vec<Leaf>,
}

/// All possible origins of a value; none of a variable that was never set.
pub type Value = BTreeSet<Origin>;

/// The value of a leaf as it is.
pub(crate) fn leaf(leaf: Leaf) -> Value {
    BTreeSet::from([Origin {
        recipe: "_".to_owned(),
        leaves: vec![leaf],
    }])
}

/// A constant, as written.
pub(crate) fn constant(text: &str) -> Value {
    BTreeSet::from([Origin {
        recipe: text.to_owned(),
        leaves: Vec::new(),
    }])
}

pub(crate) fn unknown(what: &str) -> Value {
    leaf(Leaf::Unknown(what.to_owned()))
}

/// A value made of others: `recipe` has `{}` for each of them.
pub(crate) fn made(recipe: &[&str], of: &[Value]) -> Value {
    let start = Origin {
        recipe: recipe
            .first()
            .map(|text| (*text).to_owned())
            .unwrap_or_default(),
        leaves: Vec::new(),
    };
    let mut all = BTreeSet::from([start]);
    for (at, value) in of.iter().enumerate() {
        let after = recipe.get(at + 1).copied().unwrap_or_default();
        let unset = constant("0");
        let value = if value.is_empty() { &unset } else { value };
        if all.len() * value.len() > MOST_ORIGINS {
            return unknown("one of very many values");
        }
        let mut next = BTreeSet::new();
        for front in &all {
            for origin in value {
                let recipe = format!("{}{}{after}", front.recipe, origin.recipe);
                if recipe.len() > LONGEST_RECIPE {
                    return unknown("a very long computation");
                }
                let leaves = [&front.leaves[..], &origin.leaves].concat();
                next.insert(Origin { recipe, leaves });
            }
        }
        all = next;
    }
    all
}

/// Some bits of a value. Of a field it is a leaf of its own.
pub(crate) fn slice(value: &Value, bits: &str) -> Value {
    value
        .iter()
        .map(|origin| match (&origin.recipe[..], &origin.leaves[..]) {
            ("_", [Leaf::Field(field)]) => Origin {
                recipe: "_".to_owned(),
                leaves: vec![Leaf::Field(format!("{field}[{bits}]"))],
            },
            _ => Origin {
                recipe: format!("{}[{bits}]", origin.recipe),
                leaves: origin.leaves.clone(),
            },
        })
        .collect()
}

/// Either of two values.
pub(crate) fn either(mut one: Value, other: &Value) -> Value {
    one.extend(other.iter().cloned());
    if one.len() > MOST_ORIGINS {
        return unknown("one of very many values");
    }
    one
}

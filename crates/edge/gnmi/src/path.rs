//! Paths: nodes and entries of lists that a path selects (gNMI path conventions).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::proto::gnmi::{Path, PathElem};
use crate::refusal::Refusal;
use crate::schema::{Key, Kind, Leaf, MODULE, Node, ROOT};

/// Most elements of a path, prefix included.
pub(crate) const MOST_ELEMENTS: usize = 32;

/// Matches one element, whatever its name; as the value of a key, each.
const ANY: &str = "*";

/// Matches any number of elements.
const ANY_BELOW: &str = "...";

/// Nodes from below the root to the one that is meant.
pub(crate) type Trail = Vec<&'static Node>;

/// Nodes and entries that a path selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The nodes that the path names; none is below another.
    pub(crate) trails: Vec<Trail>,
    /// Their leaves, and those below them.
    pub(crate) leaves: BTreeSet<Leaf>,
    /// The path as text, for messages.
    pub(crate) text: String,
    /// Origin and target that the request gave, for prefixes of answers.
    pub(crate) origin: String,
    pub(crate) target: String,
    group: Option<String>,
    location: Option<u32>,
    window: Option<u64>,
}

impl Selection {
    /// The selection of `path` below `prefix`.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT or UNIMPLEMENTED, with what is wrong.
    pub(crate) fn of(prefix: Option<&Path>, path: Option<&Path>) -> Result<Selection, Refusal> {
        let both = prefix.into_iter().chain(path);
        let mut selection = Selection::default();
        let mut elements: Vec<(&str, &PathElem)> = Vec::new();
        for part in both {
            #[expect(deprecated, reason = "refused, not used")]
            let is_old = part.elem.is_empty() && !part.element.is_empty();
            if is_old {
                let message = "`element` of a path is the form of gNMI 0.3: give `elem`";
                return Err(Refusal::invalid(message));
            }
            if !part.origin.is_empty() {
                if !selection.origin.is_empty() {
                    let message = "`origin` is in the prefix and in the path: give it once";
                    return Err(Refusal::invalid(message));
                }
                selection.origin.clone_from(&part.origin);
            }
            elements.extend(part.elem.iter().map(|elem| (local(&elem.name), elem)));
        }
        if let Some(prefix) = prefix {
            selection.target.clone_from(&prefix.target);
        }
        selection.text = text(&elements);
        if !["", MODULE].contains(&selection.origin.as_str()) {
            return Err(Refusal::unimplemented(format!(
                "origin `{}` of {} is not served: leave it out, or give `{MODULE}`",
                selection.origin, selection.text
            )));
        }
        if elements.len() > MOST_ELEMENTS {
            let message = format!("a path has {MOST_ELEMENTS} elements at most");
            return Err(Refusal::invalid(message));
        }
        for (name, element) in &elements {
            selection.constrain(name, element)?;
        }
        descend(
            &ROOT,
            &elements,
            begin(&elements),
            &mut Vec::new(),
            &mut selection,
        );
        if selection.trails.is_empty() {
            return Err(no_such(&elements, &selection.text));
        }
        Ok(selection)
    }

    /// Takes the keys of an element.
    fn constrain(&mut self, name: &str, element: &PathElem) -> Result<(), Refusal> {
        if name == ANY_BELOW && !element.key.is_empty() {
            return Err(Refusal::invalid(format!(
                "`{ANY_BELOW}` has no keys in {}",
                self.text
            )));
        }
        for (key, value) in &element.key {
            if value == ANY {
                continue;
            }
            let number = |what: &str| {
                Refusal::invalid(format!(
                    "[{key}={value}] in {}: {what} is a decimal number, or `{ANY}` for all",
                    self.text
                ))
            };
            match key.as_str() {
                "name" => self.group = Some(value.clone()),
                "location" => {
                    let parsed = decimal(value).and_then(|it| u32::try_from(it).ok());
                    self.location = Some(parsed.ok_or_else(|| number("a location"))?);
                }
                "number" => {
                    self.window = Some(decimal(value).ok_or_else(|| number("a window"))?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// True if the path means the group `name`.
    pub(crate) fn has_group(&self, name: &str) -> bool {
        self.group.as_deref().is_none_or(|only| only == name)
    }

    /// The one group that is meant; all if `None`.
    pub(crate) fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// The one location that is meant; all if `None`.
    pub(crate) fn location(&self) -> Option<u32> {
        self.location
    }

    /// The one window that is meant; all if `None`.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// True if one of these leaves is selected.
    pub(crate) fn has_any(&self, which: impl Fn(Leaf) -> bool) -> bool {
        self.leaves.iter().any(|leaf| which(*leaf))
    }
}

/// A number without sign, space or leading zeros.
fn decimal(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    (is_plain && is_short).then(|| text.parse().ok())?
}

/// A name without the module's.
fn local(name: &str) -> &str {
    let rest = name.strip_prefix(MODULE);
    rest.and_then(|rest| rest.strip_prefix(':')).unwrap_or(name)
}

fn text(elements: &[(&str, &PathElem)]) -> String {
    let mut text = String::new();
    for (name, element) in elements {
        // Writing to a string cannot fail.
        let _ = write!(text, "/{name}");
        for (key, value) in &element.key {
            let _ = write!(text, "[{key}={value}]");
        }
    }
    if text.is_empty() { "/".into() } else { text }
}

/// Places in a path, as bits: all that may have been consumed.
type Places = u64;

/// Adds the places that are reached without a node.
fn closed(elements: &[(&str, &PathElem)], mut places: Places) -> Places {
    for (at, (name, _)) in elements.iter().enumerate() {
        if *name == ANY_BELOW && places & (1 << at) != 0 {
            places |= 1 << (at + 1);
        }
    }
    places
}

fn begin(elements: &[(&str, &PathElem)]) -> Places {
    closed(elements, 1)
}

/// Places behind `node`, from those before it.
fn pass(elements: &[(&str, &PathElem)], places: Places, node: &Node) -> Places {
    let mut behind = 0;
    for (at, (name, element)) in elements.iter().enumerate() {
        if places & (1 << at) == 0 {
            continue;
        }
        if *name == ANY_BELOW {
            behind |= 1 << at;
        } else if (*name == node.name || *name == ANY) && fits(element, node) {
            behind |= 1 << (at + 1);
        }
    }
    closed(elements, behind)
}

/// True if the node has all keys of the element.
fn fits(element: &PathElem, node: &Node) -> bool {
    element.key.keys().all(|key| match node.kind {
        Kind::List(own) => own.name() == key,
        Kind::Container | Kind::Leaf(_) => false,
    })
}

/// Notes the nodes below and at the end of `trail` that the path names.
fn descend(
    node: &'static Node,
    elements: &[(&str, &PathElem)],
    places: Places,
    trail: &mut Trail,
    found: &mut Selection,
) {
    if places & (1 << elements.len()) != 0 {
        let named = elements.last().map(|(name, _)| *name);
        if let Kind::Leaf(leaf) = node.kind
            && leaf.is_named_only()
        {
            if named != Some(node.name) {
                return;
            }
            found.leaves.insert(leaf);
        }
        add_leaves(node, &mut found.leaves);
        found.trails.push(trail.clone());
        return;
    }
    if places == 0 {
        return;
    }
    for child in node.children {
        trail.push(child);
        let behind = pass(elements, places, child);
        descend(child, elements, behind, trail, found);
        trail.pop();
    }
}

fn add_leaves(node: &Node, leaves: &mut BTreeSet<Leaf>) {
    if let Kind::Leaf(leaf) = node.kind
        && !leaf.is_named_only()
    {
        leaves.insert(leaf);
    }
    for child in node.children {
        add_leaves(child, leaves);
    }
}

/// The refusal of a path that names nothing.
fn no_such(elements: &[(&str, &PathElem)], text: &str) -> Refusal {
    let mut node = &ROOT;
    let mut reached = String::new();
    for (name, element) in elements {
        let child = node.children.iter().find(|child| child.name == *name);
        let Some(child) = child else {
            if let Kind::List(key) = node.kind
                && key.name() == *name
            {
                return Refusal::unimplemented(format!(
                    "{text} ends in a key: `{name}` is in the path of each entry, ask for that"
                ));
            }
            break;
        };
        if !fits(element, child) {
            let keys = match child.kind {
                Kind::List(key) => format!("has the key `{}` alone", key.name()),
                Kind::Container | Kind::Leaf(_) => "has no keys".to_owned(),
            };
            return Refusal::invalid(format!("`{name}` in {text} {keys}"));
        }
        let _ = write!(reached, "/{name}");
        node = child;
    }
    let reached = if reached.is_empty() { "/" } else { &reached };
    let children: Vec<&str> = node.children.iter().map(|child| child.name).collect();
    let there = if children.is_empty() {
        format!("{reached} is a leaf")
    } else {
        format!("below {reached} are {}", children.join(", "))
    };
    Refusal::invalid(format!("there is no node {text}: {there}"))
}

/// The element of a node, with the value of its key.
pub(crate) fn element(name: &str, key: Option<(Key, String)>) -> PathElem {
    PathElem {
        name: name.to_owned(),
        key: key
            .map(|(key, value)| (key.name().to_owned(), value))
            .into_iter()
            .collect(),
    }
}

/// A path of elements.
pub(crate) fn path_of(elem: Vec<PathElem>) -> Path {
    Path {
        elem,
        ..Path::default()
    }
}

#[cfg(test)]
pub(crate) mod tests;

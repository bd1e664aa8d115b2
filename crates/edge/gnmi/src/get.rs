//! Get: parts of the tree as they are.

use std::cell::Cell;

use stateplane_host::sync::{ViewError, Window};
use tonic::Code;

use crate::facts::{Facts, GroupFacts, GroupInfo, value_at};
use crate::path::{Selection, element, path_of};
use crate::proto::gnmi::get_request::DataType;
use crate::proto::gnmi::{
    Encoding, GetRequest, GetResponse, Notification, Path, PathElem, TypedValue, Update,
};
use crate::refusal::Refusal;
use crate::request::{check_extensions, check_models};
use crate::schema::{Key, Kind, Leaf, MODULE, Node};
use crate::value::{Scalar, encoding, json, of_engine, of_group, of_window};

/// Most leaves of an answer; 8 bytes of packed values count as one.
const MOST_LEAVES: usize = 1 << 18;

/// Most paths of a request.
const MOST_PATHS: usize = 64;

/// The tree at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// The groups.
    pub groups: &'a [GroupInfo],
    /// Their state, with values.
    pub facts: &'a Facts,
    /// Of each group the windows that are kept, in order.
    pub windows: &'a [Vec<Window>],
    /// The moment, in ns since the epoch of Unix.
    pub unix_ns: i64,
}

/// Facts of a request that was checked.
pub(crate) struct Wanted {
    selections: Vec<Selection>,
    encoding: Encoding,
    is_empty: bool,
}

impl Wanted {
    /// Checks a request.
    pub(crate) fn of(request: &GetRequest) -> Result<Wanted, Refusal> {
        check_extensions(&request.extension)?;
        check_models(&request.use_models)?;
        let encoding = encoding(request.encoding)?;
        let Ok(data) = DataType::try_from(request.r#type) else {
            let message = format!("there is no type {} of data", request.r#type);
            return Err(Refusal::invalid(message));
        };
        if request.path.len() > MOST_PATHS {
            let message = format!("a Get has {MOST_PATHS} paths at most");
            return Err(Refusal::invalid(message));
        }
        let prefix = request.prefix.as_ref();
        let mut selections = Vec::new();
        for path in &request.path {
            selections.push(Selection::of(prefix, Some(path))?);
        }
        if request.path.is_empty() {
            selections.push(Selection::of(prefix, None)?);
        }
        Ok(Wanted {
            selections,
            encoding,
            is_empty: data == DataType::Config,
        })
    }

    /// True if the values of the group `name` are wanted.
    pub(crate) fn has_values(&self, name: &str) -> bool {
        let which = |leaf| matches!(leaf, Leaf::Value | Leaf::ValuesPacked);
        self.has(name, which)
    }

    /// True if windows of the group `name` are wanted.
    pub(crate) fn has_windows(&self, name: &str) -> bool {
        self.has(name, Leaf::is_of_window)
    }

    fn has(&self, name: &str, which: fn(Leaf) -> bool) -> bool {
        let mut of_group = self.selections.iter().filter(|it| it.has_group(name));
        !self.is_empty && of_group.any(|it| it.has_any(which))
    }

    /// The answer.
    pub(crate) fn answer(&self, tree: &Tree<'_>) -> Result<GetResponse, Refusal> {
        let room = Cell::new(MOST_LEAVES);
        let mut response = GetResponse::default();
        for selection in &self.selections {
            let mut answer = Answer {
                selection,
                encoding: self.encoding,
                room: &room,
                updates: Vec::new(),
                is_found: self.is_empty,
            };
            if !self.is_empty {
                for trail in &selection.trails {
                    answer.walk(Place::at(tree), trail, Vec::new())?;
                }
            }
            if !answer.is_found {
                return Err(missing(selection, tree));
            }
            let is_named = !selection.origin.is_empty() || !selection.target.is_empty();
            response.notification.push(Notification {
                timestamp: tree.unix_ns,
                prefix: is_named.then(|| Path {
                    origin: selection.origin.clone(),
                    target: selection.target.clone(),
                    ..Path::default()
                }),
                update: answer.updates,
                ..Notification::default()
            });
        }
        Ok(response)
    }
}

/// The answer to `request` from `tree`, whose facts and windows are all there.
///
/// # Errors
///
/// INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED as the specification says (§3.3.4), and
/// RESOURCE_EXHAUSTED if the answer were too large.
pub fn get(request: &GetRequest, tree: &Tree<'_>) -> Result<GetResponse, Refusal> {
    Wanted::of(request)?.answer(tree)
}

/// The refusal of a path that names nothing that there is.
fn missing(selection: &Selection, tree: &Tree<'_>) -> Refusal {
    let path = &selection.text;
    let mut named = tree.groups.iter().zip(&tree.facts.groups);
    let of =
        |error: ViewError| Refusal::of(Code::NotFound, error.code(), format!("{path}: {error}"));
    let found = selection
        .group()
        .map(|name| (name, named.find(|(info, _)| info.name == name)));
    match found {
        Some((name, None)) => {
            let known = tree.groups.iter().map(|group| group.name.as_str());
            of(ViewError::UnknownGroup {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            })
        }
        Some((name, Some((info, _))))
            if selection.location().is_some_and(|it| it >= info.locations) =>
        {
            of(ViewError::Location {
                group: name.to_owned(),
                location: selection.location().map_or(0, u64::from),
                last: info.locations - 1,
            })
        }
        Some((name, Some((_, facts))))
            if facts.told.is_none() && selection.has_any(Leaf::needs_view) =>
        {
            of(ViewError::Incomplete(name.to_owned()))
        }
        _ => {
            let why = "nothing is there: an incomplete view has no values and an unbounded one no \
                       bound, and windows are kept for a while";
            let code = ViewError::Incomplete(String::new()).code();
            Refusal::of(Code::NotFound, code, format!("{path}: {why}"))
        }
    }
}

/// An instance of a node.
#[derive(Clone, Copy)]
struct Place<'a> {
    tree: &'a Tree<'a>,
    group: Option<usize>,
    location: Option<u32>,
    window: Option<&'a Window>,
}

impl<'a> Place<'a> {
    fn at(tree: &'a Tree<'a>) -> Place<'a> {
        Place {
            tree,
            group: None,
            location: None,
            window: None,
        }
    }

    fn group(&self) -> Option<(&'a GroupInfo, &'a GroupFacts)> {
        let at = self.group?;
        Some((self.tree.groups.get(at)?, self.tree.facts.groups.get(at)?))
    }

    /// False for a container that a group without a complete view lacks.
    fn exists(&self, node: &Node) -> bool {
        let is_complete = || {
            self.group()
                .is_some_and(|(_, facts)| facts.values.is_some())
        };
        node.name != "values" || is_complete()
    }

    fn scalar(&self, leaf: Leaf) -> Option<Scalar> {
        if let Some(window) = self.window {
            return of_window(leaf, window);
        }
        let Some((info, facts)) = self.group() else {
            return of_engine(leaf, self.tree.facts);
        };
        match (leaf, self.location) {
            (Leaf::Value, Some(location)) => {
                let values = facts.values.as_ref()?;
                value_at(values, location).map(Scalar::U64)
            }
            _ => of_group(leaf, info, facts),
        }
    }

    /// The entries of a list, each with the text of its key, if `only` lets them.
    fn entries(self, key: Key, only: Option<&'a Selection>) -> Entries<'a> {
        match key {
            Key::Group => {
                let groups = self.tree.groups.iter().enumerate();
                let groups =
                    groups.filter(move |(_, info)| only.is_none_or(|it| it.has_group(&info.name)));
                Box::new(groups.map(move |(at, info)| {
                    let place = Place {
                        group: Some(at),
                        ..self
                    };
                    (place, info.name.clone())
                }))
            }
            Key::Location => {
                let all = self.group().map_or(0, |(info, _)| info.locations);
                let range = match only.and_then(Selection::location) {
                    Some(location) if location < all => location..location + 1,
                    Some(_) => 0..0,
                    None => 0..all,
                };
                Box::new(range.map(move |location| {
                    let place = Place {
                        location: Some(location),
                        ..self
                    };
                    (place, location.to_string())
                }))
            }
            Key::Window => {
                let of_group = self.group.and_then(|at| self.tree.windows.get(at));
                let number = only.and_then(Selection::window);
                let windows = of_group.into_iter().flatten();
                let windows = windows.filter(move |it| number.is_none_or(|only| it.number == only));
                Box::new(windows.map(move |window| {
                    let place = Place {
                        window: Some(window),
                        ..self
                    };
                    (place, window.number.to_string())
                }))
            }
        }
    }
}

type Entries<'a> = Box<dyn Iterator<Item = (Place<'a>, String)> + 'a>;

/// The answer for one path.
struct Answer<'a> {
    selection: &'a Selection,
    encoding: Encoding,
    room: &'a Cell<usize>,
    updates: Vec<Update>,
    is_found: bool,
}

impl<'a> Answer<'a> {
    /// Follows the rest of a trail to its instances.
    fn walk(
        &mut self,
        place: Place<'a>,
        rest: &[&'static Node],
        path: Vec<PathElem>,
    ) -> Result<(), Refusal> {
        let Some((&node, below)) = rest.split_first() else {
            return self.found(place, path);
        };
        if !place.exists(node) {
            return Ok(());
        }
        let Kind::List(key) = node.kind else {
            let mut path = path;
            path.push(element(node.name, None));
            return match (node.kind, below) {
                (Kind::Leaf(leaf), _) => self.leaf(place, leaf, path),
                (_, []) => self.node(place, node, path),
                _ => self.walk(place, below, path),
            };
        };
        for (place, text) in place.entries(key, Some(self.selection)) {
            let mut path = path.clone();
            path.push(element(node.name, Some((key, text))));
            match below {
                [] => self.node(place, node, path)?,
                _ => self.walk(place, below, path)?,
            }
        }
        Ok(())
    }

    /// The root, whose trail is empty.
    fn found(&mut self, place: Place<'a>, path: Vec<PathElem>) -> Result<(), Refusal> {
        self.node(place, &crate::schema::ROOT, path)
    }

    fn push(&mut self, path: Vec<PathElem>, val: TypedValue) {
        self.updates.push(Update {
            path: Some(path_of(path)),
            val: Some(val),
            ..Update::default()
        });
    }

    /// Takes room for a leaf.
    fn take(&self, scalar: &Scalar) -> Result<(), Refusal> {
        let cost = match scalar {
            Scalar::Packed(bytes) => 1 + bytes.len() / 8,
            _ => 1,
        };
        let Some(rest) = self.room.get().checked_sub(cost) else {
            let message = format!(
                "{}: an answer has {MOST_LEAVES} leaves at most, where 8 bytes of packed values \
                 count as one: ask for less, or Subscribe with mode ONCE",
                self.selection.text
            );
            let code = ViewError::Busy(String::new()).code();
            return Err(Refusal::of(Code::ResourceExhausted, code, message));
        };
        self.room.set(rest);
        Ok(())
    }

    fn leaf(&mut self, place: Place<'a>, leaf: Leaf, path: Vec<PathElem>) -> Result<(), Refusal> {
        if let Some(scalar) = place.scalar(leaf) {
            self.take(&scalar)?;
            self.is_found = true;
            self.push(path, scalar.typed(self.encoding));
        }
        Ok(())
    }

    /// A node that is named, and what is below it: one value as JSON, or one for each leaf.
    fn node(
        &mut self,
        place: Place<'a>,
        node: &'static Node,
        path: Vec<PathElem>,
    ) -> Result<(), Refusal> {
        self.is_found = true;
        if self.encoding == Encoding::Proto {
            return self.leaves(place, node, path);
        }
        let ietf = self.encoding == Encoding::JsonIetf;
        let mut text = String::new();
        let key = match (node.kind, path.last()) {
            (Kind::List(key), Some(last)) => {
                last.key.get(key.name()).map(|value| (key, value.as_str()))
            }
            _ => None,
        };
        self.object(place, node, key, ietf, true, &mut text)?;
        self.push(path, json(text, self.encoding));
        Ok(())
    }

    fn leaves(
        &mut self,
        place: Place<'a>,
        node: &'static Node,
        path: Vec<PathElem>,
    ) -> Result<(), Refusal> {
        for child in node.children {
            if !place.exists(child) {
                continue;
            }
            let with = |key| {
                let mut path = path.clone();
                path.push(element(child.name, key));
                path
            };
            match child.kind {
                Kind::Leaf(leaf) if leaf.is_named_only() => {}
                Kind::Leaf(leaf) => self.leaf(place, leaf, with(None))?,
                Kind::Container => self.leaves(place, child, with(None))?,
                Kind::List(key) => {
                    for (place, text) in place.entries(key, None) {
                        self.leaves(place, child, with(Some((key, text))))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a container or an entry of a list as an object; on top names have the module's.
    fn object(
        &self,
        place: Place<'a>,
        node: &'static Node,
        key: Option<(Key, &str)>,
        ietf: bool,
        is_top: bool,
        text: &mut String,
    ) -> Result<(), Refusal> {
        text.push('{');
        let mut is_first = true;
        let mut name = |text: &mut String, name: &str| {
            if !std::mem::take(&mut is_first) {
                text.push(',');
            }
            text.push('"');
            if ietf && is_top {
                text.push_str(MODULE);
                text.push(':');
            }
            text.push_str(name);
            text.push_str("\":");
        };
        if let Some((key, value)) = key {
            name(text, key.name());
            write_key(key, value, ietf, text);
        }
        for child in node.children {
            if !place.exists(child) {
                continue;
            }
            match child.kind {
                Kind::Leaf(leaf) => {
                    let scalar = place.scalar(leaf).filter(|_| !leaf.is_named_only());
                    if let Some(scalar) = scalar {
                        self.take(&scalar)?;
                        name(text, child.name);
                        scalar.write_json(ietf, text);
                    }
                }
                Kind::Container => {
                    name(text, child.name);
                    self.object(place, child, None, ietf, false, text)?;
                }
                Kind::List(key) => {
                    name(text, child.name);
                    text.push('[');
                    for (at, (place, value)) in place.entries(key, None).enumerate() {
                        if at > 0 {
                            text.push(',');
                        }
                        self.object(place, child, Some((key, &value)), ietf, false, text)?;
                    }
                    text.push(']');
                }
            }
        }
        text.push('}');
        Ok(())
    }
}

/// Writes the key of an entry as JSON.
fn write_key(key: Key, value: &str, ietf: bool, text: &mut String) {
    match key {
        Key::Location => text.push_str(value),
        Key::Window if !ietf => text.push_str(value),
        // Text is always JSON.
        Key::Group | Key::Window => {
            text.push_str(&serde_json::to_string(value).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests;

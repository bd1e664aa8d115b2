//! The tree of `yang/stateplane-sync.yang`.

/// Name of the module, and its origin in paths.
pub(crate) const MODULE: &str = "stateplane-sync";

/// A leaf. Keys of lists are none: paths bear them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leaf {
    Term,
    Locations,
    Complete,
    Fenced,
    LastWindow,
    Bound,
    AllBut,
    Within,
    Age,
    Stamp,
    Generation,
    Incarnation,
    Epoch,
    Sweep,
    ValuesPacked,
    Value,
    WindowIncarnation,
    WindowEpoch,
    WindowValues,
}

impl Leaf {
    /// Told only for a path that ends in its name (`named-only`).
    pub(crate) fn is_named_only(self) -> bool {
        self == Leaf::ValuesPacked
    }

    /// Exists only while the view is complete.
    pub(crate) fn needs_view(self) -> bool {
        (Leaf::Bound..=Leaf::Value).contains(&self)
    }

    /// One of a window.
    pub(crate) fn is_of_window(self) -> bool {
        self >= Leaf::WindowIncarnation
    }

    /// One of `state` of a group.
    pub(crate) fn is_of_state(self) -> bool {
        (Leaf::Locations..=Leaf::Sweep).contains(&self)
    }

    /// Changes with each mark or value, so that ON_CHANGE tells it once a second at most.
    pub(crate) fn is_restless(self) -> bool {
        matches!(self, Leaf::Age | Leaf::Stamp | Leaf::ValuesPacked)
    }
}

/// The key of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Group,
    Location,
    Window,
}

impl Key {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Key::Group => "name",
            Key::Location => "location",
            Key::Window => "number",
        }
    }
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Container,
    List(Key),
    Leaf(Leaf),
}

/// A node of the schema.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) children: &'static [Node],
}

const fn container(name: &'static str, children: &'static [Node]) -> Node {
    Node {
        name,
        kind: Kind::Container,
        children,
    }
}

const fn list(name: &'static str, key: Key, children: &'static [Node]) -> Node {
    Node {
        name,
        kind: Kind::List(key),
        children,
    }
}

const fn leaf(name: &'static str, leaf: Leaf) -> Node {
    Node {
        name,
        kind: Kind::Leaf(leaf),
        children: &[],
    }
}

/// Leaves of `state` of a group.
static STATE: [Node; 13] = [
    leaf("locations", Leaf::Locations),
    leaf("complete", Leaf::Complete),
    leaf("fenced", Leaf::Fenced),
    leaf("last-window", Leaf::LastWindow),
    leaf("bound", Leaf::Bound),
    leaf("all-but", Leaf::AllBut),
    leaf("within", Leaf::Within),
    leaf("age", Leaf::Age),
    leaf("stamp", Leaf::Stamp),
    leaf("generation", Leaf::Generation),
    leaf("incarnation", Leaf::Incarnation),
    leaf("epoch", Leaf::Epoch),
    leaf("sweep", Leaf::Sweep),
];

static VALUE: [Node; 1] = [container("state", &VALUE_STATE)];

static VALUE_STATE: [Node; 1] = [leaf("value", Leaf::Value)];

static VALUES: [Node; 1] = [list("value", Key::Location, &VALUE)];

static WINDOWS: [Node; 1] = [list("window", Key::Window, &WINDOW)];

static WINDOW: [Node; 1] = [container("state", &WINDOW_STATE)];

static WINDOW_STATE: [Node; 3] = [
    leaf("incarnation", Leaf::WindowIncarnation),
    leaf("epoch", Leaf::WindowEpoch),
    leaf("values-packed", Leaf::WindowValues),
];

static GROUP: [Node; 4] = [
    container("state", &STATE),
    leaf("values-packed", Leaf::ValuesPacked),
    container("values", &VALUES),
    container("windows", &WINDOWS),
];

static GROUPS: [Node; 1] = [list("group", Key::Group, &GROUP)];

static ENGINE: [Node; 1] = [leaf("term", Leaf::Term)];

static SYNC: [Node; 2] = [container("state", &ENGINE), container("groups", &GROUPS)];

static TOP: [Node; 1] = [container("sync", &SYNC)];

/// The node of the path `/`.
pub(crate) static ROOT: Node = container("", &TOP);

/// The name of a leaf of `state` of a group.
pub(crate) fn state_name(leaf: Leaf) -> &'static str {
    let found = STATE.iter().find(|node| node.kind == Kind::Leaf(leaf));
    found.map_or("", |node| node.name)
}

/// All leaves of `state` of a group.
pub(crate) fn state_leaves() -> impl Iterator<Item = Leaf> {
    STATE.iter().filter_map(|node| match node.kind {
        Kind::Leaf(leaf) => Some(leaf),
        _ => None,
    })
}

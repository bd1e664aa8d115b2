//! Messages that are to be made: each job makes its messages one by one.

use std::sync::Arc;

use stateplane_host::sync::Window;

use crate::facts::value_at;
use crate::path::{Selection, element, path_of};
use crate::proto::gnmi::subscribe_response::Response;
use crate::proto::gnmi::{Encoding, Notification, Path, PathElem, Update};
use crate::schema::{Key, Leaf};
use crate::value::{Scalar, of_window};

/// Values of a notification at most.
const BATCH: usize = 1_024;

/// Head of all notifications of a subscription.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) origin: String,
    pub(super) target: String,
    pub(super) encoding: Encoding,
}

impl Head {
    pub(super) fn of(selection: &Selection, encoding: Encoding) -> Head {
        Head {
            origin: selection.origin.clone(),
            target: selection.target.clone(),
            encoding,
        }
    }

    /// A notification whose prefix is `elem`.
    fn notification(&self, unix_ns: i64, elem: Vec<PathElem>) -> Notification {
        Notification {
            timestamp: unix_ns,
            prefix: Some(Path {
                origin: self.origin.clone(),
                target: self.target.clone(),
                ..path_of(elem)
            }),
            ..Notification::default()
        }
    }

    pub(super) fn of_engine(&self, unix_ns: i64) -> Notification {
        self.notification(unix_ns, vec![element("sync", None)])
    }

    pub(super) fn of_group(&self, unix_ns: i64, name: &str) -> Notification {
        self.notification(unix_ns, group_path(name))
    }

    fn of_window(&self, unix_ns: i64, name: &str, number: u64) -> Notification {
        let mut elem = group_path(name);
        elem.push(element("windows", None));
        elem.push(element("window", Some((Key::Window, number.to_string()))));
        self.notification(unix_ns, elem)
    }
}

fn group_path(name: &str) -> Vec<PathElem> {
    vec![
        element("sync", None),
        element("groups", None),
        element("group", Some((Key::Group, name.to_owned()))),
    ]
}

/// A path of containers and a leaf.
pub(super) fn named(names: &[&str]) -> Path {
    path_of(names.iter().map(|name| element(name, None)).collect())
}

/// The path of a location, below its group.
fn location_path(location: u32) -> Vec<PathElem> {
    vec![
        element("values", None),
        element("value", Some((Key::Location, location.to_string()))),
    ]
}

/// An update of a leaf.
pub(super) fn update(path: Path, scalar: &Scalar, encoding: Encoding) -> Update {
    Update {
        path: Some(path),
        val: Some(scalar.typed(encoding)),
        ..Update::default()
    }
}

/// The path of the values that are selected, below their group.
pub(super) fn values_path(location: Option<u32>) -> Path {
    match location {
        None => named(&["values"]),
        Some(location) => path_of(location_path(location)),
    }
}

/// Messages that are to be made.
#[derive(Debug)]
pub(super) enum Job {
    /// One that is made.
    Ready(Option<Box<Notification>>),
    /// Values, those that changed or all.
    Values(Values),
    /// A window.
    Window(Option<Box<WindowJob>>),
    /// Windows that are not kept any more.
    Dropped(Dropped),
    /// The end of the first values.
    Sync,
}

/// Values of a group.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) head: Head,
    pub(super) name: String,
    pub(super) unix_ns: i64,
    /// Values that were told before; all are told without them.
    pub(super) before: Option<Arc<Vec<u8>>>,
    pub(super) values: Arc<Vec<u8>>,
    /// Locations that are left.
    pub(super) rest: std::ops::Range<u32>,
    /// Values of the view before have to go.
    pub(super) delete: Option<Path>,
}

/// A window, and the leaves that are told of it.
#[derive(Debug)]
pub(super) struct WindowJob {
    pub(super) head: Head,
    pub(super) name: String,
    pub(super) unix_ns: i64,
    pub(super) window: Window,
    pub(super) leaves: Vec<Leaf>,
}

/// Numbers of windows that are not kept any more.
#[derive(Debug)]
pub(super) struct Dropped {
    pub(super) head: Head,
    pub(super) name: String,
    pub(super) unix_ns: i64,
    pub(super) rest: std::ops::Range<u64>,
}

impl Job {
    pub(super) fn ready(notification: Notification) -> Job {
        Job::Ready(Some(Box::new(notification)))
    }

    /// The next message; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Response> {
        match self {
            Job::Ready(notification) => notification.take().map(|it| Response::Update(*it)),
            Job::Values(values) => values.next().map(Response::Update),
            Job::Window(window) => window.take().map(|it| Response::Update(it.notification())),
            Job::Dropped(dropped) => dropped.next().map(Response::Update),
            Job::Sync => Some(Response::SyncResponse(true)),
        }
    }
}

impl Values {
    fn next(&mut self) -> Option<Notification> {
        let mut update = Vec::new();
        while update.len() < BATCH
            && let Some(location) = self.rest.next()
        {
            let value = value_at(&self.values, location);
            let before = self.before.as_ref();
            let is_old = before.is_some_and(|before| value_at(before, location) == value);
            let Some(value) = value.filter(|_| !is_old) else {
                continue;
            };
            let mut path = location_path(location);
            path.extend([element("state", None), element("value", None)]);
            let scalar = Scalar::U64(value);
            update.push(self::update(path_of(path), &scalar, self.head.encoding));
        }
        let delete = self.delete.take();
        if update.is_empty() && delete.is_none() {
            return None;
        }
        let notification = self.head.of_group(self.unix_ns, &self.name);
        Some(Notification {
            update,
            delete: delete.into_iter().collect(),
            ..notification
        })
    }
}

impl WindowJob {
    fn notification(self) -> Notification {
        let leaves = self.leaves.iter().filter_map(|leaf| {
            let name = match leaf {
                Leaf::WindowIncarnation => "incarnation",
                Leaf::WindowEpoch => "epoch",
                _ => "values-packed",
            };
            let scalar = of_window(*leaf, &self.window)?;
            Some(update(named(&["state", name]), &scalar, self.head.encoding))
        });
        let head = self
            .head
            .of_window(self.unix_ns, &self.name, self.window.number);
        Notification {
            update: leaves.collect(),
            atomic: true,
            ..head
        }
    }
}

impl Dropped {
    fn next(&mut self) -> Option<Notification> {
        let number = self.rest.next()?;
        let head = self.head.of_window(self.unix_ns, &self.name, number);
        Some(Notification {
            delete: vec![named(&["state"])],
            ..head
        })
    }
}

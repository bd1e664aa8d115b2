//! A NAT's mapping is one to one while it lives (RFC 4787 REQ-1 and REQ-3): all
//! packets of one inside endpoint bear one public endpoint, no public endpoint
//! serves two inside endpoints, and what comes back reaches the right one. Mappings that serve one
//! remote endpoint each are so for each remote endpoint. Programs write such mappings, so a packet
//! may wait after it was translated: it is judged by the mappings from its coming to its leaving.

use crate::checker::{Checker, Objections};
use crate::replication::event::{
    Endpoint, Event, EventKind, Replication, StateEvent, Subject, Violation,
};
use std::collections::BTreeMap;

/// An endpoint, and the remote endpoint that its mapping serves alone.
type End = (Endpoint, Option<Endpoint>);

#[derive(Default)]
struct Mappings {
    by_inside: BTreeMap<End, Endpoint>,
    by_public: BTreeMap<End, Endpoint>,
    /// Mappings of a public endpoint to an inside one that have ended, with the event that ended
    /// the last of them.
    ended: BTreeMap<(End, Endpoint), usize>,
}

impl Mappings {
    fn insert(
        &mut self,
        inside: Endpoint,
        public: Endpoint,
        remote: Option<Endpoint>,
        index: usize,
    ) {
        self.remove(public, remote, index);
        if let Some(earlier) = self.by_inside.insert((inside, remote), public) {
            self.by_public.remove(&(earlier, remote));
        }
        self.by_public.insert((public, remote), inside);
    }

    fn remove(&mut self, public: Endpoint, remote: Option<Endpoint>, index: usize) {
        if let Some(inside) = self.by_public.remove(&(public, remote)) {
            self.by_inside.remove(&(inside, remote));
            if remote.is_some() {
                self.ended.insert(((public, remote), inside), index);
            }
        }
    }
}

/// The head decides about mappings, so a mapping lives from its taking to its
/// freeing there. Outside every named pool it lives from its first packet to the
/// end of the history.
pub(crate) struct Nat {
    mappings: Mappings,
    /// Packets that came and have not left, with the event of their coming.
    came: BTreeMap<u64, usize>,
    /// An objection to the packet that leaves with the next event, and the event until which its
    /// mapping lived.
    late: Option<Late>,
    found: Objections<Replication>,
}

/// An objection that does not hold if the packet came before a mapping ended.
struct Late {
    endpoint: Endpoint,
    index: usize,
    because: String,
    lived_until: usize,
}

impl Nat {
    pub(crate) const NAME: &'static str = "nat";

    /// Takes the objection to a packet that came with event `came` for settled.
    fn settle(&mut self, came: Option<usize>) {
        let Some(late) = self.late.take() else {
            return;
        };
        if came.is_none_or(|came| late.lived_until < came) {
            let subject = Subject::Endpoint(late.endpoint);
            self.found.add(subject, late.index, late.because);
        }
    }
}

impl Default for Nat {
    fn default() -> Self {
        Self {
            mappings: Mappings::default(),
            came: BTreeMap::new(),
            late: None,
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Replication> for Nat {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Replication, index: usize, event: &Event) {
        match &event.kind {
            EventKind::Call { operation, .. } => {
                self.came.entry(*operation).or_insert(index);
            }
            EventKind::Return { operation, .. } => {
                let came = self.came.get(operation).copied();
                self.settle(came);
            }
            _ => {}
        }
        let EventKind::Of(event) = &event.kind else {
            return;
        };
        self.settle(None);
        let mappings = &mut self.mappings;
        let (inside, public, remote) = match *event {
            StateEvent::Taken {
                replica: 0,
                inside,
                public,
                remote,
            } => return mappings.insert(inside, public, remote, index),
            StateEvent::Freed {
                replica: 0,
                public,
                remote,
            } => return mappings.remove(public, remote, index),
            StateEvent::Translated {
                inside,
                public,
                remote,
                ..
            } => (inside, public, remote),
            _ => return,
        };
        let pooled = system.pools.iter().any(|pool| pool.contains(&public));
        let (endpoint, because) = match (
            mappings.by_public.get(&(public, remote)),
            mappings.by_inside.get(&(inside, remote)),
        ) {
            (Some(other), _) if *other != inside => (
                public,
                format!("used for {inside} while it belongs to {other}"),
            ),
            (_, Some(other)) if *other != public => (
                inside,
                format!("appears as {public} while it is mapped to {other}"),
            ),
            (None, _) if pooled => (public, format!("used for {inside} without a mapping")),
            (None, _) => return mappings.insert(inside, public, remote, index),
            (Some(_), _) => return,
        };
        match mappings.ended.get(&((public, remote), inside)) {
            Some(&lived_until) => {
                self.late = Some(Late {
                    endpoint,
                    index,
                    because,
                    lived_until,
                });
            }
            None => self.found.add(Subject::Endpoint(endpoint), index, because),
        }
    }

    fn finish(mut self: Box<Self>, _: &Replication) -> Vec<Violation> {
        self.settle(None);
        self.found.into_violations()
    }
}

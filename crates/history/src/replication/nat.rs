//! A NAT's mapping is one to one while it lives (RFC 4787 REQ-1 and REQ-3): all
//! packets of one inside endpoint bear one public endpoint, no public endpoint
//! serves two inside endpoints, and what comes back reaches the right one.

use crate::checker::{Checker, Objections};
use crate::replication::event::{
    Endpoint, Event, EventKind, Replication, StateEvent, Subject, Violation,
};
use std::collections::BTreeMap;

#[derive(Default)]
struct Mappings {
    by_inside: BTreeMap<Endpoint, Endpoint>,
    by_public: BTreeMap<Endpoint, Endpoint>,
}

impl Mappings {
    fn insert(&mut self, inside: Endpoint, public: Endpoint) {
        self.remove(public);
        if let Some(earlier) = self.by_inside.insert(inside, public) {
            self.by_public.remove(&earlier);
        }
        self.by_public.insert(public, inside);
    }

    fn remove(&mut self, public: Endpoint) {
        if let Some(inside) = self.by_public.remove(&public) {
            self.by_inside.remove(&inside);
        }
    }
}

/// The head decides about mappings, so a mapping lives from its taking to its
/// freeing there. Outside every named pool it lives from its first packet to the
/// end of the history.
pub(crate) struct Nat {
    mappings: Mappings,
    found: Objections<Replication>,
}

impl Nat {
    pub(crate) const NAME: &'static str = "nat";
}

impl Default for Nat {
    fn default() -> Self {
        Self {
            mappings: Mappings::default(),
            found: Objections::new(Self::NAME),
        }
    }
}

impl Checker<Replication> for Nat {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&mut self, system: &Replication, index: usize, event: &Event) {
        let mappings = &mut self.mappings;
        let EventKind::Of(event) = &event.kind else {
            return;
        };
        let (inside, public) = match *event {
            StateEvent::Taken {
                replica: 0,
                inside,
                public,
            } => return mappings.insert(inside, public),
            StateEvent::Freed { replica: 0, public } => return mappings.remove(public),
            StateEvent::Translated { inside, public, .. } => (inside, public),
            _ => return,
        };
        let pooled = system.pools.iter().any(|pool| pool.contains(&public));
        let (endpoint, because) = match (
            mappings.by_public.get(&public),
            mappings.by_inside.get(&inside),
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
            (None, _) => return mappings.insert(inside, public),
            (Some(_), _) => return,
        };
        self.found.add(Subject::Endpoint(endpoint), index, because);
    }

    fn finish(self: Box<Self>, _: &Replication) -> Vec<Violation> {
        self.found.into_violations()
    }
}

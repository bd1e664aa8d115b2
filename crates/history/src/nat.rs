//! A NAT's mapping is one to one while it lives (RFC 4787 REQ-1 and REQ-3): all
//! packets of one inside endpoint bear one public endpoint, no public endpoint
//! serves two inside endpoints, and what comes back reaches the right one.

use crate::checker::{Checker, Subject, Violation};
use crate::event::{Endpoint, EventKind, History};
use std::collections::{BTreeMap, BTreeSet};

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
pub(crate) fn check(history: &History) -> Vec<Violation> {
    let mut mappings = Mappings::default();
    let mut found = Vec::new();
    let mut guilty = BTreeSet::new();
    for (index, event) in history.events.iter().enumerate() {
        let (inside, public) = match event.kind {
            EventKind::Taken {
                replica: 0,
                inside,
                public,
            } => {
                mappings.insert(inside, public);
                continue;
            }
            EventKind::Freed { replica: 0, public } => {
                mappings.remove(public);
                continue;
            }
            EventKind::Translated { inside, public, .. } => (inside, public),
            _ => continue,
        };
        let pooled = history.pools.iter().any(|pool| pool.contains(&public));
        let objection = match (
            mappings.by_public.get(&public),
            mappings.by_inside.get(&inside),
        ) {
            (Some(other), _) if *other != inside => Some((
                public,
                format!("used for {inside} while it belongs to {other}"),
            )),
            (_, Some(other)) if *other != public => Some((
                inside,
                format!("appears as {public} while it is mapped to {other}"),
            )),
            (None, _) if pooled => Some((public, format!("used for {inside} without a mapping"))),
            (None, _) => {
                mappings.insert(inside, public);
                None
            }
            (Some(_), _) => None,
        };
        if let Some((endpoint, because)) = objection
            && guilty.insert(endpoint)
        {
            found.push(Violation {
                checker: Checker::Nat,
                subject: Subject::Endpoint(endpoint),
                event: index,
                because,
            });
        }
    }
    found
}

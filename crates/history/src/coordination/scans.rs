//! Lists of a group's records as the scans that they consist of: each is a read of the record that
//! it shows (`docs/coordination-protocol.md`, rule 14).

use crate::coordination::event::{
    Asked, CoordinationEvent, Event, EventKind, Holder, Kind, Outcome, Request, Response, Scanned,
    Seen,
};
use crate::event::Object;
use std::collections::BTreeMap;

/// An answered scan.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// The client.
    pub(super) node: u32,
    /// The group.
    pub(super) group: Object,
    /// The list that it is part of.
    pub(super) list: u64,
    /// True if no places are behind.
    pub(super) ends: bool,
    /// Number of the newest entry that the answerer had.
    pub(super) number: u64,
    /// Greatest number that an answer of the group had shown when the client asked.
    pub(super) floor: u64,
    /// The event that tells it.
    pub(super) event: usize,
    /// The record that it shows.
    record: Option<(Object, Seen)>,
}

impl Scan {
    /// Key of the record that it shows.
    pub(super) fn key(&self) -> Option<&Object> {
        self.record.as_ref().map(|(key, _)| key)
    }

    /// The read that would be answered so.
    pub(super) fn read(&self) -> Option<(Request, Response)> {
        let (key, seen) = self.record.clone()?;
        let request = Request {
            key,
            asked: Asked::Read,
            token: 0,
            guard: None,
            holder: Holder::default(),
            until: None,
        };
        let outcome = match seen.kind {
            Kind::Value | Kind::Lock => Outcome::Done,
            Kind::None | Kind::Empty => Outcome::Absent,
        };
        let response = Response {
            outcome,
            number: self.number,
            token: None,
            seen: Some(seen),
        };
        Some((request, response))
    }
}

/// Puts scans together with the times at which they were asked: a list asks for its next scan when
/// the one before is answered.
#[derive(Debug, Default)]
pub(super) struct Scans {
    /// Greatest number shown when a list asked last, by client, group and list.
    floors: BTreeMap<(u32, Object, u64), u64>,
}

impl Scans {
    /// The scan whose answer the event of number `index` tells. `newest` gives the greatest number
    /// that an answer of a group has shown so far.
    pub(super) fn handle(
        &mut self,
        index: usize,
        event: &Event,
        newest: impl Fn(&Object) -> u64,
    ) -> Option<Scan> {
        let EventKind::Of(CoordinationEvent::Scanned {
            node,
            group,
            list,
            scanned,
            number,
            key,
            seen,
        }) = &event.kind
        else {
            return None;
        };
        let name = (*node, group.clone(), *list);
        let shown = newest(group).max(*number);
        let floor = self.floors.insert(name, shown);
        let ends = *scanned == Scanned::End;
        if *scanned == Scanned::Begin {
            return None;
        }
        Some(Scan {
            node: *node,
            group: group.clone(),
            list: *list,
            ends,
            number: *number,
            // The end is told of the scan before.
            floor: floor.filter(|_| !ends).unwrap_or(0),
            event: index,
            record: key.clone().zip(seen.clone()),
        })
    }
}

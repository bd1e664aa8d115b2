//! The place at which facts are kept, and the records of a log in a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stateplane_disk::{Files, RecordLog};
use stateplane_wire::sync::Outcome;

use super::{Fact, Window, Windows, WriteId, WriteIds};

/// First byte of the record of a start: the term.
const TERM: u8 = 1;

/// First byte of the record of a window.
const WINDOW: u8 = 2;

/// First byte of the record of a window whose values are not kept.
const WAIVED: u8 = 3;

/// First byte of the record of a write that may have been sent.
const BEGUN: u8 = 4;

/// First byte of the record of a write that ended.
const ENDED: u8 = 5;

/// First byte of the record of a group's totals.
const TOTALS: u8 = 6;

/// The place at which facts are kept.
#[derive(Debug)]
pub(super) enum Log<F: Files> {
    /// In a folder; they are written through before the engine goes on.
    Folder(RecordLog<F>),
    /// In a store that engines share, which keeps them while the engine goes on.
    Shared(Waiting),
}

/// Facts that a shared store does not have.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) facts: Vec<Fact>,
    /// Groups of which a window is over.
    pub(super) passed: BTreeSet<String>,
    /// Position of the last fact of those that the store was given, and has not kept yet.
    pub(super) under_way: Option<u64>,
}

impl Waiting {
    /// A window of the group is over.
    pub(super) fn passed(&mut self, group: &str) {
        if !self.passed.contains(group) {
            self.passed.insert(group.to_owned());
        }
    }
}

/// The facts that the records of a log say.
pub(super) struct State {
    pub(super) term: u64,
    pub(super) groups: BTreeMap<String, Windows>,
    pub(super) writes: WriteIds,
}

impl State {
    /// Takes one record; `None` if it makes no sense.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Option<()> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            TERM => self.term = self.term.max(u64::from_be_bytes(rest.try_into().ok()?)),
            WINDOW | WAIVED => {
                let length = usize::from(*take::<1>(&mut rest)?.first()?);
                let (name, mut rest) = rest.split_at_checked(length)?;
                let name = std::str::from_utf8(name).ok()?;
                let incarnation = u32::from_be_bytes(take(&mut rest)?);
                let epoch = u32::from_be_bytes(take(&mut rest)?);
                // A group that the file does not name any more is let go.
                let group = self.groups.get_mut(name);
                if *kind == WAIVED {
                    if let Some(group) = group {
                        group.passed(incarnation, epoch);
                    }
                    return rest.is_empty().then_some(());
                }
                let number = u64::from_be_bytes(take(&mut rest)?);
                let window = Window {
                    number,
                    incarnation,
                    epoch,
                    values: Arc::new(rest.to_vec()),
                };
                if let Some(group) = group {
                    group.add(0, window);
                }
            }
            TOTALS => {
                let length = usize::from(*take::<1>(&mut rest)?.first()?);
                let (name, totals) = rest.split_at_checked(length)?;
                if let Some(group) = self.groups.get_mut(std::str::from_utf8(name).ok()?) {
                    group.totals = (group.totals.0 + 1, Arc::new(totals.to_vec()));
                }
            }
            BEGUN => {
                self.writes.begin(rest.try_into().ok()?);
            }
            ENDED => {
                let id = take(&mut rest)?;
                let outcome = match take(&mut rest)? {
                    [0] => None,
                    [outcome] => Some(Outcome::from_u8(outcome)?),
                };
                // One that was forgotten meanwhile changes nothing.
                let _ = self.writes.end(id, outcome);
            }
            _ => return None,
        }
        Some(())
    }
}

/// The next bytes.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

pub(super) fn term_record(term: u64) -> Vec<u8> {
    let mut record = vec![TERM];
    record.extend(term.to_be_bytes());
    record
}

fn of_group(kind: u8, group: &str, incarnation: u32, epoch: u32) -> Vec<u8> {
    // Names have at most 64 bytes.
    let mut record = vec![kind, group.len() as u8];
    record.extend(group.as_bytes());
    record.extend(incarnation.to_be_bytes());
    record.extend(epoch.to_be_bytes());
    record
}

pub(super) fn window_record(group: &str, window: &Window) -> Vec<u8> {
    let mut record = of_group(WINDOW, group, window.incarnation, window.epoch);
    record.extend(window.number.to_be_bytes());
    record.extend_from_slice(&window.values);
    record
}

pub(super) fn waived_record(group: &str, incarnation: u32, epoch: u32) -> Vec<u8> {
    of_group(WAIVED, group, incarnation, epoch)
}

pub(super) fn totals_record(group: &str, totals: &[u8]) -> Vec<u8> {
    let mut record = vec![TOTALS, group.len() as u8];
    record.extend(group.as_bytes());
    record.extend(totals);
    record
}

pub(super) fn begun_record(id: &WriteId) -> Vec<u8> {
    let mut record = vec![BEGUN];
    record.extend(id);
    record
}

pub(super) fn ended_record(id: &WriteId, outcome: Option<Outcome>) -> Vec<u8> {
    let mut record = vec![ENDED];
    record.extend(id);
    record.push(outcome.map_or(0, |outcome| outcome as u8));
    record
}

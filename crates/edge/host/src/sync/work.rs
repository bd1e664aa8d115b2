//! The part of an engine that leads: the groups and flows that it follows, and what it keeps.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;

use stateplane_disk::LogError;
use stateplane_sync::{Engine, Settings};

use super::flows::Flows;
use super::group::Group;
use super::{FlowsReport, GroupReport, Kept, SyncEngineFile, SyncError, ViewError};
use crate::clock::boot_time_us;
use crate::random::random_bits;

/// Groups and flows that are followed under one term, and what is kept of them.
pub(super) struct Work {
    pub(super) term: u64,
    pub(super) groups: Vec<Group>,
    pub(super) flows: Vec<Flows>,
    /// Addresses of the flows' stores.
    pub(super) stores: BTreeSet<SocketAddrV4>,
    pub(super) kept: Kept,
}

impl Work {
    /// Begins to follow the groups and flows of `file`.
    pub(super) fn begin(file: &SyncEngineFile, term: u64, kept: Kept) -> Result<Work, SyncError> {
        let now = boot_time_us();
        let mut groups = Vec::new();
        for group in &file.groups {
            let settings = Settings {
                group: group.group,
                locations: group.locations,
                batch: group.batch,
                poll_us: group.poll_us,
                retry_us: group.retry_us,
                term,
                nonce: random_bits().map_err(SyncError::Random)? as u32,
            };
            let engine = Engine::new(settings, now, kept.epochs(&group.name));
            let mut engine = engine.map_err(|error| SyncError::setting(&group.name, error))?;
            if let Some(bits) = group.counter_bits {
                engine.continue_counters(bits, kept.totals(&group.name));
            }
            let is_of_snapshots = file.is_of_snapshots(&group.name);
            groups.push(Group::new(now, group.clone(), engine, is_of_snapshots));
        }
        let mut flows = Vec::new();
        for section in &file.flows {
            let incarnation = random_bits().map_err(SyncError::Random)? as u32;
            flows.push(Flows::begin(now, section, incarnation)?);
        }
        let stores = file.flows.iter().flat_map(|section| &section.stores);
        Ok(Work {
            term,
            groups,
            flows,
            stores: stores.copied().collect(),
            kept,
        })
    }

    /// Merges the views that ended with snapshots of the same arrays.
    pub(super) fn merge_last_views(&mut self) {
        let Work { groups, flows, .. } = self;
        for group in groups {
            for last in group.take_last_views() {
                let (name, promise) = (&group.file.name, (last.ended, last.told));
                for arrays in flows.iter_mut().flat_map(Flows::all_arrays) {
                    arrays.see(name, last.incarnation, promise, &last.values);
                }
            }
        }
    }

    /// The engine ends: what it keeps now and then is kept at once.
    pub(super) fn close(&mut self) -> Result<(), LogError> {
        for group in &mut self.groups {
            group.keep_totals(boot_time_us(), &mut self.kept);
        }
        self.kept.close()
    }

    /// Place of a group.
    pub(super) fn group(&self, name: &str) -> Result<usize, ViewError> {
        let found = self.groups.iter().position(|group| group.file.name == name);
        found.ok_or_else(|| {
            let known = self.groups.iter().map(|group| group.file.name.as_str());
            ViewError::UnknownGroup {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Place of flows.
    pub(super) fn flows(&self, name: &str) -> Result<usize, ViewError> {
        let found = self.flows.iter().position(|flows| flows.file.name == name);
        found.ok_or_else(|| {
            let known = self.flows.iter().map(|flows| flows.file.name.as_str());
            ViewError::UnknownFlows {
                name: name.to_owned(),
                known: known.collect::<Vec<_>>().join(", "),
            }
        })
    }

    /// Counts and views of flows.
    pub(super) fn flows_report(&self) -> Vec<FlowsReport> {
        let now = boot_time_us();
        self.flows.iter().map(|flows| flows.report(now)).collect()
    }

    /// The greatest term with which a switch refused this one before it had a view. An engine whose
    /// view was complete was replaced by one that started later.
    pub(super) fn refused_term(&self) -> Option<u64> {
        let groups = self.groups.iter().filter(|group| !group.was_complete);
        groups.filter_map(|group| group.refused_term).max()
    }

    /// Counts and views.
    pub(super) fn report(&self) -> Vec<GroupReport> {
        let now = boot_time_us();
        let group = |group: &Group| {
            let (told, counters) = (group.engine.told(now), group.engine.counters());
            let ring = group.engine.ring();
            let shown = group.file.metrics.iter();
            GroupReport {
                name: group.file.name.clone(),
                locations: group.file.locations,
                complete: told.is_some(),
                fenced: group.engine.is_fenced(),
                bound: told.and_then(|told| told.bound),
                all_but: told.map_or(0, |told| told.all_but),
                within: told.map_or(0, |told| told.within),
                age_us: told.map(|told| told.age_us),
                sweep_us: told.map_or(0, |told| told.sweep_us),
                unsent: ring.and_then(|ring| ring.unsent),
                queued: ring.map_or(0, |ring| ring.queued),
                sent: ring.map_or(0, |ring| ring.sent),
                missing: ring.map_or(0, |ring| ring.missing),
                named: ring.map_or(0, |ring| ring.named),
                lost: ring.map_or(0, |ring| ring.lost),
                generation: told.map_or(0, |told| told.generation),
                epoch: told.map_or(0, |told| told.epoch),
                last_window: self.kept.window_range(&group.file.name).1,
                waiting: group.waiting(),
                values: match told {
                    Some(_) => shown.clone().map(|at| (*at, group.value(*at))).collect(),
                    None => Vec::new(),
                },
                totals: shown.filter_map(|at| group.total(*at)).collect(),
                updates: counters.updates,
                applied: counters.applied,
                repairs: counters.repairs,
                repaired: counters.repaired,
                refused: counters.refused,
                foreign: counters.foreign,
                beyond: counters.beyond,
                other_incarnation: counters.other_incarnation,
                reads: group.read,
                unmet: group.unmet,
                windows: group.windows,
            }
        };
        self.groups.iter().map(group).collect()
    }
}

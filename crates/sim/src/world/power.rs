//! Disks of the store servers, and power cuts.

use super::{Happening, World};
use crate::clock::Clock;
use crate::plan::Misfortune;
use stateplane_disk::DiskError;

impl World<'_> {
    /// Writes what a server has to save, for which it stands still; `true` if all is
    /// saved.
    pub(super) fn save(&mut self, store: usize) -> bool {
        let Some(disks) = self.options.scenario.disks else {
            return true;
        };
        let node = &mut self.stores[store];
        let (Some(server), Some(disk)) = (&mut node.server, &mut node.disk) else {
            return false;
        };
        if node.syncing {
            return false;
        }
        match disk.write(server) {
            Ok(false) => return true,
            Ok(true) => node.syncing = true,
            Err(error) => {
                self.disk_fails(store, &error);
                return false;
            }
        }
        let until = self.now + self.random.between(1, disks.sync);
        node.busy_until = node.busy_until.max(until);
        let deaths = node.deaths;
        self.schedule
            .add(until, Happening::Synced { store, deaths });
        false
    }

    pub(super) fn synced(&mut self, store: usize, deaths: u64) {
        let node = &mut self.stores[store];
        if node.deaths != deaths {
            return;
        }
        if self.now < node.busy_until {
            let again = Happening::Synced { store, deaths };
            self.schedule.add(node.busy_until, again);
            return;
        }
        let (Some(server), Some(disk)) = (&mut node.server, &mut node.disk) else {
            return;
        };
        node.syncing = false;
        let synced = disk.sync(server, self.now).and_then(|()| {
            let Some(snapshot) = disk.begin_snapshot(server)? else {
                return Ok(());
            };
            self.recorder.coverage.snapshots += 1;
            disk.end_snapshot(snapshot.write())
        });
        match synced {
            Ok(()) => self.after_store(store),
            Err(error) => self.disk_fails(store, &error),
        }
    }

    /// A server whose disk takes no more ends.
    fn disk_fails(&mut self, store: usize, error: &DiskError) {
        self.anomaly(format!("the disk of server {store}: {error}"));
    }

    pub(super) fn befall_disks(&mut self, misfortune: Misfortune) {
        match misfortune {
            Misfortune::PowerCut { until } => {
                for store in 0..self.stores.len() {
                    let late = self.random.between(0, 20_000);
                    self.store_dies(store, until + late);
                }
            }
            Misfortune::StoreDies { store, until } => self.store_dies(store, until),
            Misfortune::StoreReturns { store } => self.store_returns(store),
            of_cluster if self.options.scenario.cluster.is_some() => {
                self.befall_stores(of_cluster);
            }
            _ => {}
        }
    }

    fn store_dies(&mut self, store: usize, until: u64) {
        let now = self.now;
        let node = &mut self.stores[store];
        if node.server.take().is_none() {
            return;
        }
        node.timer = None;
        node.syncing = false;
        node.deaths += 1;
        node.disk = None;
        node.files.reseed(self.random.next());
        node.files.lose_power();
        match node.recovered(self.options, store, self.first_sequence, now) {
            Ok(server) => node.remains = Some(server),
            Err(error) => self.anomaly(format!("the disk of server {store}: {error}")),
        }
        self.recorder.coverage.store_deaths += 1;
        let returns = Misfortune::StoreReturns { store };
        self.schedule.add(until, Happening::Misfortune(returns));
    }

    pub(super) fn store_returns(&mut self, store: usize) {
        let now = self.now;
        if self.stores[store].server.is_some() {
            return;
        }
        let clock = Clock::draw(&mut self.random, now, self.options.scenario.drift);
        let node = &mut self.stores[store];
        node.clock = clock;
        node.busy_until = now;
        let first = self.first_sequence;
        if let Err(error) = node.start(self.options, store, first, now) {
            self.anomaly(format!("the disk of server {store}: {error}"));
        }
        let cluster = self.options.scenario.cluster.is_some();
        for ((number, _), mappings) in &mut self.mappings {
            if cluster || usize::from(*number) == store {
                mappings.look_again();
            }
        }
        self.after_store(store);
    }

    /// All servers with a disk are there from here on.
    pub(super) fn restore_power(&mut self) {
        if self.options.scenario.disks.is_some() {
            for store in 0..self.stores.len() {
                self.store_returns(store);
            }
        }
    }
}

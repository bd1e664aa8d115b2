//! Disks of the store servers, and power cuts.

use super::{Happening, World};
use crate::clock::Clock;
use crate::plan::Misfortune;

impl World<'_> {
    /// Writes what a server has to save, for which it stands still; `true` if all is
    /// saved.
    pub(super) fn save(&mut self, store: usize) -> bool {
        let Some(disks) = self.options.scenario.disks else {
            return true;
        };
        let node = &mut self.stores[store];
        let Some(server) = &mut node.server else {
            return false;
        };
        if node.syncing {
            return false;
        }
        while let Some(record) = server.poll_record() {
            node.syncing = true;
            node.disk.append(record);
        }
        if !node.syncing {
            return true;
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
        let Some(server) = &mut node.server else {
            return;
        };
        node.disk.sync();
        node.syncing = false;
        server.handle_saved();
        let disks = self.options.scenario.disks;
        if disks.is_some_and(|disks| node.disk.saved() >= disks.snapshot_after)
            && let Some(state) = server.saved_state()
        {
            node.disk.replace(state);
            self.recorder.coverage.snapshots += 1;
        }
        self.after_store(store);
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
        node.disk.lose_power(&mut self.random);
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
        match node.recovered(self.options, store, self.first_sequence, now) {
            Ok(server) => {
                node.server = Some(server);
                node.remains = None;
            }
            Err(error) => self.anomaly(format!("the disk of server {store}: {error}")),
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

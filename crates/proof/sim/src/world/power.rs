//! Disks of the store servers, and power cuts.

use super::{Happening, World};
use crate::options::Rule;
use crate::plan::Misfortune;
use stateplane_disk::{DiskError, FaultyFiles};
use stateplane_world::{Clock, Node as _};

/// Greatest time in µs after which a server that ended is started again.
const RESTART: u64 = 5_000;

impl World<'_> {
    /// Writes what a server has to save, for which it serves nothing but terms; `true` if all is
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
        if node.unheeding {
            while server.poll_record().is_some() {}
            server.handle_saved();
            return true;
        }
        match disk.write(server) {
            Ok(false) => return true,
            Ok(true) => node.syncing = true,
            Err(error) => {
                self.disk_fails(store, &error);
                return self.stores[store].unheeding && self.save(store);
            }
        }
        let deaths = node.deaths;
        let until = self.now + self.net.random.between(1, disks.sync);
        self.net.plan(until, Happening::Synced { store, deaths });
        false
    }

    pub(super) fn synced(&mut self, store: usize, deaths: u64) {
        let node = &mut self.stores[store];
        if node.deaths != deaths {
            return;
        }
        if let Some(until) = self.net.stands_until(self.places.store(store)) {
            let again = Happening::Synced { store, deaths };
            self.net.plan(until, again);
            return;
        }
        let (Some(server), Some(disk)) = (&mut node.server, &mut node.disk) else {
            return;
        };
        node.syncing = false;
        let synced = disk.sync(server, self.now).and_then(|()| {
            let chains = server.replicas().map(|(chain, _)| chain);
            node.chains_kept.extend(chains);
            let Some(snapshot) = disk.begin_snapshot(server, self.now)? else {
                return Ok(());
            };
            self.recorder.coverage.snapshots += 1;
            disk.end_snapshot(snapshot.write())
        });
        if let Err(error) = synced {
            self.disk_fails(store, &error);
        }
        self.after_store(store);
        self.take_held(store);
    }

    /// A server takes what came while it waited for its disk, as of when that is done: until then
    /// it backed heads as if nothing had come.
    fn take_held(&mut self, store: usize) {
        let node = &mut self.stores[store];
        if node.syncing || node.held.is_empty() {
            return;
        }
        let local = self.net.local(self.places.store(store));
        for held in std::mem::take(&mut node.held) {
            node.handle_message(local, held.port, held.sender, held.message);
        }
        self.after_store(store);
    }

    /// A server whose disk takes no more ends, and is started again before long.
    fn disk_fails(&mut self, store: usize, error: &DiskError) {
        let fails = self.options.scenario.disks.is_some_and(|d| d.failures > 0);
        if !fails || error.code() != "H403" {
            self.anomaly(format!("the disk of server {store}: {error}"));
            return;
        }
        self.recorder.coverage.disk_failures += 1;
        if self.options.without == Some(Rule::FailedSave) {
            self.stores[store].unheeding = true;
            return;
        }
        self.process_ends(store);
        self.retry(store);
    }

    /// A server that ended is started again.
    fn retry(&mut self, store: usize) {
        let at = self.now + self.net.random.between(500, RESTART);
        let returns = Misfortune::StoreReturns { store };
        self.net.plan(at, Happening::Misfortune(returns));
    }

    /// The process of a server ends, and its machine does not.
    fn process_ends(&mut self, store: usize) {
        let node = &mut self.stores[store];
        node.stop();
        node.files.lose_process();
        self.net.die(self.places.store(store));
        self.remember(store);
    }

    /// Notes what its disk would make of a server that has died.
    fn remember(&mut self, store: usize) {
        let local = self.net.local(self.places.store(store));
        let node = &mut self.stores[store];
        match node.recovered(self.options, store, self.first_sequence, local) {
            Ok(server) => node.remains = Some(server),
            // It is found again when the server comes back.
            Err(_) if self.rots() => {}
            Err(error) => self.anomaly(format!("the disk of server {store}: {error}")),
        }
    }

    pub(super) fn befall_disks(&mut self, misfortune: Misfortune) {
        match misfortune {
            Misfortune::PowerCut { until } => {
                for store in 0..self.stores.len() {
                    let late = self.net.random.between(0, 20_000);
                    self.store_dies(store, until + late);
                }
            }
            Misfortune::StoreDies { store, until } => self.store_dies(store, until),
            Misfortune::StoreReturns { store } => self.store_returns(store),
            Misfortune::DiskFails {
                store,
                failure,
                calls,
            } => match failure {
                Some(failure) => self.stores[store].files.fail_from(failure, calls),
                None => self.stores[store].files.write_short(true),
            },
            Misfortune::DiskMends { store } => self.stores[store].files.mend(),
            of_cluster if self.options.scenario.cluster.is_some() => {
                self.befall_stores(of_cluster);
            }
            _ => {}
        }
    }

    /// True if the disks of servers rot.
    fn rots(&self) -> bool {
        self.options.scenario.disks.is_some_and(|disks| disks.rot)
    }

    /// A server whose disk lost entries has left chains. Where disks do not rot, a server does
    /// so only for want of what it never had: the disk of a member of configuration 1 took
    /// nothing before the server ended, and it is a member of configuration 2. It cannot know
    /// that its disk lost nothing, so it leaves that chain, and takes a copy.
    pub(super) fn note_lost_chains(&mut self, store: usize) {
        let node = &mut self.stores[store];
        let Some(server) = &node.server else {
            return;
        };
        let lost = server.server_counters().chains_lost;
        let more = lost - node.chains_lost;
        node.chains_lost = lost;
        self.recorder.coverage.chains_lost += more;
        let had = server
            .lost_chains()
            .any(|chain| node.chains_kept.contains(&chain));
        if more > 0 && had && !self.rots() {
            self.anomaly(format!("the disk of server {store} lost entries"));
        }
    }

    fn store_dies(&mut self, store: usize, until: u64) {
        if self.rots() && !self.may_die() {
            return;
        }
        let rot = self.rots().then(|| self.net.random.place(3));
        if self.stores[store].server.is_none() {
            return;
        }
        let node = &mut self.stores[store];
        if rot.is_some() {
            node.doubt();
        }
        node.stop();
        node.files.reseed(self.net.random.next());
        node.files.lose_power();
        match rot {
            Some(0) => node.rot("log-", 1_000),
            Some(1) => node.rot("snapshot-", 10_000),
            _ => {}
        }
        self.net.die(self.places.store(store));
        self.remember(store);
        self.recorder.coverage.store_deaths += 1;
        let returns = Misfortune::StoreReturns { store };
        self.net.plan(until, Happening::Misfortune(returns));
    }

    pub(super) fn store_returns(&mut self, store: usize) {
        let now = self.now;
        if self.stores[store].server.is_some() {
            return;
        }
        let drift = self.options.scenario.drift;
        let clock = Clock::draw(&mut self.net.random, now, drift);
        let rots = self.rots();
        let place = self.places.store(store);
        self.net.restart(place, clock);
        let local = self.net.local(place);
        let node = &mut self.stores[store];
        let first = self.first_sequence;
        let mut started = node.start(self.options, store, first, local);
        if started.is_err() && rots {
            // The operator empties the folder, as the message says.
            let incarnation = self.net.random.between(1, u32::MAX.into()) as u32;
            node.identity.incarnation = incarnation;
            node.files = FaultyFiles::new(incarnation.into());
            started = node.start(self.options, store, first, local);
            self.recorder.coverage.disks_emptied += 1;
        }
        if rots && self.net.random.place(3) == 0 {
            node.files.lie_after(self.net.random.between(1, 100));
        }
        if started.is_err() {
            self.net.die(place);
        }
        if started.is_err() && node.files.is_to_fail() {
            self.recorder.coverage.failed_starts += 1;
            self.retry(store);
            return;
        }
        if let Err(error) = started {
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

    /// All disks are sound from here on.
    pub(super) fn mend_disks(&mut self) {
        for node in &self.stores {
            node.files.mend();
        }
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

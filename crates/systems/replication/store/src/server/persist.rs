//! Records that a server saves on a disk, and its restoration from them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use core::net::SocketAddrV4;

use stateplane_wire::control::{ChainConfig, Member, Message};

use super::{Management, Server};
use crate::config::{Config, ConfigError};
use crate::creator::creator_of;
use crate::replica::{Restoring, SavedReplica};
use crate::saved::{
    Begin, RecoveryError, VERSION, kind, number, record, split, start, upgrade, version_of_start,
};

/// Records that are not on the disk yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Unsaved {
    records: VecDeque<Vec<u8>>,
    /// The host has taken records and not said yet that they are on the disk.
    taken: bool,
    /// Number of records that are on the disk.
    saved: u64,
    /// Of those that the host has taken.
    given: u64,
}

impl Unsaved {
    /// How much is on the disk once all that there is now is.
    pub(super) fn saved_upto(&self) -> u64 {
        self.given + self.records.len() as u64
    }

    /// True if as much as [`Unsaved::saved_upto`] gave once is on the disk.
    pub(super) fn has(&self, upto: u64) -> bool {
        self.saved >= upto
    }
}

/// A whole server as records, made one by one. It is a copy, so the server may go on.
#[derive(Debug)]
pub struct SavedState {
    records: VecDeque<Vec<u8>>,
    chains: VecDeque<SavedChain>,
}

#[derive(Debug)]
struct SavedChain {
    number: u16,
    configuration: Option<Vec<u8>>,
    replica: Option<SavedReplica>,
}

/// A [`SavedState`] that is being copied. Until it is whole the server may answer heartbeats and
/// questions about terms, and nothing else.
#[derive(Debug)]
pub struct StateCopy {
    state: SavedState,
    /// Chain whose shards are copied next.
    at: usize,
}

impl StateCopy {
    /// Copies another shard of `server`, of which this is a copy; `false` if it is whole.
    pub fn copy(&mut self, server: &Server) -> bool {
        while let Some(chain) = self.state.chains.get_mut(self.at) {
            let replica = server.replica(chain.number);
            if let Some((saved, replica)) = chain.replica.as_mut().zip(replica)
                && saved.copy(replica)
            {
                return true;
            }
            self.at += 1;
        }
        false
    }

    /// The whole state, of which the rest is copied.
    pub fn whole(mut self, server: &Server) -> SavedState {
        while self.copy(server) {}
        self.state
    }
}

impl Iterator for SavedState {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(record) = self.records.pop_front() {
            return Some(record);
        }
        while let Some(chain) = self.chains.front_mut() {
            if let Some(record) = chain.configuration.take() {
                return Some(record);
            }
            if let Some(record) = chain.replica.as_mut().and_then(Iterator::next) {
                return Some(record);
            }
            self.chains.pop_front();
        }
        None
    }
}

/// The record of a configuration.
fn configuration(config: &ChainConfig) -> Vec<u8> {
    let message = Message::Configure {
        controller: 0,
        config: config.clone(),
    };
    record(kind::CONFIGURATION, config.chain, &[&message.to_vec()])
}

/// The record that the server is not in `chain`, as configuration `epoch` is.
fn left_chain(chain: u16, epoch: u32, lost: &BTreeSet<u16>) -> Vec<u8> {
    let lost = u8::from(lost.contains(&chain));
    record(kind::LEFT, chain, &[&epoch.to_be_bytes(), &[lost]])
}

impl Server {
    /// The next record to append to those on the disk. None if the configuration does not
    /// say `durable`.
    pub fn poll_record(&mut self) -> Option<Vec<u8>> {
        let record = self.unsaved.records.pop_front()?;
        self.unsaved.taken = true;
        self.unsaved.given += 1;
        Some(record)
    }

    /// All records that [`Server::poll_record`] gave are on the disk.
    pub fn handle_saved(&mut self) {
        self.unsaved.taken = false;
        let before = core::mem::replace(&mut self.unsaved.saved, self.unsaved.given);
        // Rows depend on configurations alone.
        if self.chains.values().any(|hosted| hosted.settled > before) {
            self.terms.look_again();
        }
    }

    /// The records that stand for everything up to here. They take the place of all that
    /// came before, and come before those of [`Server::poll_record`] from here on. `None`
    /// as long as some of these wait, and while a replica is silenced: its state on the disk stays
    /// as it is.
    pub fn saved_state(&self) -> Option<SavedState> {
        Some(self.copy_state()?.whole(self))
    }

    /// True while leases may count that the version before granted, from whose records the server
    /// came: the time in which nobody is outwaited is known only by these records.
    pub fn counts_older(&self, now: u64) -> bool {
        now < self.promises.floor
    }

    /// As [`Server::saved_state`], to be copied by parts.
    pub fn copy_state(&self) -> Option<StateCopy> {
        if !self.unsaved.records.is_empty() || self.silenced().next().is_some() {
            return None;
        }
        let begin = Begin {
            incarnation: self.incarnation,
            starts: self.starts,
            fingerprint: self.fingerprint(),
            version: VERSION,
        };
        let mut records = VecDeque::from([begin.record()]);
        if let Management::Controller(reporting) = &self.management {
            let left = reporting.left.iter();
            let lost = &reporting.lost;
            records.extend(left.map(|(chain, epoch)| left_chain(*chain, *epoch, lost)));
        }
        let chains = self.chains.iter().map(|(number, hosted)| SavedChain {
            number: *number,
            configuration: hosted.config.as_ref().map(configuration),
            replica: hosted.replica.saved_state(),
        });
        let state = SavedState {
            records,
            chains: chains.collect(),
        };
        Some(StateCopy { state, at: 0 })
    }

    pub(super) fn must_save_first(&self) -> bool {
        let unsaved = &self.unsaved;
        let faults = &self.template.faults;
        (unsaved.taken || !unsaved.records.is_empty()) && !faults.send_unsaved
    }

    /// Lets what a replica has to save be saved, behind all that happened before.
    pub(super) fn collect_unsaved(&mut self, chain: u16) {
        if self.template.durable
            && let Some(hosted) = self.chains.get_mut(&chain)
        {
            self.unsaved.records.extend(hosted.replica.take_unsaved());
        }
    }

    /// Lets a configuration be saved that takes effect next.
    pub(super) fn save_configuration(&mut self, config: &ChainConfig) {
        if self.template.durable {
            self.collect_unsaved(config.chain);
            self.unsaved.records.push_back(configuration(config));
        }
    }

    /// Lets it be saved that it left a chain of which its disk has lost entries.
    pub(super) fn save_lost(&mut self, chain: u16, epoch: u32) {
        if self.template.durable {
            self.collect_unsaved(chain);
            let left = left_chain(chain, epoch, &BTreeSet::from([chain]));
            self.unsaved.records.push_back(left);
        }
    }

    /// A number of what the state on a disk depends on, the same for the same
    /// configuration on every machine (FNV-1a).
    fn fingerprint(&self) -> u64 {
        let config = &self.template;
        let mut bytes = vec![config.chain_length, config.position];
        if let Management::Controller(reporting) = &self.management {
            bytes.extend(reporting.identity.server.to_be_bytes());
        }
        bytes.extend(config.chain.to_be_bytes());
        bytes.extend(config.shards.to_be_bytes());
        bytes.extend((config.served.len() as u16).to_be_bytes());
        bytes.extend(config.served.iter().flat_map(|shard| shard.to_be_bytes()));
        bytes.push(config.classes.len() as u8);
        for class in &config.classes {
            bytes.extend([class.class, class.shared_only.into()]);
            bytes.extend(class.state_length.to_be_bytes());
            let creator = creator_of(class);
            bytes.extend(creator.map_or([2, 0, 0], |creator| creator.fingerprint(class)));
        }
        if let Some(pool) = &config.nat {
            bytes.extend(pool.addresses.iter().flat_map(|address| address.octets()));
            bytes.extend(pool.first_port.to_be_bytes());
            bytes.extend(pool.last_port.to_be_bytes());
        }
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// Arguments of [`Server::fixed`] or [`Server::managed`].
#[derive(Debug, Clone)]
pub enum Setup {
    /// A server of a chain that never changes.
    Fixed {
        /// Its configuration.
        config: Config,
        /// The number of this start.
        incarnation: u32,
        /// Chain ports of all servers, head first.
        links: Vec<SocketAddrV4>,
    },
    /// A server under a controller.
    Managed {
        /// Configuration that all replicas of the server share.
        template: Config,
        /// Address and incarnation of the server.
        identity: Member,
        /// µs between its heartbeats.
        period: u64,
    },
}

impl Setup {
    /// An empty server that starts at `now`.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Config::check`].
    pub fn server(&self, now: u64) -> Result<Server, ConfigError> {
        match self.clone() {
            Setup::Fixed {
                config,
                incarnation,
                links,
            } => {
                let mut server = Server::fixed(config, incarnation, links)?;
                server.with_replica(0, |replica| replica.starts(now, true));
                Ok(server)
            }
            Setup::Managed {
                template,
                identity,
                period,
            } => Server::managed(template, identity, period, now),
        }
    }

    /// The same setup with another incarnation.
    fn with_incarnation(&self, number: u32) -> Setup {
        let mut setup = self.clone();
        match &mut setup {
            Setup::Fixed { incarnation, .. } => *incarnation = number,
            Setup::Managed { identity, .. } => identity.incarnation = number,
        }
        setup
    }
}

/// A server that comes back: takes the records of the disk, in order.
#[derive(Debug)]
pub struct Recovery {
    setup: Setup,
    server: Option<Server>,
    chains: BTreeMap<u16, Restoring>,
    entries: u64,
    /// Version of the next records.
    version: u8,
    /// The first records are of the version before.
    began_older: bool,
    /// When the last record was taken.
    now: u64,
}

impl Recovery {
    /// Recovery without a record.
    pub fn new(setup: Setup) -> Recovery {
        Recovery {
            setup,
            server: None,
            chains: BTreeMap::new(),
            entries: 0,
            version: VERSION,
            began_older: false,
            now: 0,
        }
    }

    /// Takes the next record at `now`. As head the server outwaits nobody for the time of a
    /// backing from then (rule 1c): what it had promised is not known.
    ///
    /// # Errors
    ///
    /// Returns the reason why the record cannot be restored; then there is no server.
    pub fn take(&mut self, now: u64, record: &[u8]) -> Result<(), RecoveryError> {
        let (kind, chain, body) = split(record)?;
        self.now = now;
        let Some(server) = &mut self.server else {
            return match kind {
                kind::BEGIN => self.begin(now, Begin::parse(body)?),
                _ => Err(RecoveryError::Malformed),
            };
        };
        match kind {
            kind::BEGIN => Err(RecoveryError::Malformed),
            kind::START => {
                server.starts = server.starts.saturating_add(1);
                if let Some(version) = version_of_start(body)? {
                    self.version = version;
                }
                Ok(())
            }
            kind::LEFT => {
                let Management::Controller(reporting) = &mut server.management else {
                    return Err(RecoveryError::Malformed);
                };
                let (epoch, rest) = number::<4>(body)?;
                let (lost, _) = number::<1>(rest)?;
                reporting.left.insert(chain, epoch as u32);
                if lost != 0 {
                    reporting.lost.insert(chain);
                }
                self.chains.remove(&chain);
                server.leave(chain);
                Ok(())
            }
            kind::CONFIGURATION => self.configure(now, chain, body),
            _ => {
                let hosted = server.chains.get_mut(&chain);
                let restored = hosted.zip(self.chains.get_mut(&chain));
                let (hosted, restoring) = restored.ok_or(RecoveryError::Malformed)?;
                let upgraded = match kind {
                    kind::ENTRY if self.version < VERSION => Some(upgrade(4, body)?),
                    kind::KEPT if self.version < VERSION => Some(upgrade(0, body)?),
                    _ => None,
                };
                let body = upgraded.as_deref().unwrap_or(body);
                let is_entry = hosted.replica.restore(restoring, now, kind, body)?;
                self.entries += u64::from(is_entry);
                Ok(())
            }
        }
    }

    fn begin(&mut self, now: u64, begin: Begin) -> Result<(), RecoveryError> {
        let setup = self.setup.with_incarnation(begin.incarnation);
        let server = setup.server(now);
        let mut server = server.map_err(|_| RecoveryError::OtherConfiguration)?;
        if begin.fingerprint != server.fingerprint() {
            return Err(RecoveryError::OtherConfiguration);
        }
        server.starts = begin.starts;
        self.version = begin.version;
        self.began_older = begin.version < VERSION;
        let chains = server.chains.keys();
        self.chains = chains.map(|chain| (*chain, Restoring::default())).collect();
        self.server = Some(server);
        Ok(())
    }

    fn configure(&mut self, now: u64, chain: u16, body: &[u8]) -> Result<(), RecoveryError> {
        let server = self.server.as_mut().ok_or(RecoveryError::Malformed)?;
        let Ok(Message::Configure { config, .. }) = Message::parse(body) else {
            return Err(RecoveryError::Malformed);
        };
        if config.chain != chain {
            return Err(RecoveryError::Malformed);
        }
        let known = server.chains.get_mut(&chain);
        let had_place = known.is_some();
        if let Some((hosted, restoring)) = known.zip(self.chains.get_mut(&chain)) {
            hosted.replica.restore_place(restoring)?;
        }
        if !server.configure(now, &config, true) {
            return Err(RecoveryError::Inconsistent);
        }
        let Some(hosted) = server.chains.get(&chain) else {
            self.chains.remove(&chain);
            return Ok(());
        };
        let joins = hosted.replica.place().position >= hosted.replica.place().length;
        if joins {
            // It forgot what it had.
            self.chains.insert(chain, Restoring::default());
        } else if !had_place {
            self.chains.insert(chain, Restoring::empty());
        }
        Ok(())
    }

    /// Entries that came behind the snapshot.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// True if no record was taken.
    pub fn is_empty(&self) -> bool {
        self.server.is_none()
    }

    /// The server as it was when the last record was written. All of them are taken to be
    /// on the disk. A replica that was still being given its state is none: the server has
    /// left that chain.
    ///
    /// # Errors
    ///
    /// [`RecoveryError::Incomplete`] if there is no server, or its only chain has no state;
    /// [`RecoveryError::Malformed`].
    pub fn finish(self) -> Result<Server, RecoveryError> {
        let mut server = self.server.ok_or(RecoveryError::Incomplete)?;
        for (number, restoring) in self.chains {
            let Some(hosted) = server.chains.get_mut(&number) else {
                continue;
            };
            if restoring.is_whole() {
                let times = server.starts.saturating_add(1);
                hosted.replica.resume(restoring, times)?;
                hosted.replica.starts(self.now, false);
                // It may have told of one that joined before.
                hosted.told_joined = hosted.replica.place().feeds;
                server.ready.insert(number);
                continue;
            }
            let epoch = hosted.replica.place().epoch;
            let Management::Controller(reporting) = &mut server.management else {
                return Err(RecoveryError::Incomplete);
            };
            reporting.left.insert(number, epoch);
            server.leave(number);
        }
        server.outbox.clear();
        server.unsaved = Unsaved::default();
        for hosted in server.chains.values_mut() {
            hosted.settled = 0;
        }
        server.terms.look_again();
        server.starts = server.starts.saturating_add(1);
        if self.began_older {
            let older = server.template.older_lease;
            let older = server.template.lengthened(older);
            server.promises.floor = self.now.saturating_add(older);
        }
        if let Management::Controller(reporting) = &mut server.management {
            // The controller takes no heartbeat whose number is not greater.
            reporting.number = u64::from(server.starts) << 32;
        }
        if server.template.durable {
            server.unsaved.records.push_back(start());
        }
        Ok(server)
    }
}

#[cfg(test)]
mod tests;

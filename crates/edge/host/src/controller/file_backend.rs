//! Decisions of a single controller in a file.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use stateplane_disk::{Files, RecordLog};
use stateplane_groups::Decision;
use stateplane_multicast_groups as multicast;
use stateplane_wire::control::ChainConfig;

use super::{Backend, ControllerError, Decided, Kept, Record, Stored};
use crate::files::SystemFiles;

/// First byte of a chain's configuration.
const CONFIG: u8 = 1;

/// First byte of a drain.
const DRAINED: u8 = 2;

/// First byte of a decision about coordination.
const COORDINATION: u8 = 3;

/// First byte of a decision about multicast.
const MULTICAST: u8 = 4;

/// Records beyond twice those in force with which the log is written anew.
const SURPLUS: u64 = 1024;

/// Decisions in a [`RecordLog`], whose lock keeps other controllers of the machine out.
#[derive(Debug)]
pub struct FileBackend<F: Files = SystemFiles> {
    log: RecordLog<F>,
    kept: Kept,
}

impl FileBackend {
    /// Opens the log at `path`, or makes an empty one.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Log`].
    pub fn open(path: &Path) -> Result<FileBackend, ControllerError> {
        FileBackend::open_on(SystemFiles, path)
    }
}

impl<F: Files> FileBackend<F> {
    /// As [`FileBackend::open`], on other files than those of the system.
    ///
    /// # Errors
    ///
    /// [`ControllerError::Log`].
    pub fn open_on(files: F, path: &Path) -> Result<FileBackend<F>, ControllerError> {
        let mut kept = Kept::default();
        let log = RecordLog::open(&files, path, 0, None, |bytes| match parse(bytes) {
            Some(record) => {
                kept.add(record);
                true
            }
            None => false,
        })?;
        let mut backend = FileBackend { log, kept };
        // The records that are there are in force from here on.
        backend.sync()?;
        backend.shorten()?;
        Ok(backend)
    }

    /// Writes everything through, and that it was: decisions are few.
    fn sync(&mut self) -> Result<(), ControllerError> {
        self.log.sync()?;
        Ok(self.log.sync_marks()?)
    }

    /// Forgets decisions that are no longer in force, when they are many.
    fn shorten(&mut self) -> Result<(), ControllerError> {
        let records: Vec<Vec<u8>> = if self.log.records() > SURPLUS {
            self.kept.records().map(|record| bytes(&record)).collect()
        } else {
            return Ok(());
        };
        if self.log.records() > 2 * records.len() as u64 + SURPLUS {
            self.log.replace(records.iter().map(Vec::as_slice))?;
        }
        Ok(())
    }
}

impl<F: Files> Backend for FileBackend<F> {
    type Version = Decided;
    type Error = ControllerError;

    fn lead(&mut self, _: &AtomicBool) -> Result<Option<Kept>, ControllerError> {
        Ok(Some(self.kept.clone()))
    }

    fn leads(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn store(&mut self, records: &[Record]) -> Result<Stored, ControllerError> {
        for record in records {
            self.log.append(&bytes(record));
        }
        self.sync()?;
        for record in records {
            self.kept.add(record.clone());
        }
        self.shorten()?;
        Ok(Stored::Kept)
    }
}

fn bytes(record: &Record) -> Vec<u8> {
    match record {
        Record::Config(Decided::Chain(config)) => {
            let mut bytes = vec![CONFIG];
            config.append(&mut bytes);
            bytes
        }
        Record::Config(Decided::Coordination(decision)) => {
            let mut bytes = vec![COORDINATION];
            bytes.extend(decision.to_vec());
            bytes
        }
        Record::Config(Decided::Multicast(decision)) => {
            let mut bytes = vec![MULTICAST];
            bytes.extend(decision.to_vec());
            bytes
        }
        Record::Drained { server, drained } => {
            let [a, b, c, d] = server.to_be_bytes();
            vec![DRAINED, a, b, c, d, u8::from(*drained)]
        }
    }
}

fn parse(bytes: &[u8]) -> Option<Record> {
    let (kind, rest) = bytes.split_first()?;
    match (*kind, rest) {
        (CONFIG, _) => Some(Record::Config(Decided::Chain(
            ChainConfig::parse(rest).ok()?,
        ))),
        (COORDINATION, _) => Some(Record::Config(Decided::Coordination(Decision::parse(
            rest,
        )?))),
        (MULTICAST, _) => Some(Record::Config(Decided::Multicast(
            multicast::Decision::parse(rest)?,
        ))),
        (DRAINED, &[a, b, c, d, drained]) => Some(Record::Drained {
            server: u32::from_be_bytes([a, b, c, d]),
            drained: drained == 1,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use stateplane_disk::{Failure, FaultyFiles};
    use stateplane_groups::LaneBook;
    use stateplane_membership::Version as _;
    use stateplane_wire::control::Member;

    use super::*;

    fn config(chain: u16, epoch: u32) -> Decided {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 4793);
        Decided::Chain(ChainConfig {
            chain,
            epoch,
            members: vec![Member {
                server: 1,
                incarnation: 2,
                requests: address,
                links: address,
            }],
            joining: None,
        })
    }

    fn lanes(version: u32) -> Decided {
        Decided::Coordination(Decision::Lanes(LaneBook {
            version,
            ..LaneBook::default()
        }))
    }

    fn slots(version: u32) -> Decided {
        Decided::Multicast(multicast::Decision::Slots(multicast::SlotBook {
            version,
            slots: vec![multicast::Slot::default()],
        }))
    }

    fn kept(backend: &mut FileBackend) -> Kept {
        backend.lead(&AtomicBool::new(false)).unwrap().unwrap()
    }

    #[test]
    fn another_controller_finds_what_is_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut backend = FileBackend::open(&path).unwrap();
        assert_eq!(kept(&mut backend), Kept::default());
        let drained = |server, drained| Record::Drained { server, drained };
        for records in [
            &[Record::Config(config(1, 1)), Record::Config(config(2, 7))][..],
            &[drained(5, true), Record::Config(config(1, 2))],
            &[drained(6, true), drained(5, false)],
            &[Record::Config(lanes(1)), Record::Config(lanes(2))],
            &[Record::Config(slots(3)), Record::Config(slots(4))],
        ] {
            assert_eq!(backend.store(records).unwrap(), Stored::Kept);
        }
        assert_eq!(FileBackend::open(&path).unwrap_err().code(), "H405");
        drop(backend);
        let kept = kept(&mut FileBackend::open(&path).unwrap());
        assert_eq!(kept.configs[&1], config(1, 2));
        assert_eq!(kept.configs[&2], config(2, 7));
        assert_eq!(kept.configs[&lanes(0).number()], lanes(2));
        assert_eq!(kept.configs[&slots(0).number()], slots(4));
        assert_eq!(Vec::from_iter(kept.drained), [6]);
    }

    #[test]
    fn the_log_stays_short_however_often_chains_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut backend = FileBackend::open(&path).unwrap();
        for epochs in 0..30 {
            let records: Vec<Record> = (1..=100)
                .map(|epoch| Record::Config(config(3, epochs * 100 + epoch)))
                .collect();
            backend.store(&records).unwrap();
            assert!(backend.log.records() <= SURPLUS + 2);
        }
        drop(backend);
        let kept = kept(&mut FileBackend::open(&path).unwrap());
        assert_eq!(kept.configs[&3], config(3, 3000));
    }

    /// On files that lose and tear what was not written through, and fail.
    #[test]
    fn a_power_cut_takes_no_decision_that_was_kept() {
        for seed in 0..100u64 {
            let files = FaultyFiles::new(seed);
            let path = Path::new("folder/log");
            let mut stored = 0;
            for life in 0..4u32 {
                let opened = FileBackend::open_on(files.clone(), path);
                let mut backend = opened.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
                let lead = backend.lead(&AtomicBool::new(false)).unwrap().unwrap();
                let found = lead.configs.get(&3).map_or(0, |config| config.version());
                assert!(found >= stored, "seed {seed}: {found} of {stored}");
                stored = found;
                for _ in 0..(seed as u32 + life) % 4 {
                    let both = [1, 2].map(|next| Record::Config(config(3, stored + next)));
                    backend.store(&both).unwrap();
                    stored += 2;
                }
                files.fail(Failure::Sync, seed % 2);
                let more = [1, 2].map(|next| Record::Config(config(3, stored + next)));
                assert_eq!(backend.store(&more).unwrap_err().code(), "H403");
                assert!(backend.store(&more).is_err(), "it kept what it was told");
                drop(backend);
                files.lose_power();
            }
        }
    }

    #[test]
    fn a_log_of_something_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = RecordLog::open(&SystemFiles, &path, 0, None, |_| true).unwrap();
        log.append(b"\x05 no decision");
        log.sync().unwrap();
        drop(log);
        assert_eq!(FileBackend::open(&path).unwrap_err().code(), "H404");
    }
}

//! Files in memory that fail in every way a disk does, from one seed.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::files::{Files, OpenFile, Way};

/// Bytes that a disk writes at once, or not.
const SECTOR: usize = 512;

/// Fault of the medium, once or permanent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A write fails with EIO.
    Write,
    /// A write takes some bytes, and then there is no room.
    Full,
    /// Writing through fails. As on Linux, what was to be written is forgotten, and a
    /// further attempt says that all is well.
    Sync,
}

/// A file on the medium.
#[derive(Debug, Clone, Default)]
struct Node {
    /// Content as the system shows it.
    data: Vec<u8>,
    /// Content on the medium.
    kept: Vec<u8>,
    /// Changes that make `data` of `kept`, in order.
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut { length: usize },
}

/// A change of names that is not on the medium.
#[derive(Debug, Clone)]
enum Naming {
    Given(PathBuf, u64),
    Renamed(PathBuf, PathBuf),
    Removed(PathBuf),
}

#[derive(Debug, Clone, Default)]
struct Medium {
    nodes: BTreeMap<u64, Node>,
    /// Files by name, as the system shows them.
    names: BTreeMap<PathBuf, u64>,
    /// Files by name, as they are on the medium.
    kept: BTreeMap<PathBuf, u64>,
    namings: Vec<Naming>,
    folders: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    next: u64,
    random: u64,
    short_writes: bool,
    /// Number of honest syncs before it lies.
    honest: Option<u64>,
    failure: Option<(Failure, u64)>,
    /// The failure does not end when it came once.
    lasting: bool,
}

impl Change {
    fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Change::Write { at, bytes } => {
                let end = at + bytes.len();
                if data.len() < end {
                    data.resize(end, 0);
                }
                data[*at..end].copy_from_slice(bytes);
            }
            Change::Cut { length } => data.truncate(*length),
        }
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<PathBuf, u64>) {
        match self {
            Naming::Given(path, node) => {
                names.insert(path.clone(), *node);
            }
            Naming::Renamed(from, to) => {
                if let Some(node) = names.remove(from) {
                    names.insert(to.clone(), node);
                }
            }
            Naming::Removed(path) => {
                names.remove(path);
            }
        }
    }

    fn is_in(&self, folder: &Path) -> bool {
        let (Naming::Given(path, _) | Naming::Renamed(_, path) | Naming::Removed(path)) = self;
        path.parent() == Some(folder)
    }
}

impl Medium {
    /// A number below `bound`, from SplitMix64.
    fn draw(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    fn find(&self, path: &Path) -> io::Result<u64> {
        let node = self.names.get(path).copied();
        node.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn naming(&mut self, naming: Naming) {
        naming.apply(&mut self.names);
        self.namings.push(naming);
    }

    /// The failure of this call among `failures`, if it fails.
    fn fails(&mut self, failures: &[Failure]) -> Option<Failure> {
        let (failure, left) = self.failure.as_mut()?;
        if !failures.contains(failure) {
            return None;
        }
        match left.checked_sub(1) {
            Some(fewer) => {
                *left = fewer;
                None
            }
            None if self.lasting => Some(*failure),
            None => self.failure.take().map(|(failure, _)| failure),
        }
    }

    /// The rest of `node` after a power cut.
    fn lose_power(&mut self, mut node: Node) -> Node {
        let keeps = match self.draw(4) {
            0 => 0,
            1 => node.changes.len(),
            _ => self.draw(node.changes.len() + 1),
        };
        let scattered = self.draw(3) == 0;
        for (at, change) in node.changes.drain(..).enumerate() {
            match &change {
                _ if at < keeps => change.apply(&mut node.kept),
                Change::Write { at, bytes } if scattered => {
                    self.scatter(&mut node.kept, *at, bytes);
                }
                _ => {}
            }
        }
        node.data.clone_from(&node.kept);
        node
    }

    /// Writes some of the sectors, in part.
    fn scatter(&mut self, kept: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        let mut from = 0;
        while from < bytes.len() {
            let sector = (SECTOR - (at + from) % SECTOR).min(bytes.len() - from);
            let written = match self.draw(3) {
                0 => 0,
                1 => sector,
                _ => self.draw(sector),
            };
            let torn = Change::Write {
                at: at + from,
                bytes: bytes[from..from + written].to_vec(),
            };
            if written > 0 {
                torn.apply(kept);
            }
            from += sector;
        }
    }
}

/// Files in memory. What was not written through is lost or torn by
/// [`FaultyFiles::lose_power`]; further faults are switched on.
#[derive(Debug, Clone)]
pub struct FaultyFiles(Arc<Mutex<Medium>>);

impl FaultyFiles {
    /// An empty medium, whose faults follow from `seed`.
    pub fn new(seed: u64) -> FaultyFiles {
        FaultyFiles(Arc::new(Mutex::new(Medium {
            random: seed,
            ..Medium::default()
        })))
    }

    fn medium(&self) -> MutexGuard<'_, Medium> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An independent copy, without locks.
    pub fn copy(&self) -> FaultyFiles {
        let mut medium = self.medium().clone();
        medium.locked.clear();
        FaultyFiles(Arc::new(Mutex::new(medium)))
    }

    /// Lets the faults from here on follow from `seed`.
    pub fn reseed(&self, seed: u64) {
        self.medium().random = seed;
    }

    /// Lets writes take fewer bytes than they are given, at random.
    pub fn write_short(&self, short: bool) {
        self.medium().short_writes = short;
    }

    /// Lets the medium say that all is written through, and write nothing, after `calls`
    /// that were honest, until the power fails.
    pub fn lie_after(&self, calls: u64) {
        self.medium().honest = Some(calls);
    }

    /// Makes one call fail, after `calls` calls that could fail with the same failure.
    pub fn fail(&self, failure: Failure, calls: u64) {
        let mut medium = self.medium();
        (medium.failure, medium.lasting) = (Some((failure, calls)), false);
    }

    /// Lets every call fail that `failure` befalls, after `calls` of them, until
    /// [`FaultyFiles::mend`].
    pub fn fail_from(&self, failure: Failure, calls: u64) {
        let mut medium = self.medium();
        (medium.failure, medium.lasting) = (Some((failure, calls)), true);
    }

    /// Lets no call fail, and no write be short, from here on.
    pub fn mend(&self) {
        let mut medium = self.medium();
        (medium.failure, medium.short_writes) = (None, false);
    }

    /// True if a failure of [`FaultyFiles::fail`] has not come yet, or one of
    /// [`FaultyFiles::fail_from`] has not ended.
    pub fn is_to_fail(&self) -> bool {
        self.medium().failure.is_some()
    }

    /// Loses power: of the unsynced writes some sectors remain, and of the unsynced changes of
    /// names the first ones. Open files and locks are gone.
    pub fn lose_power(&self) {
        let mut medium = self.medium();
        let medium = &mut *medium;
        let kept = medium.draw(medium.namings.len() + 1);
        for naming in mem::take(&mut medium.namings).iter().take(kept) {
            naming.apply(&mut medium.kept);
        }
        medium.names.clone_from(&medium.kept);
        let mut nodes = mem::take(&mut medium.nodes);
        nodes.retain(|number, _| medium.kept.values().any(|kept| kept == number));
        medium.nodes = nodes
            .into_iter()
            .map(|(number, node)| (number, medium.lose_power(node)))
            .collect();
        medium.locked.clear();
        if !medium.lasting {
            medium.failure = None;
        }
        medium.honest = None;
    }

    /// The process dies, and the system does not.
    pub fn lose_process(&self) {
        self.medium().locked.clear();
    }

    /// Changes a bit of one of the last `within` bytes of the file at `path`.
    pub fn rot(&self, path: &Path, within: usize) {
        let mut medium = self.medium();
        let (back, bit) = (medium.draw(within) + 1, medium.draw(8));
        let Ok(node) = medium.find(path) else {
            return;
        };
        if let Some(node) = medium.nodes.get_mut(&node) {
            let at = node.data.len().checked_sub(back);
            for bytes in [&mut node.data, &mut node.kept] {
                if let Some(byte) = at.and_then(|at| bytes.get_mut(at)) {
                    *byte ^= 1 << bit;
                }
            }
        }
    }

    /// Content of the file at `path`; `None` if there is none.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let medium = self.medium();
        let node = medium.names.get(path)?;
        medium.nodes.get(node).map(|node| node.data.clone())
    }

    /// Puts `bytes` on the medium, in the place of what the file at `path` has.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut medium = self.medium();
        let number = medium.find(path).unwrap_or(medium.next);
        medium.next = medium.next.max(number + 1);
        let node = Node {
            data: bytes.to_vec(),
            kept: bytes.to_vec(),
            changes: Vec::new(),
        };
        medium.nodes.insert(number, node);
        medium.names.insert(path.into(), number);
        medium.kept.insert(path.into(), number);
    }
}

impl Files for FaultyFiles {
    type File = FaultyFile;
    type Lock = FaultyLock;

    fn open(&self, path: &Path, way: Way) -> io::Result<FaultyFile> {
        let mut medium = self.medium();
        let node = match medium.find(path) {
            Ok(node) => node,
            Err(error) if way == Way::Present => return Err(error),
            Err(_) => {
                let node = medium.next;
                medium.next += 1;
                medium.nodes.insert(node, Node::default());
                medium.naming(Naming::Given(path.into(), node));
                node
            }
        };
        drop(medium);
        let mut file = FaultyFile {
            files: self.clone(),
            node,
        };
        if way == Way::Emptied {
            file.cut(0)?;
        }
        Ok(file)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<FaultyLock>> {
        let is_free = self.medium().locked.insert(path.into());
        Ok(is_free.then(|| FaultyLock {
            files: self.clone(),
            path: path.into(),
        }))
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.medium().folders.insert(path.into());
        Ok(())
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let medium = self.medium();
        let inside = medium.names.keys();
        let inside = inside.filter(|path| path.parent() == Some(folder));
        let names = inside.filter_map(|path| path.file_name());
        Ok(names
            .map(|name| name.to_string_lossy().into_owned())
            .collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut medium = self.medium();
        medium.find(from)?;
        medium.naming(Naming::Renamed(from.into(), to.into()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut medium = self.medium();
        medium.find(path)?;
        medium.naming(Naming::Removed(path.into()));
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut medium = self.medium();
        if medium.fails(&[Failure::Sync]).is_some() {
            return Err(io::Error::from_raw_os_error(5));
        }
        let namings = mem::take(&mut medium.namings);
        let (inside, others) = namings.into_iter().partition(|n| n.is_in(folder));
        medium.namings = others;
        let inside: Vec<Naming> = inside;
        for naming in inside {
            naming.apply(&mut medium.kept);
        }
        Ok(())
    }

    fn seed(&self) -> io::Result<u32> {
        Ok(self.medium().draw(1 << 32) as u32)
    }
}

/// A file of [`FaultyFiles`].
#[derive(Debug)]
pub struct FaultyFile {
    files: FaultyFiles,
    node: u64,
}

/// A lock of [`FaultyFiles`].
#[derive(Debug)]
pub struct FaultyLock {
    files: FaultyFiles,
    path: PathBuf,
}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        self.files.medium().locked.remove(&self.path);
    }
}

impl FaultyFile {
    fn change(&self, medium: &mut Medium, change: Change) -> io::Result<()> {
        let node = medium.nodes.get_mut(&self.node);
        // The power failed, and it belongs to nobody any more.
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        change.apply(&mut node.data);
        node.changes.push(change);
        Ok(())
    }
}

impl OpenFile for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        let medium = self.files.medium();
        let node = medium.nodes.get(&self.node);
        Ok(node.map_or(0, |node| node.data.len() as u64))
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let medium = self.files.medium();
        let node = medium.nodes.get(&self.node);
        let rest = node.and_then(|node| node.data.get(at as usize..));
        let rest = rest.unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        let mut medium = self.files.medium();
        let failure = medium.fails(&[Failure::Write, Failure::Full]);
        if failure == Some(Failure::Write) {
            return Err(io::Error::from_raw_os_error(5));
        }
        let mut count = bytes.len();
        if failure == Some(Failure::Full) || medium.short_writes {
            count = medium.draw(count + 1).max(1).min(count);
        }
        let change = Change::Write {
            at: at as usize,
            bytes: bytes[..count].to_vec(),
        };
        self.change(&mut medium, change)?;
        match failure {
            None => Ok(count),
            Some(_) => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        let length = length as usize;
        self.change(&mut self.files.medium(), Change::Cut { length })
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut medium = self.files.medium();
        let failure = medium.fails(&[Failure::Sync]);
        if let Some(calls) = &mut medium.honest {
            *calls = match calls.checked_sub(1) {
                Some(fewer) => fewer,
                None => return Ok(()),
            };
        }
        let node = medium.nodes.get_mut(&self.node);
        let node = node.ok_or(io::ErrorKind::NotFound)?;
        let changes = mem::take(&mut node.changes);
        if failure.is_some() {
            return Err(io::Error::from_raw_os_error(5));
        }
        for change in changes {
            change.apply(&mut node.kept);
        }
        Ok(())
    }
}

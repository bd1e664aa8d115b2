//! Records in a file that outlive the process: appended, checked, and written through to
//! the disk.
//!
//! The file begins with [`MAGIC`] and a seed drawn when it was made. Each record is its
//! length and its checksum (4 bytes each, big-endian), a checksum of these two, and its
//! bytes. Checksums are CRC-32 (IEEE 802.3) begun with the seed, so that bytes that
//! somebody has a record contain are not taken for one.

#[cfg(test)]
mod tests;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::random::random_bits;

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"SPLOG01\n";

/// Bytes before the first record: [`MAGIC`] and the seed.
const HEAD: usize = 12;

/// Bytes before each record: its length, its checksum, and the checksum of both.
const PREFIX: usize = 12;

/// Bytes of the longest record.
pub const LONGEST_RECORD: usize = 1 << 24;

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refuses to open, read or write it.
    #[error("{}: {cause}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The file is no log, or is damaged before its end.
    #[error(
        "{}: record {record} is damaged: restore the file from a copy, or delete it if what it keeps may be lost",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which record, from 1.
        record: u64,
    },
    /// Another process uses it.
    #[error("{}: another process uses it: end that one, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

impl LogError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            LogError::System { .. } => "H403",
            LogError::Damaged { .. } => "H404",
            LogError::InUse { .. } => "H405",
        }
    }
}

/// A log, open for one process alone.
///
/// A record is certain to be there again once [`RecordLog::sync`] has returned. What was
/// appended after may be torn by a power cut: it is cut off when the log is opened.
/// After an error nothing is certain, and the log is not to be used any more.
#[derive(Debug)]
pub struct RecordLog {
    path: PathBuf,
    file: File,
    seed: u32,
    records: u64,
    torn: u64,
    /// What was appended and not written yet.
    pending: Vec<u8>,
}

impl RecordLog {
    /// Opens the log at `path`, or makes an empty one, and gives each of its records to
    /// `take`, which says whether it makes sense.
    ///
    /// # Errors
    ///
    /// [`LogError::InUse`]; [`LogError::Damaged`] if bytes before the end changed, or
    /// `take` gave `false`; [`LogError::System`].
    pub fn open(path: &Path, mut take: impl FnMut(&[u8]) -> bool) -> Result<RecordLog, LogError> {
        let failed = |cause| LogError::System {
            path: path.into(),
            cause,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(failed)?;
        let locked = lock(&file) && is_at(&file, path).map_err(failed)?;
        if !locked {
            return Err(LogError::InUse { path: path.into() });
        }
        let mut log = RecordLog {
            path: path.into(),
            file,
            seed: 0,
            records: 0,
            torn: 0,
            pending: Vec::new(),
        };
        match log.read(&mut take).map_err(failed)? {
            true => Ok(log),
            false => Err(LogError::Damaged {
                path: path.into(),
                record: log.records + 1,
            }),
        }
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes that were torn, and cut off when it was opened.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything, cuts a torn end off and stands at the end; `false` if a record
    /// is damaged.
    fn read(&mut self, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<bool> {
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        let mut head = [0; HEAD];
        let length = read_most(&mut reader, &mut head)?;
        if length < HEAD {
            // It was torn when it was made.
            let made = head[..length].iter().zip(MAGIC).all(|(a, b)| a == b);
            if made {
                self.seed = begin(&mut self.file)?;
                sync_folder(&self.path)?;
            }
            return Ok(made);
        }
        let (magic, seed) = head.split_at(MAGIC.len());
        if magic != MAGIC {
            return Ok(false);
        }
        self.seed = be32(seed);
        let mut end = HEAD as u64;
        let mut body = Vec::new();
        loop {
            let mut prefix = [0; PREFIX];
            let there = read_most(&mut reader, &mut prefix)?;
            let Some((length, sum)) = measure(self.seed, &prefix).filter(|_| there == PREFIX)
            else {
                break;
            };
            body.resize(length, 0);
            if read_most(&mut reader, &mut body)? < length || crc32(self.seed, &body) != sum {
                break;
            }
            if !take(&body) {
                return Ok(false);
            }
            self.records += 1;
            end += (PREFIX + length) as u64;
        }
        drop(reader);
        self.file.seek(SeekFrom::Start(end))?;
        let mut rest = Vec::new();
        self.file.read_to_end(&mut rest)?;
        if has_record(self.seed, &rest) {
            return Ok(false);
        }
        if !rest.is_empty() {
            self.torn = rest.len() as u64;
            self.file.set_len(end)?;
            self.file.sync_data()?;
        }
        self.file.seek(SeekFrom::Start(end))?;
        Ok(true)
    }

    /// Adds a record of at most [`LONGEST_RECORD`] bytes at the end; a longer one is cut.
    /// Until [`RecordLog::sync`] it may be lost.
    pub fn append(&mut self, record: &[u8]) {
        let record = &record[..record.len().min(LONGEST_RECORD)];
        put(self.seed, record, &mut self.pending);
        self.records += 1;
    }

    /// Returns when everything appended lies on the disk.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        let pending = std::mem::take(&mut self.pending);
        let done = match pending.is_empty() {
            true => Ok(()),
            false => self.file.write_all(&pending),
        };
        done.and_then(|()| self.file.sync_data())
            .map_err(|cause| self.failed(cause))?;
        self.pending = pending;
        self.pending.clear();
        Ok(())
    }

    /// Puts `records` in the place of all that there are, at once: whatever fails, the
    /// file has either the former ones or these.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn replace(
        &mut self,
        records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<(), LogError> {
        let new = self.write_beside(records);
        let (file, seed, count) = new.map_err(|cause| self.failed(cause))?;
        self.file = file;
        self.seed = seed;
        self.records = count;
        self.pending.clear();
        Ok(())
    }

    fn write_beside(
        &self,
        records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> io::Result<(File, u32, u64)> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let mut file = options.open(&beside)?;
        if !lock(&file) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let seed = begin(&mut file)?;
        let mut bytes = Vec::new();
        let mut count = 0;
        for record in records {
            let record = record.as_ref();
            put(
                seed,
                &record[..record.len().min(LONGEST_RECORD)],
                &mut bytes,
            );
            count += 1;
            if bytes.len() >= 1 << 20 {
                file.write_all(&bytes)?;
                bytes.clear();
            }
        }
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        sync_folder(&self.path)?;
        Ok((file, seed, count))
    }

    fn failed(&self, cause: io::Error) -> LogError {
        LogError::System {
            path: self.path.clone(),
            cause,
        }
    }
}

/// Writes the head of an empty log and gives its seed.
fn begin(file: &mut File) -> io::Result<u32> {
    let seed = random_bits()? as u32;
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&[&MAGIC[..], &seed.to_be_bytes()].concat())?;
    file.sync_all()?;
    Ok(seed)
}

/// Makes sure that the name of a file is kept, which its folder has.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Whether `path` leads to `file`: a log that was replaced meanwhile does not.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (open, named) = (file.metadata()?, fs::metadata(path)?);
    Ok((open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// Fills `buffer` as far as there are bytes, and gives their number.
fn read_most(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match reader.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

fn put(seed: u32, record: &[u8], bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    bytes.extend_from_slice(&(record.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&crc32(seed, record).to_be_bytes());
    let sum = crc32(seed, &bytes[begin..]);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(record);
}

/// Length and checksum of a record that begins with `prefix`, if one does.
fn measure(seed: u32, prefix: &[u8; PREFIX]) -> Option<(usize, u32)> {
    let (both, sum) = prefix.split_at(8);
    let length = be32(both) as usize;
    (crc32(seed, both) == be32(sum) && length <= LONGEST_RECORD).then(|| (length, be32(&both[4..])))
}

/// Whether a whole record begins anywhere in `bytes`: what comes before it was then kept
/// once, and is damaged rather than torn.
fn has_record(seed: u32, bytes: &[u8]) -> bool {
    bytes.windows(PREFIX).enumerate().any(|(at, prefix)| {
        let prefix = prefix
            .first_chunk()
            .and_then(|prefix| measure(seed, prefix));
        prefix.is_some_and(|(length, sum)| {
            let body = bytes[at + PREFIX..].get(..length);
            body.is_some_and(|body| crc32(seed, body) == sum)
        })
    })
}

fn be32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |all, byte| all << 8 | u32::from(*byte))
}

/// CRC-32 of IEEE 802.3, of each byte alone.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32 of IEEE 802.3; `seed` is added to what it begins with.
fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| (crc >> 8) ^ TABLE[(crc as u8 ^ byte) as usize];
    !bytes.iter().fold(!seed, step)
}

/// Locks the file for this process; `false` if another has it.
#[allow(unsafe_code)]
fn lock(file: &File) -> bool {
    // SAFETY: the descriptor is open as long as `file` is.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

//! Records in a file that outlive the process: appended, numbered, checked, and written
//! through to the disk.
//!
//! The file begins with [`MAGIC`], a seed drawn when it was made, the number of the last
//! record before the first one in it, and a checksum. Each record is its length and its
//! checksum (4 bytes each, big-endian), its number (8), how many records up to it were not
//! written through when it was written (4), a checksum of these four, and its bytes. Checksums are CRC-32 (IEEE 802.3) begun with the seed, so that bytes that
//! somebody has a record contain are not taken for one.
//!
//! A file beside it, whose name ends with `.synced`, has the number of the last record that
//! was written through, in two places by turns, each behind the log's seed and with a
//! checksum. It is written after the log and before anybody relies on it, and not waited
//! for, which costs no time: while the system lives it is exact, and after a power cut it
//! is at least what [`RecordLog::sync_marks`] wrote through. So damage at the end of the log
//! is told from an end that was torn.

#[cfg(test)]
mod tests;

use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::files::{Files, OpenFile, Way};

/// First bytes of the file.
const MAGIC: &[u8; 8] = b"SPLOG02\n";

/// Bytes before the first record: [`MAGIC`], the seed, the number before the first record,
/// and a checksum.
const HEAD: usize = 24;

/// Bytes before each record: its length, its checksum, its number, how many were not
/// written through, and the checksum of these.
const PREFIX: usize = 24;

/// Bytes of a mark: the seed, the number, and a checksum.
const MARK: usize = 16;

/// Offsets of the marks: in sectors of their own, so that a write of one leaves the other whole.
const MARKS: [u64; 2] = [0, 512];

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
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The file is no log of this version, or is damaged before its end.
    #[error(
        "{}: record {record} is damaged: restore the file from a copy, or delete it if what it keeps may be lost",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the record, from 1.
        record: u64,
    },
    /// Another process uses it.
    #[error("{}: another process uses it: end that one, or name another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// Records at its end are gone that were written through.
    #[error(
        "{}: the end is damaged: it has records up to {last}, and those up to {synced} were written through: restore the file from a copy, or delete it if what it keeps may be lost",
        path.display()
    )]
    EndDamaged {
        /// The file.
        path: PathBuf,
        /// Number of the last record that is whole.
        last: u64,
        /// Number of the last record that is known to have been there.
        synced: u64,
    },
}

impl LogError {
    /// A short stable code, for messages and tests.
    pub fn code(&self) -> &'static str {
        match self {
            LogError::System { .. } => "H403",
            LogError::Damaged { .. } => "H404",
            LogError::InUse { .. } => "H405",
            LogError::EndDamaged { .. } => "H413",
        }
    }
}

/// Records of a file, from the first on.
struct Records<'a, F> {
    file: BufReader<Reading<'a, F>>,
    seed: u32,
    /// Number of the last record read.
    last: u64,
    /// Offset of its end.
    end: u64,
    body: Vec<u8>,
}

/// Result of [`Records::open`] at the beginning of a file.
enum Beginning<'a, F> {
    Whole(Records<'a, F>),
    /// The beginning was torn when the file was made.
    Torn,
    Foreign,
}

impl<'a, F: OpenFile> Records<'a, F> {
    fn open(file: &'a F) -> io::Result<Beginning<'a, F>> {
        let mut reader = BufReader::with_capacity(1 << 20, Reading { file, at: 0 });
        let mut head = [0; HEAD];
        let length = read_most(&mut reader, &mut head)?;
        if let Some((seed, before)) = parse_head(&head).filter(|_| length == HEAD) {
            return Ok(Beginning::Whole(Records {
                file: reader,
                seed,
                last: before,
                end: HEAD as u64,
                body: Vec::new(),
            }));
        }
        let mut made = head[..length].iter().zip(MAGIC);
        let made = made.all(|(a, b)| a == b || *a == 0);
        Ok(if made && file.length()? <= HEAD as u64 {
            Beginning::Torn
        } else {
            Beginning::Foreign
        })
    }

    /// The next record; `None` if there is no other that is whole.
    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let mut prefix = [0; PREFIX];
        let there = read_most(&mut self.file, &mut prefix)?;
        let found = measure(self.seed, &prefix).filter(|_| there == PREFIX);
        let Some(found) = found.filter(|found| found.number == self.last + 1) else {
            return Ok(None);
        };
        self.body.resize(found.length, 0);
        let there = read_most(&mut self.file, &mut self.body)?;
        if there < found.length || crc32(self.seed, &self.body) != found.sum {
            return Ok(None);
        }
        self.last = found.number;
        self.end += (PREFIX + found.length) as u64;
        Ok(Some(&self.body))
    }

    /// Bytes behind the last record.
    fn rest(self) -> io::Result<Vec<u8>> {
        let file = self.file.into_inner().file;
        let mut rest = Vec::new();
        Reading { file, at: self.end }.read_to_end(&mut rest)?;
        Ok(rest)
    }
}

/// A log, open for one process alone.
///
/// A record is certain to be there again once [`RecordLog::sync`] has returned. What was
/// appended after may be torn by a power cut: it is cut off when the log is opened.
/// After an error nothing is certain, and the log takes nothing more.
#[derive(Debug)]
pub struct RecordLog<F: Files> {
    files: F,
    path: PathBuf,
    file: F::File,
    seed: u32,
    /// Number of the last record before those in the file.
    before: u64,
    records: u64,
    /// Offset of the next record.
    end: u64,
    torn: u64,
    /// Appended records that are not written yet.
    pending: Vec<u8>,
    /// A call failed: what is on the disk is not known any more.
    failed: bool,
    marks: F::File,
    /// Number in the newest mark.
    marked: u64,
    /// Number in the newest mark that was written through.
    marked_for_good: u64,
    _lock: F::Lock,
}

impl<F: Files> RecordLog<F> {
    /// Opens the log at `path`, or makes an empty one whose first record follows number
    /// `before`, and gives each of its records to `take`, which says whether it makes sense.
    /// If another log follows this one, `upto` is the number of the record that it begins
    /// behind.
    ///
    /// # Errors
    ///
    /// [`LogError::InUse`]; [`LogError::EndDamaged`] if records at the end are gone;
    /// [`LogError::Damaged`] if other bytes before the end changed, or `take` gave `false`;
    /// [`LogError::System`].
    pub fn open(
        files: &F,
        path: &Path,
        before: u64,
        upto: Option<u64>,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<RecordLog<F>, LogError> {
        let failed = |cause| system(path, cause);
        let is_new = match files.open(path, Way::Present) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(cause) => return Err(failed(cause)),
            Ok(_) => false,
        };
        let beside = beside(path, ".synced");
        let mut marks = files.open(&beside, Way::Made).map_err(failed)?;
        let Some(lock) = files.lock(&beside).map_err(failed)? else {
            return Err(LogError::InUse { path: path.into() });
        };
        let mut file = files.open(path, Way::Made).map_err(failed)?;
        let damaged = |record| {
            let path = path.into();
            Err(LogError::Damaged { path, record })
        };
        let mut records = match Records::open(&file).map_err(failed)? {
            Beginning::Whole(records) => records,
            Beginning::Foreign => return damaged(1),
            Beginning::Torn => {
                // All synced bytes come behind the head.
                let marked = read_marks(&marks, None).map_err(failed)?;
                let synced = marked.max(upto).unwrap_or(before);
                if !is_new && synced > before {
                    return Err(LogError::EndDamaged {
                        path: path.into(),
                        last: before,
                        synced,
                    });
                }
                let seed = begin(files, &mut file, before).map_err(failed)?;
                marks.cut(0).map_err(failed)?;
                sync_folder_of(files, path).map_err(failed)?;
                return Ok(RecordLog {
                    files: files.clone(),
                    path: path.into(),
                    file,
                    seed,
                    before,
                    records: 0,
                    end: HEAD as u64,
                    torn: 0,
                    pending: Vec::new(),
                    failed: false,
                    marks,
                    marked: before,
                    marked_for_good: before,
                    _lock: lock,
                });
            }
        };
        let (seed, before) = (records.seed, records.last);
        let marked = read_marks(&marks, Some(seed)).map_err(failed)?;
        // Where that begins of which nobody knows that it was written through.
        let mut doubtful = 0;
        while let Some(record) = records.next().map_err(failed)? {
            if !take(record) {
                let record = records.last - before;
                return damaged(record);
            }
            if marked == Some(records.last) {
                doubtful = records.end;
            }
        }
        let (last, end) = (records.last, records.end);
        let rest = records.rest().map_err(failed)?;
        if proved(seed, &rest) > last || upto.is_some_and(|upto| upto < last) {
            return damaged(last - before + 1);
        }
        if let Some(synced) = marked.max(upto)
            && synced > last
        {
            return Err(LogError::EndDamaged {
                path: path.into(),
                last,
                synced,
            });
        }
        if !rest.is_empty() {
            file.cut(end).and_then(|()| file.sync()).map_err(failed)?;
        }
        write_again(&mut file, doubtful, end).map_err(failed)?;
        sync_folder_of(files, path).map_err(failed)?;
        Ok(RecordLog {
            files: files.clone(),
            path: path.into(),
            file,
            seed,
            before,
            records: last - before,
            end,
            torn: rest.len() as u64,
            pending: Vec::new(),
            failed: false,
            marks,
            marked: marked.unwrap_or(before),
            marked_for_good: before,
            _lock: lock,
        })
    }

    /// Number of the last record before those of the log at `path`; `None` if its beginning
    /// is torn.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if it is no log; [`LogError::System`].
    pub fn begins_behind(files: &F, path: &Path) -> Result<Option<u64>, LogError> {
        let failed = |cause| system(path, cause);
        let file = files.open(path, Way::Present).map_err(failed)?;
        match Records::open(&file).map_err(failed)? {
            Beginning::Whole(records) => Ok(Some(records.last)),
            Beginning::Torn => Ok(None),
            Beginning::Foreign => Err(LogError::Damaged {
                path: path.into(),
                record: 1,
            }),
        }
    }

    /// Makes a file of `records` that never grows, at `path`, atomically: after any failure it is
    /// complete or absent. Returns its size in bytes.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn write_whole(
        files: &F,
        path: &Path,
        records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<u64, LogError> {
        let written = write_beside(files, path, records, true);
        written
            .map(|new| new.end)
            .map_err(|cause| system(path, cause))
    }

    /// Gives each record of a file of [`RecordLog::write_whole`] to `take`, which says
    /// whether it makes sense; gives the bytes of the file.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`] if anything in it changed, or `take` gave `false`;
    /// [`LogError::System`].
    pub fn read_whole(
        files: &F,
        path: &Path,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<u64, LogError> {
        let failed = |cause| system(path, cause);
        let damaged = |record| LogError::Damaged {
            path: path.into(),
            record,
        };
        let file = files.open(path, Way::Present).map_err(failed)?;
        let Beginning::Whole(mut records) = Records::open(&file).map_err(failed)? else {
            return Err(damaged(1));
        };
        while let Some(record) = records.next().map_err(failed)? {
            if record.is_empty() {
                let (last, end) = (records.last, records.end);
                return if records.rest().map_err(failed)?.is_empty() {
                    Ok(end)
                } else {
                    Err(damaged(last))
                };
            }
            if !take(record) {
                return Err(damaged(records.last));
            }
        }
        Err(damaged(records.last + 1))
    }

    /// Records in it.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Number of the last record.
    pub fn last(&self) -> u64 {
        self.before + self.records
    }

    /// Bytes in it, those included that were not written yet.
    pub fn length(&self) -> u64 {
        self.end + self.pending.len() as u64
    }

    /// Bytes that were torn, and cut off when it was opened.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record of at most [`LONGEST_RECORD`] bytes at the end; a longer one is cut.
    /// Until [`RecordLog::sync`] it may be lost.
    pub fn append(&mut self, record: &[u8]) {
        self.records += 1;
        let number = self.last();
        let behind = number - self.marked;
        put(self.seed, number, behind, record, &mut self.pending);
    }

    /// Hands what was appended to the system, which may still lose it.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn write(&mut self) -> Result<(), LogError> {
        self.attempt(|log| {
            if !log.pending.is_empty() {
                log.file.write_all_at(log.end, &log.pending)?;
                log.end += log.pending.len() as u64;
                log.pending.clear();
            }
            Ok(())
        })
    }

    /// Returns when everything appended lies on the disk.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.write()?;
        self.attempt(|log| {
            log.file.sync()?;
            log.mark()
        })
    }

    /// Returns when the number of the last record that was written through is itself
    /// certain to be there after a power cut.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn sync_marks(&mut self) -> Result<(), LogError> {
        if self.marked_for_good == self.marked {
            return Ok(());
        }
        self.attempt(|log| {
            log.marks.sync()?;
            log.marked_for_good = log.marked;
            Ok(())
        })
    }

    /// Notes that everything up to the last record was written through.
    fn mark(&mut self) -> io::Result<()> {
        let last = self.last();
        if last > self.marked {
            let mut mark = [&self.seed.to_be_bytes()[..], &last.to_be_bytes()].concat();
            mark.extend(crc32(self.seed, &mark).to_be_bytes());
            self.marks.write_all_at(MARKS[last as usize % 2], &mark)?;
            self.marked = last;
        }
        Ok(())
    }

    /// Replaces all records by `records`, atomically: after any failure, the file has either the
    /// former ones or these.
    ///
    /// # Errors
    ///
    /// [`LogError::System`].
    pub fn replace(
        &mut self,
        records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> Result<(), LogError> {
        self.attempt(|log| {
            let new = write_beside(&log.files, &log.path, records, false)?;
            log.file = new.file;
            log.seed = new.seed;
            (log.before, log.records, log.end) = (0, new.records, new.end);
            log.pending.clear();
            // The marks are those of the former file.
            (log.marked, log.marked_for_good) = (0, 0);
            log.mark()
        })
    }

    /// Does something with the file, unless something failed before.
    fn attempt(
        &mut self,
        action: impl FnOnce(&mut RecordLog<F>) -> io::Result<()>,
    ) -> Result<(), LogError> {
        let done = if std::mem::replace(&mut self.failed, true) {
            Err(io::Error::other("an earlier write failed"))
        } else {
            action(self)
        };
        self.failed = done.is_err();
        done.map_err(|cause| system(&self.path, cause))
    }
}

/// A file that was just made.
struct New<F> {
    file: F,
    seed: u32,
    records: u64,
    end: u64,
}

/// Writes a log beside `path`, and lets it take its place; with an empty record at the end
/// if it is closed.
fn write_beside<F: Files>(
    files: &F,
    path: &Path,
    records: impl IntoIterator<Item = impl AsRef<[u8]>>,
    closed: bool,
) -> io::Result<New<F::File>> {
    let beside = beside(path, ".new");
    let mut file = files.open(&beside, Way::Emptied)?;
    let seed = begin(files, &mut file, 0)?;
    let mut new = New {
        file,
        seed,
        records: 0,
        end: HEAD as u64,
    };
    let mut bytes = Vec::new();
    let flush = |new: &mut New<F::File>, bytes: &mut Vec<u8>| {
        new.file.write_all_at(new.end, bytes)?;
        new.end += bytes.len() as u64;
        bytes.clear();
        io::Result::Ok(())
    };
    for record in records {
        new.records += 1;
        put(seed, new.records, new.records, record.as_ref(), &mut bytes);
        if bytes.len() >= 1 << 20 {
            flush(&mut new, &mut bytes)?;
        }
    }
    if closed {
        put(seed, new.records + 1, new.records + 1, &[], &mut bytes);
    }
    flush(&mut new, &mut bytes)?;
    new.file.sync()?;
    files.rename(&beside, path)?;
    sync_folder_of(files, path)?;
    Ok(new)
}

/// Writes the head of an empty log and gives its seed.
fn begin<F: Files>(files: &F, file: &mut F::File, before: u64) -> io::Result<u32> {
    let seed = files.seed()?;
    let mut head = MAGIC.to_vec();
    head.extend(seed.to_be_bytes());
    head.extend(before.to_be_bytes());
    head.extend(crc32(seed, &head).to_be_bytes());
    file.cut(0)?;
    file.write_all_at(0, &head)?;
    file.sync()?;
    Ok(seed)
}

/// Writes what `file` has from offset `from` to `end` once more, and through. Where writing
/// through failed before, the system shows bytes that the disk does not have, and takes them
/// for written; a process that is started again after that must not rely on them.
fn write_again(file: &mut impl OpenFile, from: u64, end: u64) -> io::Result<()> {
    let mut bytes = vec![0; end.saturating_sub(from).min(1 << 20) as usize];
    let mut at = from;
    while at < end {
        let most = bytes.len().min((end - at) as usize);
        let length = read_most(&mut Reading { file: &*file, at }, &mut bytes[..most])?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        file.write_all_at(at, &bytes[..length])?;
        at += length as u64;
    }
    if from < end { file.sync() } else { Ok(()) }
}

/// The seed and the number before the first record that `head` says.
fn parse_head(head: &[u8; HEAD]) -> Option<(u32, u64)> {
    let seed = be32(&head[8..]);
    let (said, sum) = head.split_at(HEAD - 4);
    let whole = said.starts_with(MAGIC) && crc32(seed, said) == be32(sum);
    whole.then(|| (seed, be64(&head[12..])))
}

/// The greatest number that the marks of a log with `seed`, or of any log, have.
fn read_marks(marks: &impl OpenFile, seed: Option<u32>) -> io::Result<Option<u64>> {
    let mut greatest = None;
    for at in MARKS {
        let mut mark = [0; MARK];
        let length = read_most(&mut Reading { file: marks, at }, &mut mark)?;
        let (said, sum) = mark.split_at(MARK - 4);
        let of = be32(said);
        let counts = length == MARK && crc32(of, said) == be32(sum);
        if counts && seed.is_none_or(|seed| seed == of) {
            greatest = greatest.max(Some(be64(&said[4..])));
        }
    }
    Ok(greatest)
}

/// The file beside `path` whose name ends with `end`.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn system(path: &Path, cause: io::Error) -> LogError {
    let path = path.into();
    LogError::System { path, cause }
}

/// Makes sure that the name of a file is kept, which its folder has.
fn sync_folder_of<F: Files>(files: &F, path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    files.sync_folder(folder)
}

/// Reads a file from an offset on.
struct Reading<'a, F> {
    file: &'a F,
    at: u64,
}

impl<F: OpenFile> Read for Reading<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, buffer)?;
        self.at += count as u64;
        Ok(count)
    }
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

/// Adds record `number` to `bytes`, when the last `behind` records up to it are not written
/// through.
fn put(seed: u32, number: u64, behind: u64, record: &[u8], bytes: &mut Vec<u8>) {
    let record = &record[..record.len().min(LONGEST_RECORD)];
    let behind = u32::try_from(behind).unwrap_or(u32::MAX);
    let begin = bytes.len();
    bytes.extend_from_slice(&(record.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&crc32(seed, record).to_be_bytes());
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&behind.to_be_bytes());
    let sum = crc32(seed, &bytes[begin..]);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(record);
}

/// Fields of a record's prefix.
struct Prefix {
    length: usize,
    sum: u32,
    number: u64,
    /// Number of the last record that was written through when it was written.
    synced: u64,
}

/// Fields of `prefix`, if it is one.
fn measure(seed: u32, prefix: &[u8; PREFIX]) -> Option<Prefix> {
    let (said, sum) = prefix.split_at(PREFIX - 4);
    let length = be32(said) as usize;
    let number = be64(&said[8..]);
    (crc32(seed, said) == be32(sum) && length <= LONGEST_RECORD).then(|| Prefix {
        length,
        sum: be32(&said[4..]),
        number,
        synced: number.saturating_sub(be32(&said[16..]).into()),
    })
}

/// Number of the last record that was written through, as any whole record in `bytes` says,
/// wherever it begins; 0 if there is none. Records that were written together with one that
/// was torn say nothing of it.
fn proved(seed: u32, bytes: &[u8]) -> u64 {
    let windows = bytes.windows(PREFIX).enumerate();
    let whole = windows.filter_map(|(at, prefix)| {
        let found = measure(seed, prefix.first_chunk()?)?;
        let body = bytes[at + PREFIX..].get(..found.length)?;
        (crc32(seed, body) == found.sum).then_some(found.synced)
    });
    whole.max().unwrap_or(0)
}

fn be32(bytes: &[u8]) -> u32 {
    be(bytes, 4) as u32
}

fn be64(bytes: &[u8]) -> u64 {
    be(bytes, 8)
}

/// The number that the first `count` bytes say.
fn be(bytes: &[u8], count: usize) -> u64 {
    let bytes = bytes.iter().take(count);
    bytes.fold(0, |all, byte| all << 8 | u64::from(*byte))
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

//! The system's files, as logs on disk use them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use stateplane_disk::{Files, OpenFile, Way};

use crate::random::random_bits;

/// The files of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemFiles;

/// An open file of the system.
#[derive(Debug)]
pub struct SystemFile(File);

/// A lock on a file or folder of the system.
#[derive(Debug)]
pub struct SystemLock {
    _file: File,
}

impl Files for SystemFiles {
    type File = SystemFile;
    type Lock = SystemLock;

    fn open(&self, path: &Path, way: Way) -> io::Result<SystemFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.create(way != Way::Present);
        options.truncate(way == Way::Emptied);
        options.open(path).map(SystemFile)
    }

    #[allow(unsafe_code)]
    fn lock(&self, path: &Path) -> io::Result<Option<SystemLock>> {
        let file = File::open(path)?;
        // SAFETY: the descriptor is open as long as `file` is.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
            return Ok(Some(SystemLock { _file: file }));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock => Ok(None),
            _ => Err(error),
        }
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let entries = fs::read_dir(folder)?;
        entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn seed(&self) -> io::Result<u32> {
        Ok(random_bits()? as u32)
    }
}

impl OpenFile for SystemFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(bytes, at)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_a_lock_keeps_others_out() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        let files = SystemFiles;
        assert!(files.open(&path, Way::Present).is_err());
        let mut file = files.open(&path, Way::Made).unwrap();
        file.write_all_at(3, b"abc").unwrap();
        file.sync().unwrap();
        file.cut(5).unwrap();
        assert_eq!(file.length().unwrap(), 5);
        for place in [&path, folder.path()] {
            let lock = files.lock(place).unwrap();
            assert!(lock.is_some() && files.lock(place).unwrap().is_none());
            drop(lock);
            assert!(files.lock(place).unwrap().is_some());
        }
        files.rename(&path, &other).unwrap();
        files.sync_folder(folder.path()).unwrap();
        assert_eq!(files.names(folder.path()).unwrap(), ["b"]);
        let mut bytes = [0; 9];
        let again = files.open(&other, Way::Made).unwrap();
        assert_eq!(again.read_at(2, &mut bytes).unwrap(), 3);
        assert_eq!(bytes[..3], *b"\0ab");
        assert_eq!(
            files.open(&other, Way::Emptied).unwrap().length().unwrap(),
            0
        );
        files.remove(&other).unwrap();
        assert!(files.names(folder.path()).unwrap().is_empty());
    }
}

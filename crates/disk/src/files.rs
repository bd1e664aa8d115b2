//! The layer of files that logs lie on.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is there.
    Present,
    /// It is there, or is made empty.
    Made,
    /// It is made, or emptied.
    Emptied,
}

/// Files in folders. A handle may be cloned: all clones see the same files.
///
/// What was written, and a name that was given, is certain to outlive a power cut only
/// after [`OpenFile::sync`] and [`Files::sync_folder`].
pub trait Files: Clone + Debug + Send + 'static {
    /// A file that is open for reading and writing.
    type File: OpenFile;
    /// Keeps others out until it is dropped.
    type Lock: Debug + Send;

    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn open(&self, path: &Path, way: Way) -> io::Result<Self::File>;

    /// Locks the file or folder at `path` for one owner; `None` if there is another.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn lock(&self, path: &Path) -> io::Result<Option<Self::Lock>>;

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Names of all that lies in `folder`.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Lets the file at `from` lie at `to`, in the place of what lay there.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the file at `path`.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns when the names in `folder` are certain to be there after a power cut.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// A number that earlier files most likely do not have.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn seed(&self) -> io::Result<u32>;
}

/// An open file.
pub trait OpenFile: Debug + Send {
    /// Bytes in it.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn length(&self) -> io::Result<u64>;

    /// Reads bytes from offset `at` on, and gives their number: 0 at the end.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes the first of `bytes` to offset `at`, and gives how many.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts everything from offset `length` on off.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Returns when everything in it, and its length, is certain to be there after a power
    /// cut.
    ///
    /// # Errors
    ///
    /// What the system says. Nothing is certain then, not even after a further call.
    fn sync(&mut self) -> io::Result<()>;

    /// Writes all of `bytes` to offset `at`.
    ///
    /// # Errors
    ///
    /// What the system says; [`io::ErrorKind::WriteZero`] if it takes nothing more.
    fn write_all_at(&mut self, mut at: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(at, bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    at += count as u64;
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

//! The layer of files that logs lie on.

use std::fmt::Debug;
use std::io;
use std::path::Path;

/// Mode of opening a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The file exists.
    Present,
    /// The file exists, or is made empty.
    Made,
    /// The file is made, or emptied.
    Emptied,
}

/// Files in folders. A handle may be cloned: all clones see the same files.
///
/// Written bytes and given names are certain to outlive a power cut only after [`OpenFile::sync`]
/// and [`Files::sync_folder`].
pub trait Files: Clone + Debug + Send + 'static {
    /// A file that is open for reading and writing.
    type File: OpenFile;
    /// Keeps others out until it is dropped.
    type Lock: Debug + Send;

    /// Opens the file at `path`.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn open(&self, path: &Path, way: Way) -> io::Result<Self::File>;

    /// Locks the file or folder at `path` for one owner; `None` if there is another.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn lock(&self, path: &Path) -> io::Result<Option<Self::Lock>>;

    /// Makes a folder, and those above it.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn make_folder(&self, path: &Path) -> io::Result<()>;

    /// Names of all that lies in `folder`.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// Lets the file at `from` lie at `to`, in the place of what lay there.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the file at `path`.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Returns when the names in `folder` are certain to be there after a power cut.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// A number that earlier files most likely do not have.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn seed(&self) -> io::Result<u32>;
}

/// An open file.
pub trait OpenFile: Debug + Send {
    /// Bytes in it.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn length(&self) -> io::Result<u64>;

    /// Reads bytes from offset `at` on, and gives their number: 0 at the end.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes the first of `bytes` to offset `at`, and gives how many.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<usize>;

    /// Cuts everything from offset `length` on off.
    ///
    /// # Errors
    ///
    /// Error of the operating system.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Returns when everything in it, and its length, is certain to be there after a power
    /// cut.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system. Nothing is certain then, not even after a further
    /// call.
    fn sync(&mut self) -> io::Result<()>;

    /// Writes all of `bytes` to offset `at`.
    ///
    /// # Errors
    ///
    /// Error of the operating system; [`io::ErrorKind::WriteZero`] if it takes nothing more.
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

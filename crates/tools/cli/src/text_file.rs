//! Texts that a person names: files of bounded length.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use crate::exit::{CommandError, Failure};

/// Longest text that is read, in bytes: 64 MiB.
pub const LONGEST: u64 = 64 << 20;

/// The text of the file at `path`.
///
/// # Errors
///
/// If the file cannot be read, is longer than [`LONGEST`] (a device may never end), or is not
/// UTF-8.
pub fn read(path: impl AsRef<Path>) -> Result<String> {
    bounded(File::open(path)?)
}

/// The text of standard input, under the same bound.
///
/// # Errors
///
/// As of [`read`].
pub fn read_standard_input() -> Result<String> {
    bounded(std::io::stdin().lock())
}

/// Writes a command's result to the file at `path`.
///
/// # Errors
///
/// [`Failure::System`] if the file cannot be written.
pub fn write(
    path: impl AsRef<Path>,
    contents: impl AsRef<[u8]>,
) -> core::result::Result<(), CommandError> {
    let path = path.as_ref();
    std::fs::write(path, contents).map_err(|error| {
        let message = format!("{} cannot be written: {error}", path.display());
        CommandError::new(Failure::System, message)
    })
}

fn bounded(from: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST {
        let reason = format!("longer than {} MiB", LONGEST >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, reason));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        let reason = format!("not UTF-8 from byte {place} on");
        Error::new(ErrorKind::InvalidData, reason)
    })
}

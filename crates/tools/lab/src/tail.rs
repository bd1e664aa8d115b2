//! Reading a file that a process is still writing, line by line.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

/// Reader of a growing file.
pub(crate) struct Tail {
    path: PathBuf,
    offset: u64,
    begun: Vec<u8>,
}

impl Tail {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            offset: 0,
            begun: Vec::new(),
        }
    }

    /// The lines completed since the last call.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        let mut fresh = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.offset))?;
            file.read_to_end(&mut fresh)
        });
        // A file that cannot be read has no lines; the writer's end tells why.
        self.offset += read.unwrap_or(0) as u64;
        self.begun.extend(fresh);
        let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.begun.split_off(end + 1);
        let whole = std::mem::replace(&mut self.begun, rest);
        String::from_utf8_lossy(&whole)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn lines_come_once_and_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut tail = Tail::new(file.path().to_path_buf());
        assert!(tail.lines().is_empty());
        write!(file, "one\ntw").unwrap();
        file.flush().unwrap();
        assert_eq!(tail.lines(), ["one"]);
        writeln!(file, "o").unwrap();
        file.flush().unwrap();
        assert_eq!(tail.lines(), ["two"]);
        assert!(tail.lines().is_empty());
    }
}

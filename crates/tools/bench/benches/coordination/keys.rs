//! Files of keys for a chain whose messages are sealed, and for its client.

use super::network::{CLIENT, Chain, SWITCHES};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt as _;
use tempfile::TempDir;

/// The client's number; a switch has its own in the chain.
const CLIENT_ID: usize = 100;

/// A folder with a file for each process, removed when dropped.
pub struct Keys(TempDir);

impl Keys {
    /// Writes the files. Keys are no secrets here: each is the pair's two numbers.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn make() -> io::Result<Keys> {
        let keys = Keys(TempDir::new()?);
        for own in (1..=SWITCHES).chain([CLIENT_ID]) {
            let mut text = format!("id = {own}\n");
            for peer in (1..=SWITCHES).chain([CLIENT_ID]) {
                if peer == own {
                    continue;
                }
                let (address, low, high) = (address(peer), own.min(peer), own.max(peer));
                let _ = write!(
                    text,
                    "[[peer]]\nid = {peer}\naddress = \"{address}\"\n\
                     keys = [{{ id = 1, hex = \"{low:032x}{high:032x}\" }}]\n"
                );
            }
            std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(keys.file(own))?
                .write_all(text.as_bytes())?;
        }
        Ok(keys)
    }

    /// The file of a switch.
    pub fn switch(&self, number: usize) -> String {
        self.file(number)
    }

    /// The client's file.
    pub fn client(&self) -> String {
        self.file(CLIENT_ID)
    }

    fn file(&self, id: usize) -> String {
        let path = self.0.path().join(format!("{id}.toml"));
        path.display().to_string()
    }
}

/// Address of who has that number.
fn address(id: usize) -> Ipv4Addr {
    match id {
        CLIENT_ID => CLIENT,
        number => Chain::Sealed.switch(number),
    }
}

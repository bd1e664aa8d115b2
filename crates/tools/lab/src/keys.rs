//! Files of keys for the processes of a run.

use crate::error::LabError;
use crate::topology::{Process, Sealed, Topology};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Source of random bytes.
const RANDOM: &str = "/dev/urandom";

/// Keys between all processes of a topology that may seal their messages.
pub(crate) struct Keys {
    sealed: Vec<Sealed>,
    /// By the two numbers, the smaller first: hexadecimal digits.
    pairs: BTreeMap<(u32, u32), String>,
}

/// Keys are not for logs.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.pairs.len())
    }
}

impl Keys {
    /// Draws a key for each pair.
    pub(crate) fn draw(topology: &Topology) -> Result<Keys, LabError> {
        let sealed: Vec<Sealed> = topology
            .processes
            .iter()
            .filter_map(|process| process.keys.clone())
            .collect();
        let mut random =
            File::open(RANDOM).map_err(|reason| LabError::file(Path::new(RANDOM), reason))?;
        let mut pairs = BTreeMap::new();
        for (at, a) in sealed.iter().enumerate() {
            for b in &sealed[at + 1..] {
                let mut key = [0; 32];
                random
                    .read_exact(&mut key)
                    .map_err(|reason| LabError::file(Path::new(RANDOM), reason))?;
                let digits = key.iter().fold(String::new(), |mut digits, byte| {
                    let _ = write!(digits, "{byte:02x}");
                    digits
                });
                pairs.insert((a.id.min(b.id), a.id.max(b.id)), digits);
            }
        }
        Ok(Keys { sealed, pairs })
    }

    /// Writes the process's file of keys into `directory`, and gives the arguments that
    /// name it; none for a process that seals nothing.
    pub(crate) fn arguments(
        &self,
        process: &Process,
        directory: &Path,
    ) -> Result<Vec<String>, LabError> {
        let Some(own) = &process.keys else {
            return Ok(Vec::new());
        };
        let path = directory.join(format!("{}.keys.toml", process.name));
        let written = || {
            // The mode below counts only for a file that is not there yet.
            if path.exists() {
                std::fs::remove_file(&path)?;
            }
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(self.text(own).as_bytes())
        };
        written().map_err(|reason| LabError::file(&path, reason))?;
        let named = ["--keys".to_owned(), path.display().to_string()];
        Ok(named.into_iter().chain(own.arguments.clone()).collect())
    }

    fn text(&self, own: &Sealed) -> String {
        let mut text = format!("id = {}\n", own.id);
        for peer in self.sealed.iter().filter(|peer| peer.id != own.id) {
            let pair = (own.id.min(peer.id), own.id.max(peer.id));
            let key = self.pairs.get(&pair).map_or("", String::as_str);
            let _ = write!(
                text,
                "\n[[peer]]\nid = {}\naddress = \"{}\"\nkeys = [{{ id = 1, hex = \"{key}\" }}]\n",
                peer.id, peer.address
            );
        }
        text
    }
}

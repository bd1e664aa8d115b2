//! An end of message authentication, with the file that its keys come from.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use stateplane_seal::{Counters, Endpoint, Opened, Refusal, TRAILER_LENGTH};

use super::KeysError;
use super::file::{Keys, Stamp};
use crate::random::random_bits;

/// µs between looks at the file.
const LOOK_PERIOD: u64 = 1_000_000;

/// µs between two notices of refused messages.
const TELL_PERIOD: u64 = 1_000_000;

/// Seals and opens with the keys of a file, and reads it again when it changes.
#[derive(Debug)]
pub struct Guard {
    path: PathBuf,
    endpoint: Endpoint,
    by_address: BTreeMap<Ipv4Addr, u32>,
    stamps: Vec<Stamp>,
    next_look: u64,
    wrong_address: u64,
    /// When the next refused message is told, and how many came since the last was.
    tell_again: u64,
    untold: u64,
}

impl Guard {
    /// Reads the file of keys at `path` and starts a life with them.
    ///
    /// # Errors
    ///
    /// [`KeysError`].
    pub fn read(path: &Path) -> Result<Guard, KeysError> {
        let keys = Keys::read(path)?;
        let mut secret = [0; 32];
        for word in secret.chunks_exact_mut(8) {
            let bits = random_bits().map_err(KeysError::Random)?;
            word.copy_from_slice(&bits.to_ne_bytes());
        }
        let life = random_bits().map_err(KeysError::Random)?;
        let endpoint =
            Endpoint::new(&keys.config, life, secret).map_err(|cause| KeysError::Config {
                path: path.into(),
                cause,
            })?;
        Ok(Guard {
            path: path.into(),
            endpoint,
            by_address: by_address(&keys),
            stamps: keys.stamps,
            next_look: 0,
            wrong_address: 0,
            tell_again: 0,
            untold: 0,
        })
    }

    /// Reads the file again if it changed, at most once a second. Until it is right, the
    /// keys so far are used.
    ///
    /// # Errors
    ///
    /// Returns the error of the new file, once for each change of it.
    pub fn look(&mut self, now: u64) -> Result<(), KeysError> {
        if now < self.next_look {
            return Ok(());
        }
        self.next_look = now + LOOK_PERIOD;
        let stamps: Vec<Stamp> = self.stamps.iter().map(Stamp::now).collect();
        if stamps == self.stamps {
            return Ok(());
        }
        self.stamps = stamps;
        let keys = Keys::read(&self.path)?;
        let replaced = self.endpoint.replace_keys(&keys.config);
        replaced.map_err(|cause| KeysError::Config {
            path: self.path.clone(),
            cause,
        })?;
        self.by_address = by_address(&keys);
        self.stamps = keys.stamps;
        Ok(())
    }

    /// Says that a message from `from` was refused, at most once a second. Those that are normal
    /// after a start are not said.
    pub(crate) fn tell_refused(&mut self, now: u64, from: Ipv4Addr, refusal: Refusal) {
        let reason = match refusal {
            Refusal::Truncated | Refusal::NotSealed => "it is not sealed, or not as it should be",
            Refusal::UnknownSender => "the file of keys has no peer with this address",
            Refusal::UnknownKey => "its key is not in the file of keys",
            Refusal::Forged => "its seal does not fit the keys: both sides need the same",
            Refusal::Replayed | Refusal::TooOld => "it came before",
            Refusal::Unproven => return,
        };
        self.untold += 1;
        if now < self.tell_again {
            return;
        }
        self.tell_again = now + TELL_PERIOD;
        let count = std::mem::take(&mut self.untold);
        let keys = self.path.display();
        tracing::warn!(address = %from, count, "message refused: {reason} ({keys})");
    }

    /// Counters of sealed messages since the start.
    pub fn counters(&self) -> &Counters {
        self.endpoint.counters()
    }

    /// Messages dropped although their seal was right: another address than the
    /// sender's own.
    pub fn wrong_address(&self) -> u64 {
        self.wrong_address
    }

    /// The peer at `address`.
    pub fn peer_at(&self, address: Ipv4Addr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// The trailer of `message` to the peer at `to`; `None`, counted, if there is none.
    pub fn seal(&mut self, to: Ipv4Addr, message: &[u8]) -> Option<[u8; TRAILER_LENGTH]> {
        // No peer has this process's own number, so it stands for nobody.
        let peer = self.peer_at(to).unwrap_or(self.endpoint.id());
        self.endpoint.seal(peer, message)
    }

    /// Judges bytes that came from `from` at `now`. A message is from the peer that has that
    /// address. Bytes from an unknown address are refused unread.
    pub fn open(&mut self, now: u64, from: Ipv4Addr, bytes: &[u8]) -> Opened {
        let peer = self.peer_at(from);
        let refused = Opened::Refused {
            refusal: Refusal::UnknownSender,
            answer: None,
        };
        if peer.is_none() {
            self.wrong_address += 1;
            return refused;
        }
        match self.endpoint.open(now, bytes) {
            Opened::Message { from, .. } if Some(from) != peer => {
                self.wrong_address += 1;
                refused
            }
            opened => opened,
        }
    }
}

fn by_address(keys: &Keys) -> BTreeMap<Ipv4Addr, u32> {
    let addresses = keys.addresses.iter();
    addresses.map(|(id, address)| (*address, *id)).collect()
}

#[cfg(test)]
mod tests;

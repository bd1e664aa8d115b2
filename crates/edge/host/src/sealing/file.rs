//! The file of keys of one process.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stateplane_seal::{Config, Key, KeyId, PeerConfig};

use super::KeysError;

/// A file of keys, as TOML says it; see `docs/message-authentication.md`. Neither the
/// file nor those that it names may be open to others than their owner.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeysFile {
    /// Number of this process among its peers; of a switch its `switch_id`.
    pub id: u32,
    /// The others.
    #[serde(default)]
    pub peer: Vec<PeerFile>,
}

/// A peer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerFile {
    /// Its number.
    pub id: u32,
    /// Address from which the peer's messages come and to which messages for it go.
    pub address: Ipv4Addr,
    /// Of a switch of multicast, in the files of controllers: the address from which its process
    /// follows them, where that is another one; none unless set.
    pub control_address: Option<Ipv4Addr>,
    /// The keys shared with it.
    pub keys: Vec<KeyFile>,
}

/// A key.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    /// Its number, the same at both ends.
    pub id: KeyId,
    /// The key: 64 hexadecimal digits.
    hex: Option<String>,
    /// Or the file that has them, beside this one unless it begins with `/`.
    file: Option<PathBuf>,
    /// True if this end opens sealed messages but seals none; `false` unless set.
    #[serde(default)]
    accept_only: bool,
}

/// When a file was changed last, as far as the system tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    path: PathBuf,
    found: Option<[i64; 4]>,
}

impl Stamp {
    pub(super) fn now(&self) -> Stamp {
        Stamp {
            path: self.path.clone(),
            found: std::fs::metadata(&self.path).ok().map(stamp),
        }
    }
}

fn stamp(metadata: Metadata) -> [i64; 4] {
    [
        metadata.ino() as i64,
        metadata.size() as i64,
        metadata.mtime(),
        metadata.mtime_nsec(),
    ]
}

/// Content of a key file.
pub(super) struct Keys {
    pub(super) config: Config,
    pub(super) addresses: Vec<(u32, Ipv4Addr)>,
    /// The files read.
    pub(super) stamps: Vec<Stamp>,
}

impl Keys {
    pub(super) fn read(path: &Path) -> Result<Keys, KeysError> {
        let (text, read) = read_closed(path)?;
        let mut stamps = vec![read];
        let file: KeysFile = toml::from_str(&text).map_err(|cause| KeysError::Parse {
            path: path.into(),
            line: cause.span().map_or(1, |span| {
                1 + text[..span.start.min(text.len())].matches('\n').count()
            }),
            message: cause.message().to_owned(),
        })?;
        let mut peers = Vec::new();
        let mut addresses: Vec<(u32, Ipv4Addr)> = Vec::new();
        for peer in &file.peer {
            for address in [peer.address].into_iter().chain(peer.control_address) {
                if let Some((first, _)) = addresses.iter().find(|(_, it)| *it == address) {
                    return Err(KeysError::DuplicateAddress {
                        path: path.into(),
                        first: *first,
                        second: peer.id,
                        address,
                    });
                }
                addresses.push((peer.id, address));
            }
            let mut keys = Vec::new();
            for key in &peer.keys {
                keys.push((key.id, key.read(path, peer.id, &mut stamps)?));
            }
            let sending = peer.keys.iter().filter(|key| !key.accept_only);
            peers.push(PeerConfig {
                id: peer.id,
                keys,
                send_with: sending.map(|key| key.id).max().unwrap_or(0),
            });
        }
        let config = Config { id: file.id, peers };
        config.check().map_err(|cause| KeysError::Config {
            path: path.into(),
            cause,
        })?;
        Ok(Keys {
            config,
            addresses,
            stamps,
        })
    }
}

impl KeyFile {
    fn read(&self, path: &Path, peer: u32, stamps: &mut Vec<Stamp>) -> Result<Key, KeysError> {
        let source = || KeysError::KeySource {
            path: path.into(),
            peer,
            key: self.id,
        };
        let parsed = |path: &Path, text: &str| {
            Key::from_hex(text).map_err(|cause| KeysError::Key {
                path: path.into(),
                peer,
                key: self.id,
                cause,
            })
        };
        match (&self.hex, &self.file) {
            (Some(hex), None) => parsed(path, hex),
            (None, Some(file)) => {
                let file = path.parent().unwrap_or(Path::new("")).join(file);
                let (text, read) = read_closed(&file)?;
                stamps.push(read);
                parsed(&file, &text)
            }
            _ => Err(source()),
        }
    }
}

/// Longest file that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads a file that is closed to others than its owner.
fn read_closed(path: &Path) -> Result<(String, Stamp), KeysError> {
    let failed = |cause| KeysError::Read {
        path: path.into(),
        cause,
    };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(KeysError::Open {
            path: path.into(),
            mode,
        });
    }
    let mut text = String::new();
    file.take(MOST_BYTES)
        .read_to_string(&mut text)
        .map_err(failed)?;
    let stamp = Stamp {
        path: path.into(),
        found: Some(stamp(metadata)),
    };
    Ok((text, stamp))
}

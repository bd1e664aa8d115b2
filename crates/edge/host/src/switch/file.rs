//! The configuration file of a switch: what a control plane sets, written down.

mod coordination;
mod error;
mod greeting;
mod multicast;
mod ports;
mod replication;
mod sync;
#[cfg(test)]
mod tests;
mod value;

pub use coordination::CoordinationFile;
pub use error::{SwitchFileCause, SwitchFileError};
pub use multicast::MulticastFile;
pub use ports::{PortAddressFile, PortsFile};
pub use replication::{ReplicationClassFile, ReplicationFile};
pub use sync::{SyncFile, SyncGroupFile};
pub use value::{Arguments, Setting};

use crate::lines::Lines;
use serde::Deserialize;
use stateplane_runtime::{Engine, Entry, Shape, Table, TargetState, Value};
use stateplane_setup::{CHAIN_ACTION, CHAINS_TABLE, check_bound};
use stateplane_switch::{Generator, MirrorSession, Port, Replica, Switch, Watch};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A switch's configuration, as its TOML file says it.
///
/// Tables, actions, registers, keys and parameters are named in full or by the end of
/// their names from a dot on. A value is a number, `true` or `false`, or a text:
/// `"0x0a"`, `"0b1010"`, `"10.0.0.1"`, `"fe80::1"`, `"02:00:00:00:00:0a"`. A key may
/// also be a prefix `"10.0.0.0/8"`, a value and mask `"0x10 &&& 0xf0"`, a range
/// `"1..9"` (both ends belong to it) or `"_"` for any value. Keys and parameters are
/// listed in order, or named.
///
/// ```
/// let text = r#"
///     [[entries]]
///     table = "router.routes"
///     keys = ["10.0.0.0/8"]                # or { destination = "10.0.0.0/8" }
///     action = "via"
///     params = { address = "192.168.0.1" } # or ["192.168.0.1"]
///
///     [[entries]]
///     table = "acl"
///     keys = { source = "10.0.0.0 &&& 255.0.0.0", port = "80..443" }
///     action = "deny"
///     priority = 10                        # greatest wins; with ternary, range and optional keys
///
///     [[defaults]]                         # default actions
///     table = "acl"
///     action = "permit"
///
///     [[registers]]
///     name = "incarnation"
///     index = 0                            # all elements unless set
///     value = "random"                     # drawn at start, never 0
///
///     [[mirror_sessions]]
///     session = 16
///     port = 2                             # whose egress the copy passes
///     truncate = 114                       # bytes; the whole frame unless set
///     hold_us = 2000                       # wait before egress; 0 unless set
///
///     [[multicast_groups]]
///     group = 1
///     replicas = [{ port = 1 }, { port = 2, rid = 7 }]
///
///     [[generators]]
///     port = 509                           # ingress port of the frames
///     period_ms = 20
///     batch = 4                            # frames at once; 1 unless set
///     index_at = 12                        # where their places stand, 0 to 3; nowhere unless set
///     spread = true                        # one every 5 ms, not all at once; false unless set
///     frame = "020000000001 020000000002 88b5 0000"
///
///     [[watches]]                          # a register that holds a time in µs
///     register = "heard"
///     index = 0                            # 0 unless set
///     max_age_ms = 500                     # when it is older, the ports go down
///     ports = [0, 1]
///
///     [ports]                              # which frames they take
///     routed = [2]                         # to their MAC addresses and to groups; so are ports
///     promiscuous = [0]                    # of [neighbours] and [replication] if not named here
///     addresses = [{ port = 2, address = "fe80::1" }] # told to neighbours that ask, beside those below
///
///     [neighbours]                         # one entry for each neighbour
///     table = "router.neighbours"          # of one exact key
///     action = "forward"                   # of parameters port, mac, source_mac
///     list = [
///         { address = "10.0.0.2", port = 0, mac = "02:00:00:00:00:02", source_mac = "02:00:00:00:00:01" },
///     ]
///
///     [replication]                        # of programs that include replication.p4
///     switch = 1                           # this switch's number
///     address = "10.10.0.1"                # of the switch towards the store
///     mac = "02:00:00:00:a1:02"
///     port = 2                             # towards the store
///     links = [0, 1]                       # go down while the store is silent
///     shards = 4
///     heads = [{ address = "10.10.0.11", mac = "02:00:00:00:c0:00" }] # unless [chains] tells
///     mtu = 1700                           # of the path to the store; 1500 unless set
///     classes = [{ id = 1, first_lease = "zero" }] # compared with the store's
///
///     [coordination]                       # of programs that include coordination.p4
///     switch = 1                           # this switch's number
///     address = "10.255.0.1"               # of the switch, for clients and other switches
///     port = 1                             # whose egress its copies pass; 0 unless set
///
///     [multicast]                          # of programs that include multicast.p4
///     address = "10.255.0.1"               # of the switch, for hosts and other switches
///     port = 1                             # whose egress its held copies pass; 0 unless set
///     hold_us = 2000                       # before the first return of a copy; 2000 unless set
///     controllers = ["10.0.0.20:4795"]     # that say which groups and sessions there are
///     switch = 1                           # this switch's number, as they know it
///
///     [sync]                               # of programs that include sync.p4
///     switch = 1                           # this switch's number
///     address = "10.0.0.1"                 # at which the engine reaches it
///     turn_us = 50                         # between two turns of a group's carrier
///     groups = [{ group = 0, budget_mbps = 100, coarsest = 0 }] # rates unlike the usual ones
///
///     [chains]                             # entries come from a store's controller
///     controllers = ["10.10.0.20:4795"]
///     switch = 1                           # this switch's number
///     port = 2                             # towards the store
///     mtu = 1700                           # of the way there
///     servers = [{ address = "10.10.0.11", mac = "02:00:00:00:c0:00" }]
/// "#;
/// let file = stateplane_host::switch::SwitchFile::parse("switch.toml".as_ref(), text)?;
/// assert_eq!(file.entries.len(), 2);
/// # Ok::<(), stateplane_host::switch::SwitchFileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchFile {
    /// Table entries.
    #[serde(default)]
    pub entries: Vec<Spanned<EntryFile>>,
    /// Default actions.
    #[serde(default)]
    pub defaults: Vec<Spanned<DefaultFile>>,
    /// Values of registers.
    #[serde(default)]
    pub registers: Vec<Spanned<RegisterFile>>,
    /// Mirror sessions.
    #[serde(default)]
    pub mirror_sessions: Vec<Spanned<MirrorSessionFile>>,
    /// Multicast groups.
    #[serde(default)]
    pub multicast_groups: Vec<Spanned<MulticastGroupFile>>,
    /// Packet generators.
    #[serde(default)]
    pub generators: Vec<Spanned<GeneratorFile>>,
    /// Watches.
    #[serde(default)]
    pub watches: Vec<Spanned<WatchFile>>,
    /// Which frames of their links the ports take.
    pub ports: Option<Spanned<PortsFile>>,
    /// Neighbours.
    pub neighbours: Option<NeighboursFile>,
    /// This switch's part in replication.
    pub replication: Option<Spanned<ReplicationFile>>,
    /// This switch's part in coordination.
    pub coordination: Option<Spanned<CoordinationFile>>,
    /// This switch's part in multicast.
    pub multicast: Option<Spanned<MulticastFile>>,
    /// This switch's part in sync.
    pub sync: Option<Spanned<SyncFile>>,
    /// The controllers that say where the chains of the store are.
    pub chains: Option<Spanned<ChainsFile>>,
    #[serde(skip)]
    path: PathBuf,
    /// Offsets of the line ends, to number the lines.
    #[serde(skip)]
    line_ends: Vec<usize>,
    #[serde(skip)]
    lines: Lines,
    /// The generators are another switch's, or stand still.
    #[serde(skip)]
    generators_elsewhere: bool,
    /// Ports at which the switch takes sealed messages alone.
    #[serde(skip)]
    sealed_ports: Vec<Port>,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryFile {
    /// Name of the table.
    pub table: String,
    /// Match keys of the entry. Ternary, range, LPM and optional keys that are not named match any
    /// value; exact ones have to be named.
    pub keys: Arguments,
    /// Name of the action.
    pub action: String,
    /// Its parameters; none unless set.
    #[serde(default)]
    pub params: Arguments,
    /// Greatest wins; needed in tables with ternary, range or optional keys.
    #[serde(default)]
    pub priority: u32,
}

/// A default action.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultFile {
    /// Name of the table.
    pub table: String,
    /// Name of the action.
    pub action: String,
    /// Its parameters; none unless set.
    #[serde(default)]
    pub params: Arguments,
}

/// The value of a register's element, or of all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterFile {
    /// Name of the register.
    pub name: String,
    /// The element; all unless set.
    pub index: Option<u64>,
    /// The value; `"random"` draws one that is not 0, anew for each line of the file.
    /// Of a struct, the list of its members' values.
    pub value: Setting,
}

/// A mirror session ([`MirrorSession`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MirrorSessionFile {
    /// Its number.
    pub session: u32,
    /// Port whose egress the copy passes.
    pub port: Port,
    /// Bytes to which the copy is cut; the whole frame unless set.
    pub truncate: Option<u32>,
    /// µs for which the copy waits; 0 unless set.
    #[serde(default)]
    pub hold_us: u64,
}

/// A multicast group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MulticastGroupFile {
    /// Its number, from 1.
    pub group: u16,
    /// Its copies.
    pub replicas: Vec<ReplicaFile>,
}

/// A copy of a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaFile {
    /// Egress port.
    pub port: Port,
    /// `egress_rid` of the copy; 0 unless set.
    #[serde(default)]
    pub rid: u16,
}

/// A packet generator ([`Generator`]).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeneratorFile {
    /// `ingress_port` of the frames.
    pub port: Port,
    /// ms between batches.
    pub period_ms: u64,
    /// Frames of a batch; 1 unless set.
    #[serde(default = "one_frame")]
    pub batch: u32,
    /// Offset of the frame's batch index, four bytes long; none unless set.
    pub index_at: Option<usize>,
    /// True if a batch is spread over its period; false unless set.
    #[serde(default)]
    pub spread: bool,
    /// The frame in hexadecimal digits; spaces and `:` may stand between bytes.
    pub frame: String,
}

impl GeneratorFile {
    /// The generator, with its frame read.
    fn generator(&self) -> Result<Generator, SwitchFileCause> {
        Ok(Generator {
            port: self.port,
            period_us: self.period_ms.saturating_mul(1000),
            batch: self.batch,
            index_at: self.index_at,
            spread: self.spread,
            frame: value::hexadecimal(&self.frame)?,
        })
    }
}

fn one_frame() -> u32 {
    1
}

/// A watch ([`Watch`]).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchFile {
    /// Name of the register.
    pub register: String,
    /// The element; 0 unless set.
    #[serde(default)]
    pub index: u64,
    /// Age in ms beyond which the ports go down.
    pub max_age_ms: u64,
    /// The ports.
    pub ports: Vec<Port>,
}

/// Neighbours, and the table and action that take them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighboursFile {
    /// Name of the table, which has one exact key.
    pub table: String,
    /// Name of the action, with parameters `port`, `mac` and `source_mac`.
    pub action: String,
    /// The neighbours.
    pub list: Vec<Spanned<NeighbourFile>>,
}

/// One neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourFile {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// The port that it is at.
    pub port: Port,
    /// Its MAC address.
    pub mac: String,
    /// The switch's MAC address there.
    pub source_mac: String,
}

/// The controllers of a store, and the table and action that take what they say.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainsFile {
    /// Addresses and UDP ports of the controllers; they are reached by the machine's own
    /// network, not by the switch's ports.
    pub controllers: Vec<SocketAddrV4>,
    /// Number of the switch, which no other has.
    pub switch: u32,
    /// Name of the table, which has one exact key, the shard; `replication_shards` unless
    /// set.
    #[serde(default = "chains_table")]
    pub table: String,
    /// Name of the action, with parameters `address`, `mac`, `port`, `epoch` and `mtu`;
    /// `chain` unless set.
    #[serde(default = "chain_action")]
    pub action: String,
    /// The switch's port towards the store.
    pub port: Port,
    /// MTU of the path to the neighbour, in bytes.
    pub mtu: u16,
    /// The store servers.
    pub servers: Vec<ChainServerFile>,
}

fn chains_table() -> String {
    CHAINS_TABLE.to_owned()
}

fn chain_action() -> String {
    CHAIN_ACTION.to_owned()
}

/// A store server, as a switch reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainServerFile {
    /// Its IPv4 address.
    pub address: Ipv4Addr,
    /// Its MAC address, or that of the next hop towards it.
    pub mac: String,
}

impl SwitchFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// [`SwitchFileError`] if it cannot be read, or is not such a file.
    pub fn read(path: &Path) -> Result<SwitchFile, SwitchFileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| SwitchFileError::new(path, None, SwitchFileCause::Read(cause)))?;
        SwitchFile::parse(path, &text)
    }

    /// Reads `text`, the contents of the file at `path`.
    ///
    /// # Errors
    ///
    /// [`SwitchFileError`] if it is not such a file.
    pub fn parse(path: &Path, text: &str) -> Result<SwitchFile, SwitchFileError> {
        let file: SwitchFile = toml::from_str(text).map_err(|cause| {
            SwitchFileError::new(path, None, SwitchFileCause::Parse(Box::new(cause)))
        })?;
        let line_ends = text.match_indices('\n').map(|(at, _)| at).collect();
        Ok(SwitchFile {
            path: path.to_owned(),
            line_ends,
            lines: Lines::of(text),
            ..file
        })
    }

    /// The same for a switch that shares a program with another, whose generators these are,
    /// or whose generators are to stand still. They are checked all the same.
    #[must_use]
    pub fn without_generators(&self) -> SwitchFile {
        SwitchFile {
            generators_elsewhere: true,
            ..self.clone()
        }
    }

    /// The same for a switch that takes messages of its protocols at `ports` only sealed.
    #[must_use]
    pub fn with_sealed_ports(&self, ports: &[Port]) -> SwitchFile {
        SwitchFile {
            sealed_ports: ports.to_vec(),
            ..self.clone()
        }
    }

    /// The same for a switch whose ports stay up whatever the age of registers, as where no
    /// store answers.
    #[must_use]
    pub fn without_watches(&self) -> SwitchFile {
        let mut file = self.clone();
        file.watches.clear();
        if let Some(replication) = &mut file.replication {
            replication.get_mut().links.clear();
        }
        file
    }

    /// Sets everything in `switch`: tables and registers of its program, sessions,
    /// groups, generators and watches. `random` gives 64 random bits at a time, for
    /// registers that ask for them.
    ///
    /// # Errors
    ///
    /// The first part that does not fit the program or the switch, with its line. The
    /// parts before it are set.
    pub fn apply<E: Engine>(
        &self,
        switch: &mut Switch<E>,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), SwitchFileError> {
        self.apply_to_state(switch.engine_mut().state_mut(), random)?;
        // Store and engine call a start of the switch by the same number (rule 29 of docs/sync-protocol.md).
        let incarnation = 1.max(random() as u32);
        self.each(self.replication.as_slice(), |file| {
            let generates = !self.generators_elsewhere;
            let replication = file.replication()?;
            Ok(replication.apply(switch, incarnation, generates)?)
        })?;
        self.each(self.coordination.as_slice(), |file| {
            let generates = !self.generators_elsewhere;
            let coordination = file.coordination()?;
            Ok(coordination.apply(switch, incarnation, generates)?)
        })?;
        self.each(self.multicast.as_slice(), |file| {
            file.check()?;
            Ok(file.multicast().apply(switch, incarnation)?)
        })?;
        self.each(self.sync.as_slice(), |file| {
            let generates = !self.generators_elsewhere;
            let sync = file.sync(&self.sealed_ports)?;
            Ok(sync.apply(switch, incarnation, generates)?)
        })?;
        self.each(self.ports.as_slice(), |file| file.check(switch.ports()))?;
        self.each(&self.mirror_sessions, |file| {
            let MirrorSessionFile {
                session,
                port,
                truncate,
                hold_us,
            } = *file;
            let config = MirrorSession {
                egress_port: Some(port),
                multicast_group: None,
                truncate,
                hold_us,
            };
            Ok(switch.set_mirror_session(session, config)?)
        })?;
        self.each(&self.multicast_groups, |file| {
            let replicas = file
                .replicas
                .iter()
                .map(|&ReplicaFile { port, rid }| Replica { port, rid });
            Ok(switch.set_multicast_group(file.group, replicas.collect())?)
        })?;
        let mut generators = Vec::new();
        self.each(&self.generators, |file| {
            generators.push(file.generator()?);
            Ok(())
        })?;
        check_bound(switch.engine().state(), generators.iter())
            .map_err(|error| SwitchFileError::new(&self.path, None, error.into()))?;
        self.each(&self.generators, |file| {
            if self.generators_elsewhere {
                return Ok(());
            }
            Ok(switch.add_generator(file.generator()?)?)
        })?;
        self.each(&self.watches, |file| {
            let WatchFile {
                register,
                index,
                max_age_ms,
                ports,
            } = file.clone();
            let max_age_us = max_age_ms.saturating_mul(1000);
            Ok(switch.add_watch(Watch {
                register,
                index,
                max_age_us,
                ports,
            })?)
        })
    }

    /// Refuses what a switch whose messages are sealed cannot do: a controller that its process asks for
    /// chains of the store and that says what there is of multicast. It would hear two ends of one
    /// number there, and take each for the other's next start.
    ///
    /// # Errors
    ///
    /// [`SwitchFileError`] with the line of the section `[multicast]`.
    pub fn check_sealed(&self) -> Result<(), SwitchFileError> {
        self.each(self.multicast.as_slice(), |multicast| {
            let chains = self.chains.iter().flat_map(|it| &it.get_ref().controllers);
            let mut both = chains.map(SocketAddrV4::ip).filter(|address| {
                let mut others = multicast.controllers.iter();
                others.any(|other| other.ip() == *address)
            });
            match both.next() {
                Some(address) => Err(SwitchFileCause::TwoEnds(*address)),
                None => Ok(()),
            }
        })
    }

    /// Sets the tables and registers of a program.
    fn apply_to_state(
        &self,
        state: &mut TargetState,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<(), SwitchFileError> {
        self.each(&self.defaults, |file| {
            let table = state.table_mut(&file.table)?;
            let data = file.params.data(table, &file.action)?;
            Ok(table.set_default(&file.action, &data)?)
        })?;
        self.each(&self.entries, |file| insert(state, file))?;
        if let Some(neighbours) = &self.neighbours {
            self.each(&neighbours.list, |neighbour| {
                insert(state, &neighbours.entry(neighbour))
            })?;
        }
        self.each(self.chains.as_slice(), |chains| {
            let table = state.table_mut(&chains.table)?;
            for server in &chains.servers {
                let entry = chains.entry_for(0, 0, server.address, &server.mac);
                entry.keys.keys(table)?;
                entry.params.data(table, &entry.action)?;
            }
            Ok(())
        })?;
        self.each(&self.registers, |file| {
            let register = state.register_mut(&file.name)?;
            let value = match &file.value {
                Setting::Text(text) if text == "random" => match register.shape() {
                    Shape::Bits(width) => draw(*width, random),
                    Shape::Struct(_) => {
                        return Err(SwitchFileCause::RandomStruct(file.name.clone()));
                    }
                },
                setting => setting.value()?,
            };
            match file.index {
                Some(index) => register.write(index, &value)?,
                None => register.fill(&value)?,
            }
            Ok(())
        })
    }

    /// Does `action` for each part, and gives the first error with the part's line.
    fn each<T>(
        &self,
        parts: &[Spanned<T>],
        mut action: impl FnMut(&T) -> Result<(), SwitchFileCause>,
    ) -> Result<(), SwitchFileError> {
        for part in parts {
            action(part.get_ref()).map_err(|cause| {
                let line = 1 + self
                    .line_ends
                    .partition_point(|end| *end < part.span().start);
                SwitchFileError::new(&self.path, Some(line), cause)
            })?;
        }
        Ok(())
    }
}

impl NeighboursFile {
    fn entry(&self, neighbour: &NeighbourFile) -> EntryFile {
        let text = |text: &str| Setting::Text(text.to_owned());
        EntryFile {
            table: self.table.clone(),
            keys: Arguments::Ordered(vec![text(&neighbour.address.to_string())]),
            action: self.action.clone(),
            params: Arguments::Named(vec![
                ("port".to_owned(), Setting::Number(neighbour.port.into())),
                ("mac".to_owned(), text(&neighbour.mac)),
                ("source_mac".to_owned(), text(&neighbour.source_mac)),
            ]),
            priority: 0,
        }
    }
}

fn entry(table: &Table, file: &EntryFile) -> Result<Entry, SwitchFileCause> {
    Ok(Entry {
        keys: file.keys.keys(table)?,
        priority: file.priority,
        action: file.action.clone(),
        data: file.params.data(table, &file.action)?,
    })
}

fn insert(state: &mut TargetState, file: &EntryFile) -> Result<(), SwitchFileCause> {
    let table = state.table_mut(&file.table)?;
    let entry = entry(table, file)?;
    Ok(table.insert(&entry)?)
}

/// Sets an entry, in the place of the one with its keys if there is one.
pub(super) fn set_entry(state: &mut TargetState, file: &EntryFile) -> Result<(), SwitchFileCause> {
    let table = state.table_mut(&file.table)?;
    let entry = entry(table, file)?;
    match table.get(&entry.keys, entry.priority) {
        Ok(_) => Ok(table.modify(&entry)?),
        Err(_) => Ok(table.insert(&entry)?),
    }
}

/// A value of `width` bits that is not 0, if there is one. Only the low 64 bits are
/// random.
fn draw(width: u32, random: &mut dyn FnMut() -> u64) -> Value {
    let mask = if width >= 64 {
        u64::MAX
    } else {
        (1 << width) - 1
    };
    Value::from((random() & mask).max(1 & mask))
}

//! The greeting: what a switch and a store server tell each other of their settings when they
//! first hear each other, and from time to time after it, so that what does not fit is told by
//! name.
//!
//! One UDP datagram each, at the ports of [`replication`](crate::replication): the fields of
//! [`LAYOUT`], the settings, then the name of the file that they come from. All integers are
//! big-endian. `docs/replication-protocol.md` says when it is sent.

use core::net::Ipv4Addr;

use crate::error::split;
use crate::numbers::numbers;
use crate::table::header;
use crate::{Error, Header};

/// First bytes of every greeting. No version of the replication message begins with them.
pub const MAGIC: [u8; 4] = *b"SPH1";

/// Most settings of one greeting.
pub const MOST_SETTINGS: usize = 64;

/// Line of a setting that a switch has from its program.
pub const PROGRAM: u32 = u32::MAX;

/// Most bytes of a file's name.
pub const LONGEST_NAME: usize = 200;

header! {
    layout pub LAYOUT = "greeting", then "the settings; then the name of the sender's file, UTF-8";
    length HEADER_LENGTH = 24;
    #[derive(Debug, Clone, Copy)]
    struct Front {}
    fields {
        MAGIC       32 magic: [u8; 4]    => "`SPH1`";
        TYPE         8 kind: u8          =>
            "1 GREETING, from a switch; 2 ANSWER, from a store server";
        COUNT        8 count: u8         => "number of settings, at most 64";
        NAME_LENGTH  8 name_length: u8   => "bytes of the file's name, at most 200";
        PADDING      8 padding: u8       => "0";
        NUMBER      32 number: u32       => "counted by the switch; an answer echoes it";
        SWITCH_ID   32 switch_id: u32    => "number of the switch; an answer echoes it";
        INCARNATION 32 incarnation: u32  =>
            "which start of the switch, never 0; an answer echoes it";
        ADDRESS     32 address: Ipv4Addr =>
            "the sender's address, as its file has it";
    }
}

header! {
    layout pub SETTING_LAYOUT = "setting in a greeting";
    length SETTING_LENGTH = 12;
    #[derive(Debug, Clone, Copy)]
    struct SettingFront {}
    fields {
        NAME   8 name: u8   => "which setting, see below";
        KNOWN  8 known: u8  => "1; 0 in an answer: the server has no such setting";
        INDEX 16 index: u16 => "of which shard or class; otherwise 0";
        VALUE 32 value: u32 => "its value";
        LINE  32 line: u32  =>
            "line of the sender's file that has it, from 1; 0: build or default; 0xffffffff: the \
             switch's program";
    }
}

numbers! {
    /// Name of a setting that switch and store share.
    SettingName {
        /// Version of the replication message.
        Version = 1,
        /// Bytes of a flow's key.
        KeyLength = 2,
        /// Number of the store's shards.
        Shards = 3,
        /// Address of the head of a shard's chain.
        Head = 4,
        /// Configuration number of a shard's chain.
        ChainEpoch = 5,
        /// Bytes of state of a class of flows.
        StateLength = 6,
        /// State that the first lease of a class gives: 0 `zero`, 1 `nat-outbound`, 2 `none`,
        /// 3 `server`, 4 `nat-dependent`.
        FirstLease = 7,
        /// Address of the switch that has the sender's number.
        SwitchAddress = 8,
        /// Start of the switch that has the sender's number and address.
        Incarnation = 9,
    }
}

/// A setting of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Which one.
    pub name: SettingName,
    /// Of which shard or class; otherwise 0.
    pub index: u16,
    /// Its value; `None` if the side has no such setting.
    pub value: Option<u32>,
    /// Line of the side's file that has it; `None` if it comes from elsewhere.
    pub line: Option<u32>,
}

/// A greeting or its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// True of a store server's answer.
    pub answers: bool,
    /// Counted by the switch; an answer echoes it.
    pub number: u32,
    /// Number of the switch.
    pub switch_id: u32,
    /// Which start of the switch.
    pub incarnation: u32,
    /// The sender's address, as its file has it.
    pub address: Ipv4Addr,
    /// A switch's settings; of an answer those that differ. At most [`MOST_SETTINGS`].
    pub settings: Vec<Setting>,
    /// Name of the file that the settings come from, at most [`LONGEST_NAME`] bytes.
    pub file: String,
}

fn unknown(field: &'static str, found: u32) -> Error {
    Error::Unknown {
        header: Header::Greeting,
        field,
        found,
    }
}

fn setting(front: SettingFront) -> Result<Setting, Error> {
    let name = SettingName::from_u8(front.name);
    if front.known > 1 {
        return Err(unknown("known", front.known.into()));
    }
    Ok(Setting {
        name: Error::unless_known(Header::Greeting, "name", front.name, name)?,
        index: front.index,
        value: (front.known == 1).then_some(front.value),
        line: (front.line != 0).then_some(front.line),
    })
}

/// True of bytes that begin as a greeting does.
pub fn is_greeting(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

impl Greeting {
    /// Reads a greeting.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`], or [`Error::Unknown`] for another magic, a
    /// type, a name or a number without meaning, and for a file's name that is no text.
    pub fn parse(bytes: &[u8]) -> Result<Greeting, Error> {
        let (front, mut rest) = split(Header::Greeting, bytes)?;
        let front = Front::from_header(front);
        if front.magic != MAGIC {
            return Err(unknown("magic", u32::from_be_bytes(front.magic)));
        }
        if !(1..=2).contains(&front.kind) {
            return Err(unknown("type", front.kind.into()));
        }
        if usize::from(front.count) > MOST_SETTINGS {
            return Err(unknown("count", front.count.into()));
        }
        if usize::from(front.name_length) > LONGEST_NAME {
            return Err(unknown("name_length", front.name_length.into()));
        }
        if front.padding != 0 {
            return Err(unknown("padding", front.padding.into()));
        }
        if front.incarnation == 0 {
            return Err(unknown("incarnation", 0));
        }
        let mut settings = Vec::with_capacity(front.count.into());
        for _ in 0..front.count {
            let (taken, behind) = split(Header::Greeting, rest)?;
            settings.push(setting(SettingFront::from_header(taken))?);
            rest = behind;
        }
        let length = usize::from(front.name_length);
        if rest.len() < length {
            return Err(Error::Truncated {
                header: Header::Greeting,
                needed: bytes.len() - rest.len() + length,
                found: bytes.len(),
            });
        }
        if rest.len() > length {
            return Err(Error::TrailingBytes {
                header: Header::Greeting,
                extra: rest.len() - length,
            });
        }
        let file = core::str::from_utf8(rest);
        let file = file.map_err(|error| unknown("file", error.valid_up_to() as u32))?;
        Ok(Greeting {
            answers: front.kind == 2,
            number: front.number,
            switch_id: front.switch_id,
            incarnation: front.incarnation,
            address: front.address,
            settings,
            file: file.to_owned(),
        })
    }

    /// The greeting as bytes. Settings beyond [`MOST_SETTINGS`] are left out, and so is the
    /// beginning of a name that is longer than [`LONGEST_NAME`].
    pub fn to_vec(&self) -> Vec<u8> {
        let settings = &self.settings[..self.settings.len().min(MOST_SETTINGS)];
        let mut start = self.file.len().saturating_sub(LONGEST_NAME);
        while !self.file.is_char_boundary(start) {
            start += 1;
        }
        let file = &self.file[start..];
        let front = Front {
            magic: MAGIC,
            kind: if self.answers { 2 } else { 1 },
            count: settings.len() as u8,
            name_length: file.len() as u8,
            padding: 0,
            number: self.number,
            switch_id: self.switch_id,
            incarnation: self.incarnation,
            address: self.address,
        };
        let mut bytes = front.header_bytes().to_vec();
        for setting in settings {
            let front = SettingFront {
                name: setting.name as u8,
                known: setting.value.is_some().into(),
                index: setting.index,
                value: setting.value.unwrap_or(0),
                line: setting.line.unwrap_or(0),
            };
            bytes.extend_from_slice(&front.header_bytes());
        }
        bytes.extend_from_slice(file.as_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests;

//! Datagrams by which an observer follows the records of a chain behind its tail.
//!
//! Both go by the port of [`replication`](crate::replication). All integers are big-endian.
//! `docs/replication-protocol.md` says what they mean (rule 30); the tables below say where the
//! fields lie.

use crate::checksum::Sum;
use crate::error::{at_least, split};
use crate::replication::Key;
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

/// First bytes of each of these datagrams. No version of the replication message begins with
/// them.
pub const MAGIC: [u8; 4] = *b"SPO1";

/// Most datagrams of an answer.
pub const MOST_PARTS: u8 = 16;

/// Most bytes of a datagram of an answer, unless one record alone is longer.
pub const PART_LENGTH: usize = 1_400;

/// Values of [`Answer::flags`].
pub mod answer_flag {
    crate::numbers::flags! {
        /// The observer's stream is not this tail's: all records are told anew.
        ANEW = 1 << 0,
        /// All changes up to the tail's last entry are told.
        LATEST = 1 << 1,
        /// No record is left to be told of those that the scan has to visit.
        SCANNED = 1 << 2,
        /// The server is not the chain's tail, or does not answer yet: nothing is told.
        ELSEWHERE = 1 << 3,
    }
}

const OBSERVE: u8 = 1;
const ANSWER: u8 = 2;

header! {
    layout pub OBSERVE_LAYOUT = "question of an observer";
    length pub OBSERVE_LENGTH = 44;
    /// An observer asks a tail for what changed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Observe {}
    fields {
        MAGIC        32 (magic: [u8; 4])  => "`SPO1`";
        TYPE          8 (kind: u8)        => "1 OBSERVE";
        PARTS         8 parts: u8         => "most datagrams of the answer, 1 to 16";
        CHECKSUM     16 (checksum: u16)   => "RFC 1071 over the whole datagram";
        INCARNATION  32 incarnation: u32  => "which start of the observer, never 0";
        SWITCH_ID    32 switch_id: u32    =>
            "number of the observer among the switches, where requests have it";
        NUMBER       32 number: u32       => "counted by the observer; repeats have a number of their own";
        CHAIN        16 chain: u16        => "number of the chain: 0 if it is fixed, else that of its shard";
        SCAN_SHARD   16 scan_shard: u16   => "as in the last answer of the stream";
        SCAN         32 scan: u32         => "as in the last answer of the stream";
        STREAM       64 stream: u64       => "stream of changes of which the observer has some; 0: none";
        AFTER        64 after: u64        => "the entry up to which it has all changes of the stream";
    }
}

header! {
    layout pub OBSERVED_LAYOUT = "answer to an observer", then "the records";
    length pub OBSERVED_LENGTH = 60;
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct AnswerFront {}
    fields {
        MAGIC        32 magic: [u8; 4]    => "`SPO1`";
        TYPE          8 kind: u8          => "2 OBSERVED";
        FLAGS         8 flags: u8         =>
            "1 ANEW the stream is another than the question's, and records are told from the first \
             one; 2 LATEST all changes up to the tail's last entry are told; 4 SCANNED no record is \
             left to be told; 8 ELSEWHERE the server is not the tail, and tells nothing";
        CHECKSUM     16 checksum: u16     => "RFC 1071 over the whole datagram";
        INCARNATION  32 incarnation: u32  => "echoed";
        SWITCH_ID    32 switch_id: u32    => "echoed";
        NUMBER       32 number: u32       => "echoed";
        CHAIN        16 chain: u16        => "echoed";
        CHAINS       16 chains: u16       => "number of chains that the server knows of, at least 1";
        PART          8 part: u8          => "place of the datagram in the answer, from 0";
        PARTS         8 parts: u8         => "datagrams of the answer";
        SCAN_SHARD   16 scan_shard: u16   => "shard whose records are told next, of those left";
        SCAN         32 scan: u32         => "how many of its records are left";
        CHAIN_EPOCH  32 chain_epoch: u32  => "configuration number of the chain";
        STREAM       64 stream: u64       =>
            "which of the lists of changes that servers kept, never 0: entries and records of other \
             streams cannot be compared";
        UPTO         64 upto: u64         =>
            "the entry up to which all changes of the stream are told with this answer";
        APPLIED      64 applied: u64      =>
            "the tail's last entry: parts with another one are of another answer to a question that \
             came twice";
    }
}

header! {
    layout pub OBSERVED_RECORD_LAYOUT = "record told to an observer",
        then "state_length bytes of state";
    length RECORD_LENGTH = 29;
    #[derive(Debug, Clone, Copy)]
    struct RecordFront {}
    may_not_fit Observe;
    fields {
        LEASE          8 lease: u8        =>
            "0 nobody has a lease, 1 one owner, 2 readers, 3 the record is gone";
        SHARD         16 shard: u16       => "shard of the key";
        KEY          128 key: Key         => "the flow's key";
        EPOCH         32 epoch: u32       => "epoch of the newest grant; of one that is gone, of the shard's";
        SEQUENCE      32 sequence: u32    => "number of the state";
        STATE_LENGTH  16 state: usize     => "bytes of state that follow";
    }
}

/// A flow in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its shard.
    pub shard: u16,
    /// Its key.
    pub key: Key,
    /// Epoch of its newest grant; of one that is gone, of the shard's.
    pub epoch: u32,
    /// Number of the state; 0 of one that is gone.
    pub sequence: u32,
    /// Holder of a lease; `None` if the record is gone.
    pub lease: Option<Holding>,
    /// The state, at most 65,535 bytes; empty of one that is gone.
    pub state: &'a [u8],
}

/// Holder of a lease of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Holding {
    /// Nobody.
    Nobody = 0,
    /// One switch, which may write.
    Owner = 1,
    /// Switches that read.
    Readers = 2,
}

/// Value of the field `LEASE` of a record that is gone.
const GONE: u8 = 3;

/// One datagram of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// [`answer_flag`]s; unknown ones have no meaning.
    pub flags: u8,
    /// Which start of the observer.
    pub incarnation: u32,
    /// Number of the observer among the switches.
    pub switch_id: u32,
    /// The question's number.
    pub number: u32,
    /// Number of the chain.
    pub chain: u16,
    /// Number of chains that the server knows of, at least 1.
    pub chains: u16,
    /// Place of the datagram in the answer, below `parts`.
    pub part: u8,
    /// Datagrams of the answer, 1 to [`MOST_PARTS`].
    pub parts: u8,
    /// Shard whose records are told next, of those left.
    pub scan_shard: u16,
    /// How many of its records are left.
    pub scan: u32,
    /// Configuration number of the chain.
    pub chain_epoch: u32,
    /// Which of the lists of changes that servers kept.
    pub stream: u64,
    /// The entry up to which all changes of the stream are told with this answer.
    pub upto: u64,
    /// The tail's last entry. Parts with another one are of another answer to a question that came twice.
    pub applied: u64,
    /// The records; [`Answer::records`] reads them.
    pub body: &'a [u8],
}

/// One of these datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// Observer to tail.
    Observe(Observe),
    /// Tail to observer.
    Answer(Answer<'a>),
}

/// True of bytes that begin as one of these datagrams does.
pub fn is_observe(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

fn unknown(field: &'static str, found: u32) -> Error {
    Error::Unknown {
        header: Header::Observe,
        field,
        found,
    }
}

/// Sets the checksum, which lies at the same place in both.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    const AT: usize = OBSERVE_LAYOUT.bit("CHECKSUM");
    let checksum = Sum::new().over(&bytes).finish();
    checksum.write(&mut bytes, AT, 16);
    bytes
}

impl<'a> Message<'a> {
    /// Reads a datagram. [`Answer::records`] checks the records of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`], [`Error::Checksum`], or
    /// [`Error::Unknown`] for another magic or a number without meaning.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let header = Header::Observe;
        let (front, rest) = split::<OBSERVE_LENGTH>(header, bytes)?;
        let magic: [u8; 4] = Value::read(front, OBSERVE_LAYOUT.bit("MAGIC"), 32);
        if magic != MAGIC {
            return Err(unknown("magic", u32::from_be_bytes(magic)));
        }
        if Sum::new().over(bytes).finish() != 0 {
            return Err(Error::Checksum { header });
        }
        let kind: u8 = Value::read(front, OBSERVE_LAYOUT.bit("TYPE"), 8);
        match kind {
            OBSERVE if !rest.is_empty() => Err(Error::TrailingBytes {
                header,
                extra: rest.len(),
            }),
            OBSERVE => {
                let question = Observe::from_header(front);
                match question.parts {
                    1..=MOST_PARTS => Ok(Message::Observe(question)),
                    found => Err(unknown("parts", found.into())),
                }
            }
            ANSWER => Answer::parse(bytes).map(Message::Answer),
            _ => Err(unknown("type", kind.into())),
        }
    }
}

impl Observe {
    /// The datagram.
    pub fn to_vec(&self) -> Vec<u8> {
        summed(self.header_bytes(MAGIC, OBSERVE, 0).to_vec())
    }
}

impl<'a> Answer<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Answer<'a>, Error> {
        let (front, body) = split(Header::Observe, bytes)?;
        let front = AnswerFront::from_header(front);
        if !(1..=MOST_PARTS).contains(&front.parts) || front.part >= front.parts {
            return Err(unknown("parts", front.parts.into()));
        }
        if front.chains == 0 {
            return Err(unknown("chains", 0));
        }
        Ok(Answer {
            flags: front.flags,
            incarnation: front.incarnation,
            switch_id: front.switch_id,
            number: front.number,
            chain: front.chain,
            chains: front.chains,
            part: front.part,
            parts: front.parts,
            scan_shard: front.scan_shard,
            scan: front.scan,
            chain_epoch: front.chain_epoch,
            stream: front.stream,
            upto: front.upto,
            applied: front.applied,
            body,
        })
    }

    /// The answer of a server that is not the chain's tail, or does not answer yet. It knows of `chains`
    /// chains, and of configuration `chain_epoch` of this one; 0: none.
    pub fn elsewhere(question: &Observe, chains: u16, chain_epoch: u32) -> Answer<'static> {
        Answer {
            flags: answer_flag::ELSEWHERE,
            incarnation: question.incarnation,
            switch_id: question.switch_id,
            number: question.number,
            chain: question.chain,
            chains,
            part: 0,
            parts: 1,
            scan_shard: 0,
            scan: 0,
            chain_epoch,
            stream: 0,
            upto: 0,
            applied: 0,
            body: &[],
        }
    }

    /// The datagram.
    pub fn to_vec(&self) -> Vec<u8> {
        let front = AnswerFront {
            magic: MAGIC,
            kind: ANSWER,
            flags: self.flags,
            checksum: 0,
            incarnation: self.incarnation,
            switch_id: self.switch_id,
            number: self.number,
            chain: self.chain,
            chains: self.chains,
            part: self.part,
            parts: self.parts,
            scan_shard: self.scan_shard,
            scan: self.scan,
            chain_epoch: self.chain_epoch,
            stream: self.stream,
            upto: self.upto,
            applied: self.applied,
        };
        let mut bytes = front.header_bytes().to_vec();
        bytes.extend_from_slice(self.body);
        summed(bytes)
    }

    /// The records; one that is none ends the list with an error.
    pub fn records(&self) -> Records<'a> {
        Records { rest: self.body }
    }
}

impl<'a> Record<'a> {
    /// Bytes of the record in an answer.
    pub fn buffer_len(&self) -> usize {
        RECORD_LENGTH + self.state.len()
    }

    /// Appends the record to the body of an answer.
    ///
    /// # Errors
    ///
    /// [`Error::Unrepresentable`] if the state is longer than 65,535 bytes.
    pub fn append(&self, body: &mut Vec<u8>) -> Result<(), Error> {
        let front = RecordFront {
            lease: self.lease.map_or(GONE, |holding| holding as u8),
            shard: self.shard,
            key: self.key,
            epoch: self.epoch,
            sequence: self.sequence,
            state: self.state.len(),
        };
        body.extend_from_slice(&front.header_bytes()?);
        body.extend_from_slice(self.state);
        Ok(())
    }

    /// The record in front of `bytes`, and what follows it.
    fn split(bytes: &'a [u8]) -> Result<(Record<'a>, &'a [u8]), Error> {
        let header = Header::Observe;
        let (front, rest) = split(header, bytes)?;
        let front = RecordFront::from_header(front);
        at_least(header, rest, front.state)?;
        let (state, rest) = rest.split_at(front.state);
        let lease = match front.lease {
            0 => Some(Holding::Nobody),
            1 => Some(Holding::Owner),
            2 => Some(Holding::Readers),
            GONE => None,
            found => return Err(unknown("lease", found.into())),
        };
        let record = Record {
            shard: front.shard,
            key: front.key,
            epoch: front.epoch,
            sequence: front.sequence,
            lease,
            state,
        };
        Ok((record, rest))
    }
}

/// The records of an answer; see [`Answer::records`].
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let rest = core::mem::take(&mut self.rest);
        Some(Record::split(rest).map(|(record, rest)| {
            self.rest = rest;
            record
        }))
    }
}

#[cfg(test)]
mod tests;

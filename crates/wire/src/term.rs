//! Datagrams on which terms rest: heartbeats of a switch to a head, questions of a head to the
//! servers of its chains, and what answers both.
//!
//! Heartbeats go to the port of [`replication`](crate::replication), questions to that of
//! [`chain`](crate::chain). All integers are big-endian. `docs/replication-protocol.md` says
//! what they mean (rules 1 to 1d); the tables below say where the fields lie.

use crate::checksum::Sum;
use crate::error::split;
use crate::table::header;
use crate::value::Value;
use crate::{Error, Header};

/// First bytes of each of these datagrams. No version of the replication message begins with
/// them.
pub const MAGIC: [u8; 4] = *b"SPT1";

/// Most shards that a reply names as withheld.
pub const MOST_WITHHELD: usize = 16;

/// Most rows of a reply or an answer: it fits 1,400 bytes.
pub const MOST_ROWS: usize = 180;

/// Values of [`Row::flags`].
pub mod row_flag {
    /// Of a reply: the head covers the shard. Of an answer: the server follows the
    /// configuration, under the head that asks.
    pub const HOLDS: u8 = 1 << 0;
    /// Of an answer: as tail it has reported, or may have, that a replica joined.
    pub const JOINED: u8 = 1 << 1;
}

const HEARTBEAT: u8 = 1;
const REPLY: u8 = 2;
const QUESTION: u8 = 3;
const ANSWER: u8 = 4;

header! {
    layout pub HEARTBEAT_LAYOUT = "heartbeat of a term";
    length pub HEARTBEAT_LENGTH = 32;
    /// A switch asks a head to go on with its term.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Heartbeat {}
    may_not_fit Term;
    fields {
        MAGIC       32 (magic: [u8; 4])   => "`SPT1`";
        TYPE         8 (kind: u8)         => "1 HEARTBEAT";
        PADDING      8 (padding: u8)      => "0";
        CHECKSUM    16 (checksum: u16)    => "RFC 1071 over the whole datagram";
        INCARNATION 32 incarnation: u32   => "which start of the switch, never 0";
        SWITCH_ID   32 switch_id: u32     =>
            "number of the switch, where requests and greetings have it";
        NUMBER      16 number: u16        => "counted by the switch for each head";
        SEND_TIME   48 send_time: u64     => "switch clock in µs at this transmission (rule 1)";
        STREAM      32 stream: u32        => "stream of rows that it knows; 0: none";
        VERSION     32 version: u32       => "the last version of which it has all rows";
    }
}

header! {
    layout pub REPLY_LAYOUT = "reply to a heartbeat",
        then "the withheld shards, 2 bytes each; then the rows";
    length pub REPLY_LENGTH = 40;
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct ReplyFront {}
    may_not_fit Term;
    fields {
        MAGIC       32 magic: [u8; 4]     => "`SPT1`";
        TYPE         8 kind: u8           => "2 HEARTBEAT_REPLY";
        WITHHELD     8 withheld: u8       => "number of withheld shards, at most 16 (rule 5)";
        CHECKSUM    16 checksum: u16      => "RFC 1071 over the whole datagram";
        INCARNATION 32 incarnation: u32   => "echoed";
        SWITCH_ID   32 switch_id: u32     => "echoed";
        NUMBER      16 number: u16        => "echoed";
        SEND_TIME   48 send_time: u64     => "echoed";
        STREAM      32 stream: u32        => "which start of the server counts the versions; never 0";
        AFTER       32 after: u32         => "version after which these rows changed";
        VERSION     32 version: u32       => "the version of which the switch has all rows with these";
        PROMISE     32 promise: u32       =>
            "µs from the heartbeat's arrival during which the head outwaits no lease of the \
             switch; 0: it covers nothing, as more rows follow or too many shards are withheld";
    }
}

header! {
    layout pub QUESTION_LAYOUT = "question for backing";
    length pub QUESTION_LENGTH = 32;
    /// A head asks another server which of its chains that one follows (rule 1b).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Question {}
    fields {
        MAGIC       32 (magic: [u8; 4])   => "`SPT1`";
        TYPE         8 (kind: u8)         => "3 QUESTION";
        PADDING      8 (padding: u8)      => "0";
        CHECKSUM    16 (checksum: u16)    => "RFC 1071 over the whole datagram";
        SERVER      32 server: u32        => "number of the server that asks";
        INCARNATION 32 incarnation: u32   => "which start of it";
        NUMBER      32 number: u32        =>
            "counted by the head from a number that it draws when its process starts";
        BACKING     32 backing: u32       => "µs for which the answer backs the head";
        STREAM      32 stream: u32        => "stream of rows that it knows; 0: none";
        VERSION     32 version: u32       => "the last version of which it has all rows";
    }
}

header! {
    layout pub ANSWER_LAYOUT = "answer to a question for backing", then "the rows";
    length pub ANSWER_LENGTH = 32;
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct AnswerFront {}
    fields {
        MAGIC       32 magic: [u8; 4]     => "`SPT1`";
        TYPE         8 kind: u8           => "4 ANSWER";
        WHOLE        8 whole: u8          => "1 if no more rows follow; 0 if they do";
        CHECKSUM    16 checksum: u16      => "RFC 1071 over the whole datagram";
        SERVER      32 server: u32        => "echoed";
        INCARNATION 32 incarnation: u32   => "echoed";
        NUMBER      32 number: u32        => "echoed";
        STREAM      32 stream: u32        => "which start of the server counts the versions; never 0";
        AFTER       32 after: u32         => "version after which these rows changed";
        VERSION     32 version: u32       => "the version of which the head has all rows with these";
    }
}

header! {
    layout pub ROW_LAYOUT = "row of a reply or an answer";
    length pub ROW_LENGTH = 7;
    /// A shard of a head, or a chain that a server follows.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Row {}
    fields {
        SHARD 16 shard: u16  => "number of the shard";
        EPOCH 32 epoch: u32  => "configuration number of its chain";
        FLAGS  8 flags: u8   =>
            "1 the head covers the shard, or the server follows the configuration; 2 of an \
             answer: the tail may have reported that a replica joined";
    }
}

/// What changed in a stream of rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Which start of the sender counts the versions.
    pub stream: u32,
    /// Version after which the rows changed.
    pub after: u32,
    /// Version of which the receiver has all rows with these.
    pub version: u32,
    /// The rows, at most [`MOST_ROWS`].
    pub rows: Vec<Row>,
}

/// The reply to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Number of the switch.
    pub switch_id: u32,
    /// Which start of the switch.
    pub incarnation: u32,
    /// The heartbeat's number.
    pub number: u16,
    /// When the heartbeat was sent, by the switch's clock in µs.
    pub send_time: u64,
    /// µs from the heartbeat's arrival during which the head outwaits no lease of the switch; 0:
    /// it covers nothing.
    pub promise: u32,
    /// Shards that are not covered for this switch, at most [`MOST_WITHHELD`].
    pub withheld: Vec<u16>,
    /// Shards that the head covers.
    pub changes: Changes,
}

/// The answer to a question for backing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Number of the server that asked.
    pub server: u32,
    /// Which start of it.
    pub incarnation: u32,
    /// The question's number.
    pub number: u32,
    /// True if no more rows follow.
    pub whole: bool,
    /// Chains that the server follows.
    pub changes: Changes,
}

/// One of these datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Switch to head.
    Heartbeat(Heartbeat),
    /// Head to switch.
    Reply(Reply),
    /// Head to another server.
    Question(Question),
    /// That server to the head.
    Answer(Answer),
}

/// True of bytes that begin as one of these datagrams does.
pub fn is_term(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

fn unknown(field: &'static str, found: u32) -> Error {
    Error::Unknown {
        header: Header::Term,
        field,
        found,
    }
}

/// The rows that follow a header to the end of a datagram.
fn rows(mut bytes: &[u8]) -> Result<Vec<Row>, Error> {
    if bytes.len() > MOST_ROWS * ROW_LENGTH {
        return Err(unknown("number of rows", bytes.len() as u32));
    }
    let mut rows = Vec::with_capacity(bytes.len() / ROW_LENGTH);
    while !bytes.is_empty() {
        let (row, rest) = split(Header::Term, bytes)?;
        rows.push(Row::from_header(row));
        bytes = rest;
    }
    Ok(rows)
}

fn append(bytes: &mut Vec<u8>, rows: &[Row]) {
    for row in &rows[..rows.len().min(MOST_ROWS)] {
        bytes.extend_from_slice(&row.header_bytes());
    }
}

/// Sets the checksum, which lies at the same place in all four.
fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    const AT: usize = HEARTBEAT_LAYOUT.bit("CHECKSUM");
    let checksum = Sum::new().over(&bytes).finish();
    checksum.write(&mut bytes, AT, 16);
    bytes
}

impl Message {
    /// Reads a datagram.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`], [`Error::TrailingBytes`], [`Error::Checksum`], or
    /// [`Error::Unknown`] for another magic or a number without meaning.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let header = Header::Term;
        let (front, _) = split::<HEARTBEAT_LENGTH>(header, bytes)?;
        let magic: [u8; 4] = Value::read(front, HEARTBEAT_LAYOUT.bit("MAGIC"), 32);
        if magic != MAGIC {
            return Err(unknown("magic", u32::from_be_bytes(magic)));
        }
        if Sum::new().over(bytes).finish() != 0 {
            return Err(Error::Checksum { header });
        }
        let end = |rest: &[u8]| match rest.len() {
            0 => Ok(()),
            extra => Err(Error::TrailingBytes { header, extra }),
        };
        let kind: u8 = Value::read(front, HEARTBEAT_LAYOUT.bit("TYPE"), 8);
        let second: u8 = Value::read(front, HEARTBEAT_LAYOUT.bit("PADDING"), 8);
        match kind {
            HEARTBEAT | QUESTION if second != 0 => Err(unknown("padding", second.into())),
            HEARTBEAT => {
                let (front, rest) = split(header, bytes)?;
                end(rest)?;
                Ok(Message::Heartbeat(Heartbeat::from_header(front)))
            }
            QUESTION => {
                let (front, rest) = split(header, bytes)?;
                end(rest)?;
                Ok(Message::Question(Question::from_header(front)))
            }
            REPLY => Reply::parse(bytes).map(Message::Reply),
            ANSWER => Answer::parse(bytes).map(Message::Answer),
            _ => Err(unknown("type", kind.into())),
        }
    }
}

impl Heartbeat {
    /// The datagram.
    ///
    /// # Errors
    ///
    /// [`Error::Unrepresentable`] if the send time does not fit 48 bits.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let bytes = self.header_bytes(MAGIC, HEARTBEAT, 0, 0)?;
        Ok(summed(bytes.to_vec()))
    }
}

impl Question {
    /// The datagram.
    pub fn to_vec(&self) -> Vec<u8> {
        summed(self.header_bytes(MAGIC, QUESTION, 0, 0).to_vec())
    }
}

impl Reply {
    fn parse(bytes: &[u8]) -> Result<Reply, Error> {
        let (front, mut rest) = split(Header::Term, bytes)?;
        let front = ReplyFront::from_header(front);
        if usize::from(front.withheld) > MOST_WITHHELD {
            return Err(unknown("withheld", front.withheld.into()));
        }
        let mut withheld = Vec::with_capacity(front.withheld.into());
        for _ in 0..front.withheld {
            let (shard, behind) = split(Header::Term, rest)?;
            withheld.push(u16::from_be_bytes(*shard));
            rest = behind;
        }
        Ok(Reply {
            switch_id: front.switch_id,
            incarnation: front.incarnation,
            number: front.number,
            send_time: front.send_time,
            promise: front.promise,
            withheld,
            changes: Changes {
                stream: front.stream,
                after: front.after,
                version: front.version,
                rows: rows(rest)?,
            },
        })
    }

    /// The datagram. Withheld shards beyond [`MOST_WITHHELD`] and rows beyond [`MOST_ROWS`] are
    /// left out.
    ///
    /// # Errors
    ///
    /// [`Error::Unrepresentable`] if the send time does not fit 48 bits.
    pub fn to_vec(&self) -> Result<Vec<u8>, Error> {
        let withheld = &self.withheld[..self.withheld.len().min(MOST_WITHHELD)];
        let front = ReplyFront {
            magic: MAGIC,
            kind: REPLY,
            withheld: withheld.len() as u8,
            checksum: 0,
            switch_id: self.switch_id,
            incarnation: self.incarnation,
            number: self.number,
            send_time: self.send_time,
            stream: self.changes.stream,
            after: self.changes.after,
            version: self.changes.version,
            promise: self.promise,
        };
        let mut bytes = front.header_bytes()?.to_vec();
        bytes.extend(withheld.iter().flat_map(|shard| shard.to_be_bytes()));
        append(&mut bytes, &self.changes.rows);
        Ok(summed(bytes))
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Result<Answer, Error> {
        let (front, rest) = split(Header::Term, bytes)?;
        let front = AnswerFront::from_header(front);
        if front.whole > 1 {
            return Err(unknown("whole", front.whole.into()));
        }
        Ok(Answer {
            server: front.server,
            incarnation: front.incarnation,
            number: front.number,
            whole: front.whole == 1,
            changes: Changes {
                stream: front.stream,
                after: front.after,
                version: front.version,
                rows: rows(rest)?,
            },
        })
    }

    /// The datagram. Rows beyond [`MOST_ROWS`] are left out.
    pub fn to_vec(&self) -> Vec<u8> {
        let front = AnswerFront {
            magic: MAGIC,
            kind: ANSWER,
            whole: self.whole.into(),
            checksum: 0,
            server: self.server,
            incarnation: self.incarnation,
            number: self.number,
            stream: self.changes.stream,
            after: self.changes.after,
            version: self.changes.version,
        };
        let mut bytes = front.header_bytes().to_vec();
        append(&mut bytes, &self.changes.rows);
        summed(bytes)
    }
}

#[cfg(test)]
mod tests;

//! The bytes of a seal.

/// Bytes that a seal adds to a message.
pub const TRAILER_LENGTH: usize = 48;

/// Bytes of a tag.
pub const TAG_LENGTH: usize = 16;

/// Bytes of an answer, its trailer included.
pub const ANSWER_LENGTH: usize = 24 + TRAILER_LENGTH;

/// Version of the format.
pub const VERSION: u8 = 1;

/// Offset of each field of the trailer, in bytes. All integers are big-endian.
pub mod field {
    /// 1 byte: [`super::VERSION`].
    pub const VERSION: usize = 0;
    /// 1 byte: [`super::Kind`].
    pub const KIND: usize = 1;
    /// 2 bytes: number of the key.
    pub const KEY: usize = 2;
    /// 4 bytes: number of the sender.
    pub const SENDER: usize = 4;
    /// 8 bytes: the sender's life, drawn at its start.
    pub const LIFE: usize = 8;
    /// 8 bytes: how many-th message to this receiver it is in this life, from 1.
    pub const COUNTER: usize = 16;
    /// 8 bytes: the token that the receiver gave to this life; 0 if none was heard.
    pub const PROOF: usize = 24;
    /// 16 bytes: tag over the receiver's number (4 bytes), the message, and the trailer
    /// up to here.
    pub const TAG: usize = 32;
}

/// Offset of each field of an answer's message.
pub mod answer_field {
    /// 8 bytes: the token that messages of the asker must bear.
    pub const TOKEN: usize = 0;
    /// 8 bytes: the asker's life, from its trailer.
    pub const LIFE: usize = 8;
    /// 8 bytes: the question's counter.
    pub const COUNTER: usize = 16;
}

/// Kind of a sealed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message of the protocol that is protected.
    Message = 1,
    /// An answer to a message without proof: it tells the token to use.
    Answer = 2,
}

/// A view over the trailer of a sealed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trailer<'a> {
    message: &'a [u8],
    trailer: &'a [u8],
    kind: Kind,
}

/// Why bytes are no sealed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotSealed {
    Truncated,
    Version,
}

/// True of bytes that have the form of an answer; the tag is not verified.
pub fn is_answer(bytes: &[u8]) -> bool {
    Trailer::new_checked(bytes).is_ok_and(|trailer| trailer.kind == Kind::Answer)
}

impl<'a> Trailer<'a> {
    /// Looks at the end of `bytes`; the tag is not verified.
    pub(crate) fn new_checked(bytes: &'a [u8]) -> Result<Trailer<'a>, NotSealed> {
        let split = bytes.len().checked_sub(TRAILER_LENGTH);
        let (message, trailer) = bytes.split_at(split.ok_or(NotSealed::Truncated)?);
        let kind = match (trailer[field::VERSION], trailer[field::KIND]) {
            (VERSION, 1) => Kind::Message,
            (VERSION, 2) => Kind::Answer,
            _ => return Err(NotSealed::Version),
        };
        if kind == Kind::Answer && bytes.len() != ANSWER_LENGTH {
            return Err(NotSealed::Version);
        }
        Ok(Trailer {
            message,
            trailer,
            kind,
        })
    }

    /// Bytes before the trailer.
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Fields of the trailer, apart from the tag.
    pub fn repr(&self) -> Repr {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.trailer[at..at + 8]);
            u64::from_be_bytes(bytes)
        };
        let first = number(0);
        Repr {
            kind: self.kind,
            key: (first >> 32) as u16,
            sender: first as u32,
            life: number(field::LIFE),
            counter: number(field::COUNTER),
            proof: number(field::PROOF),
        }
    }

    /// The part of the trailer that the tag covers.
    pub fn covered(&self) -> &'a [u8] {
        &self.trailer[..field::TAG]
    }

    /// The tag.
    pub fn tag(&self) -> &'a [u8] {
        &self.trailer[field::TAG..]
    }
}

/// Fields of a trailer, apart from the tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repr {
    /// Kind of the message.
    pub kind: Kind,
    /// Number of the key.
    pub key: u16,
    /// Number of the sender.
    pub sender: u32,
    /// The sender's life.
    pub life: u64,
    /// Number of the message among those to this receiver.
    pub counter: u64,
    /// The token heard from the receiver; 0 for none.
    pub proof: u64,
}

impl Repr {
    /// The trailer's bytes up to the tag.
    pub fn covered(&self) -> [u8; field::TAG] {
        let mut bytes = [0; field::TAG];
        bytes[field::VERSION] = VERSION;
        bytes[field::KIND] = self.kind as u8;
        bytes[field::KEY..field::SENDER].copy_from_slice(&self.key.to_be_bytes());
        bytes[field::SENDER..field::LIFE].copy_from_slice(&self.sender.to_be_bytes());
        bytes[field::LIFE..field::COUNTER].copy_from_slice(&self.life.to_be_bytes());
        bytes[field::COUNTER..field::PROOF].copy_from_slice(&self.counter.to_be_bytes());
        bytes[field::PROOF..].copy_from_slice(&self.proof.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let repr = Repr {
            kind: Kind::Message,
            key: 0x0102,
            sender: 0x0304_0506,
            life: 7 << 60,
            counter: 8 << 50,
            proof: 9 << 40,
        };
        let mut bytes = b"message".to_vec();
        bytes.extend(repr.covered());
        bytes.extend([5; TAG_LENGTH]);
        let trailer = Trailer::new_checked(&bytes).unwrap();
        assert_eq!(trailer.repr(), repr);
        assert_eq!(trailer.message(), b"message");
        assert_eq!(trailer.covered(), repr.covered());
        assert_eq!(trailer.tag(), [5; TAG_LENGTH]);
    }

    #[test]
    fn short_bytes_and_other_formats_are_not_sealed() {
        let mut bytes = [0; TRAILER_LENGTH];
        assert_eq!(Trailer::new_checked(&bytes[1..]), Err(NotSealed::Truncated));
        assert_eq!(Trailer::new_checked(&bytes), Err(NotSealed::Version));
        bytes[..2].copy_from_slice(&[VERSION, 1]);
        assert!(Trailer::new_checked(&bytes).is_ok());
        for version in (0..=u8::MAX).filter(|version| *version != VERSION) {
            bytes[field::VERSION] = version;
            assert_eq!(Trailer::new_checked(&bytes), Err(NotSealed::Version));
        }
        let mut answer = [0; ANSWER_LENGTH];
        let at = ANSWER_LENGTH - TRAILER_LENGTH;
        answer[at..at + 2].copy_from_slice(&[VERSION, 2]);
        assert!(Trailer::new_checked(&answer).is_ok());
        assert_eq!(
            Trailer::new_checked(&answer[1..]),
            Err(NotSealed::Version),
            "an answer of another length"
        );
        answer[at] = VERSION + 1;
        assert_eq!(Trailer::new_checked(&answer), Err(NotSealed::Version));
    }
}

//! Bytes that one process gives another over TCP in sealed pieces, such as the state of a replica.
//!
//! Each piece is a sealed message behind its length (4 bytes, big-endian). The asker says ASK until the
//! giver says READY, and then GO; the giver answers GO with all PIECEs. By GO both ends know the other's
//! token, so that no piece is refused for want of proof. All bear a number that the asker drew, so that
//! nothing of one connection passes in another, and a PIECE says its place and the length of all.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stateplane_seal::{ANSWER_LENGTH, Opened, TRAILER_LENGTH};

use super::Guard;
use crate::clock::boot_time_us;
use crate::random::random_bits;

/// First bytes of each message, by which it is no datagram of a protocol.
const MAGIC: [u8; 7] = *b"SPBYTES";

/// Bytes of a message before those of a piece: magic, kind, number, place, length of all.
const HEAD: usize = 32;

/// Most bytes in a piece.
const PIECE: usize = 1 << 16;

/// Most messages that an end takes before pieces flow.
const MOST_GREETINGS: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Ask = 1,
    Ready = 2,
    Go = 3,
    Piece = 4,
}

/// A message, opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said<'a> {
    kind: Kind,
    number: u64,
    place: u64,
    whole: u64,
    bytes: &'a [u8],
}

impl<'a> Said<'a> {
    fn new(kind: Kind, number: u64) -> Said<'static> {
        Said {
            kind,
            number,
            place: 0,
            whole: 0,
            bytes: &[],
        }
    }

    fn to_vec(self) -> Vec<u8> {
        let mut message = MAGIC.to_vec();
        message.push(self.kind as u8);
        for number in [self.number, self.place, self.whole] {
            message.extend(number.to_be_bytes());
        }
        message.extend(self.bytes);
        message
    }

    fn parse(message: &'a [u8]) -> Option<Said<'a>> {
        let (head, bytes) = message.split_at_checked(HEAD)?;
        let (magic, head) = head.split_at(MAGIC.len());
        let kinds = [Kind::Ask, Kind::Ready, Kind::Go, Kind::Piece];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == head[0])?;
        let number = |at: usize| {
            let bytes = head[1 + 8 * at..][..8].try_into();
            bytes.map_or(0, u64::from_be_bytes)
        };
        (magic == MAGIC).then(|| Said {
            kind,
            number: number(0),
            place: number(1),
            whole: number(2),
            bytes,
        })
    }
}

/// One end of a connection.
struct End<'a> {
    guard: &'a Mutex<Guard>,
    stream: &'a mut TcpStream,
    peer: Ipv4Addr,
    buffer: Vec<u8>,
}

fn refused(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl<'a> End<'a> {
    /// The end of a connection with a peer that the keys name.
    fn new(guard: &'a Mutex<Guard>, stream: &'a mut TcpStream) -> io::Result<End<'a>> {
        let peer = match stream.peer_addr()? {
            SocketAddr::V4(address) => *address.ip(),
            SocketAddr::V6(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let end = End {
            guard,
            stream,
            peer,
            buffer: Vec::new(),
        };
        if end.keys().peer_at(peer).is_none() {
            return Err(refused("the file of keys has no peer with its address"));
        }
        Ok(end)
    }

    fn keys(&self) -> MutexGuard<'a, Guard> {
        // Keys that another thread used as it ended are whole.
        self.guard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&mut self, parts: [&[u8]; 2]) -> io::Result<()> {
        let length = parts[0].len() + parts[1].len();
        let mut frame = (length as u32).to_be_bytes().to_vec();
        frame.extend_from_slice(parts[0]);
        frame.extend_from_slice(parts[1]);
        self.stream.write_all(&frame)
    }

    fn say(&mut self, said: Said<'_>) -> io::Result<()> {
        let message = said.to_vec();
        let trailer = self.keys().seal(self.peer, &message);
        let trailer = trailer.ok_or_else(|| refused("the file of keys has no peer any more"))?;
        self.write([&message, &trailer])
    }

    /// The next message; none if there was nothing to take, and what is to be answered is answered.
    fn hear(&mut self) -> io::Result<Option<Said<'_>>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > HEAD + PIECE + TRAILER_LENGTH {
            return Err(refused("a message is longer than any"));
        }
        self.buffer.resize(length, 0);
        self.stream.read_exact(&mut self.buffer)?;
        let opened = self.keys().open(boot_time_us(), self.peer, &self.buffer);
        let answer = match opened {
            Opened::Message { length, .. } => {
                let said = Said::parse(&self.buffer[..length]);
                return said.map(Some).ok_or_else(|| refused("it is no message"));
            }
            Opened::Heard { answer } => answer,
            Opened::Refused { refusal, answer } => {
                let now = boot_time_us();
                self.keys().tell_refused(now, self.peer, refusal);
                // Without an answer it would never be right.
                Some(answer.ok_or_else(|| refused("a seal does not fit"))?)
            }
        };
        if let Some(answer) = answer {
            let bytes: &[u8; ANSWER_LENGTH] = &answer.0;
            self.write([bytes, &[]])?;
        }
        Ok(None)
    }
}

/// Asks the process at the other end of `stream` for what it gives, of at most `most` bytes. The
/// stream's timeouts hold for each step.
///
/// # Errors
///
/// The connection fails; `InvalidData` if the other end is not the peer that the keys name at its
/// address, or says another thing than is expected.
pub fn fetch_sealed(
    guard: &Mutex<Guard>,
    stream: &mut TcpStream,
    most: u64,
) -> io::Result<Vec<u8>> {
    let number = random_bits()?;
    let mut end = End::new(guard, stream)?;
    end.say(Said::new(Kind::Ask, number))?;
    let (mut bytes, mut greetings, mut goes) = (Vec::new(), 0, false);
    loop {
        match end.hear()? {
            None if !goes => end.say(Said::new(Kind::Ask, number))?,
            None => return Err(refused("a seal does not fit")),
            Some(said) if said.number != number => {
                return Err(refused("it is of another connection"));
            }
            Some(Said {
                kind: Kind::Ready, ..
            }) => {
                // Another READY answers an ASK that was repeated.
                if !goes {
                    goes = true;
                    end.say(Said::new(Kind::Go, number))?;
                }
            }
            Some(said) if said.kind == Kind::Piece && goes => {
                if said.place != bytes.len() as u64 || said.whole > most {
                    return Err(refused("a piece is out of place"));
                }
                let whole = said.whole;
                bytes.extend_from_slice(said.bytes);
                if bytes.len() as u64 >= whole {
                    bytes.truncate(whole as usize);
                    return Ok(bytes);
                }
                continue;
            }
            Some(_) => return Err(refused("it is out of turn")),
        }
        greetings += 1;
        if greetings > MOST_GREETINGS {
            return Err(refused("it never begins"));
        }
    }
}

/// Gives what `bytes` returns to the peer at the other end of `stream`, once that asked for it. The
/// stream's timeouts hold for each step.
///
/// # Errors
///
/// As [`fetch_sealed`].
pub fn give_sealed(
    guard: &Mutex<Guard>,
    stream: &mut TcpStream,
    bytes: impl FnOnce() -> Vec<u8>,
) -> io::Result<()> {
    let mut end = End::new(guard, stream)?;
    let mut asked = None;
    for _ in 0..MOST_GREETINGS {
        let Some(said) = end.hear()? else {
            continue;
        };
        let number = said.number;
        match said.kind {
            Kind::Ask => {
                asked = Some(number);
                end.say(Said::new(Kind::Ready, number))?;
            }
            Kind::Go if asked == Some(number) => return give(&mut end, number, &bytes()),
            _ => return Err(refused("it is out of turn")),
        }
    }
    Err(refused("it never goes on"))
}

fn give(end: &mut End<'_>, number: u64, bytes: &[u8]) -> io::Result<()> {
    let mut place = 0;
    loop {
        let piece = &bytes[place..bytes.len().min(place + PIECE)];
        end.say(Said {
            kind: Kind::Piece,
            number,
            place: place as u64,
            whole: bytes.len() as u64,
            bytes: piece,
        })?;
        place += piece.len();
        if place == bytes.len() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests;

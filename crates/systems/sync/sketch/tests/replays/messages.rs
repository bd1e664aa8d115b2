//! Messages of DNS and FTP in IPv4 packets, as a reader of a capture finds them.

use core::net::Ipv4Addr;

/// A record of an answer.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its name with pointers followed, in small letters.
    pub owner: String,
    /// Its name is a pointer alone.
    pub is_pointer: bool,
    pub kind: u16,
    pub class: u16,
    pub ttl: u32,
    pub data: Vec<u8>,
}

impl Record {
    pub fn address(&self) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.data[..].try_into().ok()?;
        (self.kind == 1 && self.class == 1).then(|| Ipv4Addr::from(octets))
    }
}

/// A query, or a response to one question.
#[derive(Clone, Debug)]
pub struct Dns {
    pub client: Ipv4Addr,
    pub server: Ipv4Addr,
    /// The client's.
    pub port: u16,
    pub id: u16,
    pub is_response: bool,
    pub name: String,
    pub kind: u16,
    pub answers: Vec<Record>,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn address(ip: &[u8], at: usize) -> Ipv4Addr {
    Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3])
}

/// The name at `at`, and the place behind it.
fn name(message: &[u8], at: usize, depth: usize) -> Option<(String, usize)> {
    let length = usize::from(*message.get(at)?);
    if length == 0 {
        return Some((String::new(), at + 1));
    }
    if length >= 0xc0 {
        let target = usize::from(word(message, at)? & 0x3fff);
        let (name, _) = (depth < 16).then(|| name(message, target, depth + 1))??;
        return Some((name, at + 2));
    }
    let label = message.get(at + 1..at + 1 + length)?;
    let label = String::from_utf8_lossy(label).to_lowercase();
    let (rest, end) = name(message, at + 1 + length, depth)?;
    let dot = if rest.is_empty() { "" } else { "." };
    Some((format!("{label}{dot}{rest}"), end))
}

/// The message of DNS in an IPv4 packet, from or to port 53 of UDP.
pub fn dns(ip: &[u8]) -> Option<Dns> {
    let is_udp = ip[0] == 0x45 && ip[9] == 17 && word(ip, 6)? & 0x3fff == 0;
    let (from, to) = (word(ip, 20)?, word(ip, 22)?);
    if !is_udp || (from != 53 && to != 53) {
        return None;
    }
    let message = &ip[28..];
    let flags = word(message, 2)?;
    let (question, end) = name(message, 12, 0)?;
    let kind = word(message, end)?;
    let (mut at, mut answers) = (end + 4, Vec::new());
    for _ in 0..word(message, 6)? {
        let (owner, end) = name(message, at, 0)?;
        let is_pointer = *message.get(at)? >= 0xc0;
        let length = usize::from(word(message, end + 8)?);
        let ttl = [word(message, end + 4)?, word(message, end + 6)?];
        answers.push(Record {
            owner,
            is_pointer,
            kind: word(message, end)?,
            class: word(message, end + 2)?,
            ttl: u32::from(ttl[0]) << 16 | u32::from(ttl[1]),
            data: message.get(end + 10..end + 10 + length)?.to_vec(),
        });
        at = end + 10 + length;
    }
    let is_response = flags & 0x8000 != 0;
    let (source, destination) = (address(ip, 12), address(ip, 16));
    let (client, server) = if is_response {
        (destination, source)
    } else {
        (source, destination)
    };
    Some(Dns {
        client,
        server,
        port: if is_response { to } else { from },
        id: word(message, 0)?,
        is_response,
        name: question,
        kind,
        answers,
    })
}

/// A message of an FTP control connection.
pub struct Control {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub text: String,
}

/// The payload of a packet from or to port 21 of TCP.
pub fn control(ip: &[u8]) -> Option<Control> {
    let (from, to) = (word(ip, 20)?, word(ip, 22)?);
    if ip[0] != 0x45 || ip[9] != 6 || (from != 21 && to != 21) {
        return None;
    }
    let begin = 20 + 4 * usize::from(ip.get(32)? >> 4);
    let payload = ip.get(begin..usize::from(word(ip, 2)?))?;
    Some(Control {
        source: address(ip, 12),
        destination: address(ip, 16),
        text: String::from_utf8_lossy(payload).into_owned(),
    })
}

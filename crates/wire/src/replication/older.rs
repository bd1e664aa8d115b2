//! Version 1 of the message, as far as two sides that speak different versions need it to tell
//! each other so.
//!
//! It has the fields of the present version at the same places, apart from the two at
//! [`field::AGE`], and the types below 0x15 but one.

use super::{HEADER_LENGTH, Key, MessageType, Packet, Repr, field};
use crate::checksum::Sum;
use crate::value::Value;
use crate::{Error, Header};

/// The version.
pub const VERSION: u8 = 1;

/// The header and state of a message of version 1 as the present version; `None` if `bytes` are
/// none or damaged.
fn read(bytes: &[u8]) -> Option<Vec<u8>> {
    let header: &[u8; HEADER_LENGTH] = bytes.first_chunk()?;
    let length: usize = Value::read(header, field::STATE_LENGTH * 8, 16);
    let mut summed = bytes.get(..HEADER_LENGTH + length)?.to_vec();
    let whole = Sum::new().over(&summed).finish() == 0;
    if !whole || header[field::VERSION] != VERSION {
        return None;
    }
    summed[field::VERSION] = super::VERSION;
    summed[field::AGE..field::AGE + 8].fill(0);
    sum(&mut summed);
    summed.extend_from_slice(&bytes[HEADER_LENGTH + length..]);
    Some(summed)
}

/// Sets the checksum of header and state.
fn sum(message: &mut [u8]) {
    message[field::CHECKSUM..field::CHECKSUM + 2].fill(0);
    let checksum = Sum::new().over(message).finish();
    checksum.write(message, field::CHECKSUM * 8, 16);
}

/// `message` in version 1.
fn write(message: &Repr<'_>) -> Result<Vec<u8>, Error> {
    let mut bytes = message.to_vec()?;
    bytes[field::VERSION] = VERSION;
    sum(&mut bytes);
    Ok(bytes)
}

/// A message of version 1 in the present one, for entries that a disk has.
///
/// # Errors
///
/// [`Error::Version`] if it is none.
pub fn upgrade(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    read(bytes).ok_or(Error::Version {
        header: Header::Replication,
        found: bytes.first().copied().unwrap_or(0),
    })
}

/// The refusal, in version 1, of a request of version 1, and the switch that asks; `None` if
/// `bytes` are no such request.
pub fn refusal(bytes: &[u8], code: super::RefusalCode) -> Option<(u32, Vec<u8>)> {
    let bytes = read(bytes)?;
    let request = Packet::new_checked(&bytes).ok()?;
    if !request.message_type().is_request() || request.incarnation() == 0 {
        return None;
    }
    let refusal = Repr {
        message_type: MessageType::Refusal,
        shared: false,
        code: code as u8,
        lease_epoch: 0,
        sequence: 0,
        state: &[],
        packet: None,
        ..Repr::parse(&request)
    };
    Some((request.switch_id(), write(&refusal).ok()?))
}

/// Number of transmissions before that of a [`probe`]: none of version 1 has as many, and an older
/// store looks at none.
const PROBED: u16 = u16::MAX;

/// A probe of version 1, which an older store answers, and a present one knows ([`is_probe`]).
///
/// # Errors
///
/// As [`Repr::emit`].
pub fn probe(
    switch_id: u32,
    incarnation: u32,
    shard: u16,
    chain_epoch: u32,
    send_time: u64,
) -> Result<Vec<u8>, Error> {
    write(&Repr {
        switch_id,
        incarnation,
        shard,
        chain_epoch,
        send_time,
        attempt: PROBED,
        ..Repr::new(MessageType::ProbeRequest, Key::default())
    })
}

/// True of a [`probe`]: the switch that sends it is of the present version.
pub fn is_probe(bytes: &[u8]) -> bool {
    let bytes = read(bytes);
    let packet = bytes.as_deref().map(Packet::new_checked);
    let Some(Ok(packet)) = packet else {
        return false;
    };
    packet.message_type() == MessageType::ProbeRequest && packet.attempt() == PROBED
}

/// True of what an older store answers to the [`probe`] of that start of a switch.
pub fn is_answer(bytes: &[u8], switch_id: u32, incarnation: u32) -> bool {
    let bytes = read(bytes);
    let packet = bytes.as_deref().map(Packet::new_checked);
    packet.is_some_and(|packet| {
        packet.is_ok_and(|packet| {
            !packet.message_type().is_request()
                && packet.switch_id() == switch_id
                && packet.incarnation() == incarnation
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::RefusalCode;

    /// What version 1 sends: a lease request with a packet on board.
    fn request() -> Vec<u8> {
        let mut bytes = write(&Repr {
            switch_id: 3,
            incarnation: 5,
            claim: 7,
            packet: Some(b"packet"),
            ..Repr::new(MessageType::LeaseRequest, Key([9; 16]))
        })
        .unwrap();
        bytes.truncate(HEADER_LENGTH);
        sum(&mut bytes);
        bytes.extend_from_slice(b"packet");
        bytes
    }

    #[test]
    fn a_request_of_version_1_is_refused_in_version_1() {
        let bytes = request();
        assert_eq!(Packet::new_checked(&bytes).unwrap_err().code(), "WIRE003");
        let (switch, refusal) = refusal(&bytes, RefusalCode::WrongServer).unwrap();
        assert_eq!(switch, 3);
        assert_eq!(refusal[field::VERSION], 1);
        let refusal = upgrade(&refusal).unwrap();
        let refusal = Packet::new_checked(&refusal).unwrap();
        assert_eq!(refusal.message_type(), MessageType::Refusal);
        assert_eq!((refusal.claim(), refusal.code()), (7, 5));
        assert_eq!(refusal.packet(), None);
    }

    #[test]
    fn what_is_damaged_or_no_request_is_not_refused() {
        let mut bytes = request();
        bytes[field::CLAIM] ^= 1;
        assert_eq!(refusal(&bytes, RefusalCode::WrongServer), None);
        let present = Repr::new(MessageType::LeaseRequest, Key::default());
        let present = present.to_vec().unwrap();
        assert_eq!(refusal(&present, RefusalCode::WrongServer), None);
        let answer = write(&Repr::new(MessageType::ProbeReply, Key::default())).unwrap();
        assert_eq!(refusal(&answer, RefusalCode::WrongServer), None);
        assert!(upgrade(&present).is_err());
        assert_eq!(refusal(&bytes[..40], RefusalCode::WrongServer), None);
    }

    #[test]
    fn an_older_store_is_known_by_its_answer() {
        let probe = probe(3, 5, 1, 2, 1_000).unwrap();
        assert!(!is_answer(&probe, 3, 5));
        let (_, answer) = refusal(&probe, RefusalCode::WrongChainEpoch).unwrap();
        assert!(is_answer(&answer, 3, 5));
        assert!(!is_answer(&answer, 3, 6));
    }

    #[test]
    fn a_probe_of_the_present_version_is_known_from_one_of_version_1() {
        let mut bytes = probe(3, 5, 1, 2, 1_000).unwrap();
        assert!(is_probe(&bytes) && !is_probe(&request()));
        bytes[field::ATTEMPT..field::ATTEMPT + 2].fill(0);
        // 0 and 0xffff are the same in a checksum.
        assert!(read(&bytes).is_some() && !is_probe(&bytes));
    }

    #[test]
    fn a_message_on_a_disk_becomes_one_of_the_present_version() {
        let upgraded = upgrade(&request()).unwrap();
        let packet = Packet::new_checked(&upgraded).unwrap();
        assert_eq!((packet.claim(), packet.age()), (7, 0));
        assert_eq!(packet.packet(), Some(&b"packet"[..]));
    }
}

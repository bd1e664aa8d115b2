//! Fields of headers in frames.

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of an IPv4 header without options.
pub(super) const IPV4: usize = 20;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;

#[inline]
pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline]
pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(super) fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
pub(super) fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

/// The IPv4 header of an Ethernet frame, if both are whole.
#[inline]
pub(super) fn ipv4(frame: &[u8]) -> Option<&[u8; IPV4]> {
    if frame.len() < ETHERNET || be16(frame, 12) != 0x0800 {
        return None;
    }
    frame[ETHERNET..].first_chunk()
}

/// Sum of the words of an IPv4 header without options, folded (RFC 1071); 0xffff if its
/// checksum is right.
#[inline]
fn sum(header: &[u8; IPV4]) -> u32 {
    let mut sum = 0;
    for word in header.chunks_exact(4) {
        let word = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
        sum += u64::from(word);
    }
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    ((sum >> 16) + (sum & 0xffff)) as u32
}

/// The checksum that an IPv4 header without options should have.
#[inline]
pub(super) fn checksum(header: &[u8; IPV4]) -> u16 {
    let mut blank = *header;
    put16(&mut blank, 10, 0);
    !(sum(&blank) as u16)
}

/// Writes the right checksum to the IPv4 header of an Ethernet frame.
#[inline]
pub(super) fn put_checksum(frame: &mut [u8]) {
    if let Some(header) = frame[ETHERNET..].first_chunk() {
        let checksum = checksum(header);
        put16(frame, ETHERNET + 10, checksum);
    }
}

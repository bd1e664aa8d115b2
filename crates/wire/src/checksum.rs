//! The Internet checksum (RFC 1071), also over a pseudo header (RFC 768, RFC 9293).

use core::net::Ipv4Addr;

/// One's-complement sum of 16-bit words, kept wide until it is folded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub fn new() -> Sum {
        Sum(0)
    }

    /// Adds `bytes` as big-endian words; an odd last byte counts as the upper
    /// half of a word, so only the last call may be given an odd length.
    #[must_use]
    pub fn over(self, bytes: &[u8]) -> Sum {
        let mut sum = self.0;
        // The sum of halves of 32 bits folds to the same.
        let mut longs = bytes.chunks_exact(8);
        for long in &mut longs {
            let long = long
                .first_chunk()
                .map_or(0, |long| u64::from_be_bytes(*long));
            sum += (long >> 32) + (long & 0xffff_ffff);
        }
        let mut words = longs.remainder().chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(*last) << 8;
        }
        Sum(sum)
    }

    /// Adds the IPv4 pseudo header of a segment of `length` bytes.
    #[must_use]
    pub fn over_pseudo_header(
        self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        protocol: u8,
        length: u16,
    ) -> Sum {
        let sum = self.over(&source.octets()).over(&destination.octets());
        Sum(sum.0 + u64::from(protocol) + u64::from(length))
    }

    /// The checksum: the complement of the folded sum. Over bytes that contain
    /// their right checksum it is 0.
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The checksum of `bytes` alone.
pub fn of(bytes: &[u8]) -> u16 {
    Sum::new().over(bytes).finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn example_of_rfc_1071_section_3() {
        let sum = of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum, !0xddf2);
    }

    #[test]
    fn odd_last_byte_is_padded_with_zero() {
        assert_eq!(of(&[0x12, 0x34, 0x56]), of(&[0x12, 0x34, 0x56, 0x00]));
    }

    proptest! {
        #[test]
        fn bytes_with_their_checksum_sum_to_zero(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if bytes.len() % 2 == 1 {
                bytes.push(0);
            }
            let sum = of(&bytes);
            bytes.extend(sum.to_be_bytes());
            prop_assert_eq!(of(&bytes), 0);
        }
    }
}

//! Hash algorithms and checksums of v1model, as BMv2 computes them.

use stateplane_ir::HashAlgorithm;
pub use stateplane_random::Random;

const fn crc32_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

const fn crc16_table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u16;
        let mut bit = 0;
        while bit < 8 {
            value = value >> 1 ^ if value & 1 == 1 { 0xa001 } else { 0 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// Bytes up to which [`crc32_table_of`] and [`crc16_table_of`] go.
pub const CRC_BYTES: usize = 32;

/// Tables for many bytes at a time ("slicing by 8", Kounavis and Berry, 2005): the effect of a byte
/// by the number of bytes that follow it.
const fn crc32_slices() -> [[u32; 256]; CRC_BYTES] {
    let mut slices = [crc32_table(); CRC_BYTES];
    let mut slice = 1;
    while slice < CRC_BYTES {
        let mut index = 0;
        while index < 256 {
            let before = slices[slice - 1][index];
            slices[slice][index] = before >> 8 ^ slices[0][(before & 0xff) as usize];
            index += 1;
        }
        slice += 1;
    }
    slices
}

/// Tables of [`crc16`], see [`crc32_slices`].
const fn crc16_slices() -> [[u16; 256]; CRC_BYTES] {
    let mut slices = [crc16_table(); CRC_BYTES];
    let mut slice = 1;
    while slice < CRC_BYTES {
        let mut index = 0;
        while index < 256 {
            let before = slices[slice - 1][index];
            slices[slice][index] = before >> 8 ^ slices[0][(before & 0xff) as usize];
            index += 1;
        }
        slice += 1;
    }
    slices
}

static CRC32: [[u32; 256]; CRC_BYTES] = crc32_slices();
static CRC16: [[u16; 256]; CRC_BYTES] = crc16_slices();

/// Table of CRC contributions: the value that each byte adds, by XOR, to the [`crc32`] of data in
/// which `following` bytes, less than [`CRC_BYTES`], follow it. A CRC is the XOR of its bytes'
/// contributions and the CRC of as many zeros.
pub fn crc32_table_of(following: usize) -> &'static [u32; 256] {
    &CRC32[following]
}

/// Table of contributions to [`crc16`], see [`crc32_table_of`].
pub fn crc16_table_of(following: usize) -> &'static [u16; 256] {
    &CRC16[following]
}

/// CRC-32 of IEEE 802.3: reflected, polynomial 0x04c11db7, start and final XOR all
/// ones.
pub fn crc32(data: &[u8]) -> u32 {
    let (eights, rest) = data.as_chunks::<8>();
    let crc = eights.iter().fold(u32::MAX, |crc, eight| {
        let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(*eight) ^ u64::from(crc)).to_le_bytes();
        let slice = |slice: usize, byte: u8| CRC32[slice][usize::from(byte)];
        (slice(7, a) ^ slice(6, b) ^ slice(5, c) ^ slice(4, d))
            ^ (slice(3, e) ^ slice(2, f) ^ slice(1, g) ^ slice(0, h))
    });
    !rest.iter().fold(crc, |crc, &byte| {
        crc >> 8 ^ CRC32[0][usize::from(crc as u8 ^ byte)]
    })
}

/// CRC-16/ARC: reflected, polynomial 0x8005, start and final XOR zero.
pub fn crc16(data: &[u8]) -> u16 {
    let (eights, rest) = data.as_chunks::<8>();
    let crc = eights.iter().fold(0, |crc: u16, eight| {
        let [a, b, c, d, e, f, g, h] = (u64::from_le_bytes(*eight) ^ u64::from(crc)).to_le_bytes();
        let slice = |slice: usize, byte: u8| CRC16[slice][usize::from(byte)];
        (slice(7, a) ^ slice(6, b) ^ slice(5, c) ^ slice(4, d))
            ^ (slice(3, e) ^ slice(2, f) ^ slice(1, g) ^ slice(0, h))
    });
    rest.iter().fold(crc, |crc, &byte| {
        crc >> 8 ^ CRC16[0][usize::from(crc as u8 ^ byte)]
    })
}

fn big_endian_words(data: &[u8]) -> impl Iterator<Item = u16> {
    data.chunks(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
}

/// The Internet checksum (RFC 1071) of `data`, padded by a zero byte to even length.
pub fn internet_checksum(data: &[u8]) -> u16 {
    let mut sum: u64 = big_endian_words(data).map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// XOR of the big-endian 16-bit words of `data`, padded by a zero byte.
pub fn xor16(data: &[u8]) -> u16 {
    big_endian_words(data).fold(0, |xor, word| xor ^ word)
}

/// The first eight bytes as a big-endian number; fewer bytes give a smaller number.
pub fn identity(data: &[u8]) -> u64 {
    data.iter()
        .take(8)
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Parameters of a CRC of 16 or 32 bits (Williams, "A Painless Guide to CRC Error Detection
/// Algorithms", §15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrcParameters {
    /// The polynomial without its highest term, not reflected.
    pub polynomial: u32,
    /// The first remainder.
    pub initial: u32,
    /// Value with which the last remainder is XORed.
    pub final_xor: u32,
    /// True if each byte enters with its lowest bit first.
    pub reflect_data: bool,
    /// True if the remainder is reflected before the XOR.
    pub reflect_remainder: bool,
}

/// A CRC of `width` bits, 8 to 32. Bits of the parameters above the width do not count.
pub fn crc(width: u32, parameters: &CrcParameters, data: &[u8]) -> u32 {
    let mask = u32::MAX >> (32 - width);
    let top = 1 << (width - 1);
    let mut remainder = parameters.initial & mask;
    for &byte in data {
        let byte = if parameters.reflect_data {
            byte.reverse_bits()
        } else {
            byte
        };
        remainder ^= u32::from(byte) << (width - 8);
        for _ in 0..8 {
            let carry = remainder & top != 0;
            remainder = remainder << 1 & mask;
            if carry {
                remainder ^= parameters.polynomial & mask;
            }
        }
    }
    if parameters.reflect_remainder {
        remainder = remainder.reverse_bits() >> (32 - width);
    }
    (remainder ^ parameters.final_xor) & mask
}

/// Parameters of the algorithms `crc16_custom` and `crc32_custom`. `None`: they are those
/// of `crc16` and `crc32`, as in BMv2 before the control plane sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CustomCrc {
    /// Of `crc16_custom`.
    pub crc16: Option<CrcParameters>,
    /// Of `crc32_custom`.
    pub crc32: Option<CrcParameters>,
}

/// Runs an algorithm over `data`. As in BMv2 a hash has at most 64 bits;
/// [`HashAlgorithm::Random`] ignores the data and draws from `random`.
pub fn hash(algorithm: HashAlgorithm, data: &[u8], custom: &CustomCrc, random: &mut Random) -> u64 {
    match (algorithm, custom) {
        (HashAlgorithm::Crc32Custom, CustomCrc { crc32: Some(p), .. }) => {
            return u64::from(crc(32, p, data));
        }
        (HashAlgorithm::Crc16Custom, CustomCrc { crc16: Some(p), .. }) => {
            return u64::from(crc(16, p, data));
        }
        _ => {}
    }
    match algorithm {
        HashAlgorithm::Crc32 | HashAlgorithm::Crc32Custom => u64::from(crc32(data)),
        HashAlgorithm::Crc16 | HashAlgorithm::Crc16Custom => u64::from(crc16(data)),
        HashAlgorithm::Random => random.next(),
        HashAlgorithm::Identity => identity(data),
        HashAlgorithm::Csum16 => u64::from(internet_checksum(data)),
        HashAlgorithm::Xor16 => u64::from(xor16(data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHECK: &[u8] = b"123456789";

    #[test]
    fn a_crc_is_the_sum_of_what_its_bytes_add() {
        for length in [1, 9, 16, CRC_BYTES] {
            let data: Vec<u8> = (0..length as u8)
                .map(|at| at.wrapping_mul(91) ^ 0x5a)
                .collect();
            let zeros = vec![0; length];
            let (mut of_32, mut of_16) = (crc32(&zeros), crc16(&zeros));
            for (at, byte) in data.iter().enumerate() {
                of_32 ^= crc32_table_of(length - 1 - at)[usize::from(*byte)];
                of_16 ^= crc16_table_of(length - 1 - at)[usize::from(*byte)];
            }
            assert_eq!((of_32, of_16), (crc32(&data), crc16(&data)));
        }
    }

    #[test]
    fn known_answers() {
        assert_eq!(crc32(CHECK), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        assert_eq!(crc16(CHECK), 0xbb3d);
        assert_eq!(crc16(b""), 0);
        assert_eq!(xor16(&[0x12, 0x34, 0xff]), 0xed34);
        assert_eq!(xor16(&[0x12, 0x34, 0xff, 0x0f]), 0xed3b);
        assert_eq!(identity(&[1, 2]), 0x0102);
        assert_eq!(
            identity(&[1, 2, 3, 4, 5, 6, 7, 8, 9]),
            0x0102_0304_0506_0708
        );
    }

    /// The check values of the catalogue of parametrised CRC algorithms (Cook, CRC RevEng).
    #[test]
    fn crcs_by_their_parameters() {
        let known = |width, polynomial, initial, final_xor, reflected| {
            let parameters = CrcParameters {
                polynomial,
                initial,
                final_xor,
                reflect_data: reflected,
                reflect_remainder: reflected,
            };
            crc(width, &parameters, CHECK)
        };
        assert_eq!(known(32, 0x04c1_1db7, !0, !0, true), 0xcbf4_3926);
        assert_eq!(known(32, 0x04c1_1db7, !0, !0, false), 0xfc89_1918, "BZIP2");
        assert_eq!(known(32, 0x1edc_6f41, !0, !0, true), 0xe306_9283, "iSCSI");
        assert_eq!(known(16, 0x8005, 0, 0, true), 0xbb3d);
        assert_eq!(known(16, 0x1021, 0xffff, 0, false), 0x29b1, "IBM-3740");
        assert_eq!(known(16, 0x1021, 0, 0, false), 0x31c3, "XMODEM");
        assert_eq!(known(8, 0x07, 0, 0, false), 0xf4, "SMBUS");
    }

    #[test]
    fn custom_crcs_are_the_usual_ones_until_they_are_set() {
        use HashAlgorithm::{Crc16Custom, Crc32Custom};
        let mut random = Random::new(0);
        let mut custom = CustomCrc::default();
        let mut with = |algorithm, custom: &CustomCrc| hash(algorithm, CHECK, custom, &mut random);
        assert_eq!(with(Crc16Custom, &custom), 0xbb3d);
        assert_eq!(with(Crc32Custom, &custom), 0xcbf4_3926);
        custom.crc16 = Some(CrcParameters {
            polynomial: 0x1021,
            initial: 0xffff,
            final_xor: 0,
            reflect_data: false,
            reflect_remainder: false,
        });
        assert_eq!(with(Crc16Custom, &custom), 0x29b1);
        assert_eq!(with(Crc32Custom, &custom), 0xcbf4_3926);
    }

    #[test]
    fn xor16_pads_on_the_right() {
        assert_eq!(xor16(&[0xab]), 0xab00);
    }

    /// RFC 1071 §3: the sum of these words is ddf2.
    #[test]
    fn internet_checksum_of_rfc_1071() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(internet_checksum(&data), !0xddf2);
        assert_eq!(internet_checksum(&[]), 0xffff);
        assert_eq!(internet_checksum(&[0x80]), !0x8000);
    }

    #[test]
    fn the_random_sequence_is_fixed_by_its_seed() {
        let mut random = Random::new(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
        assert_ne!(Random::new(1).next(), Random::new(2).next());
    }

    proptest! {
        #[test]
        fn data_with_its_checksum_sums_to_zero(mut data in prop::collection::vec(any::<u8>(), 0..80)) {
            if data.len() % 2 == 1 {
                data.push(0);
            }
            let checksum = internet_checksum(&data);
            data.extend_from_slice(&checksum.to_be_bytes());
            let sum = internet_checksum(&data);
            prop_assert!(sum == 0 || sum == 0xffff);
        }

        #[test]
        fn crc32_bit_by_bit(data in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut crc = u32::MAX;
            for byte in &data {
                crc ^= u32::from(*byte);
                for _ in 0..8 {
                    crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
                }
            }
            prop_assert_eq!(crc32(&data), !crc);
        }
    }
}

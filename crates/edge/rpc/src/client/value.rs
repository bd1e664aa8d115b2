//! Values as people write them: numbers, addresses, masks and ranges.

use num_bigint::BigUint;
use num_traits::{Num, ToPrimitive, Zero};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Notation in which a value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A decimal number, hexadecimal beyond 64 bits.
    Number,
    /// `00:11:22:33:44:55`.
    Mac,
    /// `10.0.0.1`.
    Ipv4,
    /// `fd00::1`.
    Ipv6,
}

/// Last parts of the names of fields that hold addresses.
const ADDRESSES: [&str; 5] = ["addr", "address", "src", "dst", "ip"];

impl Style {
    /// The style of a field or parameter of `width` bits: what its annotation
    /// `@format` says, or what its name and width suggest.
    #[must_use]
    pub fn of(name: &str, width: u32, annotations: &[String]) -> Style {
        let says = |format: &str| annotations.iter().any(|it| it.contains(format));
        let last = name.rsplit('.').next().unwrap_or(name).to_lowercase();
        let is_address = ADDRESSES.iter().any(|end| last.ends_with(end));
        match width {
            48 => Style::Mac,
            32 if is_address || says("IPV4_ADDRESS") => Style::Ipv4,
            128 if is_address || says("IPV6_ADDRESS") => Style::Ipv6,
            _ => Style::Number,
        }
    }
}

/// Shows a value of any width.
#[must_use]
pub fn show(value: &BigUint, style: Style) -> String {
    let number = value.to_u128();
    match (style, number) {
        (Style::Mac, Some(number)) if number >> 48 == 0 => {
            let bytes = (number as u64).to_be_bytes();
            let digits: Vec<String> = bytes[2..].iter().map(|it| format!("{it:02x}")).collect();
            digits.join(":")
        }
        (Style::Ipv4, Some(number)) if number >> 32 == 0 => {
            Ipv4Addr::from(number as u32).to_string()
        }
        (Style::Ipv6, Some(number)) => Ipv6Addr::from(number).to_string(),
        _ if value.bits() <= 64 => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

/// Reads a number, decimal or with `0x` or `0b`, a MAC address, or an IPv4 or IPv6
/// address; digits may be grouped with `_`.
///
/// # Errors
///
/// Returns the accepted notations, if it is none of these.
pub fn read(text: &str) -> Result<BigUint, String> {
    let wrong = || {
        format!(
            "{text:?} is no value: write a number (12, 0xc, 0b1100), an IPv4 or IPv6 address, \
             or a MAC address"
        )
    };
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(u32::from(address).into());
    }
    if let Some(mac) = mac(text) {
        return Ok(mac.into());
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(u128::from(address).into());
    }
    let plain = text.replace('_', "");
    let (digits, radix) = match plain.get(..2) {
        Some("0x" | "0X") => (&plain[2..], 16),
        Some("0b" | "0B") => (&plain[2..], 2),
        _ => (&plain[..], 10),
    };
    if digits.is_empty() || digits.len() > 4096 || !digits.chars().all(|it| it.is_digit(radix)) {
        return Err(wrong());
    }
    BigUint::from_str_radix(digits, radix).map_err(|_| wrong())
}

fn mac(text: &str) -> Option<u64> {
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() != 6 {
        return None;
    }
    parts.iter().try_fold(0, |number, part| {
        let is_byte = part.len() <= 2 && part.chars().all(|digit| digit.is_ascii_hexdigit());
        let byte = u64::from_str_radix(part, 16).ok().filter(|_| is_byte)?;
        Some((number << 8) | byte)
    })
}

/// The bytes of a value as P4Runtime has them.
#[must_use]
pub fn bytes(value: &BigUint) -> Vec<u8> {
    if value.is_zero() {
        vec![0]
    } else {
        value.to_bytes_be()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_numbers_and_addresses() {
        let number = |text| read(text).unwrap().to_u128().unwrap();
        assert_eq!(number("12"), 12);
        assert_eq!(number("0x1_0000"), 65536);
        assert_eq!(number("0b101"), 5);
        assert_eq!(number("10.0.0.1"), 0x0a00_0001);
        assert_eq!(number("00:00:00:00:01:02"), 0x102);
        assert_eq!(number("0:1:2:3:4:5"), 0x0001_0203_0405);
        assert_eq!(number("::1"), 1);
        for wrong in [
            "",
            "x",
            "-1",
            "0x",
            "1.2.3",
            "10.0.0.256",
            "0xg",
            "1:2:3",
            "+5",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn styles_follow_names_and_widths() {
        let none: &[String] = &[];
        assert_eq!(Style::of("hdr.ipv4.dstAddr", 32, none), Style::Ipv4);
        assert_eq!(Style::of("hdr.ipv4.count", 32, none), Style::Number);
        let annotated = ["@format(IPV4_ADDRESS)".to_owned()];
        assert_eq!(Style::of("meta.next", 32, &annotated), Style::Ipv4);
        assert_eq!(Style::of("mac", 48, none), Style::Mac);
        assert_eq!(show(&0x0102u32.into(), Style::Mac), "00:00:00:00:01:02");
        assert_eq!(
            show(&(BigUint::from(1u8) << 80), Style::Number),
            "0x100000000000000000000"
        );
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(value: u128, short: u64) {
            for (value, style) in [
                (BigUint::from(value), Style::Number),
                (BigUint::from(value), Style::Ipv6),
                (BigUint::from(short >> 16), Style::Mac),
                (BigUint::from(short >> 32), Style::Ipv4),
            ] {
                prop_assert_eq!(read(&show(&value, style)), Ok(value));
            }
        }

        #[test]
        fn no_text_is_too_much(text: String) {
            let _ = read(&text);
        }
    }
}

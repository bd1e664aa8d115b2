//! The keyed hash: HMAC-SHA-256 (RFC 2104), cut to 128 bits (RFC 4868, 2.3).

use core::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use sha2::Sha256;

use crate::key::Key;
use crate::trailer::TAG_LENGTH;

/// A key ready for use: both padded key blocks are hashed already.
#[derive(Clone)]
pub(crate) struct Mac(Hmac<Sha256>);

impl Mac {
    pub(crate) fn new(key: &Key) -> Mac {
        let keyed = Hmac::<Sha256>::new_from_slice(key.bytes());
        Mac(keyed.expect("HMAC takes keys of any length"))
    }

    /// The tag over `parts`, one after the other.
    pub(crate) fn tag(&self, parts: &[&[u8]]) -> [u8; TAG_LENGTH] {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        let whole = mac.finalize().into_bytes();
        let mut tag = [0; TAG_LENGTH];
        tag.copy_from_slice(&whole[..TAG_LENGTH]);
        tag
    }

    /// True if `tag` is the tag over `parts`; takes as long for a wrong tag as for the right one.
    pub(crate) fn agrees(&self, parts: &[&[u8]], tag: &[u8]) -> bool {
        let mut mac = self.0.clone();
        for part in parts {
            mac.update(part);
        }
        tag.len() == TAG_LENGTH && mac.verify_truncated_left(tag).is_ok()
    }

    /// 64 bits that depend on `parts` and that cannot be computed without the key; never 0.
    pub(crate) fn number(&self, parts: &[&[u8]]) -> u64 {
        let tag = self.tag(parts);
        let mut first = [0; 8];
        first.copy_from_slice(&tag[..8]);
        u64::from_be_bytes(first).max(1)
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mac(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2 has a shorter key than ours; HMAC pads keys with zeros, so
    /// that the same key, padded, gives the same hash.
    #[test]
    fn it_is_the_hmac_of_rfc_4231() {
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let mac = Mac::new(&Key::new(key));
        let parts: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        let tag = mac.tag(&parts);
        assert_eq!(
            tag,
            [
                0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95,
                0x75, 0xc7
            ]
        );
        assert!(mac.agrees(&parts, &tag));
        assert!(!mac.agrees(&parts, &tag[..15]));
        assert!(!mac.agrees(&parts, &[]));
    }
}

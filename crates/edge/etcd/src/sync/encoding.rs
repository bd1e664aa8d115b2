//! Values of the keys of engines of sync. Numbers are big-endian.

use stateplane_host::sync::{Fact, Progress};
use stateplane_sync::election::Holder;
use stateplane_wire::sync::Outcome;

/// Progress of a write that was begun.
const BEGUN: u8 = 0;

/// Progress of a write of which nobody knows what became.
const UNKNOWN: u8 = 0xff;

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    take(bytes).map(u64::from_be_bytes)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_be_bytes)
}

/// The value, if nothing is left.
fn whole<T>(value: T, rest: &[u8]) -> Option<T> {
    rest.is_empty().then_some(value)
}

pub(super) fn holder(holder: &Holder) -> Vec<u8> {
    let mut bytes = holder.term.to_be_bytes().to_vec();
    bytes.extend(holder.nonce.to_be_bytes());
    bytes.push(holder.left.into());
    bytes.extend(holder.address.as_bytes());
    bytes
}

pub(super) fn parse_holder(mut bytes: &[u8]) -> Option<Holder> {
    Some(Holder {
        term: take_u64(&mut bytes)?,
        nonce: take_u64(&mut bytes)?,
        left: match take(&mut bytes)? {
            [0] => false,
            [1] => true,
            [_] => return None,
        },
        address: String::from_utf8(bytes.to_vec()).ok()?,
    })
}

/// A term, and the transactions made under it.
pub(super) fn count(term: u64, made: u64) -> Vec<u8> {
    [term.to_be_bytes(), made.to_be_bytes()].concat()
}

pub(super) fn parse_count(mut bytes: &[u8]) -> Option<(u64, u64)> {
    let count = (take_u64(&mut bytes)?, take_u64(&mut bytes)?);
    whole(count, bytes)
}

/// A window without its values: start of the switch, cut, bytes and pieces. Of totals, start and cut are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) incarnation: u32,
    pub(super) epoch: u32,
    pub(super) bytes: u64,
    pub(super) pieces: u32,
}

impl Head {
    pub(super) fn to_vec(self) -> Vec<u8> {
        let mut bytes = self.number.to_be_bytes().to_vec();
        bytes.extend(self.incarnation.to_be_bytes());
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(self.bytes.to_be_bytes());
        bytes.extend(self.pieces.to_be_bytes());
        bytes
    }

    pub(super) fn parse(mut bytes: &[u8]) -> Option<Head> {
        let head = Head {
            number: take_u64(&mut bytes)?,
            incarnation: take_u32(&mut bytes)?,
            epoch: take_u32(&mut bytes)?,
            bytes: take_u64(&mut bytes)?,
            pieces: take_u32(&mut bytes)?,
        };
        whole(head, bytes).filter(|head| head.pieces > 0)
    }
}

pub(super) fn epochs(epochs: &[(u32, u32)]) -> Vec<u8> {
    let each = epochs.iter();
    each.flat_map(|(of, epoch)| [of.to_be_bytes(), epoch.to_be_bytes()].concat())
        .collect()
}

pub(super) fn parse_epochs(mut bytes: &[u8]) -> Option<Vec<(u32, u32)>> {
    let mut epochs = Vec::new();
    while !bytes.is_empty() {
        epochs.push((take_u32(&mut bytes)?, take_u32(&mut bytes)?));
    }
    Some(epochs)
}

pub(super) fn write(number: u64, id: &[u8; 16], progress: Progress) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend(id);
    bytes.push(match progress {
        Progress::Begun => BEGUN,
        Progress::Unknown => UNKNOWN,
        Progress::Ended(outcome) => outcome as u8,
    });
    bytes
}

pub(super) fn parse_write(mut bytes: &[u8]) -> Option<Fact> {
    let (number, id) = (take_u64(&mut bytes)?, take(&mut bytes)?);
    let progress = match take(&mut bytes)? {
        [BEGUN] => Progress::Begun,
        [UNKNOWN] => Progress::Unknown,
        [outcome] => Progress::Ended(Outcome::from_u8(outcome)?),
    };
    let fact = Fact::Write {
        number,
        id,
        progress,
    };
    whole(fact, bytes)
}

/// A group's name as part of a key.
fn hex(group: &str) -> String {
    let digits = group.bytes().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

/// The group in a key that begins with `folder`: its name ends with the key, or at `/`.
pub(super) fn group_of(key: &[u8], folder: &[u8]) -> Option<String> {
    let rest = std::str::from_utf8(key.strip_prefix(folder)?).ok()?;
    let digits = rest.split('/').next()?;
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let bytes = pairs.iter().map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

/// Key of the last windows of a group's switch.
pub(super) fn epochs_key(group: &str) -> String {
    format!("epochs/{}", hex(group))
}

/// Key of a window.
pub(super) fn window(group: &str, number: u64) -> String {
    format!("windows/{}/{number:020}", hex(group))
}

/// Folder of the pieces of a window.
pub(super) fn pieces(group: &str, number: u64) -> String {
    format!("pieces/{}/{number:020}/", hex(group))
}

/// Key of a group's totals.
pub(super) fn totals(group: &str) -> String {
    format!("totals/{}", hex(group))
}

/// Folder of the pieces of totals.
pub(super) fn totals_pieces(group: &str, number: u64) -> String {
    format!("totals-pieces/{}/{}/", hex(group), number % 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_read_as_it_was_written_and_no_part_of_it_is() {
        let of = Holder {
            term: 1 << 60,
            nonce: 7,
            left: true,
            address: "10.0.0.1:9560".to_owned(),
        };
        assert_eq!(parse_holder(&holder(&of)), Some(of));
        assert_eq!(parse_count(&count(5, 6)), Some((5, 6)));
        let head = Head {
            number: 9,
            incarnation: 3,
            epoch: 4,
            bytes: 1 << 23,
            pieces: 8,
        };
        assert_eq!(Head::parse(&head.to_vec()), Some(head));
        let pairs = vec![(1, 2), (u32::MAX, 7)];
        assert_eq!(parse_epochs(&epochs(&pairs)), Some(pairs.clone()));
        for progress in [
            Progress::Begun,
            Progress::Unknown,
            Progress::Ended(Outcome::Done),
            Progress::Ended(Outcome::Mismatch),
        ] {
            let (number, id) = (1 << 40, [9; 16]);
            let bytes = write(number, &id, progress);
            let fact = Fact::Write {
                number,
                id,
                progress,
            };
            assert_eq!(parse_write(&bytes), Some(fact));
            assert_eq!(parse_write(&bytes[1..]), None);
        }
        assert_eq!(parse_holder(&[0; 16]), None);
        assert_eq!(parse_count(&[0; 15]), None);
        assert_eq!(Head::parse(&head.to_vec()[1..]), None);
        assert_eq!(parse_epochs(&epochs(&pairs)[1..]), None);
    }

    #[test]
    fn any_name_of_a_group_is_part_of_a_key_and_numbers_are_in_order() {
        for name in ["packets", "a/b", "ä", "/"] {
            let key = format!("/p/{}", window(name, 7));
            assert_eq!(
                group_of(key.as_bytes(), b"/p/windows/").as_deref(),
                Some(name)
            );
            let key = epochs_key(name);
            assert_eq!(group_of(key.as_bytes(), b"epochs/").as_deref(), Some(name));
        }
        assert_eq!(group_of(b"epochs/7", b"epochs/"), None);
        assert_eq!(group_of(b"epochs/zz", b"epochs/"), None);
        assert!(window("a", 9) < window("a", 10) && pieces("a", 99) < pieces("a", 100));
    }
}

//! Finds by trial of which kinds of frames a program's keys tell more than the hash of their flow.

use super::kind::Kind;
use super::samples::{Sample, not_ip, of_ip};
use crate::switch::workers::flow::ETHERTYPES_VLAN;
use stateplane_switch::Port;

/// Changes of a byte that are tried: of its lowest bit, and of all.
const MASKS: [u8; 2] = [0x01, 0xff];

/// Ethernet types of a program's own that are tried, at most.
const MOST_TYPES: usize = 8;

/// Lowest number that is a type, not a length.
const FIRST_TYPE: u16 = 0x600;

/// Kinds' properties that were found, by the number of the kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Frames of the kind have keys.
    pub(super) keyed: [bool; Kind::ALL.len()],
    /// Some frames of the kind have other keys than others.
    pub(super) varied: [bool; Kind::ALL.len()],
    /// Some frames of the kind have other keys than others with the same hash of the flow.
    pub(super) hidden: [bool; Kind::ALL.len()],
}

/// Tries frames of all kinds at each of `ports`; `key_of` tells their keys.
pub(super) fn probe(ports: &[Port], mut key_of: impl FnMut(Port, &[u8]) -> Option<u16>) -> Found {
    let mut found = Found::default();
    let mut samples = of_ip();
    samples.extend(own_types(ports, &mut key_of));
    for sample in &samples {
        for port in ports {
            found.try_sample(sample, |frame| key_of(*port, frame));
        }
    }
    found
}

/// Frames of types that are not IP and that have keys at the first port.
fn own_types(ports: &[Port], mut key_of: impl FnMut(Port, &[u8]) -> Option<u16>) -> Vec<Sample> {
    let Some(first) = ports.first() else {
        return Vec::new();
    };
    let mut sample = not_ip(FIRST_TYPE);
    let mut samples = Vec::new();
    for ethertype in FIRST_TYPE..=u16::MAX {
        sample.bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        let is_tag = ETHERTYPES_VLAN.contains(&ethertype);
        let is_own = !is_tag && Kind::of(&sample.bytes) == Kind::NotIp;
        if is_own && key_of(*first, &sample.bytes).is_some() {
            samples.push(sample.clone());
            if samples.len() == MOST_TYPES {
                break;
            }
        }
    }
    samples
}

impl Found {
    /// Changes one byte of `sample` after the other.
    fn try_sample(&mut self, sample: &Sample, mut key_of: impl FnMut(&[u8]) -> Option<u16>) {
        let kind = Kind::of(&sample.bytes);
        let at_kind = kind as usize;
        if self.hidden[at_kind] {
            return;
        }
        let Some(key) = key_of(&sample.bytes) else {
            return;
        };
        self.keyed[at_kind] = true;
        let mut differs = |at: usize| {
            MASKS.iter().any(|mask| {
                let changed = sample.changed(at, *mask);
                Kind::of(&changed) == kind && key_of(&changed).is_some_and(|other| other != key)
            })
        };
        self.hidden[at_kind] = sample.hidden.iter().copied().any(&mut differs);
        self.varied[at_kind] |= self.hidden[at_kind] || sample.hashed.iter().copied().any(differs);
    }
}

//! Two records of one mapping that names the remote endpoint too: what they say together of the
//! TCP connection (rule 28), and which connections have ended (rule 29).

use std::collections::{BTreeMap, BTreeSet};

use core::net::SocketAddrV4;

use stateplane_wire::replication::Key;

/// Bits of the last byte of a record's state, by which a program says what the record's own side of
/// a TCP connection has sent. A program that writes them keeps the same numbers
/// (`apps/nat/nat_connection.p4`).
pub(crate) mod sent {
    /// Anything at all; only the record of the outside says it.
    pub(crate) const ANY: u8 = 0x01;
    /// A segment with ACK.
    pub(crate) const ACK: u8 = 0x02;
    /// A FIN.
    pub(crate) const FIN: u8 = 0x04;
    /// A reset, and nothing since.
    pub(crate) const RESET: u8 = 0x08;
}

/// How far a TCP connection is (RFC 5382 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not open from both sides, or reset by the outside, perhaps by a forger.
    Transitory,
    /// Both sides have sent an ACK, and not both a FIN.
    Established,
    /// Both sides have sent a FIN, or the inside reset it, or the inside sent an ACK for which
    /// nothing from outside is known: no packet of it can be of use to both ends any more.
    Ended,
}

impl Standing {
    /// Standing by the last bytes of the states of the outbound and the inbound record.
    pub(crate) fn of(inside: u8, outside: u8) -> Standing {
        let both = |bit| inside & outside & bit != 0;
        let unanswered = inside & sent::ACK != 0 && outside & sent::ANY == 0;
        if inside & sent::RESET != 0 || both(sent::FIN) || unanswered {
            Standing::Ended
        } else if both(sent::ACK) && outside & sent::RESET == 0 {
            Standing::Established
        } else {
            Standing::Transitory
        }
    }
}

/// The connections of one shard that have ended, by remote endpoint, in the order in which this
/// replica learned it. There are no more than records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ended {
    by_remote: BTreeMap<SocketAddrV4, BTreeMap<u64, Key>>,
    numbers: BTreeMap<Key, u64>,
    last: u64,
}

impl Ended {
    /// Notes whether the connection of the outbound key `key` with `remote` has ended.
    pub(crate) fn note(&mut self, key: &Key, remote: SocketAddrV4, ended: bool) {
        if !ended {
            self.remove(key, remote);
        } else if !self.numbers.contains_key(key) {
            self.last += 1;
            self.numbers.insert(*key, self.last);
            let of_remote = self.by_remote.entry(remote).or_default();
            of_remote.insert(self.last, *key);
        }
    }

    fn remove(&mut self, key: &Key, remote: SocketAddrV4) {
        if let Some(number) = self.numbers.remove(key)
            && let Some(of_remote) = self.by_remote.get_mut(&remote)
        {
            of_remote.remove(&number);
            if of_remote.is_empty() {
                self.by_remote.remove(&remote);
            }
        }
    }

    /// The outbound keys of ended connections with `remote`, the first one first.
    pub(crate) fn of(&self, remote: &SocketAddrV4) -> impl Iterator<Item = &Key> {
        self.by_remote
            .get(remote)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// True if the connection of the outbound key `key` has ended.
    pub(crate) fn has(&self, key: &Key) -> bool {
        self.numbers.contains_key(key)
    }

    /// All outbound keys.
    pub(crate) fn keys(&self) -> BTreeSet<Key> {
        self.numbers.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_established_between_both_acks_and_both_fins() {
        use sent::{ACK, ANY, FIN};
        let open = ANY | ACK;
        for (inside, outside, standing) in [
            (0, 0, Standing::Transitory),
            (0, open, Standing::Transitory),
            // Both have begun (RFC 5382 REQ-2).
            (0, ANY, Standing::Transitory),
            (ACK, ANY, Standing::Transitory),
            (ACK, open, Standing::Established),
            (ACK | FIN, open, Standing::Established),
            (ACK, open | FIN, Standing::Established),
            (ACK | FIN, open | FIN, Standing::Ended),
        ] {
            assert_eq!(
                Standing::of(inside, outside),
                standing,
                "{inside} {outside}"
            );
        }
    }

    #[test]
    fn a_reset_ends_a_connection_only_from_inside() {
        use sent::{ACK, ANY, RESET};
        assert_eq!(Standing::of(ACK | RESET, ANY | ACK), Standing::Ended);
        assert_eq!(Standing::of(ACK, ANY | ACK | RESET), Standing::Transitory);
        assert_eq!(Standing::of(0, ANY | RESET), Standing::Transitory);
    }

    #[test]
    fn an_ack_without_a_connection_is_ended() {
        assert_eq!(Standing::of(sent::ACK, 0), Standing::Ended);
    }

    #[test]
    fn connections_that_ended_first_come_first() {
        let remote = |port| SocketAddrV4::new(core::net::Ipv4Addr::LOCALHOST, port);
        let key = |number| Key([number; 16]);
        let mut ended = Ended::default();
        for (number, port) in [(9, 1), (3, 1), (5, 2), (9, 1)] {
            ended.note(&key(number), remote(port), true);
        }
        let of = |ended: &Ended, port| ended.of(&remote(port)).copied().collect::<Vec<_>>();
        assert_eq!(of(&ended, 1), [key(9), key(3)]);
        assert_eq!(of(&ended, 2), [key(5)]);
        ended.note(&key(9), remote(1), false);
        ended.note(&key(8), remote(1), false);
        assert_eq!(of(&ended, 1), [key(3)]);
        ended.note(&key(9), remote(1), true);
        assert_eq!(of(&ended, 1), [key(3), key(9)]);
        ended.note(&key(5), remote(2), false);
        assert_eq!(ended.keys(), [key(3), key(9)].into());
        assert_eq!(ended.by_remote.len(), 1);
    }
}

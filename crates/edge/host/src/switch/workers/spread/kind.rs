//! Kinds of frames, by which it is decided whether they go to workers by key.

use super::super::flow::{
    ETHERTYPE_IPV4, ETHERTYPE_IPV6, IPV6_BYTES, WITH_PORTS, behind_tags, is_fragment, word,
};
use stateplane_wire::replication;
use std::ops::Range;

pub(super) const UDP: u8 = 17;
pub(super) const GRE: u8 = 47;
pub(super) const GTP_U_PORT: u16 = 2152;
pub(super) const VXLAN_PORT: u16 = 4789;
pub(super) const GENEVE_PORT: u16 = 6081;
const ETHERTYPE_PPPOE_SESSION: u16 = 0x8864;
const UDP_BYTES: usize = 8;
/// Both Ethernet addresses.
const MAC_BYTES: usize = 12;
/// Flags of GRE that announce a checksum, a key and a sequence number, of four bytes each (RFC 2890).
const GRE_FIELDS: [u8; 3] = [0x80, 0x20, 0x10];
const GRE_BYTES: usize = 4;

/// A kind of frames, as few bytes of the outer headers tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// TCP, UDP, DCCP, SCTP, unless it is of a kind below.
    Ported,
    GtpU,
    Vxlan,
    Geneve,
    /// From a server of the store to a switch, or back.
    Store,
    Gre,
    NotIp,
    /// Fragments, IP without ports, and all that is cut short.
    Other,
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub(super) const ALL: [Kind; 8] = [
        Kind::Ported,
        Kind::GtpU,
        Kind::Vxlan,
        Kind::Geneve,
        Kind::Store,
        Kind::Gre,
        Kind::NotIp,
        Kind::Other,
    ];

    /// The kind of a frame of any bytes.
    #[inline]
    pub(super) fn of(frame: &[u8]) -> Kind {
        let (ethertype, packet) = behind_tags(frame);
        match ethertype {
            Some(ETHERTYPE_IPV4) => ipv4(packet).unwrap_or(Kind::Other),
            Some(ETHERTYPE_IPV6) => ipv6(packet).unwrap_or(Kind::Other),
            // The kernel hashes the packet inside.
            Some(ETHERTYPE_PPPOE_SESSION) | None => Kind::Other,
            Some(_) => Kind::NotIp,
        }
    }

    /// True if frames with one flow's hash commonly carry the state of many: those of a tunnel's two
    /// ends, of a server of the store, of one Ethernet type. The flows of TCP and UDP themselves are
    /// many, so that each worker has some.
    pub(super) fn bundles_flows(self) -> bool {
        !matches!(self, Kind::Ported | Kind::Other)
    }

    /// A bit of the kind's own.
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Ranges of a frame of the kind, which [bundles flows](Self::bundles_flows), that no hash of the
    /// flow covers: neither [`flow_hash`](super::flow_hash), nor the kernel's, which looks at no
    /// Ethernet address, and into GRE but not at its key.
    pub(super) fn hidden(self, frame: &[u8]) -> [Range<usize>; 2] {
        let end = frame.len();
        let (ethertype, packet) = behind_tags(frame);
        let begin = end - packet.len();
        let segment = begin
            + match ethertype {
                Some(ETHERTYPE_IPV6) => IPV6_BYTES,
                _ => packet
                    .first()
                    .map_or(0, |first| usize::from(first & 0xf) * 4),
            };
        let behind = |bytes: usize| (segment + bytes).min(end);
        match self {
            Kind::GtpU | Kind::Vxlan | Kind::Geneve | Kind::Store => [behind(UDP_BYTES)..end, 0..0],
            Kind::Gre => {
                let flags = frame.get(segment).copied().unwrap_or(0);
                let fields = GRE_FIELDS.iter().filter(|flag| flags & **flag != 0);
                let fields = 4 * fields.count();
                [behind(GRE_BYTES)..behind(GRE_BYTES + fields), 0..0]
            }
            Kind::NotIp => [0..MAC_BYTES.min(end), begin..end],
            Kind::Ported | Kind::Other => [0..0, 0..0],
        }
    }

    /// Name, for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Ported => "TCP, UDP, DCCP, SCTP",
            Kind::GtpU => "GTP-U",
            Kind::Vxlan => "VXLAN",
            Kind::Geneve => "Geneve",
            Kind::Store => "messages of the store",
            Kind::Gre => "GRE",
            Kind::NotIp => "not IP",
            Kind::Other => "other IP",
        }
    }
}

fn ipv4(packet: &[u8]) -> Option<Kind> {
    if is_fragment(packet)? {
        return Some(Kind::Other);
    }
    let header = usize::from(packet.first()? & 0xf) * 4;
    Some(transport(*packet.get(9)?, packet.get(header..)?))
}

fn ipv6(packet: &[u8]) -> Option<Kind> {
    Some(transport(*packet.get(6)?, packet.get(IPV6_BYTES..)?))
}

fn transport(protocol: u8, segment: &[u8]) -> Kind {
    match protocol {
        GRE => Kind::Gre,
        UDP => match (word(segment, 0), word(segment, 2)) {
            (Some(replication::PORT), Some(replication::PORT)) => Kind::Store,
            (_, Some(GTP_U_PORT)) => Kind::GtpU,
            (_, Some(VXLAN_PORT)) => Kind::Vxlan,
            (_, Some(GENEVE_PORT)) => Kind::Geneve,
            _ => Kind::Ported,
        },
        _ if WITH_PORTS.contains(&protocol) => Kind::Ported,
        _ => Kind::Other,
    }
}

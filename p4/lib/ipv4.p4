// The checksum of an IPv4 header without options (RFC 791 3.1).

#ifndef STATEPLANE_IPV4_P4
#define STATEPLANE_IPV4_P4

#include "headers.p4"

// The fields that the checksum covers: all but itself.
#define IPV4_SUMMED(ipv4) \
    ipv4.version, \
    ipv4.ihl, \
    ipv4.diffserv, \
    ipv4.total_length, \
    ipv4.identification, \
    ipv4.flags, \
    ipv4.fragment_offset, \
    ipv4.ttl, \
    ipv4.protocol, \
    ipv4.source, \
    ipv4.destination

// A header that was damaged on the way must not leave with a right checksum
// (RFC 1812 5.2.2): programs look at `checksum_error` and drop it.
control Ipv4VerifyChecksum(inout ipv4_t ipv4) {
    apply {
        verify_checksum(
            ipv4.isValid() && ipv4.ihl == 5,
            { IPV4_SUMMED(ipv4) },
            ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

control Ipv4ComputeChecksum(inout ipv4_t ipv4) {
    apply {
        update_checksum(
            ipv4.isValid() && ipv4.ihl == 5,
            { IPV4_SUMMED(ipv4) },
            ipv4.checksum,
            HashAlgorithm.csum16
        );
    }
}

#endif

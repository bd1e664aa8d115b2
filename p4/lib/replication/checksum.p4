// Checksums of messages, and of the IPv4 header in front of them.

#ifndef STATEPLANE_REPLICATION_CHECKSUM_P4
#define STATEPLANE_REPLICATION_CHECKSUM_P4

#include "ipv4.p4"
#include "replication_message.p4"
#include "replication_rules.p4"

// Fields of a message that its checksum covers, but for the state: all fields except itself.
#define MESSAGE_SUMMED(message) \
    message.version, \
    message.type, \
    message.code, \
    message.flags, \
    message.chain_epoch, \
    message.shard, \
    message.switch_id, \
    message.incarnation, \
    message.claim, \
    message.request, \
    message.send_time, \
    message.ingress_port, \
    message.key, \
    message.lease_epoch, \
    message.sequence, \
    message.age, \
    message.attempt, \
    message.state_length

// A message that was damaged on the way is not believed: `checksum_error` tells. The packet
// on board has checksums of its own.
control ReplicationVerifyChecksum(inout replication_headers_t hdr) {
    apply {
        verify_checksum(
            hdr.ipv4.isValid(),
            { IPV4_SUMMED(hdr.ipv4) },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid() && !hdr.state.isValid() && RULE_MESSAGE_CHECKSUM,
            { MESSAGE_SUMMED(hdr.message) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid() && hdr.state.isValid() && RULE_MESSAGE_CHECKSUM,
            { MESSAGE_SUMMED(hdr.message), hdr.state.value },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

control ReplicationComputeChecksum(inout replication_headers_t hdr) {
    apply {
        update_checksum(
            hdr.ipv4.isValid(),
            { IPV4_SUMMED(hdr.ipv4) },
            hdr.ipv4.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            hdr.message.isValid() && !hdr.state.isValid(),
            { MESSAGE_SUMMED(hdr.message) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            hdr.message.isValid() && hdr.state.isValid(),
            { MESSAGE_SUMMED(hdr.message), hdr.state.value },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

#endif

// Checksums of messages, and of the IPv4 header in front of them.

#ifndef STATEPLANE_COORDINATION_CHECKSUM_P4
#define STATEPLANE_COORDINATION_CHECKSUM_P4

#include "coordination_message.p4"
#include "ipv4.p4"
#include "metadata.p4"
#include "rules.p4"

// Fields of a message that its checksum covers, but for the value: all fields except itself. The value's
// bytes behind SHORT_VALUE have a checksum of their own, which is one of these fields.
#define MESSAGE_SUMMED(message) \
    message.version, \
    message.type, \
    message.operation, \
    message.outcome, \
    message.flags, \
    message.hops, \
    message.redirects, \
    message.kind, \
    message.group, \
    message.generation, \
    message.epoch, \
    message.value_length, \
    message.chain_1, \
    message.chain_2, \
    message.chain_3, \
    message.chain_4, \
    message.client_address, \
    message.client_port, \
    message.lane, \
    message.lane_incarnation, \
    message.slot, \
    message.request, \
    message.number, \
    message.newest, \
    message.record, \
    message.key, \
    message.condition, \
    message.operand_length, \
    message.guard_condition, \
    message.padding, \
    message.operand, \
    message.guard_key, \
    message.guard_number, \
    message.token, \
    message.session, \
    message.handle, \
    message.send_time, \
    message.rest_checksum

#define CHUNKS_SUMMED_1(value) value[0].bytes
#define CHUNKS_SUMMED_2(value) CHUNKS_SUMMED_1(value), value[1].bytes
#define CHUNKS_SUMMED_3(value) CHUNKS_SUMMED_2(value), value[2].bytes
#define CHUNKS_SUMMED_4(value) CHUNKS_SUMMED_3(value), value[3].bytes
#define CHUNKS_SUMMED_5(value) CHUNKS_SUMMED_4(value), value[4].bytes
#define CHUNKS_SUMMED_6(value) CHUNKS_SUMMED_5(value), value[5].bytes
#define CHUNKS_SUMMED_7(value) CHUNKS_SUMMED_6(value), value[6].bytes
#define CHUNKS_SUMMED_8(value) CHUNKS_SUMMED_7(value), value[7].bytes

// A message that was damaged on the way is not believed: `checksum_error` tells.
control CoordinationVerifyChecksum(inout coordination_headers_t hdr) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
        verify_checksum(
            hdr.message.isValid() && RULE_MESSAGE_CHECKSUM && !hdr.value[0].isValid(),
            { MESSAGE_SUMMED(hdr.message) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[0].isValid()
                && !hdr.value[1].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_1(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[1].isValid()
                && !hdr.value[2].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_2(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[2].isValid()
                && !hdr.value[3].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_3(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[3].isValid()
                && !hdr.value[4].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_4(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[4].isValid()
                && !hdr.value[5].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_5(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[5].isValid()
                && !hdr.value[6].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_6(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid()
                && RULE_MESSAGE_CHECKSUM
                && hdr.value[6].isValid()
                && !hdr.value[7].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_7(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        verify_checksum(
            hdr.message.isValid() && RULE_MESSAGE_CHECKSUM && hdr.value[7].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_8(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

// Only messages that this switch made or changed get a new checksum.
control CoordinationComputeChecksum(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta
) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
        update_checksum(
            meta.sends && !hdr.value[0].isValid(),
            { MESSAGE_SUMMED(hdr.message) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[0].isValid() && !hdr.value[1].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_1(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[1].isValid() && !hdr.value[2].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_2(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[2].isValid() && !hdr.value[3].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_3(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[3].isValid() && !hdr.value[4].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_4(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[4].isValid() && !hdr.value[5].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_5(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[5].isValid() && !hdr.value[6].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_6(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[6].isValid() && !hdr.value[7].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_7(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
        update_checksum(
            meta.sends && hdr.value[7].isValid(),
            { MESSAGE_SUMMED(hdr.message), CHUNKS_SUMMED_8(hdr.value) },
            hdr.message.checksum,
            HashAlgorithm.csum16
        );
    }
}

#endif

// The switch around a replicated program: in parser, checksums, egress and deparser the blocks
// of replication.p4, each with the program's own behind it, and `main`. A program includes it
// last. It has
//
//   struct headers_t     with `replication_headers_t replication` and its own headers
//   struct metadata_t    with `replication_metadata_t flow`, and what it needs besides
//
// and says which blocks are its own:
//
//   PROGRAM_PARSER             parser(packet_in, inout headers_t), of packets that are the
//                              program's, as they arrive or come back from the store
//   PROGRAM_VERIFY_CHECKSUM    control(inout headers_t)
//   PROGRAM_INGRESS            ingress as v1model has it, around what it does with a packet
//                              ReplicationIngressBefore and ReplicationIngressAfter
//   PROGRAM_EGRESS             egress as v1model has it; may be left out
//   PROGRAM_COMPUTE_CHECKSUM   control(inout headers_t)
//   PROGRAM_DEPARSER           control(packet_out, in headers_t)

#ifndef STATEPLANE_REPLICATED_SWITCH_P4
#define STATEPLANE_REPLICATED_SWITCH_P4

#include "replication.p4"

#ifndef PROGRAM_PARSER
#error "define PROGRAM_PARSER, the name of the program's parser, before you include replicated_switch.p4"
#endif
#ifndef PROGRAM_VERIFY_CHECKSUM
#error "define PROGRAM_VERIFY_CHECKSUM, the name of the control that verifies the program's checksums, before you include replicated_switch.p4"
#endif
#ifndef PROGRAM_INGRESS
#error "define PROGRAM_INGRESS, the name of the program's ingress, before you include replicated_switch.p4"
#endif
#ifndef PROGRAM_COMPUTE_CHECKSUM
#error "define PROGRAM_COMPUTE_CHECKSUM, the name of the control that computes the program's checksums, before you include replicated_switch.p4"
#endif
#ifndef PROGRAM_DEPARSER
#error "define PROGRAM_DEPARSER, the name of the program's deparser, before you include replicated_switch.p4"
#endif

parser ReplicatedParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationParser() replication;
    PROGRAM_PARSER() program;

    state start {
        replication.apply(packet, hdr.replication, meta.flow, standard_metadata);
        transition select(meta.flow.parse_program) {
            true: own_headers;
            default: accept;
        }
    }

    state own_headers {
        program.apply(packet, hdr);
        transition accept;
    }
}

control ReplicatedVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationVerifyChecksum() replication;
    PROGRAM_VERIFY_CHECKSUM() program;

    apply {
        replication.apply(hdr.replication);
        program.apply(hdr);
    }
}

control ReplicatedEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationEgress() replication;
#ifdef PROGRAM_EGRESS
    PROGRAM_EGRESS() program;
#endif

    apply {
        replication.apply(hdr.replication, meta.flow, standard_metadata);
#ifdef PROGRAM_EGRESS
        program.apply(hdr, meta, standard_metadata);
#endif
    }
}

control ReplicatedComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    ReplicationComputeChecksum() replication;
    PROGRAM_COMPUTE_CHECKSUM() program;

    apply {
        replication.apply(hdr.replication);
        program.apply(hdr);
    }
}

control ReplicatedDeparser(packet_out packet, in headers_t hdr) {
    ReplicationDeparser() replication;
    PROGRAM_DEPARSER() program;

    apply {
        replication.apply(packet, hdr.replication);
        program.apply(packet, hdr);
    }
}

V1Switch(
    ReplicatedParser(),
    ReplicatedVerifyChecksum(),
    PROGRAM_INGRESS(),
    ReplicatedEgress(),
    ReplicatedComputeChecksum(),
    ReplicatedDeparser()
) main;

#endif

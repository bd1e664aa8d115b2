// The blocks of blocks.p4, and a parser of packets that begin with the one header hdr.h.

#include "blocks.p4"

parser OneHeader(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

// Blocks that a program of one behaviour has no use for. It declares headers_t and metadata_t,
// and then includes this.

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

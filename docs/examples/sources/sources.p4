// Numbers the packets of each source: a frame of type 0x88b5 names its source and carries its
// number away, from port 0 to port 1.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header numbered_t {
    bit<32> source;
    bit<32> number;
}

struct headers_t {
    ethernet_t ethernet;
    numbered_t numbered;
}

struct metadata_t {
    bit<32> index;
}

@replicated(key = { hdr.numbered.source }, when = hdr.numbered.isValid(), class = 200)
register<bit<32>>(65536) packets_of;

parser SourcesParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b5: numbered;
            default: accept;
        }
    }

    state numbered {
        packet.extract(hdr.numbered);
        transition accept;
    }
}

control SourcesIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    apply {
        if (hdr.numbered.isValid()) {
            hash(meta.index, HashAlgorithm.crc16, 32w0, { hdr.numbered.source }, 32w65536);
            packets_of.read(hdr.numbered.number, meta.index);
            hdr.numbered.number = hdr.numbered.number + 1;
            packets_of.write(meta.index, hdr.numbered.number);
            standard.egress_spec = 1;
        } else {
            mark_to_drop(standard);
        }
    }
}

control SourcesEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) { apply { } }
control SourcesChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

control SourcesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.numbered);
    }
}

V1Switch(
    SourcesParser(),
    SourcesChecksum(),
    SourcesIngress(),
    SourcesEgress(),
    SourcesChecksum(),
    SourcesDeparser()
) main;

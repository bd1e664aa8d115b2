// The same NAT without replication: mappings live in this switch's registers alone
// and die with it. Each switch owns a part of the public ports; a packet for a
// port of another switch is handed to that switch.

#include <core.p4>
#include <v1model.p4>

#include "flow_hash.p4"
#include "router.p4"
#include "nat_packet.p4"

#define MAPPING_BUCKETS 16384
#define MAPPING_WAYS 4
#define MAPPING_SLOTS (MAPPING_BUCKETS * MAPPING_WAYS)
// One for each port of each of the two protocols.
#define PUBLIC_ENDPOINTS 196608

struct metadata_t {
    endpoint_t endpoint;
}

// Finds the mapping of a packet, or makes one on the way out.
control LocalMappings(in bit<128> mapping, out bool found, out endpoint_t endpoint) {
    register<bit<128>>(MAPPING_SLOTS) outbound_key;
    register<bit<16>>(MAPPING_SLOTS) outbound_port;
    // Inside address and port by protocol and public port; 0 is free.
    register<bit<48>>(PUBLIC_ENDPOINTS) inbound_endpoint;
    register<bit<16>>(1) next_port;
    counter(1, CounterType.packets) exhausted;

    FlowHash() flow_hash;
    FirstBucket() bucket;
    bit<64> mixed;
    bit<32> public_address = 0;
    bit<16> first_port = 0;
    bit<16> last_port = 0;
    bit<32> slot;
    bit<32> free_slot;
    bool has_free;
    bit<32> way;
    bit<128> stored;
    bit<48> inside;
    bit<16> port;

    action own_ports(bit<32> address, bit<16> first, bit<16> last) {
        public_address = address;
        first_port = first;
        last_port = last;
    }

    table port_range {
        actions = { own_ports; }
        default_action = own_ports(0, 0, 0);
    }

    action look_at(in bit<32> index) {
        outbound_key.read(stored, index);
    }

    // TCP first, then UDP and the identifiers of ICMP.
    action inbound_index(in bit<16> of_port) {
        way = (bit<32>)of_port;
        if (mapping[119:112] == IP_PROTOCOL_UDP) {
            way = way + 65536;
        } else if (mapping[119:112] == IP_PROTOCOL_ICMP) {
            way = way + 131072;
        }
    }

    apply {
        found = false;
        endpoint.address = 0;
        endpoint.port = 0;
        port_range.apply();
        if (mapping[127:120] == CLASS_NAT_INBOUND) {
            inbound_index(mapping[79:64]);
            inbound_endpoint.read(inside, way);
            endpoint.address = inside[47:16];
            endpoint.port = inside[15:0];
            found = inside != 0;
        } else {
            endpoint.address = public_address;
            flow_hash.apply(mapping, mixed);
            bucket.apply(mixed, MAPPING_BUCKETS, slot);
            slot = slot * MAPPING_WAYS;
            free_slot = 0;
            has_free = false;
            look_at(slot);
            if (stored != mapping) {
                if (stored == 0) {
                    free_slot = slot;
                    has_free = true;
                }
                slot = slot + 1;
                look_at(slot);
            }
            if (stored != mapping) {
                if (stored == 0 && !has_free) {
                    free_slot = slot;
                    has_free = true;
                }
                slot = slot + 1;
                look_at(slot);
            }
            if (stored != mapping) {
                if (stored == 0 && !has_free) {
                    free_slot = slot;
                    has_free = true;
                }
                slot = slot + 1;
                look_at(slot);
            }
            if (stored == mapping) {
                outbound_port.read(endpoint.port, slot);
                found = true;
            } else {
                if (stored == 0 && !has_free) {
                    free_slot = slot;
                    has_free = true;
                }
                // The next port of the range; one still in use is not taken again.
                next_port.read(port, 0);
                if (port < first_port || port > last_port) {
                    port = first_port;
                }
                next_port.write(0, port + 1);
                inbound_index(port);
                inbound_endpoint.read(inside, way);
                if (has_free && inside == 0 && port != 0) {
                    outbound_key.write(free_slot, mapping);
                    outbound_port.write(free_slot, port);
                    inbound_endpoint.write(way, mapping[111:64]);
                    endpoint.port = port;
                    found = true;
                } else {
                    exhausted.count(0);
                }
            }
        }
    }
}

parser TopParser(
    packet_in packet,
    out nat_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatParser() program;

    state start {
        program.apply(packet, hdr);
        transition accept;
    }
}

control TopVerifyChecksum(inout nat_headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

control NatIngress(
    inout nat_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    NatClassify() classify;
    LocalMappings() mappings;
    NatTranslate() translate;
    Router() router;
    bool known;
    bool hairpin;
    bool found = false;
    bool relayed = false;
    bit<128> mapping;
    bit<16> public_port;

    // The port belongs to another switch.
    action relay(bit<9> port, bit<48> mac, bit<48> source_mac) {
        relayed = true;
        standard_metadata.egress_spec = port;
        hdr.ethernet.destination = mac;
        hdr.ethernet.source = source_mac;
    }

    action own() {
        relayed = false;
    }

    // Which switch owns which half of the ports.
    table port_owners {
        key = { public_port[15:15]: exact @name("upper_half"); }
        actions = { relay; own; }
        default_action = own();
        size = 2;
    }

    apply {
        classify.apply(
            hdr,
            standard_metadata,
            true,
            false,
            false,
            hairpin,
            known,
            mapping,
            public_port
        );
        if (known && mapping[127:120] == CLASS_NAT_INBOUND) {
            port_owners.apply();
        }
        if (!relayed) {
            if (known) {
                mappings.apply(mapping, found, meta.endpoint);
            }
            if (found) {
                translate.apply(hdr, mapping[127:120], meta.endpoint);
                router.apply(hdr.ethernet, hdr.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control NoEgress(
    inout nat_headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control TopComputeChecksum(inout nat_headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() ipv4;

    apply {
        ipv4.apply(hdr.ipv4);
    }
}

V1Switch(
    TopParser(),
    TopVerifyChecksum(),
    NatIngress(),
    NoEgress(),
    TopComputeChecksum(),
    NatDeparser()
) main;

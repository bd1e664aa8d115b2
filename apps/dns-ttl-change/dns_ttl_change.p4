// Changes of the time to live of a domain's records (ApproSync Table II, TC; after Chimera's and
// SNAP's examples): names that are moved all the time, as those of fast-flux networks.

#include <core.p4>
#include <v1model.p4>

// Buckets of names are 2 to this, at most 24.
#ifndef TTL_CHANGE_BITS
#define TTL_CHANGE_BITS 16
#endif

#include "dns_switch.p4"

const bit<32> BUCKETS = 32w1 << TTL_CHANGE_BITS;

// Of the name and type that came first to the bucket 48 bits of a hash, and how often the TTL
// changed. A bucket that is 0 is free.
@synced(kind = "opaque")
register<bit<64>>(BUCKETS) changes;
// The last TTL, in s.
@synced(kind = "gauge")
register<bit<32>>(BUCKETS) ttls;

control CompareTtl(in bit<64> name, in bit<16> record_type, in bit<32> ttl) {
    // Names that are new, TTLs like the last one, TTLs that changed, and names without room.
    counter(4, CounterType.packets) ttl_events;
    bit<48> tag;
    bit<64> held;
    bit<32> last;
    bit<32> bucket;
    bit<64> value;

    apply {
        bucket = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH(0, name[63:32], name[31:0], (bit<32>)record_type, 32w0),
            TTL_CHANGE_BITS
        );
        value = SKETCH_HASH(1, name[63:32], name[31:0], (bit<32>)record_type, 32w0);
        tag = value[63:16] | 1;
        changes.read(held, bucket);
        if (held == 0) {
            changes.write(bucket, tag ++ 16w0);
            ttls.write(bucket, ttl);
            ttl_events.count(0);
        } else if (held[63:16] == tag) {
            ttls.read(last, bucket);
            if (last == ttl) {
                ttl_events.count(1);
            } else {
                changes.write(bucket, tag ++ (held[15:0] |+| 1));
                ttls.write(bucket, ttl);
                ttl_events.count(2);
            }
        } else {
            ttl_events.count(3);
        }
    }
}

control DnsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    DnsResponse() response;
    CompareTtl() compare;
    Router() router;
    // Responses with a record of the name that was asked for, without one, and unknown ones.
    counter(3, CounterType.packets) dns_events;
    bool is_response;
    bool is_known;

    apply {
        if (hdr.own.ipv4.isValid()
            && hdr.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            response.apply(hdr.own, hdr.dns, meta.dns, standard_metadata, is_response, is_known);
            if (is_known) {
                // All records of a name and type have one TTL (RFC 2181 5.2).
                if (hdr.dns.records[0].isValid()
                    && hdr.dns.records[0].name == DNS_NAME_OF_QUESTION) {
                    dns_events.count(0);
                    compare.apply(
                        meta.dns.name_hash,
                        hdr.dns.question.record_type,
                        hdr.dns.records[0].ttl
                    );
                } else {
                    dns_events.count(1);
                }
            } else if (is_response) {
                dns_events.count(2);
            }
            router.apply(hdr.own.ethernet, hdr.own.ipv4, standard_metadata);
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(
    DnsSwitchParser(),
    DnsVerifyChecksum(),
    DnsIngress(),
    DnsEgress(),
    DnsComputeChecksum(),
    DnsSwitchDeparser()
) main;

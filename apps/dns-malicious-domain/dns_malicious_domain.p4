// Detection of malicious domains (ApproSync Table II, MD; after the examples of SNAP): names that
// have many addresses, and addresses that have many names.

#include <core.p4>
#include <v1model.p4>

// Buckets of names, and of addresses, are 2 to this, at most 24.
#ifndef MALICIOUS_DOMAIN_BITS
#define MALICIOUS_DOMAIN_BITS 16
#endif
// Words of the filter of pairs, of 64 bits each, are 2 to this, at most 24.
#ifndef MALICIOUS_DOMAIN_FILTER_BITS
#define MALICIOUS_DOMAIN_FILTER_BITS 14
#endif

#include "dns_switch.p4"

const bit<32> BUCKETS = 32w1 << MALICIOUS_DOMAIN_BITS;
const bit<32> FILTER_WORDS = 32w1 << MALICIOUS_DOMAIN_FILTER_BITS;

// Bloom filter of pairs of name and address: three bits of one word each.
@synced(kind = "opaque")
register<bit<64>>(FILTER_WORDS) pairs;
// Of the name that came first to the bucket 40 bits of its hash, and its number of addresses.
@synced(kind = "opaque")
register<bit<64>>(BUCKETS) domains;
// Of the address that came first to the bucket itself, and its number of names.
@synced(kind = "opaque")
register<bit<64>>(BUCKETS) addresses;

// True of a pair that the filter has not seen; it has seen it then.
control SeePair(in bit<64> name, in bit<32> address, out bool is_new) {
    bit<64> value;
    bit<64> seen;
    bit<64> bits;
    bit<32> word;

    apply {
        value = SKETCH_HASH(0, name[63:32], name[31:0], address, 32w0);
        word = (bit<32>)SKETCH_UPPER(value, MALICIOUS_DOMAIN_FILTER_BITS);
        value = SKETCH_HASH(1, name[63:32], name[31:0], address, 32w0);
        bits = (64w1 << (bit<8>)value[63:58]) | (64w1 << (bit<8>)value[57:52])
            | (64w1 << (bit<8>)value[51:46]);
        pairs.read(seen, word);
        is_new = (seen & bits) != bits;
        if (is_new) {
            pairs.write(word, seen | bits);
        }
    }
}

// Counts a new pair of name and address for both.
control CountPair(in bit<64> name, in bit<32> address) {
    SeePair() pair;
    // Pairs that were new, that the filter had seen, and that found the bucket of their name, or of
    // their address, taken.
    counter(4, CounterType.packets) pair_events;
    bool is_new;
    bit<64> held;
    bit<32> bucket;

    apply {
        pair.apply(name, address, is_new);
        if (is_new) {
            pair_events.count(0);
            bucket = (bit<32>)SKETCH_UPPER(
                SKETCH_HASH_OF_PAIR(2, name[63:32], name[31:0]),
                MALICIOUS_DOMAIN_BITS
            );
            domains.read(held, bucket);
            if (held[23:0] == 0 || held[63:24] == name[39:0]) {
                domains.write(bucket, name[39:0] ++ (held[23:0] |+| 1));
            } else {
                pair_events.count(2);
            }
            bucket = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(3, address), MALICIOUS_DOMAIN_BITS);
            addresses.read(held, bucket);
            if (held[31:0] == 0 || held[63:32] == address) {
                addresses.write(bucket, address ++ (held[31:0] |+| 1));
            } else {
                pair_events.count(3);
            }
        } else {
            pair_events.count(1);
        }
    }
}

control DnsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    DnsResponse() response;
    CountPair() first;
    CountPair() second;
    CountPair() third;
    CountPair() fourth;
    Router() router;
    // Responses that are known, that are unknown, and that have records which were left out.
    counter(3, CounterType.packets) dns_events;
    bool is_response;
    bool is_known;

    apply {
        if (hdr.own.ipv4.isValid()
            && hdr.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            response.apply(hdr.own, hdr.dns, meta.dns, standard_metadata, is_response, is_known);
            if (is_known) {
                dns_events.count(0);
                if (!meta.dns.all) {
                    dns_events.count(2);
                }
                if (meta.dns.addresses > 0) {
                    first.apply(meta.dns.name_hash, meta.dns.address0);
                }
                if (meta.dns.addresses > 1) {
                    second.apply(meta.dns.name_hash, meta.dns.address1);
                }
                if (meta.dns.addresses > 2) {
                    third.apply(meta.dns.name_hash, meta.dns.address2);
                }
                if (meta.dns.addresses > 3) {
                    fourth.apply(meta.dns.name_hash, meta.dns.address3);
                }
            } else if (is_response) {
                dns_events.count(1);
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

// Mitigation of DNS amplification (ApproSync Table II, AM; after the example of SNAP): a response
// passes if the switch has seen a query like it, not long ago. Others are dropped, and counted for
// the address that they were to reach.

#include <core.p4>
#include <v1model.p4>

#include "dns_switch.p4"

// Places of queries, and of addresses, are 2 to this, at most 24.
#ifndef DNS_AMPLIFICATION_BITS
#define DNS_AMPLIFICATION_BITS 16
#endif

const bit<32> PLACES = 32w1 << DNS_AMPLIFICATION_BITS;

// When the last query of this place was seen, in µs of the switch's clock; 0: never.
@synced(kind = "counter")
register<bit<48>>(PLACES) queries;
// Responses without a query, by the low bits of the address that they were to reach.
@synced(kind = "counter")
register<bit<32>>(PLACES) dropped;

// The place of a query, and of its response: client, server, the client's port and the id.
control QueryPlace(
    in bit<32> client,
    in bit<32> server,
    in bit<16> port,
    in bit<16> id,
    out bit<32> place
) {
    apply {
        place = (bit<32>)SKETCH_UPPER(
            SKETCH_HASH(0, client, server, port ++ id, 32w0),
            DNS_AMPLIFICATION_BITS
        );
    }
}

control DnsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    QueryPlace() of_query;
    QueryPlace() of_response;
    Router() router;
    // Queries, responses with one, and responses without one.
    counter(3, CounterType.packets) dns_events;
    bool drops = false;
    bool is_query;
    bit<48> longest = 5000000;
    bit<48> time;
    bit<32> place;
    bit<32> count;

    // Time that a query waits for its responses, in µs.
    action wait(bit<48> microseconds) {
        longest = microseconds;
    }

    table patience {
        actions = { wait; }
        default_action = wait(5000000);
    }

    action drop_response() {
        place = hdr.own.ipv4.destination & (PLACES - 1);
        dropped.read(count, place);
        dropped.write(place, count |+| 1);
        dns_events.count(2);
        drops = true;
    }

    apply {
        if (hdr.own.ipv4.isValid()
            && hdr.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            if (hdr.own.udp.isValid()) {
                // Servers ask each other from their own port, too.
                is_query = hdr.own.udp.destination_port == DNS_PORT
                    && hdr.dns.message.isValid()
                    && hdr.dns.message.response == 0;
                if (is_query) {
                    of_query.apply(
                        hdr.own.ipv4.source,
                        hdr.own.ipv4.destination,
                        hdr.own.udp.source_port,
                        hdr.dns.message.id,
                        place
                    );
                    // An empty place is 0.
                    queries.write(place, standard_metadata.ingress_global_timestamp | 1);
                    dns_events.count(0);
                } else if (hdr.own.udp.source_port == DNS_PORT) {
                    patience.apply();
                    of_response.apply(
                        hdr.own.ipv4.destination,
                        hdr.own.ipv4.source,
                        hdr.own.udp.destination_port,
                        hdr.dns.message.isValid() ? hdr.dns.message.id : 16w0,
                        place
                    );
                    queries.read(time, place);
                    if (hdr.dns.message.isValid()
                        && time != 0
                        && (standard_metadata.ingress_global_timestamp | 1) - time <= longest) {
                        dns_events.count(1);
                    } else {
                        drop_response();
                    }
                }
            }
            if (drops) {
                mark_to_drop(standard_metadata);
            } else {
                router.apply(hdr.own.ethernet, hdr.own.ipv4, standard_metadata);
            }
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

// Detection of DNS tunnels (ApproSync Table II, TD; after Chimera's and SNAP's examples): a client
// that asks for addresses and speaks to none of them uses DNS for something else. Past a threshold
// it is blocked.

#include <core.p4>
#include <v1model.p4>

// Places of addresses, and of clients, are 2 to this, at most 24.
#ifndef DNS_TUNNEL_BITS
#define DNS_TUNNEL_BITS 16
#endif
// Tunnels have long names.
#ifndef DNS_NAME_BYTES
#define DNS_NAME_BYTES 255
#endif

#include "dns_switch.p4"

const bit<32> PLACES = 32w1 << DNS_TUNNEL_BITS;

// A client and an address that it was told and did not use yet; 0: none.
@synced(kind = "opaque")
register<bit<64>>(PLACES) orphans;
// The client that came first to the place (32 bits), 1 if it is blocked (16), and its responses
// that are unused (16).
@synced(kind = "opaque")
register<bit<64>>(PLACES) clients;

// Keeps an address that a client was told. `stored` gets true if it was not kept already.
control KeepAddress(in bit<32> client, in bit<32> address, inout bool stored, inout bool full) {
    bit<64> held;
    bit<32> place;

    apply {
        place = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_PAIR(0, client, address), DNS_TUNNEL_BITS);
        orphans.read(held, place);
        if (held == 0) {
            orphans.write(place, client ++ address);
            stored = true;
        } else if (held != client ++ address) {
            full = true;
        }
    }
}

control DnsIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    DnsResponse() response;
    KeepAddress() first;
    KeepAddress() second;
    KeepAddress() third;
    KeepAddress() fourth;
    Router() router;
    // Responses that are counted as unused, uses of addresses, responses that are unknown or have
    // records which were left out, addresses and clients without room, packets of blocked clients.
    counter(5, CounterType.packets) tunnel_events;
    bool is_response;
    bool is_known;
    bool stored = false;
    bool full = false;
    bool drops = false;
    bool is_unusable = false;
    bit<16> limit = 100;
    bit<32> client;
    bit<32> place;
    bit<64> held;
    bit<64> orphan;
    bit<64> pair;
    bit<32> orphan_place;
    bit<16> unused;

    // Records of no use but as data.
    action unusable() {
        is_unusable = true;
    }

    // Types of questions whose responses have nothing that a client could use and yet show.
    table unusable_types {
        key = { hdr.dns.question.record_type: exact @name("type"); }
        actions = { unusable; NoAction; }
        default_action = NoAction();
        size = 256;
    }

    // A client with more unused responses than this is blocked.
    action block_above(bit<16> most) {
        limit = most;
    }

    table suspicion {
        actions = { block_above; }
        default_action = block_above(100);
    }

    apply {
        if (hdr.own.ipv4.isValid()
            && hdr.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            response.apply(hdr.own, hdr.dns, meta.dns, standard_metadata, is_response, is_known);
            suspicion.apply();
            client = is_response ? hdr.own.ipv4.destination : hdr.own.ipv4.source;
            place = (bit<32>)SKETCH_UPPER(SKETCH_HASH_OF_WORD(1, client), DNS_TUNNEL_BITS);
            clients.read(held, place);
            if (held[63:32] == client && held[31:16] != 0) {
                drops = true;
                tunnel_events.count(4);
            } else if (is_known) {
                if (hdr.dns.message.answers != 0) {
                    unusable_types.apply();
                }
                if (is_unusable) {
                    stored = true;
                } else if (meta.dns.all) {
                    if (meta.dns.addresses > 0) {
                        first.apply(client, meta.dns.address0, stored, full);
                    }
                    if (meta.dns.addresses > 1) {
                        second.apply(client, meta.dns.address1, stored, full);
                    }
                    if (meta.dns.addresses > 2) {
                        third.apply(client, meta.dns.address2, stored, full);
                    }
                    if (meta.dns.addresses > 3) {
                        fourth.apply(client, meta.dns.address3, stored, full);
                    }
                } else {
                    // The client may use an address that was left out.
                    tunnel_events.count(2);
                }
                if (full) {
                    // It may use that one, too.
                    tunnel_events.count(3);
                } else if (stored) {
                    if (held == 0 || held[63:32] == client) {
                        unused = held[15:0] |+| 1;
                        clients.write(place, client ++ (unused > limit ? 16w1 : 0) ++ unused);
                        tunnel_events.count(0);
                    } else {
                        tunnel_events.count(3);
                    }
                }
            } else if (is_response) {
                tunnel_events.count(2);
            } else {
                pair = hdr.own.ipv4.source ++ hdr.own.ipv4.destination;
                orphan_place = (bit<32>)SKETCH_UPPER(
                    SKETCH_HASH_OF_PAIR(0, hdr.own.ipv4.source, hdr.own.ipv4.destination),
                    DNS_TUNNEL_BITS
                );
                orphans.read(orphan, orphan_place);
                if (orphan == pair) {
                    orphans.write(orphan_place, 0);
                    tunnel_events.count(1);
                    if (held[63:32] == client) {
                        clients.write(place, held[63:16] ++ (held[15:0] |-| 1));
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

// Requests to switches that failed go to the next of their list (rule 11; NetChain Algorithm 2).

#ifndef STATEPLANE_COORDINATION_REDIRECT_P4
#define STATEPLANE_COORDINATION_REDIRECT_P4

#include "coordination_message.p4"
#include "events.p4"
#include "metadata.p4"
#include "rules.p4"
#include "send.p4"

// Failed switches that are known at a time, for which Redirects is unrolled.
#define COORDINATION_REDIRECTS 4

// Their addresses, 0 for none, and how many places there have ever been used.
register<bit<32>>(COORDINATION_REDIRECTS) redirected_address;
register<bit<32>>(1) redirects_used;

// True if an address is one of a failed switch.
control IsRedirected(in bit<32> address, out bool redirected) {
    bit<32> failed;

    apply {
        redirected_address.read(failed, 0);
        redirected = failed == address;
        redirected_address.read(failed, 1);
        redirected = redirected || failed == address;
        redirected_address.read(failed, 2);
        redirected = redirected || failed == address;
        redirected_address.read(failed, 3);
        redirected = redirected || failed == address;
        redirected = redirected && address != 0;
    }
}

// Sends the request to the next of its list if the one it is for failed.
control RedirectOnce(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    inout bool drops
) {
    IsRedirected() is_redirected;
    bool redirected;
    bit<32> next;

    apply {
        is_redirected.apply(hdr.ipv4.destination, redirected);
        if (redirected && !drops) {
            next = 0;
            if (hdr.ipv4.destination == hdr.message.chain_1) {
                next = hdr.message.chain_2;
            } else if (hdr.ipv4.destination == hdr.message.chain_2) {
                next = hdr.message.chain_3;
            } else if (hdr.ipv4.destination == hdr.message.chain_3) {
                next = hdr.message.chain_4;
            }
            if (hdr.message.hops == 0 || next == 0) {
                drops = true;
                coordination_events.count(EVENT_REDIRECTS_OVER);
            } else {
                hdr.message.hops = hdr.message.hops - 1;
                hdr.ipv4.destination = next;
                // The client's sum covers what was changed.
                hdr.udp.checksum = 0;
                meta.sends = true;
                coordination_events.count(EVENT_REDIRECTED);
            }
        }
    }
}

// Redirects a request that passes by, as often as its list is long.
control Redirect(
    inout coordination_headers_t hdr,
    inout coordination_metadata_t meta,
    out bool drops
) {
    RedirectOnce() first;
    RedirectOnce() second;
    RedirectOnce() third;
    bit<32> used;

    apply {
        drops = false;
        redirects_used.read(used, 0);
        if (used != 0
            && hdr.message.isValid()
            && (hdr.message.type == TYPE_REQUEST || !RULE_REDIRECT_REQUESTS)) @unlikely {
            first.apply(hdr, meta, drops);
            second.apply(hdr, meta, drops);
            third.apply(hdr, meta, drops);
        }
    }
}

// REDIRECT.
control HandleRedirect(inout coordination_headers_t hdr, inout coordination_metadata_t meta) {
    DropValue() drop_value;
    SendToClient() send_to_client;

    apply {
        if (hdr.message.slot >= COORDINATION_REDIRECTS) {
            coordination_events.count(EVENT_BAD_MESSAGE);
        } else {
            redirected_address.write((bit<32>)hdr.message.slot, hdr.message.chain_1);
            redirects_used.write(0, 1);
            hdr.message.type = TYPE_REDIRECTED;
            meta.group.applied = 0;
            drop_value.apply(hdr);
            send_to_client.apply(hdr, meta);
        }
    }
}

#endif

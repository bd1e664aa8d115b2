// The user plane of an EPC serving gateway: GTP-U (3GPP TS 29.281) between base
// stations and a packet gateway. Signalling sets the tunnels, data packets read them,
// and both survive the switch.

#include <core.p4>
#include <v1model.p4>

// The session's two tunnels, and whether there is one.
#define REPLICATION_STATE_BITS 136
#include "replication.p4"
#include "router.p4"
#include "ipv4.p4"
#include "transport.p4"

#ifndef GATEWAY_SHARDS
#define GATEWAY_SHARDS 4
#endif

const bit<8> CLASS_SESSION = 6;
const bit<16> GTP_U_PORT = 2152;
const bit<16> SIGNALLING_PORT = 4802;

// Message types of TS 29.281 6.1.
const bit<8> GTP_ECHO_REQUEST = 1;
const bit<8> GTP_ECHO_RESPONSE = 2;
const bit<8> GTP_ERROR_INDICATION = 26;
// No more comes by the tunnel; on its way it is a G-PDU without a payload (7.3.2).
const bit<8> GTP_END_MARKER = 254;
const bit<8> GTP_G_PDU = 255;

// Bytes of a frame with an Error Indication.
const bit<32> ERROR_INDICATION_FRAME = 66;

// Signals. A reply has the bit SIGNAL_REPLY besides.
const bit<8> SIGNAL_CREATE = 1;
// Handover: another base station, or another tunnel to it.
const bit<8> SIGNAL_MOVE = 2;
const bit<8> SIGNAL_DELETE = 3;
const bit<8> SIGNAL_REPLY = 0x80;

const bit<8> STATUS_ACCEPTED = 0;
const bit<8> STATUS_NO_SESSION = 1;

// Indices of `gateway_events`.
const bit<32> GATEWAY_UPLINK = 0;
const bit<32> GATEWAY_DOWNLINK = 1;
const bit<32> GATEWAY_SIGNALLED = 2;
const bit<32> GATEWAY_NO_SESSION = 3;
const bit<32> GATEWAY_NOT_TRUSTED = 4;
const bit<32> GATEWAY_ECHO = 5;
const bit<32> GATEWAY_INDICATED = 6;
const bit<32> GATEWAY_EVENTS = 7;

// TS 29.281 5.1, without the optional part.
header gtp_u_t {
    bit<3> version;
    bit<1> protocol_type;
    bit<1> spare;
    bit<1> has_extension;
    bit<1> has_sequence;
    bit<1> has_n_pdu;
    bit<8> type;
    bit<16> length;
    bit<32> teid;
}

header gtp_u_optional_t {
    bit<16> sequence;
    bit<8> n_pdu;
    bit<8> next_extension;
}

// The information element Recovery (TS 29.281 8.2), whose counter is always 0.
header gtp_recovery_t {
    bit<8> type;
    bit<8> counter_value;
}

// The information elements of an Error Indication: the tunnel that is not known (8.3), and
// the address that it was asked at (8.4).
header gtp_unknown_t {
    bit<8> teid_type;
    bit<32> teid;
    bit<8> address_type;
    bit<16> address_length;
    bit<32> address;
}

// `teid` is the gateway's own, the same at both interfaces.
header signal_t {
    bit<8> operation;
    bit<8> status;
    bit<32> teid;
    bit<32> access_address;
    bit<32> access_teid;
    bit<32> core_address;
    bit<32> core_teid;
}

struct headers_t {
    replication_headers_t replication;
    transport_headers_t own;
    gtp_u_t gtp;
    gtp_u_optional_t gtp_optional;
    gtp_recovery_t gtp_recovery;
    gtp_unknown_t gtp_unknown;
    signal_t signal;
}

struct metadata_t {
    replication_metadata_t flow;
}

parser GatewayParser(packet_in packet, inout headers_t hdr) {
    TransportParser() own;

    state start {
        own.apply(packet, hdr.own);
        transition select(hdr.own.udp.isValid()) {
            true: udp;
            default: accept;
        }
    }

    state udp {
        transition select(hdr.own.udp.destination_port, hdr.own.udp.length) {
            (GTP_U_PORT, 16 .. 65535): gtp;
            (SIGNALLING_PORT, 30 .. 65535): signal;
            default: accept;
        }
    }

    state gtp {
        packet.extract(hdr.gtp);
        transition select(
            hdr.gtp.version,
            hdr.gtp.protocol_type,
            hdr.gtp.has_extension,
            hdr.gtp.has_sequence,
            hdr.gtp.type,
            hdr.gtp.length
        ) {
            (1, 1, 0, 1, GTP_ECHO_REQUEST, 4): gtp_optional;
            default: accept;
        }
    }

    state gtp_optional {
        packet.extract(hdr.gtp_optional);
        transition accept;
    }

    state signal {
        packet.extract(hdr.signal);
        transition accept;
    }
}

control GatewayVerifyChecksum(inout headers_t hdr) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control GatewayIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    ReplicationShard(GATEWAY_SHARDS) shard;
    ReplicationIngressBefore() replication_before;
    ReplicationIngressAfter() replication_after;
    Router() router;
    counter(GATEWAY_EVENTS, CounterType.packets) gateway_events;
    bit<32> access_side = 0;
    bit<32> core_side = 0;
    bit<32> signalling_side = 0;
    bit<1> trusted = 0;
    bit<1> indicates = 0;
    bit<64> left_tunnel;
    bit<32> peer_address;
    bit<16> peer_port;
    bool whole;

    // The gateway's own addresses towards base stations (S1-U), packet gateways (S5)
    // and whoever signals.
    action own_addresses(bit<32> access, bit<32> core, bit<32> signalling) {
        access_side = access;
        core_side = core;
        signalling_side = signalling;
    }

    table gateway_addresses {
        actions = { own_addresses; }
        default_action = own_addresses(0, 0, 0);
    }

    action trust() {
        trusted = 1;
    }

    action distrust() {
        trusted = 0;
    }

    // Addresses that may signal.
    table controllers {
        key = { hdr.own.ipv4.source: exact; }
        actions = { trust; distrust; }
        default_action = distrust();
        size = 64;
    }

    action indicate() {
        indicates = 1;
    }

    action stay_silent() {
        indicates = 0;
    }

    // True if a sender into a tunnel that is not known is told (TS 29.281 7.3.1).
    table unknown_tunnels {
        actions = { indicate; stay_silent; }
        default_action = stay_silent();
    }

    // Sends the packet back to where it came from.
    action turn() {
        peer_address = hdr.own.ipv4.source;
        hdr.own.ipv4.source = hdr.own.ipv4.destination;
        hdr.own.ipv4.destination = peer_address;
        hdr.own.ipv4.ttl = 64;
        peer_port = hdr.own.udp.source_port;
        hdr.own.udp.source_port = hdr.own.udp.destination_port;
        hdr.own.udp.destination_port = peer_port;
        // RFC 768: none.
        hdr.own.udp.checksum = 0;
    }

    apply {
        whole = standard_metadata.parser_error == error.NoError
            && standard_metadata.checksum_error == 0;
        gateway_addresses.apply();
        if (meta.flow.arriving && whole) {
            if (hdr.gtp.isValid()
                && hdr.gtp.version == 1
                && hdr.gtp.protocol_type == 1
                && (hdr.gtp.type == GTP_G_PDU || hdr.gtp.type == GTP_END_MARKER)
                && (hdr.own.ipv4.destination == access_side
                    || hdr.own.ipv4.destination == core_side)) {
                meta.flow.known = true;
                meta.flow.key = CLASS_SESSION ++ hdr.gtp.teid ++ 88w0;
            } else if (hdr.signal.isValid()
                && hdr.own.ipv4.destination == signalling_side
                && hdr.signal.operation >= SIGNAL_CREATE
                && hdr.signal.operation <= SIGNAL_DELETE) {
                controllers.apply();
                if (trusted == 1) {
                    meta.flow.known = true;
                    meta.flow.key = CLASS_SESSION ++ hdr.signal.teid ++ 88w0;
                } else {
                    gateway_events.count(GATEWAY_NOT_TRUSTED);
                }
            }
        }
        shard.apply(meta.flow);
        replication_before.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.process && meta.flow.found && hdr.signal.isValid()) {
            gateway_events.count(GATEWAY_SIGNALLED);
            hdr.signal.status = STATUS_ACCEPTED;
            if (hdr.signal.operation == SIGNAL_CREATE) {
                meta.flow.value = 8w1 ++ hdr.signal.access_address ++ hdr.signal.access_teid
                    ++ hdr.signal.core_address ++ hdr.signal.core_teid;
                meta.flow.write = true;
            } else if (meta.flow.value == 0) {
                hdr.signal.status = STATUS_NO_SESSION;
            } else if (hdr.signal.operation == SIGNAL_MOVE) {
                left_tunnel = meta.flow.value[127:64];
                meta.flow.value = 8w1 ++ hdr.signal.access_address ++ hdr.signal.access_teid
                    ++ meta.flow.value[63:0];
                meta.flow.write = true;
                // Where an End Marker belongs.
                hdr.signal.core_address = left_tunnel[63:32];
                hdr.signal.core_teid = left_tunnel[31:0];
            } else {
                meta.flow.value = 0;
                meta.flow.write = true;
            }
            hdr.signal.operation = hdr.signal.operation | SIGNAL_REPLY;
            turn();
        } else if (meta.flow.process && meta.flow.found && hdr.gtp.isValid()) {
            if (meta.flow.value == 0) {
                gateway_events.count(GATEWAY_NO_SESSION);
                unknown_tunnels.apply();
                if (indicates == 1 && hdr.gtp.type == GTP_G_PDU) {
                    gateway_events.count(GATEWAY_INDICATED);
                    hdr.gtp_unknown.setValid();
                    hdr.gtp_unknown.teid_type = 16;
                    hdr.gtp_unknown.teid = hdr.gtp.teid;
                    hdr.gtp_unknown.address_type = 133;
                    hdr.gtp_unknown.address_length = 4;
                    hdr.gtp_unknown.address = hdr.own.ipv4.destination;
                    turn();
                    hdr.own.udp.destination_port = GTP_U_PORT;
                    hdr.own.udp.length = 32;
                    hdr.own.ipv4.total_length = 52;
                    hdr.gtp.has_extension = 0;
                    hdr.gtp.has_sequence = 1;
                    hdr.gtp.has_n_pdu = 0;
                    hdr.gtp.type = GTP_ERROR_INDICATION;
                    hdr.gtp.length = 16;
                    hdr.gtp.teid = 0;
                    hdr.gtp_optional.setValid();
                    hdr.gtp_optional.sequence = 0;
                    hdr.gtp_optional.n_pdu = 0;
                    hdr.gtp_optional.next_extension = 0;
                } else {
                    mark_to_drop(standard_metadata);
                }
            } else if (hdr.own.ipv4.destination == access_side) {
                gateway_events.count(GATEWAY_UPLINK);
                hdr.own.ipv4.source = core_side;
                hdr.own.ipv4.destination = meta.flow.value[63:32];
                hdr.gtp.teid = meta.flow.value[31:0];
                hdr.own.udp.checksum = 0;
            } else {
                gateway_events.count(GATEWAY_DOWNLINK);
                hdr.own.ipv4.source = access_side;
                hdr.own.ipv4.destination = meta.flow.value[127:96];
                hdr.gtp.teid = meta.flow.value[95:64];
                hdr.own.udp.checksum = 0;
            }
        } else if (meta.flow.arriving
            && whole
            && hdr.gtp_optional.isValid()
            && (hdr.own.ipv4.destination == access_side || hdr.own.ipv4.destination == core_side)) {
            // TS 29.281 7.2.2: to the port that asked, with Recovery.
            gateway_events.count(GATEWAY_ECHO);
            turn();
            hdr.gtp.type = GTP_ECHO_RESPONSE;
            hdr.gtp.length = 6;
            hdr.gtp.teid = 0;
            hdr.gtp_recovery.setValid();
            hdr.gtp_recovery.type = 14;
            hdr.gtp_recovery.counter_value = 0;
            hdr.own.udp.length = hdr.own.udp.length + 2;
            hdr.own.ipv4.total_length = hdr.own.ipv4.total_length + 2;
        }
        replication_after.apply(hdr.replication, meta.flow, standard_metadata);
        if (meta.flow.forward) {
            // What the store gives back is looked at as what arrives is.
            if (hdr.own.ipv4.isValid()
                && hdr.own.ipv4.version == 4
                && hdr.own.ipv4.ihl == 5
                && standard_metadata.checksum_error == 0) {
                if (hdr.gtp_unknown.isValid()) {
                    // Without the packet that it is about.
                    truncate(ERROR_INDICATION_FRAME);
                }
                router.apply(hdr.own.ethernet, hdr.own.ipv4, standard_metadata);
            } else {
                mark_to_drop(standard_metadata);
            }
        }
    }
}

control GatewayComputeChecksum(inout headers_t hdr) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.own.ipv4);
    }
}

control GatewayDeparser(packet_out packet, in headers_t hdr) {
    TransportDeparser() own;

    apply {
        own.apply(packet, hdr.own);
        packet.emit(hdr.gtp);
        packet.emit(hdr.gtp_optional);
        packet.emit(hdr.gtp_recovery);
        packet.emit(hdr.gtp_unknown);
        packet.emit(hdr.signal);
    }
}

#define PROGRAM_PARSER GatewayParser
#define PROGRAM_VERIFY_CHECKSUM GatewayVerifyChecksum
#define PROGRAM_INGRESS GatewayIngress
#define PROGRAM_COMPUTE_CHECKSUM GatewayComputeChecksum
#define PROGRAM_DEPARSER GatewayDeparser
#include "replicated_switch.p4"

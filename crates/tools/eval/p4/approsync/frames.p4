// Frames of the systems that sync is compared with, and of the traffic that all of them count.
//
// LOCATIONS is the number of counters, a power of two. A packet is counted at the low bits of its
// source address; with SKETCH in three rows of COLUMNS counters each, at hashes of that address
// (count-min, Cormode and Muthukrishnan, 2005). COUNTED is what a packet adds.

#ifndef COMPARED_FRAMES_P4
#define COMPARED_FRAMES_P4

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

// Port of the control plane, and a port whose frames come back in.
#define CONTROL_PORT 500
#define LOOP_PORT 9

// ApproSync's reserved protocol type (its Fig. 7).
const bit<16> ETHERTYPE_STATE = 0xffff;

const bit<8> STATE_PUSH = 1;
const bit<8> STATE_WRITE = 2;
const bit<8> STATE_RESET = 3;
const bit<8> STATE_ACK = 4;
// The switch's operating system has an entry of the table sent that is too old.
const bit<8> STATE_EXPIRE = 5;
// An update that met the lock, on its way round.
const bit<8> STATE_RETRY = 6;

// ApproSync's Fig. 7, with the type of the message, and locations of 32 bits: 16 do not address
// the counters of its Table II.
header state_t {
    bit<8> type;
    bit<8> free_lock;
    bit<16> state_num;
    bit<32> seq_num;
    // The threshold that Algorithm 1 sends along.
    bit<64> threshold;
}

header update_t {
    bit<32> location;
    bit<64> value;
}

// Most updates of a write.
#define UPDATES 10

struct headers_t {
    ethernet_t ethernet;
    state_t state;
    update_t[UPDATES] updates;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<16> left;
}

parser Read(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard
) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            ETHERTYPE_STATE: state_message;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state state_message {
        packet.extract(hdr.state);
        meta.left = hdr.state.state_num;
        transition select(meta.left) {
            0: accept;
            default: update;
        }
    }

    state update {
        packet.extract(hdr.updates.next);
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: update;
        }
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control Write(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.state);
        packet.emit(hdr.updates);
    }
}

// Where a packet is counted.
control Locate(in ipv4_t ipv4, out bit<32> first, out bit<32> second, out bit<32> third) {
    apply {
#ifdef SKETCH
        // A CRC is linear: of products with odd numbers it is another function for each row.
#define HASHED(row, factor, location) \
        hash( \
            location, \
            HashAlgorithm.crc32, \
            (bit<32>)0, \
            { ipv4.source * factor }, \
            (bit<32>)COLUMNS \
        ); \
        location = location + row * COLUMNS;
        HASHED(0, 0x9e3779b1, first)
        HASHED(1, 0x85ebca77, second)
        HASHED(2, 0xc2b2ae3d, third)
#else
        first = ipv4.source & (LOCATIONS - 1);
        second = 0;
        third = 0;
#endif
    }
}

// Does what M says for each location of a packet.
#ifdef SKETCH
#define EACH_LOCATION(M) M(first) M(second) M(third)
#else
#define EACH_LOCATION(M) M(first)
#endif

// Puts an update behind those that the message has, as far as there is room.
control Append(in bit<32> location, in bit<64> value, inout headers_t hdr) {
    apply {
#define APPEND(i) \
        if (hdr.state.state_num == i) { \
            hdr.updates[i].setValid(); \
            hdr.updates[i].location = location; \
            hdr.updates[i].value = value; \
        }
        APPEND(0)
        APPEND(1)
        APPEND(2)
        hdr.state.state_num = hdr.state.state_num + 1;
    }
}

// Makes the packet a message without updates. Forwarding is not part of what is compared: a packet
// that pushes goes to the control plane in the place of a copy of it.
control Begin(in bit<64> threshold, inout headers_t hdr) {
    apply {
        hdr.state.setValid();
        hdr.state.type = STATE_PUSH;
        hdr.state.free_lock = 0;
        hdr.state.state_num = 0;
        hdr.state.seq_num = 0;
        hdr.state.threshold = threshold;
    }
}

// Sends the message to `port`, if it has updates.
control Send(in bit<9> port, inout headers_t hdr, inout standard_metadata_t standard) {
    apply {
        if (hdr.state.state_num != 0) {
            hdr.ethernet.ether_type = ETHERTYPE_STATE;
            truncate(30 + 12 * (bit<32>)hdr.state.state_num);
            standard.egress_spec = port;
        }
    }
}

#endif

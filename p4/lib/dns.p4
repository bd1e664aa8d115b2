// DNS over UDP and IPv4 (RFC 1035): the question's name as a hash, and the addresses of the answer.
//
// Names are parsed up to DNS_NAME_BYTES, with their length octets and the last 0. A longer name, one
// with a pointer or of another form than RFC 1035 has is unknown: `named` stays false, and nothing
// behind it is parsed. Letters count as small ones (RFC 4343).
//
// Records are parsed up to DNS_RECORDS, while their names are pointers and their data has at most
// 255 bytes. Of records A of class IN the first four addresses are kept. `all` says that neither a
// record nor an address was left out.

#ifndef STATEPLANE_DNS_P4
#define STATEPLANE_DNS_P4

#include "headers.p4"
#include "sketch.p4"
#include "transport.p4"

// Bytes of a name at most, up to 255.
#ifndef DNS_NAME_BYTES
#define DNS_NAME_BYTES 128
#endif
// Records of the answer at most.
#ifndef DNS_RECORDS
#define DNS_RECORDS 8
#endif

const bit<16> DNS_PORT = 53;
const bit<16> DNS_TYPE_A = 1;
const bit<16> DNS_CLASS_IN = 1;
const bit<16> DNS_BYTES = 12;
// Bytes of a question behind its name, and of a record in front of its data.
const bit<16> DNS_QUESTION_BYTES = 4;
const bit<16> DNS_RECORD_BYTES = 12;
// A pointer to the name in the question.
const bit<16> DNS_NAME_OF_QUESTION = 0xc00c;

// Coefficients of the hash of names, behind those of the programs' functions.
const bit<64> DNS_HASH_BEGIN = SKETCH_COEFFICIENT(512);
const bit<64> DNS_HASH_FACTOR = SKETCH_COEFFICIENT(513) | 1;

header dns_t {
    bit<16> id;
    bit<1> response;
    bit<4> opcode;
    bit<1> authoritative;
    bit<1> truncated;
    bit<1> recursion_desired;
    bit<1> recursion_available;
    bit<3> reserved;
    bit<4> outcome;
    bit<16> questions;
    bit<16> answers;
    bit<16> authorities;
    bit<16> additionals;
}

header dns_byte_t {
    bit<8> value;
}

header dns_question_t {
    bit<16> record_type;
    bit<16> record_class;
}

header dns_record_t {
    bit<16> name;
    bit<16> record_type;
    bit<16> record_class;
    bit<32> ttl;
    bit<16> length;
    varbit<2040> data;
}

struct dns_headers_t {
    dns_t message;
    dns_byte_t[DNS_NAME_BYTES] name;
    dns_question_t question;
    dns_record_t[DNS_RECORDS] records;
}

struct dns_metadata_t {
    // The question's name has ended within the bound, and its hash.
    bool named;
    bit<64> name_hash;
    // All records of the answer were parsed, and all addresses kept.
    bool all;
    bool keeps_all;
    bit<3> addresses;
    bit<32> address0;
    bit<32> address1;
    bit<32> address2;
    bit<32> address3;
    // Bytes of the message that were parsed.
    bit<16> used;
    // Bytes that the name, and its label, may still have; records that are still to come.
    bit<8> room;
    bit<8> label;
    bit<16> records;
    bit<8> places;
    // Of the next record.
    bit<16> record_type;
    bit<16> record_class;
    bit<16> length;
}

parser DnsParser(packet_in packet, out dns_headers_t hdr, inout dns_metadata_t meta) {
    bit<8> octet;
    bit<96> ahead;

    state start {
        meta.named = false;
        meta.all = false;
        meta.keeps_all = true;
        meta.addresses = 0;
        meta.address0 = 0;
        meta.address1 = 0;
        meta.address2 = 0;
        meta.address3 = 0;
        meta.name_hash = DNS_HASH_BEGIN;
        meta.used = DNS_BYTES;
        meta.room = DNS_NAME_BYTES;
        meta.label = 0;
        meta.places = DNS_RECORDS;
        meta.records = 0;
        meta.record_type = 0;
        meta.record_class = 0;
        meta.length = 0;
        packet.extract(hdr.message);
        meta.records = hdr.message.answers;
        // One question: others are in no use (RFC 9619).
        transition select(hdr.message.questions) {
            1: name;
            default: accept;
        }
    }

    state name {
        transition select(meta.room, packet.lookahead<bit<8>>()) {
            (0, _): accept;
            (_, 0): last;
            // A label of up to 63 bytes; neither a pointer nor of another kind.
            (_, 0 &&& 0xc0): length;
            default: accept;
        }
    }

    state length {
        meta.label = packet.lookahead<bit<8>>() + 1;
        transition text;
    }

    // The length octet of a label, and its text.
    state text {
        packet.extract(hdr.name.next);
        octet = hdr.name.last.value;
        octet = octet | ((octet >= 0x41 && octet <= 0x5a) ? 8w0x20 : 0);
        meta.name_hash = (meta.name_hash ^ (bit<64>)octet) * DNS_HASH_FACTOR;
        meta.name_hash = meta.name_hash ^ (meta.name_hash >> 32);
        meta.used = meta.used + 1;
        meta.room = meta.room - 1;
        meta.label = meta.label - 1;
        transition select(meta.label, meta.room) {
            (0, _): name;
            (_, 0): accept;
            default: text;
        }
    }

    state last {
        packet.extract(hdr.name.next);
        packet.extract(hdr.question);
        meta.named = true;
        meta.used = meta.used + 1 + DNS_QUESTION_BYTES;
        transition record;
    }

    state record {
        transition select(meta.records, meta.places) {
            (0, _): all_of_them;
            (_, 0): accept;
            default: record_name;
        }
    }

    state all_of_them {
        meta.all = meta.keeps_all;
        transition accept;
    }

    state record_name {
        transition select(packet.lookahead<bit<2>>()) {
            3: record_head;
            default: accept;
        }
    }

    state record_head {
        ahead = packet.lookahead<bit<96>>();
        meta.record_type = ahead[79:64];
        meta.record_class = ahead[63:48];
        meta.length = ahead[15:0];
        transition select(meta.record_type, meta.record_class, meta.length, meta.addresses) {
            (DNS_TYPE_A, DNS_CLASS_IN, 4, 0): address_0;
            (DNS_TYPE_A, DNS_CLASS_IN, 4, 1): address_1;
            (DNS_TYPE_A, DNS_CLASS_IN, 4, 2): address_2;
            (DNS_TYPE_A, DNS_CLASS_IN, 4, 3): address_3;
            (DNS_TYPE_A, DNS_CLASS_IN, 4, 4): left_out;
            (_, _, 0 &&& 0xff00, _): data;
            default: accept;
        }
    }

    state address_0 {
        meta.address0 = packet.lookahead<bit<128>>()[31:0];
        meta.addresses = 1;
        transition data;
    }

    state address_1 {
        meta.address1 = packet.lookahead<bit<128>>()[31:0];
        meta.addresses = 2;
        transition data;
    }

    state address_2 {
        meta.address2 = packet.lookahead<bit<128>>()[31:0];
        meta.addresses = 3;
        transition data;
    }

    state address_3 {
        meta.address3 = packet.lookahead<bit<128>>()[31:0];
        meta.addresses = 4;
        transition data;
    }

    state left_out {
        meta.keeps_all = false;
        transition data;
    }

    state data {
        packet.extract(hdr.records.next, (bit<32>)meta.length << 3);
        meta.used = meta.used + DNS_RECORD_BYTES + meta.length;
        meta.records = meta.records - 1;
        meta.places = meta.places - 1;
        transition record;
    }
}

control DnsDeparser(packet_out packet, in dns_headers_t hdr) {
    apply {
        packet.emit(hdr.message);
        packet.emit(hdr.name);
        packet.emit(hdr.question);
        packet.emit(hdr.records);
    }
}

// True of a response of a server to one question, whose name is known and which is whole: not cut
// off, neither by its server (RFC 2181 9) nor on the way, and within its datagram, with room for the
// records that were not parsed.
control DnsResponse(
    in transport_headers_t own,
    in dns_headers_t dns,
    in dns_metadata_t meta,
    in standard_metadata_t standard_metadata,
    out bool is_response,
    out bool is_known
) {
    apply {
        is_response = own.udp.isValid()
            && own.udp.source_port == DNS_PORT
            && (!dns.message.isValid() || dns.message.response == 1);
        is_known = is_response
            && dns.message.isValid()
            && dns.message.opcode == 0
            && dns.message.truncated == 0
            && meta.named
            && standard_metadata.parser_error == error.NoError
            && UDP_BYTES + meta.used <= own.udp.length
            && (meta.records == 0 || UDP_BYTES + meta.used < own.udp.length)
            && own.udp.length <= own.ipv4.total_length - IPV4_BYTES;
    }
}

#endif

// FTP monitor (ApproSync Table II, FM; after SNAP's example): a data connection with a server is let
// through only if one of its control connections has announced it, by the command PORT or the
// reply 227 to PASV (RFC 959).

#include <core.p4>
#include <v1model.p4>

#include "ipv4.p4"
#include "payload.p4"
#include "router.p4"
#include "sketch.p4"

// Places of data connections, and of addresses, are 2 to this, at most 24.
#ifndef FTP_MONITOR_BITS
#define FTP_MONITOR_BITS 16
#endif
// Bytes of a message behind its command or code at most, up to 255.
#ifndef FTP_TEXT_BYTES
#define FTP_TEXT_BYTES 64
#endif

const bit<32> PLACES = 32w1 << FTP_MONITOR_BITS;
const bit<16> FTP_PORT = 21;
// Ports of services are refused (RFC 2577 3).
const bit<16> FTP_LOWEST_PORT = 1024;
// A data connection that is announced; that has begun; of which an end was seen.
const bit<2> ANNOUNCED = 1;
const bit<2> OPEN = 2;
const bit<2> CLOSING = 3;

// The data connection that was announced last for the place: 62 bits of a hash of the address and port
// that listen, and of the other address; and its state (2 bits). A place that is 0 is free.
@synced(kind = "opaque")
register<bit<64>>(PLACES) channels;
// Connections that were refused, by the low bits of the address that they came from.
@synced(kind = "counter")
register<bit<32>>(PLACES) refused;

header ftp_command_t {
    // PORT and a space.
    bit<40> text;
}

header ftp_reply_t {
    // 227 and a space.
    bit<32> text;
}

header ftp_byte_t {
    bit<8> value;
}

struct headers_t {
    payload_headers_t payload;
    ftp_command_t command;
    ftp_reply_t reply;
    ftp_byte_t[FTP_TEXT_BYTES] text;
}

struct metadata_t {
    // Bytes of the payload, and of those that may be parsed, that are still to come.
    bit<16> bytes;
    bit<8> room;
    // The number that is being read and its digits; the numbers before it.
    bit<16> number;
    bit<8> digits;
    bit<48> fields;
    bit<8> count;
    bit<1> is_reply;
    // All six numbers were read: `fields` is address and port.
    bool announces;
}

parser FtpParser(
    packet_in packet,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    PayloadParser() payload;
    bit<8> octet;

    state start {
        meta.room = FTP_TEXT_BYTES;
        meta.number = 0;
        meta.digits = 0;
        meta.fields = 0;
        meta.count = 0;
        meta.announces = false;
        meta.is_reply = 0;
        payload.apply(packet, hdr.payload, meta.bytes);
        transition select(meta.bytes, hdr.payload.own.ipv4.protocol) {
            // Shorter than any message that announces; no payload is seen without a port.
            (0 &&& 0xfff8, _): accept;
            (_, IP_PROTOCOL_TCP): message;
            default: accept;
        }
    }

    state message {
        transition select(
            hdr.payload.own.tcp.source_port,
            hdr.payload.own.tcp.destination_port,
            packet.lookahead<bit<40>>()
        ) {
            // Letters of either case.
            (_, FTP_PORT, 0x504f525420 &&& 0xdfdfdfdfff): command;
            (FTP_PORT, _, 0x3232372000 &&& 0xffffffff00): reply;
            default: accept;
        }
    }

    state command {
        packet.extract(hdr.command);
        meta.bytes = meta.bytes - 5;
        transition digit;
    }

    state reply {
        packet.extract(hdr.reply);
        meta.is_reply = 1;
        meta.bytes = meta.bytes - 4;
        transition skip;
    }

    // The numbers of a reply are in parentheses.
    state skip {
        transition select(meta.bytes, meta.room) {
            (0, _): accept;
            (_, 0): accept;
            default: skip_byte;
        }
    }

    state skip_byte {
        packet.extract(hdr.text.next);
        meta.bytes = meta.bytes - 1;
        meta.room = meta.room - 1;
        transition select(hdr.text.last.value) {
            // (
            0x28: digit;
            default: skip;
        }
    }

    state digit {
        transition select(meta.bytes, meta.room) {
            (0, _): accept;
            (_, 0): accept;
            default: digit_byte;
        }
    }

    state digit_byte {
        packet.extract(hdr.text.next);
        octet = hdr.text.last.value;
        meta.bytes = meta.bytes - 1;
        meta.room = meta.room - 1;
        transition select(octet, meta.is_reply) {
            // 0 to 7, 8 and 9.
            (0x30 &&& 0xf8, _): accumulate;
            (0x38 &&& 0xfe, _): accumulate;
            // A comma; ) behind a reply's numbers, the end of the line behind a command's.
            (0x2c, _): comma;
            (0x29, 1): last;
            (0x0d, 0): last;
            (0x0a, 0): last;
            default: accept;
        }
    }

    state accumulate {
        meta.number = meta.number * 10 + (bit<16>)octet[3:0];
        meta.digits = meta.digits + 1;
        // A number of more than 255 is none of an address or a port.
        transition select(meta.number) {
            0 &&& 0xff00: digit;
            default: accept;
        }
    }

    state comma {
        transition select(meta.digits, meta.count) {
            (0, _): accept;
            (_, 5): accept;
            default: field;
        }
    }

    state field {
        meta.fields = (meta.fields << 8) | (bit<48>)meta.number;
        meta.count = meta.count + 1;
        meta.number = 0;
        meta.digits = 0;
        transition digit;
    }

    state last {
        meta.fields = (meta.fields << 8) | (bit<48>)meta.number;
        meta.announces = meta.digits != 0 && meta.count == 5;
        transition accept;
    }
}

control FtpVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4VerifyChecksum() own;

    apply {
        own.apply(hdr.payload.own.ipv4);
    }
}

// The place and the tag of a data connection.
control FindChannel(
    in bit<32> listener,
    in bit<32> other,
    in bit<16> port,
    out bit<32> place,
    out bit<62> tag,
    out bit<2> state_of_it
) {
    bit<64> value;
    bit<64> held;

    apply {
        value = SKETCH_HASH(0, listener, other, (bit<32>)port, 32w0);
        place = (bit<32>)SKETCH_UPPER(value, FTP_MONITOR_BITS);
        value = SKETCH_HASH(1, listener, other, (bit<32>)port, 32w0);
        tag = value[63:2];
        channels.read(held, place);
        state_of_it = held[63:2] == tag ? held[1:0] : 0;
    }
}

control FtpIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    FindChannel() announced;
    FindChannel() to_listener;
    FindChannel() from_listener;
    Router() router;
    // Announcements, announcements of addresses or ports that are refused, packets of data
    // connections, and packets of servers that were dropped.
    counter(4, CounterType.packets) ftp_events;
    bool to_server = false;
    bool from_server = false;
    bool drops = false;
    bool begins;
    bool ends;
    bit<32> place;
    bit<62> tag;
    bit<2> found;
    bit<32> other_place;
    bit<62> other_tag;
    bit<2> other_found;
    bit<32> count;

    action server_is_destination() {
        to_server = true;
    }

    action server_is_source() {
        from_server = true;
    }

    // The servers that are guarded: two entries for each, one as destination and one as source.
    table servers {
        key = {
            hdr.payload.own.ipv4.source: ternary @name("source");
            hdr.payload.own.ipv4.destination: ternary @name("destination");
        }
        actions = { server_is_destination; server_is_source; NoAction; }
        default_action = NoAction();
        size = 2048;
    }

    // The announced end listens itself, so that the server speaks to no third host for a client
    // (RFC 2577 2).
    action announce() {
        channels.write(place, tag ++ ANNOUNCED);
        ftp_events.count(0);
    }

    action drop_packet() {
        drops = true;
        ftp_events.count(3);
    }

    apply {
        if (hdr.payload.own.ipv4.isValid()
            && hdr.payload.own.ipv4.version == 4
            && standard_metadata.checksum_error == 0) {
            if (hdr.payload.own.ipv4.protocol == IP_PROTOCOL_TCP) {
                servers.apply();
            }
            if (!to_server && !from_server) {
                drops = false;
            } else if (!hdr.payload.own.tcp.isValid()) {
                // Fragments and packets with options show no ports.
                drop_packet();
            } else if ((to_server && hdr.payload.own.tcp.destination_port == FTP_PORT)
                || (from_server && hdr.payload.own.tcp.source_port == FTP_PORT)) {
                if (meta.announces) {
                    // A server behind a translation names an address of its own.
                    if ((from_server || meta.fields[47:16] == hdr.payload.own.ipv4.source)
                        && meta.fields[15:0] >= FTP_LOWEST_PORT) {
                        announced.apply(
                            hdr.payload.own.ipv4.source,
                            hdr.payload.own.ipv4.destination,
                            meta.fields[15:0],
                            place,
                            tag,
                            found
                        );
                        announce();
                    } else {
                        ftp_events.count(1);
                    }
                }
            } else {
                begins = (hdr.payload.own.tcp.flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
                ends = (hdr.payload.own.tcp.flags & (TCP_FIN | TCP_RST)) != 0;
                to_listener.apply(
                    hdr.payload.own.ipv4.destination,
                    hdr.payload.own.ipv4.source,
                    hdr.payload.own.tcp.destination_port,
                    place,
                    tag,
                    found
                );
                from_listener.apply(
                    hdr.payload.own.ipv4.source,
                    hdr.payload.own.ipv4.destination,
                    hdr.payload.own.tcp.source_port,
                    other_place,
                    other_tag,
                    other_found
                );
                if (begins && (found == ANNOUNCED || found == OPEN)) {
                    if (found == ANNOUNCED) {
                        channels.write(place, tag ++ OPEN);
                    }
                    ftp_events.count(2);
                } else if (!begins && (found == OPEN || found == CLOSING)) {
                    if (ends && found == OPEN) {
                        channels.write(place, tag ++ CLOSING);
                    }
                    ftp_events.count(2);
                } else if (!begins && (other_found == OPEN || other_found == CLOSING)) {
                    if (ends && other_found == OPEN) {
                        channels.write(other_place, other_tag ++ CLOSING);
                    }
                    ftp_events.count(2);
                } else {
                    drop_packet();
                    if (begins) {
                        place = hdr.payload.own.ipv4.source & (PLACES - 1);
                        refused.read(count, place);
                        refused.write(place, count |+| 1);
                    }
                }
            }
            if (drops) {
                mark_to_drop(standard_metadata);
            } else {
                router.apply(hdr.payload.own.ethernet, hdr.payload.own.ipv4, standard_metadata);
            }
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control FtpEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata
) {
    apply { }
}

control FtpComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    Ipv4ComputeChecksum() own;

    apply {
        own.apply(hdr.payload.own.ipv4);
    }
}

control FtpDeparser(packet_out packet, in headers_t hdr) {
    PayloadDeparser() payload;

    apply {
        payload.apply(packet, hdr.payload);
        packet.emit(hdr.command);
        packet.emit(hdr.reply);
        packet.emit(hdr.text);
    }
}

V1Switch(
    FtpParser(),
    FtpVerifyChecksum(),
    FtpIngress(),
    FtpEgress(),
    FtpComputeChecksum(),
    FtpDeparser()
) main;

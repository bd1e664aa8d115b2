// *Flow's cache (Sonchack et al., USENIX ATC 2018), as ApproSync compares itself with it: a table of
// records by location, of which the one that is in the way leaves for the control plane.

#include "frames.p4"

// Puts the value of a location into the cache, and what was in its way into the message.
control Cache(in bit<32> location, in bit<64> value, inout headers_t hdr) {
    // Of each place: location and 1, or 0 if it is empty; value.
    register<bit<32>>(ENTRIES) cache_location;
    register<bit<64>>(ENTRIES) cache_value;
    Append() append;
    bit<32> place;
    bit<32> held;
    bit<64> held_value;

    apply {
        hash(place, HashAlgorithm.crc32, (bit<32>)0, { location }, (bit<32>)ENTRIES);
        cache_location.read(held, place);
        cache_value.read(held_value, place);
        cache_location.write(place, location + 1);
        cache_value.write(place, value);
        if (held != 0 && held != location + 1) {
            append.apply(held - 1, held_value, hdr);
        }
    }
}

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<64>>(LOCATIONS) values;
    Locate() locate;
    Begin() begin_push;
    Cache() cache;
    Send() send;
    bit<32> first;
    bit<32> second;
    bit<32> third;
    bit<64> value;

    apply {
        mark_to_drop(standard);
        if (hdr.ipv4.isValid()) {
            locate.apply(hdr.ipv4, first, second, third);
            begin_push.apply(0, hdr);
#define RECORD(location) \
            values.read(value, location); \
            value = value + COUNTED; \
            values.write(location, value); \
            cache.apply(location, value, hdr);
            EACH_LOCATION(RECORD)
            send.apply(CONTROL_PORT, hdr, standard);
        }
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

// Traffic mirroring: every update goes to the control plane.

#include "frames.p4"

control Process(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<64>>(LOCATIONS) values;
    Locate() locate;
    Begin() begin_push;
    Append() append;
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
#define MIRROR(location) \
            values.read(value, location); \
            value = value + COUNTED; \
            values.write(location, value); \
            append.apply(location, value, hdr);
            EACH_LOCATION(MIRROR)
            send.apply(CONTROL_PORT, hdr, standard);
        }
    }
}

V1Switch(Read(), Nothing(), Process(), Leave(), Nothing(), Write()) main;

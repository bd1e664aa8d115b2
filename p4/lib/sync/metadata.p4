// Data that the blocks of the library and the program exchange about a packet.

#ifndef STATEPLANE_SYNC_METADATA_P4
#define STATEPLANE_SYNC_METADATA_P4

#include "shape.p4"

struct sync_metadata_t {
    // For the program: the frame is the library's, which has said what becomes of it.
    bool taken;

    // The rest is the library's own.
    bool sends;
    bit<48> now;
    bit<32> switch_id;
    bit<32> own_address;
    bit<16> group;
    // The group's place in its registers.
    bit<32> at;
    sync_shape_t shape;
    // Values that are still to be parsed.
    bit<8> left;
    // Settings (SyncSettings): budget in 2^-16 µs a byte, as configured and at least; µs of a
    // window; between what t stays.
    bit<64> byte_time;
    bit<64> slowest_byte_time;
    bit<48> window;
    bit<64> finest;
    bit<64> coarsest;
}

#endif

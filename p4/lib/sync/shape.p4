// A program's description of its groups, before it includes sync.p4.

#ifndef STATEPLANE_SYNC_SHAPE_P4
#define STATEPLANE_SYNC_SHAPE_P4

// How a group's values differ (rule 1): a counter by how far it went on, modulo its width; a
// gauge by the absolute difference; an opaque value by 1.
const bit<8> SYNC_COUNTER = 0;
const bit<8> SYNC_GAUGE = 1;
const bit<8> SYNC_OPAQUE = 2;

// Place of a group in the library's registers.
struct sync_shape_t {
    bit<8> kind;
    // Ones as wide as the value.
    bit<64> mask;
    // First of its locations among all, and their number.
    bit<32> base;
    bit<32> size;
    // First place of its ring among all, and the ring's length less one. The length is a power of
    // two, at least twice the locations and SYNC_BATCH (rule 8).
    bit<32> ring_base;
    bit<32> ring_mask;
}

#endif

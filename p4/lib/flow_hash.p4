// Places of a flow in a table: two buckets, which a hash of its key chooses. Who
// sends packets chooses keys, so the hash has factors that the host draws at each start:
// without them nobody can compute flows that share the buckets of another one.
//
// Two products of 32-bit words, each with 64-bit summands of its own, are alike for two
// keys by chance alone (NH: Black et al., UMAC, CRYPTO 1999; probability 2^-32). A product
// with a random odd factor then gives a bucket by its upper bits, and one with another
// factor the other (Dietzfelbinger et al., A reliable randomized algorithm for the
// closest-pair problem, 1997; at most 2/buckets for two keys). What stands between the
// products keeps differences of keys from becoming differences of buckets, so that flows
// that are seen to collide tell nothing about others. A CRC is linear: whatever it begins
// with, the same keys collide.

#ifndef STATEPLANE_FLOW_HASH_P4
#define STATEPLANE_FLOW_HASH_P4

// The host fills it with random numbers before the first packet. They are combined with
// constants, digits of pi, so that zeros make a hash too.
@drawn_at_start
register<bit<64>>(6) flow_hash_key;

const bit<64> FLOW_HASH_0 = 0x243f6a8885a308d3;
const bit<64> FLOW_HASH_1 = 0x13198a2e03707344;
const bit<64> FLOW_HASH_2 = 0xa4093822299f31d0;
const bit<64> FLOW_HASH_3 = 0x082efa98ec4e6c89;
const bit<64> FLOW_HASH_4 = 0x452821e638d01377;
const bit<64> FLOW_HASH_5 = 0xbe5466cf34e90c6c;

// The part of a key's hash that both buckets share.
control FlowHash(in bit<128> key, out bit<64> mixed) {
    bit<64> first;
    bit<64> second;
    bit<64> third;
    bit<64> fourth;

    apply {
        flow_hash_key.read(first, 0);
        flow_hash_key.read(second, 1);
        flow_hash_key.read(third, 2);
        flow_hash_key.read(fourth, 3);
        mixed = ((first ^ FLOW_HASH_0) + (bit<64>)key[127:96])
            * ((second ^ FLOW_HASH_1) + (bit<64>)key[95:64])
            + ((third ^ FLOW_HASH_2) + (bit<64>)key[63:32])
                * ((fourth ^ FLOW_HASH_3) + (bit<64>)key[31:0]);
        mixed = mixed ^ (mixed >> 32);
    }
}

// A number below `places` by the upper half of a product with an odd factor.
bit<32> flow_place(in bit<64> mixed, in bit<64> factor, in bit<64> places) {
    bit<64> product = mixed * (factor | 1);
    return (bit<32>)(((product >> 32) * places) >> 32);
}

// The bucket, of `buckets`, that is searched first.
control FirstBucket(in bit<64> mixed, in bit<64> buckets, out bit<32> bucket) {
    bit<64> factor;

    apply {
        flow_hash_key.read(factor, 4);
        bucket = flow_place(mixed, factor ^ FLOW_HASH_4, buckets);
    }
}

// The bucket for flows that find the first one full.
control SecondBucket(in bit<64> mixed, in bit<64> buckets, out bit<32> bucket) {
    bit<64> factor;

    apply {
        flow_hash_key.read(factor, 5);
        bucket = flow_place(mixed, factor ^ FLOW_HASH_5, buckets);
    }
}

#endif

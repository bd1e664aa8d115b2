// Data that the blocks of the library and the program exchange about a packet.

#ifndef STATEPLANE_REPLICATION_METADATA_P4
#define STATEPLANE_REPLICATION_METADATA_P4

#include "replication_message.p4"

// Content of a slot while a packet is in the pipeline.
struct replication_slot_t {
    bit<32> index;
    // First slot of the second bucket, of a key that has no slot; `index` is that of the
    // first bucket.
    bit<32> second;
    bit<8> status;
    bit<32> claim;
    bit<32> epoch;
    // Its shard, and when the request was sent that its lease was granted to, 0 without a lease.
    bit<16> shard;
    bit<48> granted;
    // Leases of the shard that were granted to requests of then count now.
    bool counts;
    bit<32> sequence;
    bit<32> acknowledged;
}

@side_effects_wait
struct replication_metadata_t {
    // For the program's parser: whether its headers follow.
    bool parse_program;
    // For the program's ingress: an ordinary packet, whose flow it is to name.
    bool arriving;

    // From the program: true if the packet belongs to a replicated flow, which
    // (never 0), in which shard, and whether a shared lease is enough, because this
    // packet will not write (rule 18).
    bool known;
    bit<128> key;
    bit<16> shard;
    bool shared;

    // For the program: run the processing; and, after ReplicationIngressAfter,
    // forward the packet, which may have been processed before and waited until
    // its write was durable.
    bool process;
    bool forward;
    // The flow's state, and whether the program wrote it.
    bit<REPLICATION_STATE_BITS> value;
    bool write;

    // The rest is the library's own.
    bit<48> now;
    bit<32> incarnation;
    bit<32> switch_id;
    bool found;
    // Packets of the flow that came before this one are on their way to the store and back.
    bool behind;
    // An output packet came back.
    bool release;
    replication_slot_t slot;
    // A message is to be sent; a copy of it is to be held for retransmission; its
    // packet is to be left out.
    bool send;
    bool hold;
    bool without_packet;
    // Length of the frame without the outer headers, in bytes.
    bit<16> inner_length;
    // The way to the shard's chain.
    bool chain_known;
    bit<9> chain_port;
    bit<16> path_mtu;
    bit<32> chain_epoch;
    bit<48> chain_mac;
    bit<48> own_mac;
    bit<32> chain_address;
    bit<32> own_address;
}

#endif

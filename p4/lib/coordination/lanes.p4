// The lanes of a group: the last request of each client's lane, and what became of it.

#ifndef STATEPLANE_COORDINATION_LANES_P4
#define STATEPLANE_COORDINATION_LANES_P4

#include "coordination_message.p4"
#include "group.p4"
#include "metadata.p4"
#include "rules.p4"

#ifndef COORDINATION_LANES
#define COORDINATION_LANES 1024
#endif
#define COORDINATION_ALL_LANES (COORDINATION_GROUPS * COORDINATION_LANES)

register<bit<32>>(COORDINATION_ALL_LANES) lane_era;
register<bit<16>>(COORDINATION_ALL_LANES) lane_incarnation;
// The last request, and the number of the entry that last changed the lane.
register<bit<32>>(COORDINATION_ALL_LANES) lane_request;
register<bit<64>>(COORDINATION_ALL_LANES) lane_number;
// The last request that was no RESOLVE (rule 6); 0: none.
register<bit<32>>(COORDINATION_ALL_LANES) lane_kept_request;
register<bit<64>>(COORDINATION_ALL_LANES) lane_kept_number;
register<bit<8>>(COORDINATION_ALL_LANES) lane_kept_outcome;
register<bit<64>>(COORDINATION_ALL_LANES) lane_kept_token;

// Reads a lane; one of another era is fresh.
control LoadLane(in bit<16> lane, inout coordination_metadata_t meta) {
    bit<32> era;

    apply {
        meta.lane.index = meta.group.index * COORDINATION_LANES + (bit<32>)lane;
        lane_era.read(era, meta.lane.index);
        lane_incarnation.read(meta.lane.incarnation, meta.lane.index);
        lane_request.read(meta.lane.request, meta.lane.index);
        lane_number.read(meta.lane.number, meta.lane.index);
        if (era != meta.group.era && RULE_ERA) {
            meta.lane.incarnation = 0;
            meta.lane.request = 0;
            meta.lane.number = 0;
        }
    }
}

// Writes of the kept request of a lane what a reply tells.
control StoreKept(
    in bit<32> index,
    in bit<32> request,
    in bit<64> number,
    in bit<8> outcome,
    in bit<64> token
) {
    apply {
        lane_kept_request.write(index, request);
        lane_kept_number.write(index, number);
        lane_kept_outcome.write(index, outcome);
        lane_kept_token.write(index, token);
    }
}

// Puts the kept request of a lane into a reply (rule 6).
control PutKept(in bit<32> index, inout coordination_t message) {
    apply {
        lane_kept_request.read(message.handle, index);
        lane_kept_number.read(message.number, index);
        lane_kept_outcome.read(message.outcome, index);
        lane_kept_token.read(message.token, index);
    }
}

#endif

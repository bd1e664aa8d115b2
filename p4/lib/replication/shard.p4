// In which shard of the store a flow lies.

#ifndef STATEPLANE_REPLICATION_SHARD_P4
#define STATEPLANE_REPLICATION_SHARD_P4

#ifdef REPLICATION_OFF
#include "unreplicated.p4"
#else
#include "metadata.p4"
#endif

// Chooses one of the store's `shards` by the key of an arriving packet's flow. Only packets
// that go to the store need the shard: apply this under no condition but `arriving`, and the
// hash is computed for those alone.
control ReplicationShard(inout replication_metadata_t meta)(bit<16> shards) {
    apply {
        if (meta.arriving) {
            hash(meta.shard, HashAlgorithm.crc16, (bit<16>)0, { meta.key }, shards);
        }
    }
}

#endif

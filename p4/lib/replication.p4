// Replication of per-flow state to a chain-replicated store: the switch's half of
// docs/replication-protocol.md (RedPlane, SIGCOMM 2021). Numbers of rules refer to
// that page.
//
// A program puts four blocks around its own, by replicated_switch.p4 or one by one:
//
//   parser    ReplicationParser, then its own parser if parse_program is set
//   ingress   sets known, key, shared of packets that are `arriving`;
//             ReplicationShard, with the number of the store's shards;
//             ReplicationIngressBefore;
//             its own processing if `process` is set, which reads `value` and, to
//             write, changes it and sets `write`;
//             ReplicationIngressAfter;
//             its own forwarding if `forward` is set (rule 13)
//   egress    ReplicationEgress
//   deparser  ReplicationDeparser, then its own
//
// and ReplicationVerifyChecksum and ReplicationComputeChecksum in those controls.
//
// Clones, digests, resubmission and recirculation, and register writes in egress, are
// refused when such a program is loaded (rule 14), as its packets may wait. A control
// annotated @side_effects_allowed may have them: there, do them only for packets that
// do not wait, or no longer. `mcast_grp` of a packet that waits is cleared, so choose
// it when forwarding.
//
// The parts, in the folder `replication`, each of one subject:
//
//   parser          messages and probes, as they come in and go out
//   checksum        their checksums
//   ingress         the two blocks around the program's processing
//   slots           the table of flows
//   shard           in which shard of the store a flow lies
//   term            since when and until when leases count
//   lease           how a lease is granted, recalled, and asked about
//   request         what goes to the store
//   reply           what comes from it
//   order           packets that come back leave once, and in order
//   retransmission  held copies of requests
//   metadata        what blocks tell each other about a packet
//   events, ports   what is counted; ports and mirror sessions

#ifndef STATEPLANE_REPLICATION_P4
#define STATEPLANE_REPLICATION_P4

#ifdef REPLICATION_OFF
#include "unreplicated.p4"
#else

#include "replication/checksum.p4"
#include "replication/ingress.p4"
#include "replication/parser.p4"
#include "replication/retransmission.p4"

#endif

#include "replication/shard.p4"

#endif

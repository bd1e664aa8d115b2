// Sync: the control plane's view of register arrays, with a bound that is true. The switch's half
// of docs/sync-protocol.md (after ApproSync). Numbers of rules refer to that page.
//
// A program defines SYNC_GROUPS, SYNC_LOCATIONS and SYNC_RINGS, includes sync/shape.p4, defines
// SyncShape and SyncAccess (sync/change.p4), includes this file, and applies SyncParser first in
// its parser, SyncIngress first in its ingress, SyncBefore and SyncAfter around each change, and
// SyncDeparser in its deparser. SyncAge tells packets that come while no engine polls (rule 28).

#ifndef STATEPLANE_SYNC_P4
#define STATEPLANE_SYNC_P4

#include "sync/age.p4"
#include "sync/ingress.p4"
#include "sync/parser.p4"

#endif

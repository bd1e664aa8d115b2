// Rules of docs/replication-protocol.md that can be switched off, each alone, to
// show that a checker notices. A program that is used leaves them all on.

#ifndef STATEPLANE_REPLICATION_RULES_P4
#define STATEPLANE_REPLICATION_RULES_P4

#ifdef REPLICATION_FAULT_INSTALL_ONCE
const bool RULE_INSTALL_ONCE = false;
#else
const bool RULE_INSTALL_ONCE = true;
#endif

#ifdef REPLICATION_FAULT_RELEASE_ONCE
const bool RULE_RELEASE_ONCE = false;
#else
const bool RULE_RELEASE_ONCE = true;
#endif

#ifdef REPLICATION_FAULT_INCARNATION
const bool RULE_INCARNATION = false;
#else
const bool RULE_INCARNATION = true;
#endif

#ifdef REPLICATION_FAULT_RETRANSMISSION
const bool RULE_RETRANSMISSION = false;
#else
const bool RULE_RETRANSMISSION = true;
#endif

#ifdef REPLICATION_FAULT_KEY_COMPARISON
const bool RULE_KEY_COMPARISON = false;
#else
const bool RULE_KEY_COMPARISON = true;
#endif

#ifdef REPLICATION_FAULT_LEASE_DEADLINE
const bool RULE_LEASE_DEADLINE = false;
#else
const bool RULE_LEASE_DEADLINE = true;
#endif

#ifdef REPLICATION_FAULT_LEASE_SINCE
const bool RULE_LEASE_SINCE = false;
#else
const bool RULE_LEASE_SINCE = true;
#endif

#ifdef REPLICATION_FAULT_GRANT_SENT
const bool RULE_GRANT_SENT = false;
#else
const bool RULE_GRANT_SENT = true;
#endif

#ifdef REPLICATION_FAULT_RELEASE_ORDER
const bool RULE_RELEASE_ORDER = false;
#else
const bool RULE_RELEASE_ORDER = true;
#endif

#ifdef REPLICATION_FAULT_MESSAGE_CHECKSUM
const bool RULE_MESSAGE_CHECKSUM = false;
#else
const bool RULE_MESSAGE_CHECKSUM = true;
#endif

#ifdef REPLICATION_FAULT_RECALL_STOPS
const bool RULE_RECALL_STOPS = false;
#else
const bool RULE_RECALL_STOPS = true;
#endif

#endif
